"""How much each example's predictor can change over a step of length one."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from amagold.core import trees
from amagold.core.shapes import Example, Matrix, PerExample, Position, Scalar
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds


def slopes(
    bounds: LinearBounds, position: Position, example: Example
) -> Float[Array, "predictors parameters"]:
    """A_i with z_i = A_i theta + constant, one row for each number that the example's predictor
    has.
    """
    return jax.jacrev(
        lambda at: jnp.atleast_1d(bounds.predictor(trees.unflatten_like(at, position), example))
    )(trees.flatten(position))


@partial(jax.jit, static_argnames=("bounds",))
def norms_and_scales(
    target: Posterior, position: Position, whitening: Matrix, bounds: LinearBounds
) -> tuple[PerExample, PerExample]:
    """a_i = |A_i|, the operator norm of theta -> z_i from the norm of H, and the scale of each
    example's derivatives.
    """
    flat = trees.flatten(position)

    def one(example: Example) -> tuple[Scalar, Scalar]:
        # A_i L^-T
        rows = slopes(bounds, position, example) @ whitening.T
        scale = (
            jnp.float32(1.0)
            if bounds.scale is None
            else bounds.scale(bounds.predictor(position, example), example)
        )
        if rows.shape[0] == 1:
            return jnp.linalg.norm(rows), scale
        return jnp.sqrt(jnp.linalg.eigvalsh(rows @ rows.T)[-1]), scale

    def visit(carry: tuple[PerExample, PerExample], chunk: Chunk) -> tuple[PerExample, PerExample]:
        norms, scales = jax.vmap(one)(chunk.rows)
        return chunk.write(carry[0], norms), chunk.write(carry[1], scales)

    nothing = jnp.zeros(target.num_examples, flat.dtype)
    chunk_size = max(1, chunks.chunk_size_for(target, position) // 4)
    return chunks.fold(target, position, visit, (nothing, nothing), chunk_size)
