"""U(a) - U(b), right to 1e-3 at ten million examples in float32."""

from typing import Any

import jax
import jax.numpy as jnp

from amagold import trees
from amagold.energy import chunks
from amagold.energy.precise import Wide, add_to, subtract, zero
from amagold.target import Posterior, Target


def energy_difference(target: Target, a: trees.PyTree, b: trees.PyTree) -> float:
    """U(a) - U(b) as a float, where U = -log prior - sum of log likelihoods (or -log density).

    `a` and `b` are positions as samplers see them (`target.transform` maps them to the user's scale, where there is one).
    Each example's two log likelihoods are subtracted before anything is summed, and the sum is accumulated in float64, so
    the large common part of the two energies never rounds the difference away.
    """
    a, b = trees.as_position(a), trees.as_position(b)
    for name, position in (("a", a), ("b", b)):
        if not bool(trees.all_finite(position)):
            raise ValueError(f"{name} must be finite to have an energy, got non-finite values; pass a finite position")
    return float(_energy_difference(target, a, b))


@jax.jit
def _energy_difference(target: Target, a: trees.PyTree, b: trees.PyTree) -> jax.Array:
    if not isinstance(target, Posterior):
        return target.log_density(b) - target.log_density(a)

    # U(a) - U(b) = log p(b) - log p(a) + sum_i [log p(x_i | b) - log p(x_i | a)]
    def visit(total: Wide, rows: trees.PyTree, start: Any, is_new: jax.Array | None) -> Wide:
        differences = target.log_likelihoods(b, rows) - target.log_likelihoods(a, rows)
        return add_to(total, differences if is_new is None else jnp.where(is_new, differences, 0.0))

    total = chunks.fold(target, a, visit, zero())
    return subtract(add_to(total, (target.log_prior(b) - target.log_prior(a))[None]), zero())
