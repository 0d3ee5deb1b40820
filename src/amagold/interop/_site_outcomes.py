"""Likelihoods of NumPyro's distributions through the outcomes of `amagold.models`, which know their
bounds and are right in float32: the same log densities, constants included.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro import distributions

from amagold.interop._normal_noise import NormalNoise
from amagold.interop._observed_site import ObservedSite
from amagold.interop._traced_numbers import AFFINE, CONSTANT, FIXED, LOG_AFFINE, ROW, Traced
from amagold.models._binomial import Binomial, BinomialExample
from amagold.models._logistic import Logistic, LogisticExample
from amagold.models._negative_binomial import NegativeBinomial
from amagold.models._noise_shapes import Gaussian, StudentT
from amagold.models._poisson import CountExample, Poisson
from amagold.models._residuals import Noise, ResidualExample
from amagold.models._stirling import stirling_remainder
from amagold.models._unknown_noise import UnknownNoise
from amagold.models._weighted import Weighted
from amagold.target import LinearBounds

Numbers = dict[str, Any]


class SiteFamily(NamedTuple):
    """How a distribution's parameters become a predictor, and a row an example of an outcome."""

    outcome: Any
    predictor: Callable[[Numbers, float], jax.Array]  # (traced numbers, unit) -> z
    example: Callable[[Numbers, float], Any]
    constant: Callable[[Numbers, float], jax.Array]  # what the outcome leaves out


def family_of(kind: type | None, found: dict[str, Traced]) -> SiteFamily | None:
    """The family of a traced site; None unless the predictor is proved to be affine."""
    kinds = {name: each.kind for name, each in found.items()}
    if kind is None or kinds["outcome"] not in FIXED or kinds["weight"] not in FIXED:
        return None
    positive = (*FIXED, LOG_AFFINE)
    if kind is distributions.BernoulliLogits and kinds["logits"] == AFFINE:
        return LOGISTIC
    if kind is distributions.BinomialLogits and kinds["logits"] == AFFINE:
        return BINOMIAL if kinds["total_count"] in FIXED else None
    if kind is distributions.Poisson and kinds["rate"] == LOG_AFFINE:
        return POISSON
    if kind is distributions.NegativeBinomial2 and LOG_AFFINE in kinds.values():
        is_known = kinds["rate"] in positive and kinds["concentration"] in positive
        return NEGATIVE_BINOMIAL if is_known else None
    if kind is distributions.Normal and kinds["loc"] == AFFINE:
        return _of_noise(kinds["scale"], Gaussian(), NormalNoise())
    if kind is distributions.StudentT and kinds["loc"] == AFFINE and kinds["df"] == CONSTANT:
        shape = StudentT(float(jnp.reshape(found["df"].value, ())))
        return _of_noise(kinds["scale"], shape, UnknownNoise(shape))
    return None


def _of_noise(scale: str, shape: Any, unknown: Any) -> SiteFamily | None:
    """Noise of a scale that is a number of the row, or a parameter whose logarithm is affine."""
    if scale in FIXED:
        return SiteFamily(
            # z / s and y / s have noise of scale one
            Noise(shape, 1.0),
            lambda at, unit: at["loc"] / at["scale"],
            lambda row, unit: ResidualExample(None, row["outcome"] / row["scale"]),  # type: ignore[arg-type]
            lambda row, unit: shape.log_constant - jnp.log(row["scale"]),
        )
    if scale == LOG_AFFINE:
        return SiteFamily(
            unknown,
            lambda at, unit: jnp.stack([at["loc"] / unit, at["scale"] - math.log(unit)]),
            lambda row, unit: ResidualExample(None, row["outcome"] / unit),  # type: ignore[arg-type]
            lambda row, unit: jnp.asarray(shape.log_constant - math.log(unit)),
        )
    return None


def _no_constant(row: Numbers, unit: float) -> jax.Array:
    return jnp.zeros(())


def _of_count(row: Numbers, unit: float) -> jax.Array:
    """y log y - y - log y! = -log(2 pi y) / 2 - S(y), and zero for no events."""
    count = jnp.maximum(row["outcome"], 1.0)
    left = -0.5 * jnp.log(2.0 * math.pi * count) - stirling_remainder(count)
    return jnp.where(row["outcome"] > 0, left, 0.0)


def _of_trials(row: Numbers, unit: float) -> jax.Array:
    """log(n over k) + k log(k / n) + (n - k) log((n - k) / n)."""
    hits, trials = row["outcome"], row["total_count"]
    missed, log_gamma = trials - hits, jax.scipy.special.gammaln
    ways = log_gamma(trials + 1.0) - log_gamma(hits + 1.0) - log_gamma(missed + 1.0)
    share = lambda part: part * jnp.log(jnp.maximum(part, 1.0) / trials)  # noqa: E731
    return ways + share(hits) + share(missed)


def _log_mean_and_shape(at: Numbers, unit: float) -> jax.Array:
    # the mean is concentration / rate
    return jnp.stack([at["concentration"] - at["rate"], at["concentration"]])


LOGISTIC = SiteFamily(
    Logistic(),
    lambda at, unit: at["logits"],
    lambda row, unit: LogisticExample(None, 2.0 * row["outcome"] - 1.0),  # type: ignore[arg-type]
    _no_constant,
)
BINOMIAL = SiteFamily(
    Binomial("logistic"),
    lambda at, unit: at["logits"],
    lambda row, unit: BinomialExample(None, row["outcome"], row["total_count"]),
    _of_trials,
)
POISSON = SiteFamily(
    Poisson(),
    lambda at, unit: at["rate"],
    lambda row, unit: CountExample(None, row["outcome"]),
    _of_count,
)
NEGATIVE_BINOMIAL = SiteFamily(
    NegativeBinomial(),
    _log_mean_and_shape,
    lambda row, unit: CountExample(None, row["outcome"]),
    _of_count,
)


@dataclass(frozen=True)
class SitePredictor:
    """z of a row: of log-affine parameters the logarithms."""

    site: ObservedSite
    unit: float

    def __call__(self, position: Any, example: Any) -> jax.Array:
        kind, found = self.site.at(position, example)
        family = family_of(kind, found)
        assert family is not None
        numbers = {name: _number(name, each) for name, each in found.items()}
        return family.predictor(numbers, self.unit)


def _number(name: str, traced: Traced) -> jax.Array | None:
    if traced.value is None:
        return None
    value = jnp.asarray(traced.value, jnp.result_type(float)).reshape(())
    # a positive parameter of a distribution that is a number of the row
    is_plain = traced.kind in (CONSTANT, ROW) and name in ("concentration", "rate")
    return jnp.log(value) if is_plain else value


@dataclass(frozen=True)
class SiteOutcome:
    """log p(outcome | z) of a row, or another number of (z, example) that bounds have."""

    site: ObservedSite
    unit: float
    part: str = "outcome"

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        row = self.site.of_row(example)
        family = self._family(example)
        outcome = Weighted(family.outcome)
        own = family.example(row, self.unit)._replace(weight=row["weight"])
        if self.part == "outcome":
            return outcome(z, own) + row["weight"] * family.constant(row, self.unit)
        return getattr(outcome.bounds(None), self.part)(z, own)

    def _family(self, example: Any) -> SiteFamily:
        anywhere = {name: jnp.zeros(shape) for name, shape in self.site.form}
        family = family_of(*self.site.at(anywhere, example))
        assert family is not None
        return family


def linear_bounds(site: ObservedSite, family: SiteFamily, unit: float) -> LinearBounds | None:
    """The family's own, of the rows of a model."""
    bounds = Weighted(family.outcome).bounds(None)
    if bounds is None:
        return None
    lower = bounds.lower_curvature
    return bounds._replace(
        predictor=SitePredictor(site, unit),
        outcome=SiteOutcome(site, unit),
        scale=SiteOutcome(site, unit, "scale"),
        lower_curvature=None if lower is None else SiteOutcome(site, unit, "lower_curvature"),
    )
