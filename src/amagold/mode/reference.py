"""All that the data say about the energy around one position: what control variates are taken about."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from amagold import trees
from amagold.energy import chunks
from amagold.energy.precise import Wide, add_each, zeros_like
from amagold.mode.search import find_mode
from amagold.target import Posterior, Target, with_data

DENSE_PARAMETERS = 4096  # up to this many the Hessian is kept whole: 64 MiB


@trees.record()
class Reference:
    """sum_i U_i about a position, U_i = -log likelihood of example i; the prior is always evaluated as it is.

    Sums over the data are accumulated in float64: an error in the gradient would move the draws of a test that never scans the data.
    """

    position: trees.PyTree
    gradient: jax.Array  # sum_i grad U_i, over the flattened position
    hessian: jax.Array | None  # sum_i of the second derivatives, where the order asks for them

    def away(self, position: trees.PyTree) -> jax.Array:
        """theta - reference, flattened."""
        return trees.flatten(position) - trees.flatten(self.position)

    def taylor_gradient(self, away: jax.Array) -> jax.Array:
        """The gradient of the Taylor polynomial: G, or G + H (theta - reference)."""
        return self.gradient if self.hessian is None else self.gradient + self.hessian @ away

    def taylor_energy(self, away: jax.Array) -> jax.Array:
        """The Taylor polynomial without its constant: G . d, or G . d + d . H d / 2."""
        curved = 0.0 if self.hessian is None else 0.5 * jnp.dot(away, self.hessian @ away)
        return jnp.dot(self.gradient, away) + curved


def reference_at(target: Target, position: trees.PyTree, order: int) -> Reference:
    """The reference at a position: one pass over the data for the gradient, and for order 2 one for the Hessian."""
    posterior = with_data(target, "a reference", "use gradients.full() and acceptance.full()")
    position = trees.as_position(position)
    posterior.check(position)
    if order == 2 and trees.size(position) > DENSE_PARAMETERS:
        raise ValueError(
            f"order must be 1 for more than {DENSE_PARAMETERS:,} parameters, got order 2 with {trees.size(position):,}: the Hessian is "
            "kept whole; use order=1"
        )
    gradient, hessian = _summed(posterior, position, order)
    if not bool(trees.all_finite((gradient, hessian))):
        raise ValueError("center must have finite derivatives of the log likelihood, got some that are not; choose another center")
    return Reference(position, gradient, hessian)


def reference_of(target: Target, center: trees.PyTree, order: int) -> Reference:
    """The reference at the center, or at the mode where none is given."""
    if center is not None:
        return reference_at(target, center, order)
    if target.init is None:
        raise ValueError("center must be given for a target without `init`: the mode is searched from there; give either")
    return reference_at(target, find_mode(target, target.init).position, order)


@partial(jax.jit, static_argnames=("order",))
def _summed(target: Posterior, position: trees.PyTree, order: int) -> tuple[jax.Array, jax.Array | None]:
    flat = trees.flatten(position)

    def energy(at: jax.Array, rows: trees.PyTree, is_new: jax.Array | None) -> jax.Array:
        values = -target.log_likelihoods(trees.unflatten_like(at, position), rows)
        return values.sum() if is_new is None else jnp.where(is_new, values, 0.0).sum()

    def visit(carry: tuple[Wide, Any], rows: trees.PyTree, start: Any, is_new: jax.Array | None) -> tuple[Wide, Any]:
        gradient = jax.grad(energy)(flat, rows, is_new)
        hessian = jax.hessian(energy)(flat, rows, is_new) if order == 2 else None
        return add_each(carry[0], gradient), None if hessian is None else add_each(carry[1], hessian)

    square = zeros_like(jnp.zeros((len(flat), len(flat)))) if order == 2 else None
    # every parameter has its own tangent in the Hessian's pass, so fewer examples fit
    chunk_size = max(1, chunks.chunk_size_for(target, position) // (len(flat) if order == 2 else 1))
    gradient, hessian = chunks.fold(target, position, visit, (zeros_like(flat), square), chunk_size)
    return gradient.high, None if hessian is None else hessian.high
