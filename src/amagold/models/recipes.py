"""How to build a ready-made model again from a few settings and its arrays, so that a stored run can go on without the user's code."""

import dataclasses
from typing import Any

import numpy as np

from amagold.models import residuals
from amagold.models.columns import Columns, NormalOnColumns
from amagold.models.double_well import double_well
from amagold.models.double_well import log_density as double_well_log_density
from amagold.models.logistic import Example as SignExample
from amagold.models.logistic import Logistic
from amagold.models.poisson import Example as CountExample
from amagold.models.poisson import Poisson
from amagold.models.priors import Normal
from amagold.models.probit import Probit
from amagold.models.regression import Likelihood, regression
from amagold.models.softmax import Example as LabelExample
from amagold.models.softmax import Softmax
from amagold.target import Density, Posterior, Target

Recipe = tuple[dict[str, Any], dict[str, np.ndarray]]
OUTCOMES = {"logistic": Logistic, "probit": Probit, "softmax": Softmax, "poisson": Poisson}
EXAMPLES = {"logistic": SignExample, "probit": SignExample, "softmax": LabelExample, "poisson": CountExample}
SHAPES = {"linear": residuals.Gaussian, "robust": residuals.StudentT}


def recipe_of(target: Target) -> Recipe | None:
    """Settings and arrays of a ready-made model; None for a model of the user's own."""
    if target.domain is not None:
        return None
    if isinstance(target, Density):
        return ({"model": "double_well"}, {}) if target.log_density is double_well_log_density else None
    settings = _settings(target)
    if settings is None:
        return None
    return settings, {name: np.asarray(values) for name, values in target.data._asdict().items()}


def build_again(settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Target:
    """The model that a recipe describes."""
    name = settings.get("model")
    if name == "double_well":
        return double_well()
    if name not in OUTCOMES and name not in SHAPES:
        raise ValueError(f"the run's model must be one of this library's, got {name!r}; name your own with --target")
    scale, columns = float(settings["prior_scale"]), _columns(settings.get("columns"))
    if name in SHAPES:
        shape = SHAPES[name](**settings["shape"])
        return residuals.noisy_regression(shape, residuals.Example(**arrays), scale, columns, settings["noise_scale"])  # pyright: ignore
    outcome = OUTCOMES[name](**settings.get("outcome", {}))
    return regression(outcome, EXAMPLES[name](**arrays), scale, columns, settings.get("outcome", {}).get("num_classes"))


def _settings(target: Posterior) -> dict[str, Any] | None:
    """What describes a regression of this library, in numbers and texts."""
    likelihood, prior = target.log_likelihood, target.log_prior
    if isinstance(likelihood, residuals.UnknownNoise) and isinstance(prior, residuals.NoisePrior):
        prior, bounds, settings = prior.coefficients, None, _of_shape(likelihood.shape, None)
    elif isinstance(likelihood, Likelihood):
        outcome, bounds = likelihood.outcome, likelihood.outcome.bounds(likelihood.predictor)
        settings = _of_shape(outcome.shape, outcome.noise_scale) if isinstance(outcome, residuals.Noise) else _of_outcome(outcome)
    else:
        return None
    if settings is None or not isinstance(prior, Normal | NormalOnColumns) or target.bounds != bounds:
        return None
    settings["prior_scale"] = prior.scale
    if isinstance(prior, NormalOnColumns):
        settings["columns"] = dataclasses.asdict(prior.columns)
    return settings if likelihood.predictor.columns == getattr(prior, "columns", None) else None


def _of_shape(shape: Any, noise_scale: float | None) -> dict[str, Any] | None:
    name = _name(SHAPES, shape)
    return None if name is None else {"model": name, "shape": dataclasses.asdict(shape), "noise_scale": noise_scale}


def _of_outcome(outcome: Any) -> dict[str, Any] | None:
    name = _name(OUTCOMES, outcome)
    if name is None:
        return None
    fields = dataclasses.asdict(outcome)
    return {"model": name, "outcome": fields} if fields else {"model": name}


def _name(kinds: dict[str, Any], instance: Any) -> str | None:
    return next((name for name, kind in kinds.items() if type(instance) is kind), None)


def _columns(settings: dict[str, Any] | None) -> Columns | None:
    if settings is None:
        return None
    centers = settings["centers"]
    return Columns(tuple(settings["scales"]), None if centers is None else tuple(centers))
