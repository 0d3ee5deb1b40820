"""What Firefly must know beforehand: the sum of all lower bounds, and how far each can be off."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance._arrival_table import arrival_table
from amagold.acceptance._bounds_agreement import check_agreement
from amagold.acceptance._firefly import FireflyTest
from amagold.acceptance._firefly_bounds import curvatures
from amagold.core import checks, trees
from amagold.core.shapes import Example, Matrix, Position, Scalar
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_each, zeros_like
from amagold.mode._derivatives import whole_hessian
from amagold.mode._reference import Reference, reference_of
from amagold.mode._row_bounds import bound_sums, slopes as slopes_of, squared_norm
from amagold.target import Posterior, Target, with_data
from amagold.target._linear_bounds import LinearBounds


@trees.record(static=("bounds",))
class FireflyBound:
    """c_i = (the most that gap_i can curve) a_i^2, and a_i, the largest change of z_i over a step
    of length one.
    """

    bounds: LinearBounds
    position: Position
    unwhitening: Matrix  # L^-1

    def __call__(self, example: Example) -> tuple[Scalar, Scalar]:
        square = squared_norm(self.bounds, self.position, example, self.unwhitening)
        z = self.bounds.predictor(self.position, example)
        return curvatures(self.bounds, z, example)[1] * square, jnp.sqrt(square)


@dataclass(frozen=True)
class Firefly:
    """Firefly, before it knows its target."""

    center: Position | None
    block_size: int
    bounds: LinearBounds | None
    most: float | None

    def bind(self, target: Target, reference: Reference | None = None) -> FireflyTest:
        """The test for a target: passes over the data for the reference, unless the gradient has
        one, and for the bounds.
        """
        target = with_data(target, "acceptance.firefly", "use acceptance.full()")
        bounds = self.bounds or target.bounds
        if bounds is None or (
            (bounds.growth or bounds.within is not None)
            and (bounds.lower_curvature is None or bounds.upper_curvature is None)
        ):
            are = "hold within a ball alone" if bounds and bounds.within else "grow without end"
            raise ValueError(
                "bounds must give a parabola below each log likelihood for acceptance.firefly, "
                "but the target's "
                f"{'are unknown' if bounds is None else f'second derivatives {are}'}; "
                "give LinearBounds(..., "
                "lower_curvature=..., upper_curvature=...), or use acceptance.tuna() or "
                "acceptance.full()"
            )
        if reference is None or self.center is not None:
            reference = reference_of(target, self.center, 1)
        check_agreement(target, bounds, reference.position)
        hessian = _curvature(target, reference.position, bounds)
        try:
            factor = np.linalg.cholesky(whole_hessian(target, reference.position, hessian))
        except np.linalg.LinAlgError:
            raise ValueError(
                "center must be where the log prior curves downwards for acceptance.firefly, but "
                "there the lower bound does not hold "
                "the parameters together; give another center, or a proper prior"
            ) from None
        bound = FireflyBound(
            bounds, reference.position, jnp.asarray(np.linalg.inv(factor), jnp.float32)
        )
        sums = bound_sums(target, reference.position, bound)
        return FireflyTest(
            block_size=self.block_size,
            bounds=bounds,
            surrogate=Reference(reference.position, reference.gradient, hessian),
            whitening=jnp.asarray(factor.T, jnp.float32),
            table=arrival_table(sums, bound, target.num_examples),
            most=jnp.float32(target.num_examples if self.most is None else self.most),
        )


def firefly(
    center: trees.PyTree = None,
    *,
    block_size: int = 32,
    bounds: LinearBounds | None = None,
    most: float | None = None,
) -> Firefly:
    """Firefly: the exact test on the examples that shine, for a target whose bounds give a parabola
    below each log likelihood.

    Args:
      center: the reference position, where the parabolas touch, fixed for good. None takes that of
        the gradient's control variates, or the mode.
      block_size: arrivals looked at together; a test that needs more takes more blocks.
      bounds: instead of the target's own.
      most: expected arrivals above which a test looks at all data instead; None is the number of
        examples.
    """
    checks.whole_number(
        "block_size",
        block_size,
        at_least=1,
        remedy="give the arrivals looked at together; 32 is usual",
    )
    if most is not None:
        checks.number(
            "most",
            most,
            at_least=0.0,
            remedy="give the arrivals above which all data are looked at, or None",
        )
    return Firefly(
        None if center is None else trees.as_position(center), int(block_size), bounds, most
    )


@partial(jax.jit, static_argnames=("bounds",))
def _curvature(target: Posterior, position: Position, bounds: LinearBounds) -> Matrix:
    """The Hessian of -sum log B: sum_i kappa_i A_i^T A_i."""
    size = trees.size(position)

    def visit(total: Wide, chunk: Chunk) -> Wide:
        slopes = jax.vmap(lambda row: slopes_of(bounds, position, row))(chunk.rows)
        kappas = jax.vmap(lambda row: curvatures(bounds, bounds.predictor(position, row), row)[0])(
            chunk.rows
        )
        kappas = chunk.only_new(kappas)
        return add_each(total, jnp.einsum("i,ika,ikb->ab", kappas, slopes, slopes))

    chunk_size = max(1, chunks.chunk_size_for(target, position) // size)
    return chunks.fold(
        target, position, visit, zeros_like(jnp.zeros((size, size))), chunk_size
    ).high
