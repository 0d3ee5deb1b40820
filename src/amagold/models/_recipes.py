"""How to build a ready-made model again from a few settings and its arrays, so that a stored run
can go on without the user's code.
"""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.data import Data
from amagold.models import _residuals as residuals
from amagold.models._coded_rows import CodedRows
from amagold.models._double_well import double_well, log_density as double_well_log_density
from amagold.models._gaussian_sums import GaussianSums, SumsExample, regression_of_sums
from amagold.models._noise_shapes import Gaussian, StudentT
from amagold.models._ordinal import Ordinal
from amagold.models._priors import LOG_SHAPE, CoefficientPrior, NoisePrior
from amagold.models._regression import (
    Likelihood,
    Predictor,
    SharedPredictor,
    every_family,
    regression,
)
from amagold.models._scale import UserScale
from amagold.models._unknown_noise import UnknownNoise
from amagold.models._weighted import Weighted
from amagold.target import Density, Posterior, Target

Recipe = tuple[dict[str, Any], dict[str, np.ndarray]]
SHAPES = {"linear": Gaussian, "robust": StudentT}
SUMS_MODEL = "linear, from sums"
ORDINAL = "ordinal"
# whose array it is
DATA, PRIOR, NOISE, TRANSFORM, SUMS = "data.", "prior.", "noise.", "transform.", "sums."
KNOWN = (DATA, PRIOR, NOISE, TRANSFORM, SUMS)


def recipe_of(target: Target) -> Recipe | None:
    """Settings and arrays of a ready-made model; None for a model of the user's own."""
    if target.domain is not None:
        return None
    if isinstance(target, Density):
        is_ours = getattr(target.log_density, "function", None) is double_well_log_density
        return ({"model": "double_well"}, {}) if is_ours else None
    settings = _settings(target)
    if settings is None or isinstance(target.data, Data):
        return None
    columns = target.data._asdict()
    if any(isinstance(values, CodedRows) for values in columns.values()):
        return None
    arrays = {
        f"{DATA}{name}": np.asarray(values)
        for name, values in columns.items()
        if values is not None
    }
    prior = target.log_prior
    if isinstance(prior, NoisePrior):
        arrays |= {
            f"{NOISE}{name}": np.asarray(getattr(prior, name))
            for name in ("log_center", "log_scale")
        }
        prior = prior.coefficients
    if isinstance(target.log_likelihood, GaussianSums):
        arrays |= _arrays(SUMS, target.log_likelihood)
    return settings, arrays | _arrays(PRIOR, prior) | _arrays(TRANSFORM, target.transform)


def build_again(settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Target:
    """The model that a recipe describes."""
    name = settings.get("model")
    if name == "double_well":
        return double_well()
    if name not in every_family() and name not in SHAPES and name != SUMS_MODEL:
        raise ValueError(
            f"the run's model must be one of this library's, got {name!r}; name your own with "
            "--target"
        )
    strangers = [array for array in arrays if not array.startswith(KNOWN)]
    if strangers or not isinstance(settings["prior"], str):
        raise ValueError(
            "its arrays or the words of its prior are not those of a model of this library"
        )
    prior = CoefficientPrior(
        **{"offsets": None, **_of(PRIOR, arrays)}, words=str(settings["prior"])
    )  # pyright: ignore
    of_outcome = settings.get("outcome", {})
    num_classes = of_outcome.get("num_classes")
    of_transform = _of(TRANSFORM, arrays)
    transform = (
        UserScale(**{"centers": None, **of_transform}, is_matrix=num_classes is not None)
        if of_transform
        else None
    )  # pyright: ignore
    if name == SUMS_MODEL:
        return regression_of_sums(
            GaussianSums(**_of(SUMS, arrays)),
            SumsExample(**_of(DATA, arrays)),
            NoisePrior(prior, **_of(NOISE, arrays)),
            transform,
        )
    if name in SHAPES:
        noise = _of(NOISE, arrays)
        whole = NoisePrior(prior, **noise) if noise else prior
        data = residuals.ResidualExample(**_of(DATA, arrays))
        return residuals.noisy_regression(
            SHAPES[name](**settings["shape"]), data, whole, transform, settings["noise_scale"]
        )
    outcome, example = every_family()[name]
    data = example(**_of(DATA, arrays))
    shape = _of(NOISE, arrays)
    whole = NoisePrior(prior, **shape, name=LOG_SHAPE) if shape else prior
    return regression(outcome(**of_outcome), data, whole, transform, num_classes)


def law_settings(law: Any) -> dict[str, Any]:
    """What describes how outcomes follow from predictors, in numbers and texts."""
    if isinstance(law, Weighted):
        return law_settings(law.outcome)
    if isinstance(law, Ordinal):
        return {"model": ORDINAL, "outcome": dataclasses.asdict(law)}
    is_noise = isinstance(law, UnknownNoise)
    found = _of_shape(law.shape, None) if is_noise else _of_outcome(law)
    if found is None:
        raise ValueError(f"outcome must be one of this library's, got {type(law).__name__}")
    return found


def law_again(settings: dict[str, Any]) -> Any:
    """The law that they describe, or an error."""
    name = settings["model"]
    fields = {**settings.get("shape", {}), **settings.get("outcome", {})}
    if not all(_is_setting(value) for value in fields.values()):
        raise ValueError(f"the settings of {name!r} are none: {fields!r}")
    if name in SHAPES:
        return UnknownNoise(SHAPES[name](**settings["shape"]))
    kind = Ordinal if name == ORDINAL else every_family()[name].outcome
    return kind(**settings.get("outcome", {}))


def _is_setting(value: Any) -> bool:
    """A number, or the name of a family."""
    return (
        value in every_family()
        if isinstance(value, str)
        else (type(value) in (int, float) and math.isfinite(value))
    )


def _settings(target: Posterior) -> dict[str, Any] | None:
    """What describes a regression of this library, in numbers and texts."""
    likelihood, prior = target.log_likelihood, target.log_prior
    if isinstance(likelihood, GaussianSums) and isinstance(prior, NoisePrior):
        if not isinstance(target.transform, UserScale | None) or target.bounds is not None:
            return None
        return {"model": SUMS_MODEL, "prior": prior.coefficients.words}
    if not isinstance(likelihood, Likelihood):
        return None
    outcome, bounds = likelihood.outcome, likelihood.outcome.bounds(likelihood.predictor)
    if isinstance(outcome, Weighted):
        outcome = outcome.outcome
    if isinstance(outcome, residuals.Noise):
        settings = _of_shape(outcome.shape, outcome.noise_scale)
    elif isinstance(outcome, UnknownNoise):
        settings = _of_shape(outcome.shape, None)
    else:
        settings = _of_outcome(outcome)
    name = None
    if isinstance(prior, NoisePrior):
        name, prior = prior.name, prior.coefficients
    if settings is None or not isinstance(prior, CoefficientPrior) or target.bounds != bounds:
        return None
    if not isinstance(target.transform, UserScale | None):
        return None
    usual: Any = Predictor(is_contrast="num_classes" in settings.get("outcome", {}))
    usual = SharedPredictor(usual, name) if name is not None else usual
    return settings | {"prior": prior.words} if likelihood.predictor == usual else None


def _of_shape(shape: Any, noise_scale: float | None) -> dict[str, Any] | None:
    name = _name(SHAPES, shape)
    return (
        None
        if name is None
        else {"model": name, "shape": dataclasses.asdict(shape), "noise_scale": noise_scale}
    )


def _of_outcome(outcome: Any) -> dict[str, Any] | None:
    name = _name({name: family.outcome for name, family in every_family().items()}, outcome)
    if name is None:
        return None
    fields = dataclasses.asdict(outcome)
    return {"model": name, "outcome": fields} if fields else {"model": name}


def _name(kinds: dict[str, Any], instance: Any) -> str | None:
    return next((name for name, kind in kinds.items() if type(instance) is kind), None)


def _arrays(whose: str, record: Any) -> dict[str, np.ndarray]:
    """The arrays of a record by their names."""
    if record is None:
        return {}
    values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {
        f"{whose}{name}": np.asarray(value)
        for name, value in values.items()
        if hasattr(value, "shape")
    }


def _of(whose: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {
        name.removeprefix(whose): jnp.asarray(values)
        for name, values in arrays.items()
        if name.startswith(whose)
    }
