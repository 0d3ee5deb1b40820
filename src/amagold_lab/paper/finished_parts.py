"""Finished parts of an experiment on disk, so that a run of hours goes on where it stopped."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

from amagold import __version__
from amagold.core.files import write_whole
from amagold.report._part_progress import PartReport


def say_nothing(words: str) -> None:
    """For those who do not watch."""


class FinishedParts:
    """The parts of one experiment: each is computed once for its settings, and read from its file
    afterwards.
    """

    def __init__(
        self, folder: Path, experiment: str, seed: int = 0, say: PartReport = say_nothing
    ) -> None:
        self.folder = folder / experiment
        self.experiment, self.seed, self.say = experiment, seed, say
        self.seconds = 0.0  # that the parts took, when they were computed

    def key(self, name: str) -> jax.Array:
        """A random key for the part of this name, the same in every run with this seed."""
        number = int.from_bytes(hashlib.sha256(f"{self.experiment}/{name}".encode()).digest()[:4])
        return jax.random.fold_in(jax.random.key(self.seed), number)

    def place(self, name: str, settings: Mapping[str, Any]) -> Path:
        """Where files of a part that keeps its own may go, such as a chain's store; without a
        suffix.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{name}-{_mark({**settings, 'seed': self.seed})}"

    def part(
        self, name: str, settings: Mapping[str, Any], compute: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """What `compute` returns, as JSON keeps it: from the file if there is one with these
        settings, else computed and written.

        Args:
          name: letters, digits, dots and hyphens; unique within the experiment.
          settings: everything that the outcome depends on beside the seed; simple values.
          compute: does the work.
        """
        self.say(name)
        place = self.place(name, settings)
        path = place.with_name(f"{place.name}.json")  # a name may have dots of its own
        known = {"settings": json.loads(json.dumps(dict(settings))), "seed": self.seed}
        if (found := _read(path)) is None or any(
            found.get(word) != value for word, value in known.items()
        ):
            start = time.perf_counter()
            numbers = compute()
            found = known | {
                "version": __version__,
                "seconds": time.perf_counter() - start,
                "numbers": numbers,
            }
            text = json.dumps(found)
            write_whole(path, text.encode(), durable=True)
            found = json.loads(text)  # fresh or from the file, the same
        self.seconds += found["seconds"]
        return found["numbers"]


def _mark(settings: Mapping[str, Any]) -> str:
    """Parts of the same name with other settings have other files."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"seconds", "numbers"} <= found.keys() else None
