"""The horseshoe prior (Carvalho, Polson and Scott 2010), its local scales integrated out.

    beta_j ~ N(0, (lambda_j tau)^2),  lambda_j ~ half-Cauchy(0, 1),  tau ~ half-Cauchy(0, scale)

With b = beta_j / tau and x = b^2 / 2 the density of b is exp(x) E1(x) / sqrt(2 pi^3): heavy tails,
and a logarithmic pole at zero. What 1 + 1 / lambda_j^2 is given b has the density exp(-x v) / v
beyond one, which is drawn by inversion; given it beta_j is Gaussian.

A slab of scale c multiplies the density by exp(-beta_j^2 / (2 c^2)), as an observation of each
coefficient at zero would (Nishimura and Suchard 2023); given lambda_j and tau the variance is then
that of the regularised horseshoe, 1 / (1 / (lambda_j tau)^2 + 1 / c^2).

Positions are flat: coefficients and others first, then log tau of every group.
"""

from typing import Any

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.array_types import Float, Int
from amagold.core.exponential_integral import log_scaled_e1, tail_growth

# times 1 / sqrt(number of coefficients): 2.4 standard deviations of log tau given beta, whose
# Fisher information is about 0.35 for each coefficient
STRIDE = 4.0


@trees.record(static=("num_groups",))
class Horseshoe:
    """Of some numbers of a flat position, in groups with one tau each."""

    places: Int[jax.Array, " shrunk"]
    groups: Int[jax.Array, " shrunk"]  # of which group each is
    units: Float[jax.Array, " shrunk"]  # beta_j over the number that is sampled
    scale: Float[jax.Array, " groups"]  # of each tau
    slab_precision: Float[jax.Array, " groups"]  # 1 / c^2; zero without a slab
    num_groups: int

    def __call__(self, flat: jax.Array) -> jax.Array:
        """The log density up to a constant, with the Jacobian of log tau."""
        return self.log_density(*self.split(flat))

    def split(self, flat: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Everything else, and log tau."""
        return flat[: -self.num_groups], flat[-self.num_groups :]

    def log_density(self, at: jax.Array, log_tau: jax.Array) -> jax.Array:
        return jnp.sum(self.of_groups(self.coefficients(at), log_tau))

    def coefficients(self, at: jax.Array) -> jax.Array:
        """beta."""
        return self.units * at[self.places]

    def of_groups(self, beta: jax.Array, log_tau: jax.Array) -> jax.Array:
        """The log density of each group: log p(beta | tau) + log p(tau) + log tau."""
        own = log_tau[self.groups]
        # log p(beta_j | tau) = log g(b^2 / 2) - log tau - beta_j^2 / (2 c^2)
        each = log_scaled_e1(self._half_square(beta, own)) - own
        each = each - 0.5 * self.slab_precision[self.groups] * beta**2
        total = jax.ops.segment_sum(each, self.groups, self.num_groups)
        # log tau - log(1 + (tau / scale)^2)
        return total + log_tau - jnp.logaddexp(0.0, 2.0 * (log_tau - jnp.log(self.scale)))

    def precisions(self, at: jax.Array, log_tau: jax.Array, share: jax.Array) -> jax.Array:
        """Of the sampled numbers' Gaussians, given local scales that are drawn by uniform numbers.

        v = 1 + 1 / lambda^2 has P(v > t) = E1(t x) / E1(x).
        """
        beta, own = self.coefficients(at), log_tau[self.groups]
        growth = tail_growth(self._half_square(beta, own), share)
        # 1 / (lambda tau)^2 + 1 / c^2, in units of what is sampled
        local = jnp.expm1(growth) * jnp.exp(-2.0 * own)
        return self.units**2 * (local + self.slab_precision[self.groups])

    def walk(
        self, at: jax.Array, log_tau: jax.Array, strides: jax.Array, log_tests: jax.Array
    ) -> jax.Array:
        """Metropolis steps on log tau of each group, the local scales integrated out; groups do not
        know of each other. Strides are N(0, 1), tests logarithms of uniform numbers; both have axes
        (steps, groups).
        """
        beta = self.coefficients(at)
        sizes = jax.ops.segment_sum(jnp.ones_like(beta), self.groups, self.num_groups)
        width = STRIDE / jnp.sqrt(sizes + 1.0)

        def one(carry: Any, step: Any) -> tuple[Any, None]:
            (log_tau, known), (stride, log_test) = carry, step
            proposed = log_tau + width * stride
            found = self.of_groups(beta, proposed)
            is_accepted = log_test < found - known
            return (
                jnp.where(is_accepted, proposed, log_tau),
                jnp.where(is_accepted, found, known),
            ), None

        begin = log_tau, self.of_groups(beta, log_tau)
        return jax.lax.scan(one, begin, (strides, log_tests))[0][0]

    def _half_square(self, beta: jax.Array, log_tau: jax.Array) -> jax.Array:
        return 0.5 * (beta * jnp.exp(-log_tau)) ** 2


@trees.record()
class HorseshoeGuide:
    """What the search for a mode sees in place of a horseshoe, which has none: with all
    coefficients at zero its density grows without end as tau falls.

    1 - sqrt(1 + (theta / width)^2) for each, as wide as the data leave it, and N(guess, 1) for log
    tau. It is log concave, and nothing that is sampled depends on it.
    """

    places: Int[jax.Array, " shrunk"]
    widths: Float[jax.Array, " shrunk"]
    guesses: Float[jax.Array, " groups"]

    def __call__(self, flat: jax.Array) -> jax.Array:
        log_tau = flat[-self.guesses.shape[0] :]
        away = flat[self.places] / self.widths
        kinks = jnp.sum(1.0 - jnp.sqrt(1.0 + away**2))
        return kinks - 0.5 * jnp.sum((log_tau - self.guesses) ** 2)

    def precisions(self, at: jax.Array) -> jax.Array:
        """Of the Gaussians about zero that have the guide's slope here and lie below it elsewhere:
        steps to their mode never climb down, where Newton's would leap over the kink.
        """
        away = at[self.places] / self.widths
        return 1.0 / (self.widths**2 * jnp.sqrt(1.0 + away**2))
