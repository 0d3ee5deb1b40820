"""Values of tables and of formulaic's states as JSON, and back. Nothing is evaluated."""

import math
from typing import Any

import numpy as np

DEEPEST = 20  # of lists within lists
TIMES = "time"


def as_json(value: Any) -> Any:
    """Numbers, texts, None, times, and lists, dicts and arrays of them."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        return ["array", value.astype(np.float64).ravel().tolist(), list(value.shape)]
    if isinstance(value, (list, tuple)):
        return ["list", [as_json(part) for part in value]]
    if isinstance(value, dict):
        return ["dict", [[as_json(name), as_json(part)] for name, part in value.items()]]
    if hasattr(value, "isoformat"):
        return [TIMES, value.isoformat()]
    raise ValueError(f"a value of {type(value).__name__} cannot be kept")


def from_json(stored: Any, depth: int = 0) -> Any:
    """The value again; raises `ValueError` for what `as_json` does not write."""
    if stored is None or isinstance(stored, (bool, int, str)):
        return stored
    if isinstance(stored, float):
        if not math.isfinite(stored):
            raise ValueError("a number that is not finite")
        return stored
    if not isinstance(stored, list) or not stored or depth > DEEPEST:
        raise ValueError("a value of another form")
    kind, *content = stored
    if kind == "array" and len(content) == 2:
        numbers, shape = content
        return np.asarray([float(number) for number in numbers]).reshape(shape)
    if kind == "list" and len(content) == 1:
        return [from_json(part, depth + 1) for part in content[0]]
    if kind == "dict" and len(content) == 1:
        found = {_key(name): from_json(part, depth + 1) for name, part in content[0]}
        return found
    if kind == TIMES and len(content) == 1 and isinstance(content[0], str):
        import pandas

        return pandas.Timestamp(content[0])
    raise ValueError("a value of another form")


def _key(name: Any) -> int | str:
    if not isinstance(name, (int, str)) or isinstance(name, bool):
        raise ValueError("a name that is no text")
    return name
