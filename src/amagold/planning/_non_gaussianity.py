"""How far a posterior is from the Gaussian at its mode: what that Gaussian leaves of the gradient,
at a few draws of it.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_each, zeros_like
from amagold.mode._curvature import whitening_of
from amagold.mode._rare_rows import RareRows
from amagold.planning._at_mode import AtMode
from amagold.target import Target

EXAMPLES = 4096  # that stand for all data
NUM_ENERGIES = 16  # places whose energies are taken from all data
SHARE = 0.9  # of the places, that a turn must be good at
MOST_LEFT = 0.25  # of |grad U|^2, which is d on average
MOST_SLOPE = 0.15  # of grad V, where that of |q|^2 / 2 is one
# the same, beyond which the Gaussian says little about the posterior
MODERATE_LEFT, MODERATE_SLOPE = 1.0, 0.5


class NonGaussianity(NamedTuple):
    """Of the energy U = |q|^2 / 2 + V, over draws of the Gaussian, in units of the mass.

    Medians and the like, not means: where V is very large few draws of the posterior will be.

    Args:
      steady: |grad V|^2 of the typical gradient, which comes from a mode that is not the mean.
      varying: |grad V|^2 about that, which nine in ten places stay below: a turn must be good at
        nearly all of them.
      slope: of grad V along q: how much narrower the posterior is than the Gaussian, or wider if
        negative.
      num_parameters: d.
    """

    steady: float
    varying: float
    slope: float
    num_parameters: int
    # the part of `varying` in rows of rare levels, and what is left without them; None where there
    # are none
    rare: float | None = None
    left: float = 0.0

    @property
    def is_small(self) -> bool:
        """Whether the Gaussian is near enough for its motion to be followed."""
        return (
            self.steady + self.varying <= MOST_LEFT * self.num_parameters
            and abs(self.slope) <= MOST_SLOPE
        )

    @property
    def is_moderate(self) -> bool:
        """Whether the Gaussian describes the posterior roughly: its curvature is then a mass, and
        its mode a reference.
        """
        return (
            self.steady + self.varying <= MODERATE_LEFT * self.num_parameters
            and abs(self.slope) <= MODERATE_SLOPE
        )

    def variance(self, num_steps: int) -> float:
        """The variance of log a after a quarter turn in T steps, to first order in V.

        log a is the error of the midpoint rule for the change of V along the turn. A part of V that
        goes like cos(w t) is summed too large by (w h / 2) / sin(w h / 2), and changes by a
        variance of 2 (1 - cos(w pi / 2)) = 2 for odd w. A linear V turns with w = 1, a cubic one (a
        third Hermite polynomial, |grad V|^2 = 3 V^2) with w = 1 and, for a quarter of its variance,
        w = 3. What is of even degree has smaller w and is left out.
        """
        return self._kicked(self.steady, self.varying, num_steps)

    def _kicked(self, steady: float, varying: float, num_steps: int) -> float:
        step = 0.5 * np.pi / num_steps
        errors = {
            turns: (1.0 - 0.5 * turns * step / np.sin(0.5 * turns * step)) ** 2 for turns in (1, 3)
        }
        slow, fast = steady + 0.25 * varying, varying / 12.0
        return float(2.0 * (slow * errors[1] + fast * errors[3]))

    @property
    def whole_variance(self) -> float:
        """The variance of log a after a quarter turn that no gradient of V kicks: what V changes
        by, 2 var(V). That is twice |grad V|^2 of a linear part, two thirds of it of a cubic one,
        and d slope^2 of slope |q|^2 / 2.
        """
        curved = self.num_parameters * self.slope**2
        if self.rare is not None:
            return 2.0 * (self.steady + self.left / 3.0) + curved
        return 2.0 * (self.steady + self.varying / 3.0) + curved

    def rare_variance(self, num_steps: int) -> float:
        """The variance of log a from rows of rare levels, whose gradient kicks in T steps."""
        return 0.0 if self.rare is None else self._kicked(0.0, self.rare, num_steps)


def measure_non_gaussianity(
    target: Target, mode: trees.PyTree, mass: np.ndarray, places: trees.PyTree
) -> NonGaussianity:
    """From places stacked on a leading axis: draws of the Gaussian about the mode with this
    mass.
    """
    whitening = whitening_of(mass)
    gradients, distances = (np.asarray(found, np.float64) for found in _rests(target, mode, places))
    found, away = gradients @ whitening.T, np.linalg.solve(whitening.T, distances.T).T
    typical = np.median(found, axis=0)
    squares = np.sum((found - typical) ** 2, axis=1)
    # a place that no draw was found for is the mode itself, where there is no slope
    lengths = np.sum(away**2, axis=1)
    slopes = np.sum(away * found, axis=1)[lengths > 0.0] / lengths[lengths > 0.0]
    slope = float(np.median(slopes)) if len(slopes) else math.nan
    # the median of a few varying gradients is not zero: pi / 2 times the variance of their mean
    steady = float(np.sum(typical**2) - 0.5 * np.pi * np.median(squares) / len(found))
    return NonGaussianity(
        max(0.0, steady), float(np.quantile(squares, SHARE)), slope, found.shape[1]
    )


def measure_by_energies(
    target: Target, mode: trees.PyTree, mass: np.ndarray, places: trees.PyTree, at_mode: AtMode
) -> NonGaussianity:
    """The same from the energies of all data, about a mean that is known beside the mode. Levels
    of a few rows are not seen by examples that stand for all.
    """
    places = jax.tree.map(lambda leaf: leaf[:NUM_ENERGIES], places)
    energies = np.asarray(energies_above(target, mode, places), np.float64)
    rows = [
        trees.known_numbers(jax.tree.map(lambda leaf, at=at: leaf[at], places))
        for at in range(len(energies))
    ]
    away = np.stack(rows) - trees.known_numbers(at_mode.position)
    from_mode = np.stack(rows) - trees.known_numbers(mode)
    rest = energies - 0.5 * np.einsum("pi,ij,pj->p", away, mass, away)

    def cubic(energies: np.ndarray) -> float:
        """|grad V|^2 as if all of V were cubic: three times its variance."""
        return 3.0 * float(np.var(energies, ddof=1))

    found = NonGaussianity(0.0, cubic(rest), 0.0, away.shape[1])
    if at_mode.rare is None or at_mode.tilt is None:
        return found
    # T' + tilt + the rare rows' gradient is what kicks: V of the rest has no linear part
    of_rare = np.asarray(_rare_energies(at_mode.rare, places), np.float64)
    linear = np.stack(rows) @ np.asarray(at_mode.tilt, np.float64)
    of_mode = 0.5 * np.einsum("pi,ij,pj->p", from_mode, mass, from_mode)
    left = energies - of_mode - of_rare - linear
    return found._replace(rare=cubic(rest - left), left=cubic(left))


@jit(ONCE)
def _rare_energies(rare: RareRows, places: trees.PyTree) -> jax.Array:
    return jax.vmap(rare.energy)(places)


@jit(ONCE)
def energies_above(target: Target, mode: trees.PyTree, places: trees.PyTree) -> jax.Array:
    """U(place) - U(mode) of all data, summed by differences."""

    def visit(totals: Wide, chunk: Chunk) -> Wide:
        there = jax.vmap(target.log_likelihoods, in_axes=(0, None))(places, chunk.rows)
        lower = target.log_likelihoods(mode, chunk.rows) - there
        return add_each(totals, jax.vmap(chunk.only_new)(lower).sum(axis=1))

    number = jax.tree.leaves(places)[0].shape[0]
    chunk_size = max(1, chunks.chunk_size_for(target, mode) // NUM_ENERGIES)
    totals = chunks.fold(target, mode, visit, zeros_like(jnp.zeros(number)), chunk_size)
    return totals.high + target.log_prior(mode) - jax.vmap(target.log_prior)(places)


@jit(ONCE)
def _rests(target: Target, mode: trees.PyTree, places: trees.PyTree) -> tuple[jax.Array, jax.Array]:
    """grad U less its linear part about the mode, and the distance from it, at each place.

    The gradient is that of the examples that stand for all, scaled, and of the prior.
    """

    def energy(at: trees.PyTree) -> jax.Array:
        few = target.examples.some(EXAMPLES)
        scale = target.num_examples / max(1, few.num_examples)

        def visit(total: jax.Array, chunk: Chunk) -> jax.Array:
            return total + jnp.sum(target.log_likelihoods(at, chunk.rows))

        return -scale * few.fold(visit, jnp.float32(0.0), EXAMPLES) - target.smooth_log_prior(at)

    def rest(place: trees.PyTree) -> tuple[jax.Array, jax.Array]:
        away = jax.tree.map(jnp.subtract, place, mode)
        here = jax.grad(energy)(place)
        there, turned = jax.jvp(jax.grad(energy), (mode,), (away,))
        return trees.flatten(
            jax.tree.map(lambda at, then, linear: at - then - linear, here, there, turned)
        ), trees.flatten(away)

    return jax.vmap(rest)(places)
