"""One progress bar for the whole demo; silent when nobody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Report = Callable[[str], None]


@contextmanager
def show_progress(console: Console, num_parts: int) -> Iterator[Report]:
    """A function to call with the name of each part as it begins."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=num_parts)
        begun = 0

        def report(part: str) -> None:
            nonlocal begun
            progress.update(task, description=part, completed=begun)
            begun += 1

        yield report
