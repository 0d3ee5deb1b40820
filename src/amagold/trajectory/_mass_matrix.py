"""The mass matrix M as a whitening W with M^-1 = W^T W.

Momenta are kept standardised, p = W r, so that they are N(0, I) for every mass; a drift moves the
position by eps W^T p and a kick pushes the momentum by eps W g. `force` is W, `velocity` is W^T and
`unwhiten` is its inverse W^-T.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from amagold.core import checks, trees
from amagold.core.array_types import Float, Float32, PyTree, Real
from amagold.core.shapes import Form, Matrix, Position, Scalar
from amagold.trajectory._arrow_mass import ArrowMass


@trees.record()
class ScalarMass:
    """M = sigma^2 I."""

    inverse_scale: Scalar

    def check(self, position: Form) -> None:
        pass

    def force(self, gradient: Position) -> Position:
        return jax.tree.map(lambda leaf: (self.inverse_scale * leaf).astype(leaf.dtype), gradient)

    velocity = force

    def unwhiten(self, distance: Position) -> Position:
        return jax.tree.map(lambda leaf: (leaf / self.inverse_scale).astype(leaf.dtype), distance)


@trees.record()
class DiagonalMass:
    """M = diag(m), a value for each parameter: a pytree like the position, or one vector of all
    parameters in order.
    """

    inverse_scale: PyTree[Float[Array, "..."]]

    def check(self, position: Form) -> None:
        try:
            jax.eval_shape(self.force, position)
        except (TypeError, ValueError):
            shapes = jax.tree.map(lambda leaf: leaf.shape, self.inverse_scale)
            raise ValueError(
                f"mass must be like the position or a vector of its {trees.size(position)} "
                f"parameters, got shapes {shapes}; "
                "give one positive number per parameter"
            ) from None

    def force(self, gradient: Position) -> Position:
        return jax.tree.map(jnp.multiply, gradient, self._scales(gradient))

    velocity = force

    def unwhiten(self, distance: Position) -> Position:
        return jax.tree.map(jnp.divide, distance, self._scales(distance))

    def _scales(self, like: Position) -> Position:
        scales = self.inverse_scale
        if isinstance(scales, jax.Array) and scales.shape == (trees.size(like),):
            return trees.unflatten_like(scales, like)
        return jax.tree.map(
            lambda leaf, scale: jnp.broadcast_to(scale, leaf.shape).astype(leaf.dtype), like, scales
        )


@trees.record()
class DenseMass:
    """M = L L^T, a matrix over all parameters in order; W = L^-1."""

    inverse_factor: Matrix  # L^-1
    factor: Matrix  # L: both are kept, so that no step solves a triangular system

    def check(self, position: Form) -> None:
        if self.inverse_factor.shape[0] != trees.size(position):
            raise ValueError(
                f"mass must be a {trees.size(position)} x {trees.size(position)} matrix for this "
                "position, got "
                f"{self.inverse_factor.shape}; for a diagonal mass give one vector of all "
                "parameters"
            )

    @property
    def rounding(self) -> float:
        """What the two products, one after the other, may be off by: float32's precision times what
        cancels in |L^-1| |L|.
        """
        inverse, factor = (
            np.abs(np.asarray(leaf, np.float64)) for leaf in (self.inverse_factor, self.factor)
        )
        return float(np.finfo(np.float32).eps * (inverse @ factor).max(initial=0.0))

    def force(self, gradient: Position) -> Position:
        return trees.unflatten_like(self.inverse_factor @ trees.flatten(gradient), gradient)

    def velocity(self, momentum: Position) -> Position:
        return trees.unflatten_like(self.inverse_factor.T @ trees.flatten(momentum), momentum)

    def unwhiten(self, distance: Position) -> Position:
        return trees.unflatten_like(self.factor.T @ trees.flatten(distance), distance)


Mass = ScalarMass | DiagonalMass | DenseMass | ArrowMass


def as_mass(mass: trees.PyTree) -> Mass:
    """A number is a scalar mass, a square matrix a dense one, anything else a diagonal."""
    if isinstance(mass, Mass):
        return mass
    leaves = jax.tree.leaves(mass)
    if (
        len(leaves) == 1
        and np.ndim(leaves[0]) == 0
        and jax.tree.structure(mass) == jax.tree.structure(0.0)
    ):
        checks.number("mass", mass, above=0.0, remedy="give the variance of the momentum")
        return ScalarMass(_inverse_root(mass))
    if (
        len(leaves) == 1
        and np.ndim(leaves[0]) == 2
        and np.shape(leaves[0])[0] == np.shape(leaves[0])[1]
    ):
        return _dense(leaves[0])
    if trees.is_concrete(mass) and not all(
        np.all(np.isfinite(leaf)) and np.all(np.asarray(leaf) > 0) for leaf in leaves
    ):
        raise ValueError(
            "mass must be positive everywhere, got a value that is zero, negative or not finite; "
            "give positive variances"
        )
    return DiagonalMass(jax.tree.map(_inverse_root, mass))


def _inverse_root(variance: Real[ArrayLike, "*leaf"]) -> Float32[Array, "*leaf"]:
    """sigma^-1 from sigma^2; of known numbers by NumPy, which compiles nothing."""
    if not trees.is_concrete(variance):
        return 1.0 / jnp.sqrt(jnp.asarray(variance, jnp.float32))
    return jax.device_put(np.float32(1.0) / np.sqrt(np.asarray(variance, np.float32)))


def _dense(matrix: Real[Array | np.ndarray, "parameters parameters"]) -> DenseMass:
    if not trees.is_concrete(matrix):
        factor = jnp.linalg.cholesky(matrix)
        return DenseMass(
            jax.scipy.linalg.solve_triangular(
                factor, jnp.eye(factor.shape[0], dtype=factor.dtype), lower=True
            ),
            factor,
        )
    exact = np.asarray(matrix, np.float64)
    if not np.allclose(exact, exact.T, rtol=1e-5, atol=1e-8 * np.abs(exact).max()):
        raise ValueError(
            "mass must be a symmetric matrix, got one that is not; symmetrise it with (M + M.T) / 2"
        )
    try:
        factor = np.linalg.cholesky(exact)
    except np.linalg.LinAlgError:
        raise ValueError(
            "mass must be positive definite, got a matrix that is not; add a small multiple of "
            "the identity"
        ) from None
    inverse = np.linalg.solve(factor, np.eye(len(factor))).astype(np.float32)
    # the inverse of what is kept, so that the two are as near to each other's inverses as float32
    # allows
    back = np.linalg.inv(inverse.astype(np.float64)).astype(np.float32)
    return DenseMass(jax.device_put(inverse), jax.device_put(back))
