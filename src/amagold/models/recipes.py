"""How to build a ready-made model again from a few settings and its arrays, so that a stored run can go on without the user's code."""

from typing import Any

import numpy as np

from amagold.models.double_well import double_well
from amagold.models.double_well import log_density as double_well_log_density
from amagold.models.logistic import Example
from amagold.models.logistic import log_likelihood as logistic_log_likelihood
from amagold.models.priors import Normal
from amagold.target import Density, Posterior, Target

Recipe = tuple[dict[str, Any], dict[str, np.ndarray]]


def recipe_of(target: Target) -> Recipe | None:
    """Settings and arrays of a ready-made model; None for a model of the user's own."""
    if target.domain is not None:
        return None
    if isinstance(target, Density):
        return ({"model": "double_well"}, {}) if target.log_density is double_well_log_density else None
    if target.log_likelihood is logistic_log_likelihood and isinstance(target.log_prior, Normal):
        arrays = {name: np.asarray(values) for name, values in target.data._asdict().items()}
        return {"model": "logistic", "prior_scale": target.log_prior.scale}, arrays
    return None


def build_again(settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Target:
    """The model that a recipe describes."""
    if settings.get("model") == "double_well":
        return double_well()
    if settings.get("model") == "logistic":
        init = np.zeros(arrays["predictors"].shape[1], np.float32)
        return Posterior(logistic_log_likelihood, Normal(float(settings["prior_scale"])), Example(**arrays), init=init)  # pyright: ignore
    raise ValueError(f"the run's model must be one of this library's, got {settings.get('model')!r}; name your own with --target")
