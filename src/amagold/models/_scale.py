"""Coefficients on the user's scale, from those of standardised predictors and outcomes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from amagold.core import trees
from amagold.models._priors import LOG_SCALE


@trees.record(static=("is_matrix",))
class UserScale:
    """u belongs to x~ = (x - center) / scale and y~ = (y - response_center) / response_scale; theta
    to x and y.

    theta_j = response_scale u_j / scale_j, and theta_0 = response_center + response_scale u_0 -
    sum_j center_j theta_j. Draws are reported in float64: an intercept far from zero would lose its
    differences in float32.
    """

    # None without an intercept: predictors and outcomes are then only scaled
    centers: jax.Array | None
    scales: jax.Array
    response_center: jax.Array
    response_scale: jax.Array
    is_matrix: bool  # a column per class

    def __call__(self, position: Any) -> Any:
        """theta of u; leading axes are allowed."""
        if isinstance(position, dict):
            return self._with_others(position, self(position["coefficients"]), 1.0)
        here, (scales, center, scale) = _module(
            position, self.scales, self.response_center, self.response_scale
        )
        rows = here.moveaxis(position, self._axis, 0)
        if self.centers is None:
            return here.moveaxis(scale * rows / _column(scales, rows), 0, self._axis)
        slopes = scale * rows[1:] / _column(scales, rows)
        _, (centers,) = _module(position, self.centers)
        intercept = center + scale * rows[0] - here.sum(_column(centers, rows) * slopes, axis=0)
        return here.moveaxis(here.concatenate([intercept[None], slopes]), 0, self._axis)

    def inverse(self, reported: Any) -> Any:
        """u of theta."""
        if isinstance(reported, dict):
            return self._with_others(reported, self.inverse(reported["coefficients"]), -1.0)
        here, (scales, center, scale) = _module(
            reported, self.scales, self.response_center, self.response_scale
        )
        rows = here.moveaxis(reported, self._axis, 0)
        if self.centers is None:
            return here.moveaxis(rows * _column(scales, rows) / scale, 0, self._axis)
        _, (centers,) = _module(reported, self.centers)
        at_center = rows[0] + here.sum(_column(centers, rows) * rows[1:], axis=0) - center
        standardised = here.concatenate([at_center[None], rows[1:] * _column(scales, rows)]) / scale
        return here.moveaxis(standardised, 0, self._axis)

    def _with_others(self, given: dict[str, Any], coefficients: Any, sign: float) -> dict[str, Any]:
        """Beside the coefficients, the noise's scale has the units of the outcomes; the shape of a
        distribution has none.
        """
        found = given | {"coefficients": coefficients}
        if LOG_SCALE in given:
            here, (scale,) = _module(given[LOG_SCALE], self.response_scale)
            found[LOG_SCALE] = here.asarray(given[LOG_SCALE]) + sign * here.log(scale)
        return found

    @property
    def _axis(self) -> int:
        return -2 if self.is_matrix else -1


def _module(position: Any, *numbers: Any) -> tuple[Any, list[Any]]:
    """NumPy with the numbers in float64, or JAX's while it traces."""
    if isinstance(position, Tracer) or any(isinstance(number, Tracer) for number in numbers):
        return jnp, list(numbers)
    return np, [np.asarray(number, np.float64) for number in numbers]


def _column(numbers: Any, rows: Any) -> Any:
    """One number for each of the rows, whatever follows."""
    return numbers.reshape(-1, *[1] * (rows.ndim - 1))
