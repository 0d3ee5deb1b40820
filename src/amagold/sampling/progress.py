"""A live line while a run is under way, on a terminal; silent elsewhere."""

import sys
import time
from typing import Any

import numpy as np

SMALLEST_PAUSE = 0.1  # seconds between two updates, so that the display costs nothing


class Display:
    """Draws, draws per second, acceptance, step size, divergences and time left."""

    def __init__(self, enabled: bool, num_warmup: int, num_samples: int) -> None:
        self._progress: Any = None
        self._latest = 0.0
        self._totals = {"warm-up": num_warmup, "sampling": num_samples}
        self._task: Any = None
        self._phase: str | None = None
        self._began = 0.0
        self._first = 0
        self._divergent = 0
        if enabled:
            self._open()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        console = Console(file=sys.stderr)
        if not console.is_terminal:
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f} / {task.total:,.0f}"),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, refresh_per_second=4)
        self._progress.start()

    def update(self, phase: str, done: int, rates: Any, divergent: Any, step_size: float | None) -> None:
        """Show where the run is; cheap when nothing is shown."""
        if self._progress is None:
            return
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._began, self._first, self._divergent = phase, now, done, 0
            self._task = self._progress.add_task(phase, total=self._totals[phase], completed=done, figures="")
        self._divergent += int(np.sum(divergent))
        total = self._totals[phase]
        if now - self._latest < SMALLEST_PAUSE and done < total:
            return
        self._latest = now
        speed = (done - self._first) / max(now - self._began, 1e-9)
        figures = [f"{speed:,.0f}/s" if done > self._first else "", f"acceptance {np.mean(rates):.2f}" if np.size(rates) else ""]
        if step_size is not None:
            figures.append(f"step {step_size:.3g}")
        if self._divergent:
            figures.append(f"[red]{self._divergent} divergent[/]")
        self._progress.update(self._task, completed=done, figures="  ".join(figure for figure in figures if figure))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def say(plan: Any, enabled: bool) -> None:
    """Print the plan in words before the run begins."""
    if enabled:
        print(plan)
