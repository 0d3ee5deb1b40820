"""Signs of life: every process gives one a second, and names who gives none.

A collective with a process that is gone fails on its neighbours alone, and with one that hangs it
fails nowhere, so a thread watches beside the work.
"""

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import jax

from amagold.processes._exchange import (
    FIRST_PATIENCE,
    PREFIX,
    SLICE,
    PeerError,
    client,
    is_alone,
    patience,
)

PERIOD = 1.0  # seconds between two signs of life
QUIET = 3.5  # periods without one, after which a process is taken to be gone where work has failed
GRACE = 5.0  # seconds for work to fail by itself, before the process is ended
FAILED, LOST, LEFT = "failed: ", "lost: ", "left"  # what a process says last
NO_MEETING = "the process that the others meet at, usually the first, is gone"

REMEDY = (
    "start all processes again; a run with a store goes on from its last checkpoint with "
    "amagold.resume, with any number of processes"
)


class Watch:
    """The other processes, as this one hears of them."""

    def __init__(self) -> None:
        patience()  # a value that cannot be used is said now, and not by the thread
        self._number, self._count = jax.process_index(), jax.process_count()
        self._began = time.monotonic()
        self._said: dict[int, str] = {}
        self._heard: dict[int, float] = {}
        self._last_words: str | None = None
        self._beats = 0
        self._working_since: float | None = None
        self._lost: str | None = None
        self._lock = threading.Lock()
        self._saying = threading.Lock()  # no sign of life may follow, and hide, the last words
        self._has_left = threading.Event()
        self._thread = threading.Thread(target=self._run, name="amagold-watch", daemon=True)
        self._thread.start()
        atexit.register(self._leave)

    def wait_for(self, name: str) -> str:
        """A message of a peer, for as long as it lives."""
        while True:
            try:
                return client().blocking_key_value_get(name, int(1000 * SLICE))
            except jax.errors.JaxRuntimeError as reason:
                lost = self.who_is_lost(patience())
                if lost is not None:
                    raise self.error(lost) from None
                if "DEADLINE" not in str(reason) and "NOT_FOUND" not in str(reason):
                    raise self.error(
                        "the first process, which the others meet at, is gone"
                    ) from None

    def who_is_lost(self, quiet: float) -> str | None:
        """A sentence about a process that has failed, or not been heard of for so long."""
        now = time.monotonic()
        with self._lock:
            blamed = [word[len(LOST) :] for word in self._said.values() if word.startswith(LOST)]
            for peer in range(self._count):
                word = self._said.get(peer, "")
                if word.startswith(FAILED):
                    return f"process {peer} of {self._count} has {word[len(FAILED) :]}"
            if blamed:
                return blamed[0]
            for peer in range(self._count):
                if peer == self._number or self._said.get(peer) == LEFT:
                    continue
                since = now - self._heard.get(peer, self._began)
                if since > (quiet if peer in self._heard else max(quiet, FIRST_PATIENCE)):
                    return (
                        f"process {peer} of {self._count} has given no sign of life for "
                        f"{since:.0f} s: it has ended, or hangs"
                    )
        return None

    def error(self, lost: str) -> PeerError:
        """About a process that is lost, which the others are told too."""
        self._say(f"{LOST}{lost}")
        self._lost = lost
        return PeerError(f"{lost}; {REMEDY}")

    def explain(self, reason: Exception) -> Exception:
        """Whose loss made this process's work fail; the reason itself, if nobody's."""
        end = time.monotonic() + patience() + QUIET
        while time.monotonic() < end:
            lost = self.who_is_lost(QUIET * PERIOD)
            if lost is not None:
                return self.error(lost)
            time.sleep(PERIOD / 4)
        return reason

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work in which this process may have to wait for others."""
        if self._last_words is not None:
            raise PeerError(f"this process has failed before, and the others know it; {REMEDY}")
        self._working_since = time.monotonic()
        try:
            yield
        except PeerError:
            raise
        except jax.errors.JaxRuntimeError as reason:
            found = self.explain(reason)
            if found is reason:
                self._say(f"{FAILED}failed with {type(reason).__name__}: {reason}")
                raise
            raise found from reason
        except BaseException as reason:
            self._say(f"{FAILED}failed with {type(reason).__name__}: {reason}")
            raise
        finally:
            self._working_since = None

    def _run(self) -> None:
        found_lost: float | None = None
        while not self._has_left.wait(PERIOD):
            lost = self.who_is_lost(patience()) if self._beat() else NO_MEETING
            if lost is None or self._working_since is None:
                found_lost = None
            elif found_lost is None:
                found_lost = time.monotonic()
            elif time.monotonic() - found_lost > GRACE and self._lost is None:
                # the main thread is in a collective that will not end
                print(f"amagold: {self.error(lost)}", file=sys.stderr, flush=True)
                time.sleep(2 * PERIOD)  # for the others to hear it
                os._exit(1)

    def _beat(self) -> bool:
        """One sign of life, and those of the others; False where nobody takes them any more."""
        self._beats += 1
        try:
            with self._saying:
                if self._last_words is None:
                    client().key_value_set(self._name(), str(self._beats), allow_overwrite=True)
            found = client().key_value_dir_get(f"{PREFIX}/alive/")
        except (jax.errors.JaxRuntimeError, AttributeError):
            return False
        now = time.monotonic()
        with self._lock:
            for name, word in found:
                peer = int(name.rsplit("/", 1)[1])
                if self._said.get(peer) != word:
                    self._said[peer], self._heard[peer] = word, now
        return True

    def _say(self, word: str) -> None:
        """The last that the others hear of this process."""
        with self._saying:
            self._last_words = word
            try:
                client().key_value_set(self._name(), word, allow_overwrite=True)
            except (jax.errors.JaxRuntimeError, AttributeError):
                return

    def _name(self) -> str:
        return f"{PREFIX}/alive/{self._number}"

    def _leave(self) -> None:
        if self._last_words is not None:
            # JAX would wait minutes for the one that is lost, or for those that wait for this one
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        # a thread that is in the midst of a call when Python ends takes the process down with it
        self._say(LEFT)
        self._has_left.set()
        self._thread.join()


@lru_cache(maxsize=1)
def the_watch() -> Watch:
    """Of this process; it begins with the first question."""
    return Watch()


@contextmanager
def watched() -> Iterator[None]:
    """Work that several processes share: where one of them is lost, the others are told which."""
    if is_alone():
        yield
        return
    with the_watch().working():
        yield
