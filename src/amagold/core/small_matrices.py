"""Cholesky factors of very many very small matrices, written out entry by entry: a library's loop
over matrices of one or two rows would cost more than their arithmetic.

Matrices are the last two axes, vectors the last one; leading axes are whatever they are.
"""

import jax
import jax.numpy as jnp


def cholesky(matrix: jax.Array) -> jax.Array:
    """L, lower triangular with L L^T the matrix."""
    size = matrix.shape[-1]
    rows: list[list[jax.Array]] = []
    for i in range(size):
        row: list[jax.Array] = []
        for j in range(i):
            left = matrix[..., i, j] - sum(row[m] * rows[j][m] for m in range(j))
            row.append(left / rows[j][j])
        left = matrix[..., i, i] - sum(entry**2 for entry in row)
        rows.append([*row, jnp.sqrt(left)])
    zero = jnp.zeros_like(matrix[..., 0, 0])
    return jnp.stack(
        [jnp.stack([*row, *[zero] * (size - len(row))], axis=-1) for row in rows], axis=-2
    )


def solve_lower(factor: jax.Array, vector: jax.Array) -> jax.Array:
    """L^-1 v."""
    found: list[jax.Array] = []
    for i in range(factor.shape[-1]):
        left = vector[..., i] - sum(factor[..., i, j] * found[j] for j in range(i))
        found.append(left / factor[..., i, i])
    return jnp.stack(found, axis=-1)


def solve_upper(factor: jax.Array, vector: jax.Array) -> jax.Array:
    """L^-T v."""
    size = factor.shape[-1]
    found: dict[int, jax.Array] = {}
    for i in reversed(range(size)):
        left = vector[..., i] - sum(factor[..., j, i] * found[j] for j in range(i + 1, size))
        found[i] = left / factor[..., i, i]
    return jnp.stack([found[i] for i in range(size)], axis=-1)


def times_upper(factor: jax.Array, vector: jax.Array) -> jax.Array:
    """L^T v."""
    size = factor.shape[-1]
    return jnp.stack(
        [sum(factor[..., j, i] * vector[..., j] for j in range(i, size)) for i in range(size)],
        axis=-1,
    )


def log_determinant(factor: jax.Array) -> jax.Array:
    """log |L L^T|."""
    logs = [jnp.log(factor[..., i, i]) for i in range(factor.shape[-1])]
    return 2.0 * jnp.sum(jnp.stack(logs), axis=0)


def times(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """M v."""
    size = matrix.shape[-1]
    return jnp.stack(
        [sum(matrix[..., i, j] * vector[..., j] for j in range(size)) for i in range(size)],
        axis=-1,
    )
