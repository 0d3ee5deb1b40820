"""A test that rests on bounds stops the run when one is broken: its draws would not be exact."""

from typing import Any

import numpy as np

from amagold.samplers import Info


class BrokenBoundError(ValueError):
    """An example strayed further from its Taylor polynomial than its bound allows."""


def check_bounds(info: Info) -> None:
    """Raise if any of these transitions, with axes (draw, chain), met an example that broke its
    bound.
    """
    found: Any = info.broken_bound
    if isinstance(found, tuple):
        return
    broken = np.asarray(found)
    if (broken >= 0).any():
        draw, chain = np.argwhere(broken >= 0)[0]
        raise BrokenBoundError(
            f"bounds must hold for every example, but example {int(broken[draw, chain])} broke "
            f"its bound in chain {int(chain)}: the "
            "draws would not be exact; correct the target's bounds, or use acceptance.full()"
        )
