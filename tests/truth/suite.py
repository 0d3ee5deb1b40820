"""All posteriors of the suite, by name."""

from functools import cache

import applied_groups
import applied_regressions
import applied_series
import known
from record import Row

APPLIED = [*applied_groups.ROWS, *applied_regressions.ROWS, *applied_series.ROWS]
ALL = [*known.ROWS, *(applied.row() for applied in APPLIED)]
# what is known is worked out once
ROWS: dict[str, Row] = {row.name: row._replace(truths=cache(row.truths)) for row in ALL}
assert len(ROWS) == len(ALL), "names must differ"

# where a warning is right even if the claimed errors happen to be: chains cannot be expected to
# cross, or tails to be seen
HARD = {
    ".7 N(-4, I) + .3 N(4, I), d = 2": "far modes",
    "5% N(0, .1^2) + 95% N(0, 10^2), d = 5": "a spike in a slab",
    "Student-t outcomes in two clumps, N = 22": "far modes",
    "Cauchy, d = 2": "tails without moments",
    "Neal's funnel, d = 5": "a funnel",
    "eight_schools_centered": "a funnel",
}
assert set(HARD) <= set(ROWS), "names must be those of rows"
