"""Likelihoods of NumPyro's distributions as the outcomes of mixed models."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions

from amagold.interop._site_outcomes import BINOMIAL, LOGISTIC, POISSON, SiteFamily
from amagold.interop._traced_numbers import AFFINE, CONSTANT, FIXED, LOG_AFFINE, SCALE, Traced
from amagold.models._fixed_dispersion import NegativeBinomialOfShape
from amagold.models._noise_shapes import Gaussian
from amagold.models._poisson import CountExample
from amagold.models._residuals import Noise, ResidualExample
from amagold.models._unknown_noise import UnknownNoise

Numbers = dict[str, Any]


class MixedFamily(NamedTuple):
    """How a distribution's parameters become a predictor, and a row an example of an outcome."""

    outcome: Any
    predictor: Callable[[Numbers], jax.Array]
    example: Callable[[Numbers], Any]  # without predictors, weight and offset
    has_noise: bool = False


def mixed_family(
    kind: type | None, found: dict[str, Traced], noise: str | None
) -> MixedFamily | None:
    """The family of an observed site that was traced with the roles of a mixed model; `noise` is
    the kind of its own scale, where one is left for it. None unless its predictor is proved to be
    affine.
    """
    kinds = {name: each.kind for name, each in found.items()}
    if kind is None or kinds["outcome"] not in FIXED or kinds["weight"] not in FIXED:
        return None
    if kind is distributions.Normal and kinds["loc"] == AFFINE:
        return _of_noise(kinds["scale"], noise)
    if noise is not None:
        return None
    if kind is distributions.BernoulliLogits and kinds["logits"] == AFFINE:
        return _as_mixed(LOGISTIC)
    if kind is distributions.BinomialLogits and kinds["logits"] == AFFINE:
        return _as_mixed(BINOMIAL) if kinds["total_count"] in FIXED else None
    if kind is distributions.Poisson and kinds["rate"] == LOG_AFFINE:
        return _as_mixed(POISSON)
    if kind is distributions.NegativeBinomial2 and kinds["rate"] == LOG_AFFINE:
        return _of_shape(found["concentration"])
    return None


def _as_mixed(family: SiteFamily) -> MixedFamily:
    return MixedFamily(
        family.outcome, lambda at: family.predictor(at, 1.0), lambda row: family.example(row, 1.0)
    )


def _of_noise(scale: str, noise: str | None) -> MixedFamily | None:
    """Noise of a scale that is a number of the row, or the site that is left for it."""
    if scale in FIXED and noise is None:
        return MixedFamily(
            Noise(Gaussian(), 1.0),
            lambda at: at["loc"] / at["scale"],
            lambda row: ResidualExample(None, row["outcome"] / row["scale"]),  # type: ignore[arg-type]
        )
    if noise is not None and scale == noise and scale.startswith(SCALE):
        return MixedFamily(
            UnknownNoise(Gaussian()),
            lambda at: at["loc"],
            lambda row: ResidualExample(None, row["outcome"]),  # type: ignore[arg-type]
            has_noise=True,
        )
    return None


def _of_shape(concentration: Traced) -> MixedFamily | None:
    """Negative binomials of one known shape."""
    if concentration.kind != CONSTANT:
        return None
    shape = np.ravel(np.asarray(concentration.value))
    if not (shape == shape[0]).all():
        return None
    known = float(shape[0])
    return MixedFamily(
        NegativeBinomialOfShape(known),
        # the mean is concentration / rate
        lambda at: jnp.log(known) - at["rate"],
        lambda row: CountExample(None, row["outcome"]),
    )
