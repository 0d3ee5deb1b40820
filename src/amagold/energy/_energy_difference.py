"""U(a) - U(b), right to 1e-3 at ten million examples in float32."""

import jax

from amagold.core import trees
from amagold.core.compiling import OFTEN, jit
from amagold.core.shapes import Position, Scalar
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._float64 import can_widen, in_double, wide_log_likelihoods, widen
from amagold.energy._wide_sums import Wide, add_to, zero
from amagold.target import Density, Posterior, Target


def energy_difference(target: Target, a: trees.PyTree, b: trees.PyTree) -> float:
    """U(a) - U(b) as a float, where U = -log prior - sum of log likelihoods (or -log density).

    `a` and `b` are positions as samplers see them (`target.transform` maps them to the user's
    scale, where there is one). Each example's two log likelihoods are subtracted before anything is
    summed, and the sum is accumulated in float64, so the large common part of the two energies
    never rounds the difference away. They are evaluated in float64 too, unless the target's
    functions fix their types.
    """
    a, b = trees.as_position(a), trees.as_position(b)
    for name, position in (("a", a), ("b", b)):
        if not bool(trees.all_finite(position)):
            raise ValueError(
                f"{name} must be finite to have an energy, got non-finite values; pass a finite "
                "position"
            )
    target.check_functions(a)
    if not isinstance(target, Posterior):
        return float(_density_difference(target, a, b))
    total = _energy_difference(target, a, b, can_widen(target, a))
    return float(total.high) + float(total.low)


@jax.jit
def _density_difference(target: Density, a: Position, b: Position) -> Scalar:
    return target.log_density(b) - target.log_density(a)


@jit(OFTEN, "is_wide")
def _energy_difference(target: Posterior, a: Position, b: Position, is_wide: bool) -> Wide:
    # U(a) - U(b) = log p(b) - log p(a) + sum_i [log p(x_i | b) - log p(x_i | a)]
    def visit(total: Wide, chunk: Chunk) -> Wide:
        with in_double(is_wide):
            evaluate = wide_log_likelihoods if is_wide else Posterior.log_likelihoods
            differences = evaluate(target, b, chunk.rows) - evaluate(target, a, chunk.rows)
            return add_to(total, chunk.only_new(differences))

    total = chunks.fold(target, a, visit, zero())
    with in_double(is_wide):
        before, after = (widen(a), widen(b)) if is_wide else (a, b)
        return add_to(total, (target.log_prior(after) - target.log_prior(before))[None])
