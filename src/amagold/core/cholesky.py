"""The Cholesky factor of a matrix and its inverse, in operations that XLA compiles itself.

JAX's own factorisation on CPUs calls LAPACK on threads of its own, and a program that is spread
over several devices has been seen to wait for them for ever.

Blocks of [A | I] are eliminated one after the other; what is left is [L^T | L^-1], A = L L^T.
"""

import jax
import jax.numpy as jnp

BLOCK_SIZE = 32


def factor_and_inverse(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """L and L^-1; not finite where the matrix is not positive definite."""
    size = matrix.shape[0]
    block = min(BLOCK_SIZE, size)
    whole = -(-size // block) * block
    padded = jnp.eye(whole, dtype=matrix.dtype).at[:size, :size].set(matrix)
    numbers = jnp.arange(whole)

    def eliminate(count: int, both: jax.Array) -> jax.Array:
        start = count * block
        corner = jax.lax.dynamic_slice(both, (start, start), (block, block))
        inverse = _small(corner)
        # the block's rows become L_b^-1 times themselves, and are taken from those below
        rows = inverse @ jax.lax.dynamic_slice_in_dim(both, start, block, 0)
        columns = jax.lax.dynamic_slice_in_dim(both, start, block, 1) @ inverse.T
        below = jnp.where((numbers >= start + block)[:, None], columns, 0.0)
        return jax.lax.dynamic_update_slice_in_dim(both - below @ rows, rows, start, 0)

    begin = jnp.concatenate([padded, jnp.eye(whole, dtype=matrix.dtype)], axis=1)
    both = jax.lax.fori_loop(0, whole // block, eliminate, begin)
    return jnp.triu(both[:size, :size]).T, jnp.tril(both[:size, whole : whole + size])


def _small(matrix: jax.Array) -> jax.Array:
    """L^-1, row by row."""
    size = matrix.shape[0]
    numbers = jnp.arange(size)

    def eliminate(at: int, both: jax.Array) -> jax.Array:
        row = both[at] * jax.lax.rsqrt(both[at, at])
        # a symmetric matrix: the rest of the column is that of the row
        below = jnp.where(numbers > at, row[:size], 0.0)
        return (both - below[:, None] * row).at[at].set(row)

    begin = jnp.concatenate([matrix, jnp.eye(size, dtype=matrix.dtype)], axis=1)
    return jnp.tril(jax.lax.fori_loop(0, size, eliminate, begin)[:, size:])
