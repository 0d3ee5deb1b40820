"""Sentences for bad input: which argument, what was wrong, what to do."""

from typing import Any

import numpy as np

from amagold.core import trees


def number(
    name: str, value: Any, *, above: float | None = None, at_least: float | None = None, remedy: str
) -> None:
    """Raise unless `value` is one finite number within its bound. Traced values pass: their value
    is not known yet.
    """
    if not trees.is_concrete(value):
        return
    try:
        figure = float("a text" if isinstance(value, str) else np.asarray(value))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one number, got {value!r}; {remedy}") from None
    if (
        not np.isfinite(figure)
        or (above is not None and figure <= above)
        or (at_least is not None and figure < at_least)
    ):
        bound = (
            f"above {above:g}"
            if above is not None
            else f"at least {at_least:g}"
            if at_least is not None
            else "finite"
        )
        raise ValueError(f"{name} must be a finite number {bound}, got {figure:g}; {remedy}")


def whole_number(name: str, value: Any, *, at_least: int, remedy: str) -> None:
    """Raise unless `value` is an integer of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise ValueError(
            f"{name} must be a whole number of at least {at_least}, got {value!r}; {remedy}"
        )
