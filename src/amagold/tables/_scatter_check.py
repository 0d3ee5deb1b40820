"""Outcomes that the terms say exactly, as a column does that was made of another: without noise
there is no scale to estimate.
"""

import numpy as np

from amagold.models._coded_rows import CodedTable

MOST_COEFFICIENTS = 300  # that are solved for
MOST_ROWS = 100_000  # that are looked at where few show no noise
NOISE = 1e-6  # of the outcome's deviation, below which float32 sees none


def check_scatter(name: str, coded: CodedTable, outcomes: np.ndarray) -> None:
    """Raise where a sum of the terms is the outcome, by the least squares of some rows."""
    width, num_rows = len(coded.names) + 1, len(coded)
    if width > MOST_COEFFICIENTS or num_rows < 2 * width:
        return
    # few rows tell at once where there is noise
    for count in (4 * width, MOST_ROWS):
        rows = np.linspace(0, num_rows - 1, min(count, num_rows)).astype(np.int64)
        some = outcomes[rows]
        columns = _columns(coded.take(rows))
        with np.errstate(over="ignore", invalid="ignore"):
            center, spread = some.mean(), some.std()
            if not 0.0 < spread < np.inf or not np.isfinite(columns).all():
                return
            scaled = (some - center) / spread
            found = np.linalg.lstsq(columns, scaled, rcond=None)[0]
        if np.sqrt(np.mean((scaled - columns @ found) ** 2)) > NOISE:
            return
    raise ValueError(
        f"outcome {name!r} must scatter about what the terms say, but a sum of them is equal to it "
        "in all rows; leave out the term that it was made of"
    )


def _columns(coded: CodedTable) -> np.ndarray:
    """All columns of some rows, numbers standardised, with the intercept first."""
    spreads = coded.numbers.std(axis=0)
    numbers = (coded.numbers - coded.numbers.mean(axis=0)) / np.where(spreads > 0, spreads, 1.0)
    found = [np.ones((len(coded), 1)), numbers]
    for factor, size in enumerate(coded.sizes):
        place = coded.multiplied_by[factor]
        times = 1.0 if place is None else coded.multipliers[:, [place]]
        found.append((coded.codes[:, [factor]] == np.arange(size)) * times)
    return np.concatenate(found, axis=1)
