"""The numbers of a run, as they are asked for and stored."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amagold.adaptation._warmup import SgdBurnIn, Warmup
from amagold.core import checks
from amagold.core.files import as_path

LARGEST = 2**32  # keys are made from 32-bit numbers


@dataclass(frozen=True)
class Settings:
    """What `amagold.sample` was asked for."""

    num_samples: int
    num_warmup: int
    num_chains: int
    seed: int
    thin: int
    warmup: Warmup

    def __post_init__(self) -> None:
        checks.whole_number(
            "num_samples",
            self.num_samples,
            at_least=1,
            remedy="give the number of draws to keep of each chain",
        )
        checks.whole_number(
            "num_warmup",
            self.num_warmup,
            at_least=0,
            remedy="give the transitions before the first kept draw, or 0",
        )
        checks.whole_number(
            "num_chains", self.num_chains, at_least=1, remedy="give the number of chains"
        )
        checks.whole_number(
            "seed",
            self.seed,
            at_least=0,
            remedy="give a whole number; the same one gives the same draws",
        )
        checks.whole_number(
            "thin", self.thin, at_least=1, remedy="give the number of transitions per kept draw"
        )
        if not isinstance(self.warmup, Warmup):
            raise ValueError(
                f"warmup must be an amagold.Warmup, got {type(self.warmup).__name__}; give for "
                "example amagold.Warmup(mass='dense')"
            )
        for name in ("num_samples", "num_warmup", "num_chains", "seed", "thin"):
            # NumPy's numbers are not JSON's
            object.__setattr__(self, name, int(getattr(self, name)))
        if self.seed >= LARGEST:
            raise ValueError(
                f"seed must be below 2^32, got {self.seed}; larger ones would give the draws of "
                "smaller ones"
            )
        if self.num_warmup + self.num_samples * self.thin >= LARGEST:
            raise ValueError(
                "num_warmup + num_samples * thin must be below 2^32 transitions, got "
                f"{self.num_warmup + self.num_samples * self.thin}; "
                "run shorter chains, or more of them"
            )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Settings":
        warmup = dict(stored["warmup"])
        warmup["sgd"] = None if warmup["sgd"] is None else SgdBurnIn(**warmup["sgd"])
        return cls(**{**stored, "warmup": Warmup(**warmup)})


def check_assertions(name: str) -> None:
    """Raise where Python leaves assertions out: Zarr does work inside them, and cannot open what it
    has written.
    """
    if not __debug__:
        raise ValueError(
            f"{name} cannot be used under python -O or -OO, which Zarr does not bear; run Python "
            "without the flag"
        )


def check_path(store: Any) -> Path | None:
    """The folder of a new run; raises when something is there already."""
    if store is None:
        return None
    path = as_path("store", store, "the path of a folder to make, or None")
    check_assertions("store")
    if path.exists():
        raise ValueError(
            f"store must be a new path, but {str(path)!r} exists already; go on with "
            f"amagold.resume({str(path)!r}, ...), or give "
            "another path"
        )
    if not path.absolute().parent.is_dir():
        raise ValueError(
            f"store must lie in a folder that exists, but {str(path.absolute().parent)!r} does "
            "not; make it first"
        )
    return path


def check_max_time(max_time: float | None) -> None:
    if max_time is not None:
        checks.number("max_time", max_time, above=0.0, remedy="give seconds, or None")
