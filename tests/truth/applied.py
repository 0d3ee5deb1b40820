"""What the applied posteriors share: the truth is a long reference run of NUTS in float64
(make_references.py).
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from record import Draws, Row, Truth, coordinate

FILE = Path(__file__).parent / "references.json"
Numbers = dict[str, Callable[[Draws], np.ndarray]]


class Applied(NamedTuple):
    """A posterior, the numbers of it that are looked at, and how the reference is sampled where not
    as it stands.
    """

    name: str
    target: Callable[[], Any]
    numbers: Numbers
    note: str = ""
    # the same posterior in parameters that NUTS moves in well
    other: Callable[[], Any] | None = None
    back: Callable[[Draws], Draws] = lambda draws: draws  # from those to the posterior's own
    is_diagonal: bool = False  # the mass of the reference run

    def row(self) -> Row:
        return Row(self.name, self.target, lambda: truths_of(self), "NUTS", self.note)


@cache
def references() -> dict[str, Any]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def truths_of(applied: Applied) -> list[Truth]:
    """The stored truths of a posterior, with their errors."""
    if applied.name not in references():
        raise AssertionError(
            f"{applied.name} has no reference; make it with tests/truth/make_references.py "
            f"{applied.name!r}"
        )
    found = references()[applied.name]
    return [
        Truth(
            name,
            of,
            known["mean"],
            known["variance"],
            tuple(known["lower"]),
            tuple(known["upper"]),
            tuple(known["errors"]),
        )
        for name, of in applied.numbers.items()
        for known in [found[name]]
    ]


def numbers(**counts: int) -> Numbers:
    """Every number of some variables: a count of 0 is a variable that is one number."""
    found: Numbers = {}
    for name, count in counts.items():
        if count == 0:
            found[name] = coordinate(name)
        found |= {f"{name}[{index}]": coordinate(name, index) for index in range(count)}
    return found


def normal(x, mean, log_scale):
    """log N(x; mean, exp(log_scale)^2), without the constant."""
    return -0.5 * ((x - mean) * jnp.exp(-log_scale)) ** 2 - log_scale


def half_cauchy(log_x, scale):
    """Of x = exp(log_x), with the volume of the logarithm."""
    return log_x - jnp.log1p((jnp.exp(log_x) / scale) ** 2)


def half_normal(log_x, scale):
    return log_x - 0.5 * (jnp.exp(log_x) / scale) ** 2


def single(values) -> np.ndarray:
    return np.asarray(values, np.float32)
