"""Missing values are refused with their columns and counts, or their rows left out."""

from typing import Any

from amagold.core.optional_packages import required
from amagold.tables._column_names import check_columns
from amagold.tables._some_rows import filtered


def without_missing(
    frame: Any, needed: list[str], drop_missing: bool, out_of_core: bool = False
) -> Any:
    """The columns that are used, without rows that miss something, or a sentence."""
    check_columns(needed, frame.columns)
    nw = required("narwhals", "tables")
    frame = frame.select(*dict.fromkeys(needed))
    # what is not a number counts as missing too
    floats = [
        name
        for name in frame.columns
        if frame[name].dtype.is_float() and frame[name].is_nan().any()
    ]
    if floats:
        frame = frame.with_columns(
            *(nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in floats)
        )
    counts = {name: int(frame[name].null_count()) for name in frame.columns}
    gaps = {name: count for name, count in counts.items() if count}
    if not gaps:
        return frame
    if not drop_missing:
        told = ", ".join(f"{count:,} in {name!r}" for name, count in gaps.items())
        raise ValueError(
            "table must have no missing values in the columns that are used, but there are "
            f"{told}; fill them in, or give drop_missing=True (--drop-missing)"
        )
    kept = filtered(frame, lambda rows: rows.drop_nulls(), out_of_core)
    if not len(kept):
        raise ValueError("table must have rows without missing values, but every row misses some")
    return kept
