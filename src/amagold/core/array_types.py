"""jaxtyping's types of arrays, where it is loaded already; plain arrays otherwise.

Only type checkers and the tests, which load jaxtyping first, look at shapes. It brings `unittest`
and `asyncio` along, a third of the time that this library takes to load, so nobody else pays.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import (
        Bool,
        Float,
        Float32,
        Float64,
        Int,
        Int32,
        PRNGKeyArray,
        PyTree,
        Real,
        Shaped,
        UInt32,
    )
else:
    from jax import Array as PRNGKeyArray

    class _Plain:
        def __class_getitem__(cls, described: tuple[Any, str]) -> Any:
            """`Float[Array, "rows"]` is `Array`."""
            return described[0]

    class PyTree:
        def __class_getitem__(cls, described: Any) -> Any:
            return Any

    Bool = Float = Float32 = Float64 = Int = Int32 = Real = Shaped = UInt32 = _Plain

__all__ = [
    "Bool",
    "Float",
    "Float32",
    "Float64",
    "Int",
    "Int32",
    "PRNGKeyArray",
    "PyTree",
    "Real",
    "Shaped",
    "UInt32",
]
