"""The bound of normal noise whose scale is a parameter: it holds by brute force, is hardly larger
than needed, and smaller constants are seen.
"""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("numpyro")
from amagold.interop._normal_noise import NormalNoise

RESIDUALS = (-3.0, -1.0, -0.2, 0.0, 0.5, 1.0, 2.5, 6.0)
LOG_SCALES = (-0.5, 0.0, 0.4)
NUM_PLACES, NUM_UNITS = 400, 90


def largest_share(noise, order):
    """|derivative| / bound, the largest over places about references and unit vectors."""
    bounds = noise.bounds(None)
    generator = np.random.default_rng(0)
    angles = np.linspace(0.0, np.pi, NUM_UNITS, endpoint=False)
    units = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    steps = generator.normal(size=(NUM_PLACES, 2))
    steps *= (generator.exponential(0.6, NUM_PLACES) / np.linalg.norm(steps, axis=1))[:, None]
    steps = jnp.asarray(np.concatenate([np.zeros((1, 2)), steps]), jnp.float32)

    @jax.jit
    def share(residual, log_scale):
        example = SimpleNamespace(response=residual)
        reference = jnp.stack([jnp.zeros(()), log_scale])

        def along(step, unit):
            value = lambda t: noise(reference + step + t * unit, example)  # noqa: E731
            for _ in range(order):
                value = jax.grad(value)
            return jnp.abs(value(0.0))

        size = jax.vmap(lambda step: jax.vmap(lambda unit: along(step, unit))(units).max())(steps)
        growth = jnp.exp(bounds.growth * jnp.linalg.norm(steps, axis=1))
        return jnp.max(
            size / (bounds.derivatives[order - 1] * bounds.scale(reference, example) * growth)
        )

    with jax.enable_x64(True):
        return max(float(share(r, k)) for r in RESIDUALS for k in LOG_SCALES)


@pytest.mark.parametrize(("order", "tight"), [(2, 0.2), (3, 0.5)])
def test_the_bound_holds_and_is_not_far_above(order, tight):
    found = largest_share(NormalNoise(), order)
    assert tight < found <= 1.0 + 1e-6


def test_a_first_derivative_has_no_bound():
    assert NormalNoise().bounds(None).derivatives[0] == np.inf


@dataclasses.dataclass(frozen=True)
class SlowGrowth(NormalNoise):
    """Grows as if the scale alone moved."""

    def bounds(self, predictor):
        return super().bounds(predictor)._replace(growth=1.0)


@dataclasses.dataclass(frozen=True)
class WithoutTheSquare(NormalNoise):
    """Leaves out the term in r^2, which is the largest far out."""

    def bounds(self, predictor):
        def scale(z, example):
            reach = jnp.maximum(jnp.abs(example.response - z[0]), 1.0)
            return jnp.exp(-2.0 * z[1]) * (2.31 + 4.62 * reach)

        return super().bounds(predictor)._replace(scale=scale)


@pytest.mark.parametrize("kind", [SlowGrowth, WithoutTheSquare])
def test_smaller_bounds_are_seen(kind):
    assert largest_share(kind(), 3) > 1.05
