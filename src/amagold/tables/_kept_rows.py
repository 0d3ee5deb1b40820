"""The rows of a small table, kept beside its run: arrays and texts, nothing that is executed."""

from typing import Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.store._checkpoint import Checkpoint, decode, encode
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._json_values import as_json, from_json

KIND = "rows"
BOOLEAN_OR_NUMBER = "biuf"


def encoded_rows(frame: Any) -> bytes:
    """The columns of a frame without missing values."""
    columns = FormulaColumns(frame)
    arrays: dict[str, np.ndarray] = {}
    notes: list[Any] = []
    for place, name in enumerate(frame.columns):
        values = columns.values(name)
        levels = None
        if not isinstance(values, np.ndarray):
            levels = as_json(list(values.categories))
            values = np.asarray(values.codes, np.int32)
        arrays[str(place)] = values
        notes.append([name, levels])
    return encode(Checkpoint(KIND, 0, arrays, {"columns": notes}))


def decoded_rows(content: bytes) -> Any:
    """The same as a narwhals frame; raises for what this library does not write."""
    nw, pandas = required("narwhals", "tables"), required("pandas", "tables")
    kept = decode(content)
    found: dict[str, Any] = {}
    lengths = set()
    for place, (name, levels) in enumerate(kept.notes["columns"]):
        values = kept.arrays[str(place)]
        if not isinstance(name, str) or values.ndim != 1:
            raise ValueError("a column without a name, or that is no list")
        if values.dtype.kind not in BOOLEAN_OR_NUMBER:
            raise ValueError(f"column {name!r} holds no numbers")
        if levels is not None:
            values = pandas.Categorical.from_codes(values, pandas.Index(from_json(levels)))
        lengths.add(len(values))
        found[name] = values
    if len(lengths) != 1:
        raise ValueError("its columns are not of one length")
    return nw.from_native(pandas.DataFrame(found))
