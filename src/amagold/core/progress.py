"""A bar on a terminal for work that takes more than a moment; elsewhere nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SOON = 2.0  # seconds, below which nothing is shown

Steps = Callable[[int, int], None]  # (how many are done, of how many)


@contextmanager
def show_steps(what: str, *, shown: bool | None = None) -> Iterator[Steps]:
    """A function to call with how far the work is.

    Args:
      what: is being done, for people to read.
      shown: whether to show it; None shows it on a terminal.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    visible = console.is_terminal if shown is None else shown
    began = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console, transient=True, disable=not visible)
    task = progress.add_task(what, total=None)

    def report(done: int, total: int) -> None:
        if visible and not progress.live.is_started and time.monotonic() - began > SOON:
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        progress.stop()
