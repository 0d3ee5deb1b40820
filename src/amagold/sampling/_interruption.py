"""Stopping early without losing anything: Ctrl-C and a time budget."""

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any


class Stopper:
    """Asked between chunks whether to stop. The first Ctrl-C finishes the chunk; a second one
    interrupts at once.
    """

    def __init__(self, max_time: float | None) -> None:
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self._interrupted = False
        self._earlier: Any = None

    @property
    def reason(self) -> str | None:
        """Why to stop, or None."""
        if self._interrupted:
            return "interrupted"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "out of time"
        return None

    def __enter__(self) -> "Stopper":
        # signals belong to the main thread; elsewhere an interrupt arrives as it always does
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not None
        ):
            self._earlier = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._earlier is not None:
            signal.signal(signal.SIGINT, self._earlier)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
