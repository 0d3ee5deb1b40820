"""Kernel Stein discrepancy: how far draws are from the target, by the target's gradients alone
(Gorham and Mackey, 2017).
"""

import math
from functools import partial

import jax
import numpy as np

from amagold.core import checks, trees
from amagold.gradients._full_gradient import energy_gradient
from amagold.target import Target
from amagold.target._reported import sampled

ROWS_AT_ONCE = 256  # rows of the kernel matrix that exist at one time
EXAMPLES_AT_ONCE = 2**22  # draws x examples whose gradients are computed together


def kernel_stein_discrepancy(
    target: Target,
    draws: trees.PyTree,
    *,
    max_draws: int = 2000,
    kernel: str = "imq",
    length_scale: float | np.ndarray | None = None,
) -> float:
    """sqrt((1/n^2) sum_ij k0(x_i, x_j)): zero in the limit for draws of the target, and for nothing
    else.

    k0 is the Stein kernel of k(x, y) = (1 + |x - y|^2)^(-1/2), the inverse multiquadric, which
    notices draws that escape to infinity as well. The sum includes i = j (a V-statistic), so it is
    never negative; for n independent draws of the target it is about sqrt(mean of k0(x, x) / n),
    the noise to compare with. It is computed in float64 from exact gradients.

    Like every Stein discrepancy it is local: it says little about the weights of modes that lie far
    apart.

    Args:
      target: an `amagold.Posterior` or `amagold.Density` without a domain.
      draws: positions with a leading axis (draw,) or leading axes (chain, draw), as the target's
        position otherwise; on the user's scale, as in `run.posterior`, where the target has a
        `transform`. Distances are those of the sampled positions. Whichever fits: with
        `target.init` its shapes decide, else leaves of three axes or more are (chain, draw, ...).
      max_draws: a larger number of draws is thinned evenly to this many; the time is quadratic in
        it.
      kernel: "imq".
      length_scale: the units in which distances are measured: one number, or one per coordinate of
        the flattened position. None is each coordinate's standard deviation over the draws; to
        compare two samplers, give both the same.
    """
    if kernel != "imq":
        raise ValueError(f"kernel must be 'imq', the inverse multiquadric, got {kernel!r}")
    if target.domain is not None:
        raise ValueError(
            "target must have no domain for a Stein discrepancy: its identity fails at a wall; "
            "reparametrise the model"
        )
    checks.whole_number(
        "max_draws",
        max_draws,
        at_least=2,
        remedy="give how many draws to look at; 2000 take a second",
    )
    thinned = _thin(_pool(target, sampled(target, draws, "draws")), max_draws)
    positions = np.concatenate(
        [np.asarray(leaf, np.float64).reshape(len(leaf), -1) for leaf in jax.tree.leaves(thinned)],
        axis=1,
    )
    if not np.isfinite(positions).all():
        raise ValueError(
            "draws must be finite, got some that are not; drop the chains that diverged and say so"
        )
    target.check(trees.as_position(jax.tree.map(lambda leaf: leaf[0], thinned)))
    scale = _scale(positions, length_scale)
    # in coordinates z = x / scale the score is scale * grad log pi(x)
    scores = scale * _scores(target, thinned)
    return math.sqrt(max(0.0, _stein_sum(positions / scale, scores)) / len(positions) ** 2)


def _stein_sum(positions: np.ndarray, scores: np.ndarray) -> float:
    """sum_ij k0(x_i, x_j), some rows at a time."""
    # distances do not change, and squares stay small
    positions = positions - positions.mean(axis=0)
    dimension = positions.shape[1]
    lengths = np.sum(positions**2, axis=1)
    own = np.sum(scores * positions, axis=1)  # s(y) . y
    total = 0.0
    for start in range(0, len(positions), ROWS_AT_ONCE):
        x, s = positions[start : start + ROWS_AT_ONCE], scores[start : start + ROWS_AT_ONCE]
        squared = np.maximum(
            lengths[start : start + ROWS_AT_ONCE, None] + lengths - 2.0 * x @ positions.T, 0.0
        )
        inverse = 1.0 / (1.0 + squared)
        value = np.sqrt(inverse)
        # (s(x) - s(y)) . (x - y)
        pull = own[start : start + ROWS_AT_ONCE, None] + own - s @ positions.T - x @ scores.T
        # k0 = s(x).s(y) k + (s(x) - s(y)).(x - y) u^(-3/2) + d u^(-3/2) - 3 |x - y|^2 u^(-5/2),  u
        # = 1 + |x - y|^2
        total += np.sum(
            value * (s @ scores.T + inverse * (pull + dimension - 3.0 * squared * inverse))
        )
    return float(total)


def _scores(target: Target, positions: trees.PyTree) -> np.ndarray:
    """grad log pi at every draw, flattened."""
    at_once = min(1024, max(1, EXAMPLES_AT_ONCE // max(1, target.num_examples)))
    found = np.asarray(_all_scores(target, trees.as_position(positions), at_once), np.float64)
    if not np.isfinite(found).all():
        raise ValueError(
            "draws must lie where the target's gradient is finite, got some where it is not; "
            "check the model there"
        )
    return found


@partial(jax.jit, static_argnames=("at_once",))
def _all_scores(target: Target, positions: trees.PyTree, at_once: int) -> jax.Array:
    return jax.lax.map(
        lambda one: -trees.flatten(energy_gradient(target, one)), positions, batch_size=at_once
    )


def _pool(target: Target, draws: trees.PyTree) -> trees.PyTree:
    """The draws with one leading axis."""
    leaves = jax.tree.leaves(draws)
    if not leaves or any(np.ndim(leaf) == 0 for leaf in leaves):
        raise ValueError(
            "draws must hold positions along a leading axis, got a single one; stack them, or "
            "pass a run's positions"
        )
    if target.init is not None:
        extra = {
            np.ndim(leaf) - np.ndim(one)
            for leaf, one in zip(leaves, jax.tree.leaves(target.init), strict=False)
        }
    else:
        extra = {2 if max(np.ndim(leaf) for leaf in leaves) > 2 else 1}
    if extra not in ({1}, {2}):
        raise ValueError(
            "draws must have leading axes (draw,) or (chain, draw) before those of the position; "
            "reshape them"
        )
    if extra == {1}:
        return jax.tree.map(np.asarray, draws)
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *np.shape(leaf)[2:]), draws)


def _thin(draws: trees.PyTree, most: int) -> trees.PyTree:
    """At most `most` of the draws, evenly spaced."""
    count = len(jax.tree.leaves(draws)[0])
    if count < 2:
        raise ValueError(f"draws must hold at least 2 positions, got {count}")
    chosen = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
    return jax.tree.map(lambda leaf: leaf[chosen], draws)


def _scale(positions: np.ndarray, length_scale: float | np.ndarray | None) -> np.ndarray:
    if length_scale is None:
        spread = positions.std(axis=0)
        return np.where(spread > 0.0, spread, 1.0)
    scale = np.asarray(length_scale, np.float64)
    if scale.shape not in ((), (positions.shape[1],)) or not np.all(
        np.isfinite(scale) & (scale > 0.0)
    ):
        raise ValueError(
            "length_scale must be one positive number or one for each of the "
            f"{positions.shape[1]} coordinates, got {length_scale!r}"
        )
    return np.broadcast_to(scale, positions.shape[1:])
