"""New rows for a fitted formula: what they must have is checked, by row and level."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.tables._read_table import read_table

PLAIN_FACTOR = re.compile(r"C\(\s*(?:`([^`]*)`|(\w+))\s*[,)]")  # C(month, ...)
MANY = 5  # levels that a sentence names


def first_row(frame: Any, columns: Iterable[str]) -> dict[str, Any]:
    """The first row of these columns as plain values, which tell what kind each column is."""
    return {name: _plain(frame[name][0]) for name in columns}


def new_rows(model: Any, table: Any, groups: str = "own") -> Any:
    """The columns that a model reads of a new table, as a narwhals frame, or a sentence."""
    columns = model.predicting_columns(groups)
    given = next((name for name in columns if name.startswith("<")), None)
    if given is not None and given not in read_table(table).columns:
        raise ValueError(
            f"table must hold what was added to each predictor, which was {given[1:-1]}; fit with "
            "the name of a column instead"
        )
    frame = read_table(table, columns=columns or None)
    frame = frame.select(*columns) if columns else frame
    levels = levels_of(model.terms.spec)
    for name in columns:
        _check_missing(frame[name], name)
    for name in model.terms.columns:
        if name not in columns:
            continue
        _check_column(frame[name], name, model.example[name], levels.get(name))
    return frame


def levels_of(spec: Any) -> dict[str, list[Any]]:
    """By column the levels of its factor, as formulaic keeps them."""
    found: dict[str, list[Any]] = {}
    for factor, (_, state) in spec.encoder_state.items():
        is_call = PLAIN_FACTOR.match(str(factor))
        name = (is_call[1] or is_call[2]) if is_call else str(factor)
        if "categories" in state:
            found[name] = list(state["categories"])
    return found


def _check_missing(column: Any, name: str) -> None:
    is_missing = column.is_null()
    if column.dtype.is_float():
        is_missing = is_missing | column.is_nan()
    if is_missing.any():
        raise ValueError(
            f"table must have no missing values where it is predicted for, but {name!r} misses "
            f"one in row {_first(is_missing)} (the first is 0); fill it in, or leave the row out"
        )


def _check_column(column: Any, name: str, example: Any, levels: list[Any] | None) -> None:
    ours, theirs = _kind(column), kind_of(example)
    # a boolean counts as a number, 0 or 1
    if ours != theirs and {ours, theirs} != {"booleans", "numbers"}:
        raise ValueError(
            f"table must have {theirs} in {name!r}, as the one that was fitted has, got {ours}"
        )
    if levels is None:
        return
    is_stranger = ~column.is_in(levels)
    if is_stranger.any():
        row = _first(is_stranger)
        known = ", ".join(map(repr, map(_plain, levels[:MANY])))
        more = ", ..." if len(levels) > MANY else ""
        raise ValueError(
            f"table must have levels that were fitted in {name!r}, but row {row} (the first is 0) "
            f"has {_plain(column[row])!r}; known are {known}{more}; leave such rows out, or fit "
            "again with them"
        )


def kind_of(value: Any) -> str:
    """What kind of column a plain value comes from."""
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, (int, float)):
        return "numbers"
    return "texts" if isinstance(value, str) else "times"


def _kind(column: Any) -> str:
    nw = required("narwhals", "tables")
    if column.dtype.is_numeric():
        return "numbers"
    if column.dtype == nw.Boolean:
        return "booleans"
    return "times" if column.dtype.is_temporal() else kind_of(_plain(column[0]))


def _plain(value: Any) -> Any:
    """A value of JSON, where it can be one."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping) or value is None:
        return str(value)
    try:
        return float(value) if not hasattr(value, "isoformat") else value
    except (TypeError, ValueError):
        return str(value)


def _first(flags: Any) -> int:
    return int(np.argmax(flags.to_numpy()))
