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
