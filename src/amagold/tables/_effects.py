"""Average marginal effects, and contrasts."""

from typing import Any


def effects(*arguments: Any) -> Any:
    raise NotImplementedError


def contrast(*arguments: Any) -> Any:
    raise NotImplementedError
