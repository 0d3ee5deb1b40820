"""Which numbers of a traced function are affine in its position, read off its program.

A program is a list of simple operations, and each says what it makes of what it is given: a sum of
affine numbers is affine, a product with a number of the row too, and the exponential of an affine
number is positive with an affine logarithm. What no rule speaks of is "other", so that affine is a
proof.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Literal

from amagold.interop._affine_rules import RULES
from amagold.interop._effect_rules import EFFECT_RULES
from amagold.interop._traced_numbers import (
    AFFINE,
    CONSTANT,
    FIXED,
    OTHER,
    ROW,
    Operation,
    Traced,
    is_numbered,
)


def evaluate(
    function: Callable[..., Any], position: Any, row: Any, kinds: dict[str, str] | None = None
) -> Any:
    """What `function(position, row)` returns, with a `Traced` for every array. Leaves of a position
    that is a dict may be of other kinds than affine, by their names.
    """
    program, form = jax.make_jaxpr(function, return_shape=True)(position, row)
    given = [Traced(AFFINE, leaf) for leaf in jax.tree.leaves(position)]
    if kinds:
        names = sorted(position)
        given = [
            each._replace(kind=kinds.get(name, AFFINE))
            for name, each in zip(names, given, strict=True)
        ]
    given += [Traced(ROW, leaf) for leaf in jax.tree.leaves(row)]
    found = _run(program.jaxpr, program.consts, given)
    return jax.tree.unflatten(jax.tree.structure(form), found)


def all_traced(jaxpr: Any, constants: Any, given: list[Traced]) -> dict[Any, Traced]:
    """Every variable of a program."""
    known: dict[Any, Traced] = dict(
        zip(jaxpr.constvars, (Traced(CONSTANT, value) for value in constants), strict=True)
    )
    known.update(zip(jaxpr.invars, given, strict=True))
    for equation in jaxpr.eqns:
        inputs = [_read(known, variable) for variable in equation.invars]
        found = _apply(Operation(jaxpr, equation), inputs)
        known.update(zip(equation.outvars, found, strict=True))
    return known


def _run(jaxpr: Any, constants: Any, given: list[Traced]) -> list[Traced]:
    known = all_traced(jaxpr, constants, given)
    return [_read(known, variable) for variable in jaxpr.outvars]


def _read(known: dict[Any, Traced], variable: Any) -> Traced:
    if isinstance(variable, Literal):
        return Traced(CONSTANT, variable.val)
    return known[variable]


def _apply(operation: Operation, given: list[Traced]) -> list[Traced]:
    """One operation. Those of fixed numbers are done; of others the rules decide."""
    name, kinds = operation.name, {each.kind for each in given}
    if OTHER not in kinds and kinds <= {CONSTANT}:
        with jax.ensure_compile_time_eval():
            return operation.of(given, CONSTANT)
    if name in ("jit", "pjit") and OTHER not in kinds:
        inner = operation.parameters["jaxpr"]
        return _run(inner.jaxpr, inner.consts, given)
    if kinds <= set(FIXED):
        return operation.of(given, ROW)
    rule = RULES.get(name)
    if any(map(is_numbered, kinds)):
        rule = EFFECT_RULES.get(name)
    found = None if rule is None or OTHER in kinds else rule(operation, given)
    return [Traced(OTHER, None) for _ in operation.equation.outvars] if found is None else [found]
