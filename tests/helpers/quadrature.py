"""Posteriors of up to three parameters whose draws and averages are exact, by quadrature in
float64 that shares nothing with the library.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from false_alarms import worst
from jax.flatten_util import ravel_pytree

LATTICE = {1: 200_001, 2: 1_501, 3: 151}  # points along each axis


class Exact(NamedTuple):
    """A density on a lattice; its cells are a few thousandths of the posterior's width, of three
    parameters a few hundredths.
    """

    axes: tuple[np.ndarray, ...]
    mass: np.ndarray  # of every cell, flattened
    mean: np.ndarray
    spread: np.ndarray

    def draws(self, num_draws, seed=0):
        """Independent draws: a cell by its mass, and a uniform place inside it."""
        generator = np.random.default_rng(seed)
        cumulative = np.cumsum(self.mass)
        cells = np.searchsorted(
            cumulative / cumulative[-1], generator.random(num_draws), side="right"
        )
        places = np.unravel_index(cells, [len(axis) for axis in self.axes])
        columns = [
            axis[place] + (axis[1] - axis[0]) * generator.uniform(-0.5, 0.5, num_draws)
            for axis, place in zip(self.axes, places, strict=True)
        ]
        return np.stack(columns, axis=1).astype(np.float32)

    def features(self, positions):
        """Functions whose means say whether a distribution moved: moments, skewness, tails, and how
        the first coordinate goes together with the others.
        """
        u = (np.asarray(positions, np.float64) - self.mean) / self.spread
        found = [u, u**2, u**3, np.tanh(3.0 * u), np.tanh(3.0 * (u - 1.0))]
        if u.shape[1] > 1:
            found += [u[:, :1] * u[:, 1:], np.tanh(3.0 * u[:, :1]) * u[:, 1:]]
        return np.concatenate(found, axis=1)

    def averages(self):
        """The features' means under the density."""
        places = np.stack(
            [place.ravel() for place in np.meshgrid(*self.axes, indexing="ij")], axis=1
        )
        return self.mass @ self.features(places)


def exact(log_density, *ranges):
    """The density on a lattice over the ranges; `log_density` takes one array for each
    parameter.
    """
    axes = tuple(np.linspace(low, high, LATTICE[len(ranges)]) for low, high in ranges)
    values = log_density(*np.meshgrid(*axes, indexing="ij"))
    mass = np.exp(values - values.max())
    mass = mass / mass.sum()
    edges = [np.take(mass, [0, -1], axis=axis).sum() for axis in range(len(axes))]
    assert max(edges) < 1e-7, f"the lattice cuts off some of the density: {edges}"
    moments = [(mass * place, mass * place**2) for place in np.meshgrid(*axes, indexing="ij")]
    mean = np.array([first.sum() for first, _ in moments])
    spread = np.sqrt(np.array([second.sum() for _, second in moments]) - mean**2)
    return Exact(axes, mass.ravel(), mean, spread)


@partial(jax.jit, static_argnames=("num_transitions",))
def run(sampler, positions, key, num_transitions):
    """Every position a chain of its own. The sampler is an argument, so other numbers do not
    compile again.
    """
    start_key, run_key = jax.random.split(key)
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    states = jax.vmap(sampler.init)(positions, jax.random.split(start_key, num_chains))

    def transition(states, key):
        return jax.vmap(sampler.step)(jax.random.split(key, num_chains), states)

    return jax.lax.scan(transition, states, jax.random.split(run_key, num_transitions))


class Moved(NamedTuple):
    """What transitions did to exact draws."""

    change: float  # features after minus before, as a share of the threshold
    error: float  # features after against quadrature, likewise
    info: object

    @property
    def worst(self):
        return max(self.change, self.error)


def moved(density, sampler, num_chains=20_000, num_transitions=4, seed=1):
    """Apply transitions to exact draws, one chain for each; positions have the form of the
    target's `init`, whose numbers are in the density's order.
    """
    draws = density.draws(num_chains, seed)
    positions = jax.vmap(ravel_pytree(sampler.target.init)[1])(draws)
    states, info = run(sampler, positions, jax.random.key(seed), num_transitions)
    flat = jax.vmap(lambda position: ravel_pytree(position)[0])(states.position)
    after = density.features(np.asarray(flat))
    return Moved(worst(after - density.features(draws)), worst(after, density.averages()), info)
