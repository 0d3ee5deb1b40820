"""What rows count and what is added to their predictors: weights, offsets, exposures, trials."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from amagold.core.arrays import as_numbers

FARTHEST_OFFSET = 60.0  # of a log or a log odds: beyond it float32 has no room for exp(z)
LIGHTEST, HEAVIEST = 1e-18, 1e9  # weights whose sums float32 still has


class RowTerms(NamedTuple):
    """One number for each row, where there is one at all."""

    # how often a row counts in the log likelihood: above zero, once the rows are checked
    weights: Any = None
    offset: Any = None  # z = offset + x . theta
    trials: Any = None  # of which the outcome counts the successes

    @property
    def is_empty(self) -> bool:
        return all(values is None for values in self)

    @property
    def counts(self) -> np.ndarray | None:
        """How many observations each row stands for; None is one."""
        if self.trials is None or self.weights is None:
            return self.weights if self.trials is None else self.trials
        return self.weights * self.trials

    def total(self, num_rows: int) -> float:
        """How many observations all rows stand for."""
        counts = self.counts
        return float(num_rows) if counts is None else float(counts.sum())

    def mean(self, values: np.ndarray) -> float:
        """As if every observation had a row of its own."""
        return float(np.average(values, weights=self.counts))

    def median(self, values: np.ndarray) -> float:
        """The same: between the two in the middle, where there are two."""
        counts = self.counts
        if counts is None:
            return float(np.median(values))
        order = np.argsort(values)
        up_to = np.cumsum(counts[order])
        first = np.searchsorted(up_to, 0.5 * up_to[-1], "left")
        last = min(np.searchsorted(up_to, 0.5 * up_to[-1], "right"), len(values) - 1)
        return 0.5 * float(values[order[first]] + values[order[last]])

    @property
    def mean_offset(self) -> float:
        return 0.0 if self.offset is None else self.mean(self.offset)

    @property
    def log_mean_exposure(self) -> float:
        """log E[exp(offset)]."""
        if self.offset is None:
            return 0.0
        farthest = float(self.offset.max())
        return farthest + math.log(self.mean(np.exp(self.offset - farthest)))

    def stored(self) -> dict[str, Any]:
        """The fields that examples keep beside their outcome."""
        return {
            name: None if values is None else jnp.asarray(values, jnp.float32)
            for name, values in (("weight", self.weights), ("offset", self.offset))
        }


def checked_rows(given: RowTerms, num_rows: int) -> tuple[RowTerms, np.ndarray | None]:
    """The terms in float64, and which rows count where some do not; or a sentence."""
    found = RowTerms(
        *(
            None if values is None else _one_for_each(name, values, num_rows)
            for name, values in given._asdict().items()
        )
    )
    if found.trials is not None:
        is_bad = (found.trials < 1) | (found.trials != np.floor(found.trials))
        if is_bad.any():
            raise ValueError(
                f"trials must be whole numbers from 1, got {found.trials[is_bad][0]:g}; give how "
                "often each row was tried, and drop rows that were not"
            )
    if found.weights is None:
        return found, None
    if (found.weights < 0).any():
        raise ValueError(
            f"weights must not be negative, got {found.weights.min():g}; a row of weight w counts "
            "w times, and one of weight 0 is left out"
        )
    counts = found.weights > 0
    if not counts.any():
        raise ValueError("weights must be above zero for some rows, got zeros alone")
    low, high = found.weights[counts].min(), found.weights.max()
    if low < LIGHTEST or high > HEAVIEST:
        raise ValueError(
            f"weights must be zero or lie between {LIGHTEST:g} and {HEAVIEST:g}, got {low:g} to "
            f"{high:g}; give how often each row counts"
        )
    if counts.all():
        return found, None
    kept = RowTerms(*(None if values is None else values[counts] for values in found))
    return kept, counts


def check_offset(rows: RowTerms) -> None:
    """Raise where exp(z) would leave float32, for models whose z is a log or a log odds."""
    if rows.offset is not None and np.abs(rows.offset).max() > FARTHEST_OFFSET:
        farthest = rows.offset[np.argmax(np.abs(rows.offset))]
        raise ValueError(
            f"offset must lie within {FARTHEST_OFFSET:g} of zero, on the scale of x . theta, got "
            f"{farthest:g}; give the logarithm of an exposure, or other units"
        )


def with_exposure(offset: Any, exposure: Any) -> Any:
    """The offset of counts that were seen over an exposure: its logarithm."""
    if exposure is None:
        return offset
    if offset is not None:
        raise ValueError("exposure must not be given with offset, which is its logarithm")
    values = np.asarray(as_numbers("exposure", exposure), np.float64)
    if not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            "exposure must be above zero and finite in every row; drop or mend the others"
        )
    return np.log(values)


def _one_for_each(name: str, given: Any, num_rows: int) -> np.ndarray:
    values = np.asarray(as_numbers(name, given))
    if values.dtype.kind not in "biuf" or values.shape != (num_rows,):
        raise ValueError(
            f"{name} must have one number for each of the {num_rows} rows, got shape {values.shape}"
        )
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite; drop or mend those rows first")
    return values


NOTHING = RowTerms()  # of rows that count once each
