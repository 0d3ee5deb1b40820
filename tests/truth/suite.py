"""All posteriors of the suite, by name."""

from functools import cache

import known
from record import Row

ALL = [*known.ROWS]
# what is known is worked out once
ROWS: dict[str, Row] = {row.name: row._replace(truths=cache(row.truths)) for row in ALL}
assert len(ROWS) == len(ALL), "names must differ"
