"""Progress through work of known parts: a bar on a terminal; elsewhere nothing, or a line for each
part.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

PartReport = Callable[[str], None]


@contextmanager
def show_progress(console: Console, num_parts: int, *, lines: bool = False) -> Iterator[PartReport]:
    """A function to call with the name of each part as it begins.

    With `lines`, each part is a line where there is no terminal: the log of a run of hours tells
    how far it is.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=num_parts)
        begun = 0

        def report(part: str) -> None:
            nonlocal begun
            progress.update(task, description=part, completed=begun)
            begun += 1
            if lines and not console.is_terminal:
                console.print(
                    f"  {begun}/{num_parts} {part}", highlight=False, markup=False, soft_wrap=True
                )

        yield report
