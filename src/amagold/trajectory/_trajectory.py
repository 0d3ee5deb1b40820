"""Run a proposal for T steps and add up its work."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import PyTree, Shaped
from amagold.core.randomness import resolve
from amagold.core.shapes import Position, Scalar, Whole
from amagold.trajectory._phase import Phase, Proposal

# (position, what the step's gradient needs) -> grad U~_t(position)
StepGradient = Callable[[Position, trees.PyTree], Position]

Steps = PyTree[Shaped[Array | np.ndarray, "{num_steps} ..."]]


def run_trajectory(
    proposal: Proposal,
    phase: Phase,
    noise: Steps,
    rows: Steps,
    gradient: StepGradient,
    num_steps: int,
    first: Whole | None = None,
) -> tuple[Phase, Scalar, int]:
    """The phase after `num_steps` steps, the work of all of them, and the gradients that one step
    asked for.

    `noise` and `rows` have the steps on their leading axis. With `first`, a number that may be
    traced, only as many of the steps are made: the same ones, whatever `num_steps` is.
    """
    asked: list[tuple[Position, Position]] = []

    def body(
        carry: tuple[Phase, Scalar], step: tuple[trees.PyTree, trees.PyTree]
    ) -> tuple[tuple[Phase, Scalar], None]:
        phase, total = carry
        step_noise, step_rows = step
        asked.clear()

        def step_gradient(position: Position) -> Position:
            for earlier, found in asked:  # a proposal and its density ask at the same place
                if earlier is position:
                    return found
            asked.append((position, gradient(position, step_rows)))
            return asked[-1][1]

        step_noise = resolve(proposal.draw, step_noise, phase.position)
        phase, work = proposal.step(phase, step_noise, step_gradient)
        return (phase, total + work.astype(total.dtype)), None

    nothing = jnp.zeros((), jnp.result_type(float))
    if first is None:
        (phase, work), _ = jax.lax.scan(body, (phase, nothing), (noise, rows), length=num_steps)
        return phase, work, len(asked)

    def numbered(number: Whole, carry: tuple[Phase, Scalar]) -> tuple[Phase, Scalar]:
        return body(carry, jax.tree.map(lambda leaf: leaf[number], (noise, rows)))[0]

    phase, work = jax.lax.fori_loop(0, jnp.minimum(first, num_steps), numbered, (phase, nothing))
    return phase, work, len(asked)
