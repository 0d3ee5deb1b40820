"""All that the data say about the energy around one position: what control variates are taken
about.
"""

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.shapes import Form, Matrix, Position, Scalar, Vector
from amagold.mode._class_shifts import class_shifts
from amagold.mode._derivatives import Derivatives, derivatives_at
from amagold.mode._mode_search import find_mode
from amagold.target import Target, with_data

DENSE_PARAMETERS = 4096  # up to this many the Hessian is kept whole: 64 MiB


@trees.record(static=("ignores_shifts",))
class Reference:
    """sum_i U_i about a position, U_i = -log likelihood of example i; the prior is always evaluated
    as it is.

    Sums over the data are accumulated in float64: an error in the gradient would move the draws of
    a test that never scans the data.
    """

    position: Position
    gradient: Vector  # sum_i grad U_i, over the flattened position
    hessian: Matrix | None  # sum_i of the second derivatives, where the order asks for them
    # whether the data say nothing where a coefficient moves alike in all classes (`ClassShifts`):
    # a wide prior takes draws so far that way that rounding would swamp the rest
    ignores_shifts: bool = False

    @classmethod
    def form(cls, position: Form, order: int, ignores_shifts: bool = False) -> "Reference":
        """The shapes and types of a reference of an order at positions like this one."""
        size = trees.size(position)

        def nothing(at: Position) -> "Reference":
            square = jnp.zeros((size, size), jnp.float32) if order == 2 else None
            return cls(at, jnp.zeros(size, jnp.float32), square, ignores_shifts)

        return jax.eval_shape(nothing, position)

    def away(self, position: Position) -> Vector:
        """theta - reference, flattened, as far as the data see it."""
        return self._seen(trees.flatten(position) - trees.flatten(self.position))

    def _seen(self, flat: Vector) -> Vector:
        if not self.ignores_shifts:
            return flat
        by_class = flat.reshape(-1, jax.tree.leaves(self.position)[0].shape[-1])
        return (by_class - by_class.mean(axis=1, keepdims=True)).ravel()

    @property
    def order(self) -> int:
        """Up to which derivative the data are known."""
        return 1 if self.hessian is None else 2

    def taylor_gradient(self, away: Vector, order: int) -> Vector:
        """The gradient of the Taylor polynomial of order 1 or 2: G, or G + H (theta -
        reference).
        """
        known = self.gradient if order == 1 else self.gradient + self._known_hessian @ away
        return self._seen(known)

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
    return reference_from(posterior, position, derivatives_at(posterior, position, order))


def reference_from(target: Target, position: Position, of_data: Derivatives) -> Reference:
    """The reference from the derivatives of all data at a position."""
    gradient, hessian = of_data.gradient, of_data.hessian
    if not trees.is_finite((gradient, hessian)):
        raise ValueError(
            "center must have finite derivatives of the log likelihood, got some that are not; "
            "choose another center"
        )
    ignores_shifts = class_shifts(target, position) is not None
    return Reference(position, gradient, hessian, ignores_shifts)


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
