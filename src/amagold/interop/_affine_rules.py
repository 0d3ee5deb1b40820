"""What operations make of affine numbers, and of their exponentials."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.interop._traced_numbers import (
    AFFINE,
    FIXED,
    LOG_AFFINE,
    Operation,
    Rule,
    Traced,
    constant,
    is_zero,
)


def _linear(operation: Operation, given: list[Traced]) -> Traced | None:
    """Sums, and what else is linear in all it is given."""
    kinds = {each.kind for each in given}
    return operation.of(given, AFFINE)[0] if kinds <= {AFFINE, *FIXED} else None


def _moved(operation: Operation, given: list[Traced]) -> Traced | None:
    """Entries in another order or shape, picked by fixed numbers: the exponential of the entries
    is that of what is moved.
    """
    first, *others = given
    if any(each.kind not in FIXED for each in others):
        return None
    if first.kind not in (AFFINE, LOG_AFFINE):
        return None
    return operation.of(given, first.kind)[0]


def _converted(operation: Operation, given: list[Traced]) -> Traced | None:
    """From one floating type to another."""
    kept = jnp.issubdtype(operation.parameters["new_dtype"], jnp.floating)
    return _moved(operation, given) if kept else None


def _concatenated(operation: Operation, given: list[Traced]) -> Traced | None:
    kinds = {each.kind for each in given}
    if kinds == {LOG_AFFINE}:
        return operation.of(given, LOG_AFFINE)[0]
    return _linear(operation, given)


def _selected(operation: Operation, given: list[Traced]) -> Traced | None:
    return None if given[0].kind not in FIXED else _linear(operation, given)


def _bilinear(operation: Operation, given: list[Traced]) -> Traced | None:
    """A product, of which one side is fixed."""
    kinds = [each.kind for each in given]
    is_linear = kinds.count(AFFINE) == 1 and LOG_AFFINE not in kinds
    return operation.of(given, AFFINE)[0] if is_linear else None


def _product(operation: Operation, given: list[Traced]) -> Traced | None:
    if any(map(is_zero, given)):
        return constant(operation, 0.0)
    # log(a b) = log a + log b
    if {each.kind for each in given} <= {LOG_AFFINE, *FIXED}:
        return Traced(LOG_AFFINE, _logarithm(given[0]) + _logarithm(given[1]))
    return _bilinear(operation, given)


def _quotient(operation: Operation, given: list[Traced]) -> Traced | None:
    # log(a / b) = log a - log b
    if {each.kind for each in given} <= {LOG_AFFINE, *FIXED}:
        return Traced(LOG_AFFINE, _logarithm(given[0]) - _logarithm(given[1]))
    return _bilinear(operation, given) if given[1].kind in FIXED else None


def _exponential(operation: Operation, given: list[Traced]) -> Traced | None:
    return Traced(LOG_AFFINE, given[0].value) if given[0].kind == AFFINE else None


def _log(operation: Operation, given: list[Traced]) -> Traced | None:
    return Traced(AFFINE, given[0].value) if given[0].kind == LOG_AFFINE else None


def _power(operation: Operation, given: list[Traced]) -> Traced | None:
    # log(a^n) = n log a
    power = {"square": 2.0, "sqrt": 0.5, "rsqrt": -0.5}.get(operation.name)
    power = operation.parameters["y"] if power is None else power
    if power == 0:
        return constant(operation, 1.0)
    if given[0].kind != LOG_AFFINE:
        return None
    return Traced(LOG_AFFINE, np.float32(power) * given[0].value)


def _logarithm(traced: Traced) -> Any:
    return traced.value if traced.kind == LOG_AFFINE else jnp.log(traced.value)


# what picks or puts entries elsewhere
MOVES = (
    "reshape",
    "broadcast_in_dim",
    "squeeze",
    "transpose",
    "slice",
    "rev",
    "copy",
    "gather",
    "dynamic_slice",
    "expand_dims",
    "copy_p",
)
RULES: dict[str, Rule] = (
    dict.fromkeys(("add", "sub", "neg", "add_any", "reduce_sum", "cumsum", "pad"), _linear)
    | dict.fromkeys(MOVES, _moved)
    | dict.fromkeys(("square", "sqrt", "rsqrt", "integer_pow"), _power)
    | {
        "convert_element_type": _converted,
        "concatenate": _concatenated,
        "select_n": _selected,
        "dot_general": _bilinear,
        "mul": _product,
        "div": _quotient,
        "exp": _exponential,
        "log": _log,
    }
)
