"""Speed as ratios within one run: machines differ and are busy, ratios stay."""

from collections.abc import Sequence


def run(only: Sequence[str] | None = None, seconds: float = 1.0) -> None:
    """Print one table, a row for each benchmark.

    Args:
      only: names of the benchmarks to run; None runs all but those that take minutes, which the
        last line names.
      seconds: time for each side of a measurement, after compilation.
    """
    from amagold.core import checks
    from amagold.core.devices import use_all_cores
    from amagold_lab.bench.benchmark_table import print_table
    from amagold_lab.bench.benchmarks import BENCHMARKS

    checks.number("seconds", seconds, above=0.0, remedy="give the time for each measurement")
    names = [benchmark.name for benchmark in BENCHMARKS]
    if only is not None and not only:
        raise ValueError(
            f"only must name benchmarks among {', '.join(names)}, got none; leave it out to run "
            "them all"
        )
    for name in only or ():
        if name not in names:
            raise ValueError(f"only must name benchmarks among {', '.join(names)}, got {name!r}")
    use_all_cores()
    print_table(
        [
            benchmark
            for benchmark in BENCHMARKS
            if (benchmark.name in only if only else not benchmark.is_long)
        ],
        seconds,
    )
    if not only:
        print(
            "Minutes each, so by name alone (--only): "
            f"{', '.join(benchmark.name for benchmark in BENCHMARKS if benchmark.is_long)}"
        )
