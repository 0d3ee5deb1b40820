"""Sums over all rows from exact values of some and an approximation of all.

With w_i how often row i counts, S the rows that were drawn, pi_i how likely that was, e_i exact
and a_i approximate values:

    sum_i w_i e_i  ~  sum_i w_i a_i + sum_S w_i (e_i - a_i) / pi_i

which is unbiased for any approximation (Magnusson et al. 2020), and exact where S is all rows.
"""

from typing import NamedTuple

import numpy as np


class RowSample(NamedTuple):
    """All rows, and those that were drawn."""

    times: np.ndarray  # w, of all
    numbers: np.ndarray  # of those that were drawn
    chances: np.ndarray  # pi, of these

    @property
    def are_all(self) -> bool:
        return len(self.numbers) == len(self.times)

    @property
    def each(self) -> np.ndarray:
        """How often each that was drawn counts for all."""
        return self.times[self.numbers] / self.chances


class RowSum(NamedTuple):
    value: float
    error: float  # of a sum over so many independent observations
    drawing_error: float  # because some rows stand for all


def row_sum(exact: np.ndarray, approximate: np.ndarray, rows: RowSample) -> RowSum:
    """The sum of e, of which there is one for each row that was drawn, and a of all rows."""
    near = approximate[rows.numbers]
    value = float(rows.times @ approximate + rows.each @ (exact - near))
    variance = _drawing_variance(rows.each * (exact - near), rows.chances)
    squares = rows.times @ approximate**2 + rows.each @ (exact**2 - near**2)
    # sum_i w_i (e_i - mean)^2, of an estimate whose square is too large by its own variance
    spread = float(squares) - (value**2 - variance) / float(rows.times.sum())
    return RowSum(value, float(np.sqrt(max(spread, 0.0))), float(np.sqrt(variance)))


def _drawing_variance(expanded: np.ndarray, chances: np.ndarray) -> float:
    """Of sum_S y_i / pi_i with a number of rows that is fixed (Hajek 1964): that of simple random
    sampling where all chances are equal; rows that are sure to be drawn add nothing.
    """
    is_open = chances < 1.0
    number, free = int(is_open.sum()), 1.0 - chances[is_open]
    if number < 2:
        return 0.0 if number == 0 else np.inf
    y = expanded[is_open]
    center = (free @ y) / free.sum()
    return float(number / (number - 1) * (free @ (y - center) ** 2))
