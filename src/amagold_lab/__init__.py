"""The laboratory beside the library: the demo, the paper's experiments, the benchmarks.

The library never imports it.
"""
