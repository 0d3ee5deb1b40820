"""A live line while a run is under way, on a terminal; silent elsewhere."""

import sys
import time
from datetime import timedelta
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
        from rich.progress import Progress, TextColumn

        console = Console(file=sys.stderr)
        if not console.is_terminal:
            return
        # one text, short enough for 80 columns: several would be cut where they matter most
        columns = (TextColumn("{task.fields[line]}"),)
        self._progress = Progress(*columns, console=console, refresh_per_second=4)
        self._progress.start()

    def begin(self, phase: str, done: int) -> None:
        """Show that a phase has begun; its first chunk is compiled now."""
        if self._progress is None or phase == self._phase or not self._totals[phase]:
            return
        self._phase, self._began, self._first, self._divergent = phase, time.monotonic(), done, 0
        self._task = self._progress.add_task(
            phase, total=self._totals[phase], completed=done, line=f"{phase}: compiling"
        )

    def update(
        self, phase: str, done: int, rates: Any, divergent: Any, step_size: float | None
    ) -> None:
        """Show where the run is; cheap when nothing is shown."""
        if self._progress is None:
            return
        now = time.monotonic()
        if phase != self._phase:
            self.begin(phase, done)
        self._divergent += int(np.sum(divergent))
        total = self._totals[phase]
        if now - self._latest < SMALLEST_PAUSE and done < total:
            return
        self._latest = now
        speed = (done - self._first) / max(now - self._began, 1e-9)
        left = (
            timedelta(seconds=round((total - done) / max(speed, 1e-9)))
            if done > self._first
            else "?"
        )
        figures = [
            f"{phase} {done:,}/{total:,}",
            f"{left} left",
            f"{speed:,.0f}/s",
            f"acceptance {np.mean(rates):.2f}" if np.size(rates) else "",
        ]
        if step_size is not None:
            figures.append(f"step {step_size:.3g}")
        if self._divergent:
            # expected while the step size is sought
            figures.append(
                f"{self._divergent} divergent"
                if phase == "warm-up"
                else f"[red]{self._divergent} divergent[/]"
            )
        self._progress.update(self._task, completed=done, line="  ".join(figures))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def say(plan: Any, enabled: bool, notes: tuple[str, ...] = ()) -> None:
    """Print the plan in words before the run begins, and what the target has to say."""
    if enabled:
        print(plan, *notes, sep="\n")
