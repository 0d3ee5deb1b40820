"""Effects of groups on the user's scale: standard deviations in place of their logarithms, and
correlations in place of free numbers.
"""

from typing import Any

import jax
import numpy as np

from amagold.core import trees
from amagold.models._effect_columns import ColumnUnits
from amagold.models._scale import UserScale
from amagold.target._effects_prior import FactorForm
from amagold.target._group_effects import FIXED, NOISE, TAU, correlation_name, scale_name

NEAREST = 1.0 - 1e-6  # to a correlation of one, that a start may be


@trees.record(static=("forms",))
class MixedScale:
    """Effects are sampled in units of the response over those of their columns."""

    forms: tuple[FactorForm, ...]
    fixed: UserScale | None
    units: tuple[ColumnUnits, ...]  # of the columns of each factor
    response_scale: jax.Array

    def __call__(self, position: dict[str, Any]) -> dict[str, Any]:
        """What is reported; leading axes are allowed."""
        found = dict(position)
        if self.fixed is not None:
            found[FIXED] = self.fixed(position[FIXED])
        for form, units in zip(self.forms, self.units, strict=True):
            name, scales = form.name, scale_name(form.name)
            times = units.to_user() * float(self.response_scale)
            if form.num_correlations:
                own = correlation_name(name)
                between = correlations(np.asarray(position[own], np.float64), form.num_effects)
                deviations = np.exp(np.asarray(position[scales], np.float64))
                found[scales], found[own] = _moved(deviations, between, times)
                found[name] = np.asarray(position[name], np.float64) @ times.T
                continue
            found[name] = np.asarray(position[name], np.float64) * times[0, 0]
            found[scales] = np.exp(np.asarray(position[scales], np.float64)) * times[0, 0]
        if NOISE in position:
            log_noise = np.asarray(position[NOISE], np.float64)
            found[NOISE] = np.exp(log_noise) * float(self.response_scale)
        if TAU in position:
            found[TAU] = np.exp(np.asarray(position[TAU], np.float64))
        return found

    def inverse(self, reported: dict[str, Any]) -> dict[str, Any]:
        """The position of what the user says; raises a sentence where a scale is not positive."""
        found = dict(reported)
        if self.fixed is not None:
            found[FIXED] = self.fixed.inverse(np.asarray(reported[FIXED]))
        for form, units in zip(self.forms, self.units, strict=True):
            name, scales = form.name, scale_name(form.name)
            times = np.linalg.inv(units.to_user() * float(self.response_scale))
            deviations = np.asarray(reported[scales], np.float64)
            _log(scales, deviations)  # a sentence, where one is not positive
            if form.num_correlations:
                own = correlation_name(name)
                between = np.asarray(reported[own], np.float64)
                deviations, between = _moved(deviations, between, times)
                found[scales], found[own] = _log(scales, deviations), free_numbers(between)
                found[name] = np.asarray(reported[name], np.float64) @ times.T
                continue
            found[name] = np.asarray(reported[name], np.float64) * times[0, 0]
            found[scales] = _log(scales, deviations * times[0, 0])
        if NOISE in reported:
            noise = np.asarray(reported[NOISE], np.float64) / float(self.response_scale)
            found[NOISE] = _log(NOISE, noise)
        if TAU in reported:
            found[TAU] = _log(TAU, np.asarray(reported[TAU], np.float64))
        return {name: np.asarray(values, np.float32) for name, values in found.items()}


def _moved(
    deviations: np.ndarray, between: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations and correlations of A u, from those of u."""
    covariance = deviations[..., :, None] * between * deviations[..., None, :]
    found = times @ covariance @ times.T
    own = np.sqrt(np.diagonal(found, axis1=-2, axis2=-1))
    found = found / (own[..., :, None] * own[..., None, :])
    places = np.arange(own.shape[-1])
    found[..., places, places] = 1.0
    return own, np.clip(found, -1.0, 1.0)


def correlations(free: np.ndarray, num_effects: int) -> np.ndarray:
    """C from the free numbers of its partial correlations, with leading axes."""
    factor = np.zeros((*free.shape[:-1], num_effects, num_effects))
    place = 0
    for i in range(num_effects):
        left = np.ones(free.shape[:-1])
        for j in range(i):
            factor[..., i, j] = np.tanh(free[..., place]) * left
            left = left / np.cosh(free[..., place])
            place += 1
        factor[..., i, i] = left
    found = factor @ np.swapaxes(factor, -1, -2)
    found[..., np.arange(num_effects), np.arange(num_effects)] = 1.0  # which is rounded above
    return found


def free_numbers(correlation: np.ndarray) -> np.ndarray:
    """The way back."""
    try:
        factor = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        raise ValueError("correlations must be positive definite matrices; start inside") from None
    size, found = correlation.shape[-1], []
    for i in range(size):
        left = np.ones(correlation.shape[:-2])
        for j in range(i):
            partial = np.clip(factor[..., i, j] / np.sqrt(left), -NEAREST, NEAREST)
            found.append(np.arctanh(partial))
            left = left * (1.0 - partial**2)
    return np.stack(found, axis=-1)


def _log(name: str, values: np.ndarray) -> np.ndarray:
    if not (values > 0).all():
        raise ValueError(f"{name!r} must be above zero, got {values.min():g}; start inside")
    return np.log(values)
