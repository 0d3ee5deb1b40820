"""Starts for the chains, further apart than the posterior is wide, so that their agreement means
something.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks, trees
from amagold.core.compiling import ONCE, jit
from amagold.data import Chunk
from amagold.mode._curvature import Curvature
from amagold.mode._mode_search import Mode, is_newtons
from amagold.mode._newton import descend
from amagold.mode._regions import Region
from amagold.target import Target

FEW_EXAMPLES = 4096  # that a start is tried on
NUM_PLACES = 64  # around the mode, where gradients are looked at
# squared distance from the mode per parameter, in posterior variances: four standard deviations
FAR = 16.0
# times what the Gaussian itself falls by, and so much more, that the log density may fall by from
# a place to a start around it: where curvature changes, draws of the Gaussian may be far out
STEEPER, STEEPER_BY = 2.0, 10.0
MAX_REDRAWS = 20  # halvings of the distance from the mode before a chain starts at the mode itself


def disperse(
    target: Target,
    mode: Mode,
    curvature: Curvature,
    num_chains: int,
    key: jax.Array,
    scale: float = 2.0,
    *,
    at_least: int = NUM_PLACES,
) -> trees.PyTree:
    """Positions stacked on a leading chain axis: draws of the Laplace approximation, `scale` times
    as wide.

    A draw that is not finite, lies outside the domain or has no finite log density is drawn again
    at half the distance.

    Args:
      target: what to sample from.
      mode: from `find_mode`. Where it is not converged, starts stay near its position instead.
      curvature: at that position.
      num_chains: how many starts.
      key: a random key.
      scale: the starts' standard deviation in units of the Laplace approximation's.
      at_least: how many are drawn in any case, so that one program serves several numbers.
    """
    checks.whole_number("num_chains", num_chains, at_least=1, remedy="give the number of chains")
    checks.number(
        "scale",
        scale,
        above=0.0,
        remedy="give the spread in posterior standard deviations; 2 is usual",
    )
    factor = curvature.factor if mode.is_converged else np.sqrt(curvature.modest_variances())
    drawn = _starts(
        target,
        [mode.position],
        [factor],
        max(num_chains, at_least),
        key,
        scale if mode.is_converged else 1.0,
    )
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:num_chains], drawn)


def disperse_over(
    target: Target, regions: list[Region], num_chains: int, key: jax.Array
) -> trees.PyTree:
    """The same around several places, which the chains take in turn, and no further down than a
    Gaussian would have it.
    """
    regions = regions[:num_chains]
    most = 0.5 * STEEPER * len(regions[0].center) + STEEPER_BY
    return _starts(
        target,
        [region.position for region in regions],
        [region.factor for region in regions],
        num_chains,
        key,
        1.0,
        most,
    )


def bring_near(
    target: Target, mode: Mode, curvature: Curvature, positions: trees.PyTree
) -> trees.PyTree:
    """Starts far out on a posterior that the plan knows near its mode, followed downhill until they
    are near some mode.

    Far out the planned gradients are too noisy, and a turn about the mode too long, for anything to
    be accepted. Each start goes down its own slope, so that chains that began in different basins
    stay there.

    Args:
      target: what to sample from.
      mode, curvature: what was planned by.
      positions: stacked on a leading chain axis.
    """
    if not curvature.is_dense or not is_newtons(target, mode.position):
        return positions
    leaves = jax.tree.map(np.asarray, positions)
    rows = [
        jax.tree.map(lambda leaf, chain=chain: leaf[chain], leaves)
        for chain in range(len(jax.tree.leaves(leaves)[0]))
    ]
    found: dict[bytes, trees.PyTree] = {}
    for row in rows:
        place = trees.known_numbers(row)
        away = np.linalg.solve(curvature.factor, place - trees.known_numbers(mode.position))
        if place.tobytes() not in found and np.sum(away**2) > FAR * len(place):
            found[place.tobytes()] = descend(target, row).near.position
    moved = [found.get(trees.known_numbers(row).tobytes(), row) for row in rows]
    return jax.tree.map(lambda *parts: np.stack(parts), *moved)


def _starts(
    target: Target,
    centers: list[trees.PyTree],
    factors: list[np.ndarray],
    num_chains: int,
    key: jax.Array,
    scale: float,
    most: float = np.inf,
) -> trees.PyTree:
    places = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *centers)
    return _disperse(
        target,
        places,
        np.stack(factors).astype(np.float32),
        key,
        np.float32(scale),
        np.float32(most),
        num_chains,
    )


@jit(ONCE, "num_chains")
def _disperse(
    target: Target,
    centers: trees.PyTree,
    factors: Any,
    key: jax.Array,
    scale: Any,
    most: Any,
    num_chains: int,
) -> trees.PyTree:
    def start(chain: tuple[jax.Array, jax.Array]) -> trees.PyTree:
        key, place = chain
        center, factor = jax.tree.map(lambda leaf: leaf[place], (centers, factors))
        lowest = _log_density(target, center) - most

        def draw(attempt: jax.Array) -> trees.PyTree:
            noise = jax.random.normal(
                jax.random.fold_in(key, attempt), factor.shape[:1], factor.dtype
            )
            # theta = center + scale 2^-attempt F z, with H^-1 = F F^T
            increment = (
                scale * 0.5**attempt * (factor @ noise if factor.ndim == 2 else factor * noise)
            )
            return jax.tree.map(jnp.add, center, trees.unflatten_like(increment, center))

        def goes_on(carry: tuple[jax.Array, trees.PyTree, jax.Array]) -> jax.Array:
            attempt, _, is_good = carry
            return ~is_good & (attempt <= MAX_REDRAWS)

        def again(
            carry: tuple[jax.Array, trees.PyTree, jax.Array],
        ) -> tuple[jax.Array, trees.PyTree, jax.Array]:
            position = draw(carry[0])
            return carry[0] + 1, position, _is_usable(target, position, lowest)

        _, position, is_good = jax.lax.while_loop(
            goes_on, again, (jnp.int32(0), center, jnp.bool_(False))
        )
        return trees.where(is_good, position, center)

    places = jnp.arange(num_chains) % factors.shape[0]
    return jax.lax.map(start, (jax.random.split(key, num_chains), places))


def _is_usable(target: Target, position: trees.PyTree, lowest: jax.Array) -> jax.Array:
    """Finite, inside the domain, and of a finite log density that is high enough, as far as a few
    examples tell: chains are looked at whole when they begin.
    """
    density = _log_density(target, position)
    is_high = jnp.isfinite(density) & ~(density < lowest)
    return trees.all_finite(position) & target.is_inside(position) & is_high


def _log_density(target: Target, position: trees.PyTree) -> jax.Array:
    """Of a few examples."""

    def visit(total: jax.Array, chunk: Chunk) -> jax.Array:
        return total + jnp.sum(target.log_likelihoods(position, chunk.rows))

    few = target.examples.some(FEW_EXAMPLES)
    return few.fold(visit, target.log_prior(position), FEW_EXAMPLES)
