"""The table: each ratio beside its bound."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from amagold_lab.bench.measure import Benchmark, NoRatioError


def print_table(benchmarks: Sequence[Benchmark], seconds: float) -> None:
    """Measure every benchmark and print the table."""
    console = Console()
    table = Table(
        title="Ratios within this run",
        caption="compile: seconds before the measurement, not part of it",
    )
    for title in ("benchmark", "ratio", "wanted", "", "compile"):
        table.add_column(title, no_wrap=True)
    table.add_column("what is compared", ratio=1)
    for benchmark in benchmarks:
        with console.status(benchmark.name):
            table.add_row(*table_row(benchmark, seconds))
    console.print(table)


def table_row(benchmark: Benchmark, seconds: float) -> tuple[str, ...]:
    """The row's cells; a benchmark without a ratio says why."""
    wanted = f"{'>=' if benchmark.at_least else '<='} {benchmark.bound:g}"
    try:
        found = benchmark.measure(seconds)
    except NoRatioError as reason:
        return benchmark.name, "-", wanted, "skipped", "-", f"{reason} ({benchmark.compared})"
    verdict = "[green]met[/]" if benchmark.is_met(found.ratio) else "[red]missed[/]"
    compiled = "-" if found.compile_seconds is None else f"{found.compile_seconds:.1f} s"
    words = f"{benchmark.compared}: {found.details}" if found.details else benchmark.compared
    return benchmark.name, f"{found.ratio:.3g}", wanted, verdict, compiled, words
