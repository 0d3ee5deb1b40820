"""What a transition costs, in evaluations of one example's log likelihood.

Counted, never timed, so that the same problem gets the same plan on every machine. The constants
are rough figures of a processor core, in elementary operations; they matter for models so cheap
that the framework's own work shows.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax

from amagold.core import trees
from amagold.target import Posterior, Target

GRADIENT = 3.0  # a gradient in reverse mode, in evaluations of the function
TEST_OPERATIONS = 100.0  # to difference and sum one example's log likelihood in float64
STEP_OPERATIONS = 3000.0  # the framework's own work per leapfrog step
PARAMETER_OPERATIONS = 1000.0  # per parameter and step: normal noise, drifts and kicks
# per entry of a dense mass and step: three products with its factor
MATRIX_OPERATIONS = 10.0
GATHER_OPERATIONS = 100.0  # to fetch one example of a minibatch from its place
# and for each of its values, which then form no large matrix product
GATHER_VALUE_OPERATIONS = 20.0
# a gradient and its Taylor polynomial at the reference, in evaluations of the function
DIFFERENCE = 8.0
REMAINDER_OPERATIONS = 8000.0  # to draw one example by its bound and compare its remainders
# of the test on a few examples beside them: chains wait for the one that needs most
LOOP_OPERATIONS = 100_000.0
SHUFFLE_OPERATIONS = 15_000.0  # to shuffle one example into a fresh order: a sort
SLOW = {
    "exp",
    "log",
    "log1p",
    "expm1",
    "logistic",
    "tanh",
    "pow",
    "sin",
    "cos",
    "erf",
    "lgamma",
    "digamma",
}
SLOW_OPERATIONS = 10


def operations_per_example(target: Target, position: trees.PyTree) -> float:
    """Elementary operations of one example's log likelihood, or of a density, counted from its
    program.
    """
    if not isinstance(target, Posterior):
        return max(1.0, _operations(jax.make_jaxpr(target.log_prior)(position).jaxpr))
    program = jax.make_jaxpr(target.log_likelihood)(position, target.example)
    return max(1.0, _operations(program.jaxpr))


def _operations(program: Any) -> float:
    total = 0.0
    for equation in program.eqns:
        inner = [
            value
            for value in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program)
            if _is_program(value)
        ]
        if inner:
            repeats = equation.params.get("length", 1) or 1
            total += repeats * sum(_operations(getattr(value, "jaxpr", value)) for value in inner)
            continue
        made = sum(
            math.prod(variable.aval.shape)
            for variable in equation.outvars
            if hasattr(variable.aval, "shape")
        )
        name = equation.primitive.name
        if name == "dot_general":
            contracted = equation.params["dimension_numbers"][0][0]
            made *= 2 * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        elif name == "conv_general_dilated":
            made *= 2 * math.prod(equation.invars[1].aval.shape[1:])
        elif name.startswith("reduce"):
            made = sum(math.prod(variable.aval.shape) for variable in equation.invars)
        total += made * (SLOW_OPERATIONS if name in SLOW else 1)
    return total


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


@dataclass(frozen=True)
class TransitionCosts:
    """The costs of one problem's transitions.

    Args:
      operations: of one evaluation of one example (or of the whole density).
      num_examples: N; 1 for a target without data.
      num_parameters: d.
      row_values: numbers in one example.
    """

    operations: float
    num_examples: int
    num_parameters: int
    row_values: int

    def step(self, mass: str) -> float:
        """One leapfrog step without its gradient."""
        matrix = MATRIX_OPERATIONS * self.num_parameters**2 if mass == "dense" else 0.0
        return (
            STEP_OPERATIONS + PARAMETER_OPERATIONS * self.num_parameters + matrix
        ) / self.operations

    @property
    def fetch(self) -> float:
        """To bring one example of a minibatch from its place."""
        return (GATHER_OPERATIONS + GATHER_VALUE_OPERATIONS * self.row_values) / self.operations


def costs_of(target: Target, position: trees.PyTree) -> TransitionCosts:
    """The costs of a target's transitions."""
    operations, row_values = operations_per_example(target, position), trees.size(target.example)
    return TransitionCosts(
        operations, max(1, target.num_examples), trees.size(position), row_values
    )
