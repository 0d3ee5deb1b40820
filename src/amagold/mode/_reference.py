"""All that the data say about the energy around one position: what control variates are taken
about.
"""

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.shapes import Form, Matrix, Position, Scalar, Vector
from amagold.mode._derivatives import Derivatives, derivatives_at
from amagold.mode._mode_search import find_mode
from amagold.target import Target, with_data

DENSE_PARAMETERS = 4096  # up to this many the Hessian is kept whole: 64 MiB


@trees.record()
class Reference:
    """sum_i U_i about a position, U_i = -log likelihood of example i; the prior is always evaluated
    as it is.

    Sums over the data are accumulated in float64: an error in the gradient would move the draws of
    a test that never scans the data.
    """

    position: Position
    gradient: Vector  # sum_i grad U_i, over the flattened position
    hessian: Matrix | None  # sum_i of the second derivatives, where the order asks for them

    @classmethod
    def form(cls, position: Form, order: int) -> "Reference":
        """The shapes and types of a reference of an order at positions like this one."""
        size = trees.size(position)

        def nothing(at: Position) -> "Reference":
            square = jnp.zeros((size, size), jnp.float32) if order == 2 else None
            return cls(at, jnp.zeros(size, jnp.float32), square)

        return jax.eval_shape(nothing, position)

    def away(self, position: Position) -> Vector:
        """theta - reference, flattened."""
        return trees.flatten(position) - trees.flatten(self.position)

    @property
    def order(self) -> int:
        """Up to which derivative the data are known."""
        return 1 if self.hessian is None else 2

    def taylor_gradient(self, away: Vector, order: int) -> Vector:
        """The gradient of the Taylor polynomial of order 1 or 2: G, or G + H (theta -
        reference).
        """
        return self.gradient if order == 1 else self.gradient + self._known_hessian @ away

    def taylor_energy(self, away: Vector, order: int) -> Scalar:
        """The Taylor polynomial without its constant: 0, G . d, or G . d + d . H d / 2."""
        if order == 0:
            return jnp.zeros((), away.dtype)
        curved = 0.5 * jnp.dot(away, self._known_hessian @ away) if order == 2 else 0.0
        return jnp.dot(self.gradient, away) + curved

    @property
    def _known_hessian(self) -> Matrix:
        assert self.hessian is not None, "the reference was taken for first derivatives only"
        return self.hessian


def reference_at(target: Target, position: trees.PyTree, order: int) -> Reference:
    """The reference at a position: one pass over the data."""
    posterior = with_data(target, "a reference", "use gradients.full() and acceptance.full()")
    position = trees.as_position(position)
    posterior.check(position)
    if order == 2 and trees.size(position) > DENSE_PARAMETERS:
        raise ValueError(
            f"order must be 1 for more than {DENSE_PARAMETERS:,} parameters, got order 2 with "
            f"{trees.size(position):,}: the Hessian is "
            "kept whole; use order=1"
        )
    return reference_from(position, derivatives_at(posterior, position, order))


def reference_from(position: Position, of_data: Derivatives) -> Reference:
    """The reference from the derivatives of all data at a position."""
    gradient, hessian = of_data.gradient, of_data.hessian
    if not trees.is_finite((gradient, hessian)):
        raise ValueError(
            "center must have finite derivatives of the log likelihood, got some that are not; "
            "choose another center"
        )
    return Reference(position, gradient, hessian)


def reference_of(target: Target, center: trees.PyTree, order: int) -> Reference:
    """The reference at the center, or at the mode where none is given."""
    if center is not None:
        return reference_at(target, center, order)
    if target.init is None:
        raise ValueError(
            "center must be given for a target without `init`: the mode is searched from there; "
            "give either"
        )
    return reference_at(target, find_mode(target, target.init).position, order)
