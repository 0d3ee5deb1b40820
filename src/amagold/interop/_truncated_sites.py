"""NumPyro's truncated distributions by formulas without a switch.

NumPyro's own turn about where the location crosses a limit, and no derivative is bounded across a
switch. A symmetric distribution needs none: 1 - F((low - loc) / scale) = F((loc - low) / scale).
"""

from collections.abc import Callable
from typing import Any

import jax
from jax.scipy.special import log_ndtr
from numpyro.distributions import (
    Distribution,
    LeftTruncatedDistribution,
    Logistic,
    Normal,
    TwoSidedTruncatedDistribution,
)
from numpyro.distributions.util import validate_sample

from amagold.target._normal_tail import log_between

# log F of the standard distribution
LOG_CDF: dict[type[Distribution], Callable[[jax.Array], jax.Array]] = {
    Normal: log_ndtr,
    Logistic: jax.nn.log_sigmoid,
}


class FromBelow(LeftTruncatedDistribution):
    """log p(y) = log f(y) - log F((loc - low) / scale)."""

    @validate_sample
    def log_prob(self, value: Any) -> jax.Array:
        base: Any = self.base_dist
        log_cdf = LOG_CDF[type(base)]
        return base.log_prob(value) - log_cdf((base.loc - self.low) / base.scale)


class FromBothSides(TwoSidedTruncatedDistribution):
    """log p(y) = log f(y) - log(Phi((high - loc) / scale) - Phi((low - loc) / scale))."""

    @validate_sample
    def log_prob(self, value: Any) -> jax.Array:
        base: Any = self.base_dist
        low: Any = self.low
        start, width = (low - base.loc) / base.scale, (self.high - low) / base.scale
        return base.log_prob(value) - log_between(start, width)


def without_switches(fn: Any) -> Any:
    """The distribution; what it is made of is written smoothly."""
    parts, form = jax.tree.flatten(fn, is_leaf=_is_truncated)
    if not any(map(_is_truncated, parts)):
        return fn
    return jax.tree.unflatten(form, [_smooth(p) if _is_truncated(p) else p for p in parts])


def _is_truncated(part: Any) -> bool:
    if type(part) is LeftTruncatedDistribution:
        return type(part.base_dist) in LOG_CDF
    return type(part) is TwoSidedTruncatedDistribution and type(part.base_dist) is Normal


def _smooth(part: Any) -> FromBelow | FromBothSides:
    checked = part._validate_args
    if type(part) is LeftTruncatedDistribution:
        return FromBelow(part.base_dist, part.low, validate_args=checked)
    return FromBothSides(part.base_dist, part.low, part.high, validate_args=checked)
