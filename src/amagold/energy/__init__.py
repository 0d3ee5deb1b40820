"""The full-data energy U and its differences: in chunks, so that memory is bounded, and precise in
float32.
"""

from amagold.energy._energy_difference import energy_difference

__all__ = ["energy_difference"]
