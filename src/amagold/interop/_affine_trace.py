"""Which numbers of a traced function are affine in its position, read off its program.

A program is a list of simple operations, and each says what it makes of what it is given: a sum of
affine numbers is affine, a product with a number of the row too, and the exponential of an affine
number is positive with an affine logarithm. What no rule speaks of is "other", so that affine is a
proof.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

# constant: known without a row; row: of the row alone; affine: in the position, with coefficients
# of the row; log-affine: the exponential of such a number
CONSTANT, ROW, AFFINE, LOG_AFFINE, OTHER = "constant", "row", "affine", "log-affine", "other"
FIXED = (CONSTANT, ROW)


class Traced(NamedTuple):
    """A number of the program: its kind and its value; of a log-affine one that of its logarithm,
    of another one nothing.
    """

    kind: str
    value: Any


class Operation(NamedTuple):
    """One line of a program, which can be done by itself."""

    program: Any
    equation: Any

    @property
    def name(self) -> str:
        return self.equation.primitive.name

    @property
    def parameters(self) -> dict[str, Any]:
        return self.equation.params

    def of(self, given: list[Traced], kind: str) -> list[Traced]:
        """What it makes of the values, which is of that kind."""
        values = {
            variable: each.value
            for variable, each in zip(self.equation.invars, given, strict=True)
            if not isinstance(variable, Literal)
        }
        alone = self.program.replace(
            constvars=[],
            invars=list(values),
            outvars=self.equation.outvars,
            eqns=[self.equation],
        )
        found = jaxpr_as_fun(ClosedJaxpr(alone, ()))(*values.values())
        return [Traced(kind, value) for value in found]


def evaluate(function: Callable[..., Any], position: Any, row: Any) -> Any:
    """What `function(position, row)` returns, with a `Traced` for every array."""
    program, form = jax.make_jaxpr(function, return_shape=True)(position, row)
    given = [Traced(AFFINE, leaf) for leaf in jax.tree.leaves(position)]
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
    found = None if rule is None or OTHER in kinds else rule(operation, given)
    return [Traced(OTHER, None) for _ in operation.equation.outvars] if found is None else [found]


Rule = Callable[[Operation, list[Traced]], Traced | None]


def _linear(operation: Operation, given: list[Traced]) -> Traced | None:
    """Sums, and what else is linear in all it is given."""
    if LOG_AFFINE in {each.kind for each in given}:
        return None
    return operation.of(given, AFFINE)[0]


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
    if given[0].kind != LOG_AFFINE:
        return None
    return Traced(LOG_AFFINE, np.float32(power) * given[0].value)


def _logarithm(traced: Traced) -> Any:
    return traced.value if traced.kind == LOG_AFFINE else jnp.log(traced.value)


RULES: dict[str, Rule] = (
    dict.fromkeys(("add", "sub", "neg", "add_any", "reduce_sum", "cumsum", "pad"), _linear)
    | dict.fromkeys(
        ("reshape", "broadcast_in_dim", "squeeze", "transpose", "slice", "rev", "copy"), _moved
    )
    | dict.fromkeys(("gather", "dynamic_slice", "expand_dims", "copy_p"), _moved)
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
