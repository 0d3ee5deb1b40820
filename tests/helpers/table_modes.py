"""Modes of tables under priors so wide that they say nothing."""

import jax
import numpy as np

from amagold.mode._mode_search import find_mode
from amagold.tables._fit import model_of
from amagold.tables._read_table import read_table

# standard deviations of the priors, in units of the coefficients
WIDE = {"linear": 1e7, "softmax": None}  # softmax: the usual one, which tells classes apart
USUAL = 1e4
TOLERANCE = 0.01  # of a standard error: three decimals, where the estimate has none


def mode_of(formula, frame, family, **of_rows):
    """The mode on the scale of the table, term by term in the order of the formula."""
    wide = WIDE.get(family, USUAL)
    target = model_of(formula, read_table(frame), family, None, False, wide, **of_rows).target
    found = find_mode(target, target.init)
    assert found.is_converged
    named = target.transform(jax.tree.map(np.asarray, found.position))
    return {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in named.items()}


def terms_of(formula):
    """The terms of a sum, the intercept first."""
    return ["Intercept", *(term.strip() for term in formula.split("~")[1].split("+"))]


def with_counts(frame):
    """With weights and offsets that differ from row to row."""
    places = np.arange(len(frame))
    return frame.assign(times=1 + places % 3, shift=0.2 * np.sin(places))
