"""Numbers of a traced program, by what they depend on, and the operations that make them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

# constant: known without a row; row: of the row alone; affine: in the position, with coefficients
# of the row; log-affine: the exponential of such a number
CONSTANT, ROW, AFFINE, LOG_AFFINE, OTHER = "constant", "row", "affine", "log-affine", "other"
FIXED = (CONSTANT, ROW)
# of effects that are written as standard normals times a scale: the normals, the scale's logarithm,
# and the scale; those of one number belong together, and their product is the effect, affine
STANDARD, LOG_SCALE, SCALE = "standard", "log scale", "scale"


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


Rule = Callable[[Operation, list[Traced]], Traced | None]


def is_numbered(kind: str) -> bool:
    """Whether it is the kind of such a part."""
    return " " in kind and kind.rsplit(" ", 1)[1].isdigit()


def numbered(kind: str, number: int) -> str:
    """The kind of the parts of one product."""
    return f"{kind} {number}"


def constant(operation: Operation, value: float) -> Traced:
    """What an operation makes, where that is known."""
    form = operation.equation.outvars[0].aval
    return Traced(CONSTANT, np.full(form.shape, value, form.dtype))


def is_zero(traced: Traced) -> bool:
    """Whether it is known to be."""
    return traced.kind == CONSTANT and not np.any(np.asarray(traced.value))
