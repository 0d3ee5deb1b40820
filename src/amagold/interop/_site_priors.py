"""Priors of a NumPyro model's scales, for the sweep over its effects."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.array_types import Float
from amagold.target._effects_prior import FactorForm

NUM_DRAWS = 1001  # of a prior, of which the median is taken


@trees.record()
class SiteScale:
    """Of the logarithm of a positive site: its prior and the Jacobian."""

    distribution: Any
    center: Float[jax.Array, ""]

    @classmethod
    def of(cls, distribution: Any) -> "SiteScale":
        # arrays in place of plain numbers, which JAX would not trace
        arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), distribution)
        return cls(arrays, jnp.log(_median(distribution)))

    def __call__(self, log_scale: jax.Array) -> jax.Array:
        scale = jnp.exp(log_scale)
        density = jnp.sum(self.distribution.log_prob(scale))
        # log p(s) + log |ds / d log s|; densities of NumPyro go on beyond their support
        return jnp.where(self.distribution.support(scale), density, -jnp.inf) + log_scale


@trees.record(static=("form",))
class SiteScalePrior:
    """Of the standard deviation of one group's effects."""

    form: FactorForm
    scale: SiteScale
    scales: Float[jax.Array, " effects"]  # about how large it may be

    @classmethod
    def of(cls, form: FactorForm, distribution: Any) -> "SiteScalePrior":
        scale = SiteScale.of(distribution)
        return cls(form, scale, jnp.exp(scale.center)[None])

    def __call__(self, log_scales: jax.Array, free: jax.Array) -> jax.Array:
        return self.scale(log_scales[0])

    def sentences(self, figure: float) -> tuple[str, ...]:
        """The model says them itself."""
        return ()


def _median(distribution: Any) -> jax.Array:
    """Of some draws; one where the prior has none, because it is improper."""
    try:
        drawn = np.asarray(distribution.sample(jax.random.key(0), (NUM_DRAWS,)), np.float64)
    except NotImplementedError:
        return jnp.float32(1.0)
    middle = float(np.median(drawn))
    return jnp.float32(middle if 0.0 < middle < np.inf else 1.0)
