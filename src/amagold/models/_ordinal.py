"""Bayesian ordinal regression: ordered classes by a cumulative logit."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.models._default_priors import log_odds, of_link
from amagold.models._design import design_of
from amagold.models._log_sigmoid import log_sigmoid
from amagold.models._outcomes import classes
from amagold.models._priors import CoefficientPrior
from amagold.models._regression import Likelihood, Predictor, num_predictors
from amagold.models._row_terms import RowTerms, check_offset
from amagold.models._scale import UserScale
from amagold.models._table import table_of
from amagold.models._weighted import Weighted
from amagold.target import Posterior

LOG_GAP_SCALE = 1.0


class OrdinalExample(NamedTuple):
    """One row of the table: its predictors and its class, from 0."""

    predictors: Any
    label: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


@dataclass(frozen=True)
class OrdinalPredictor:
    """(x . theta, logs of the gaps between cutpoints)."""

    coefficients: Predictor

    def __call__(self, position: dict[str, jax.Array], example: OrdinalExample) -> jax.Array:
        z = self.coefficients(position["coefficients"], example)
        return jnp.concatenate([z[None], jnp.asarray(position["log_gaps"], z.dtype)])


@dataclass(frozen=True)
class Ordinal:
    """P(y <= k | z) = s(c_k - z), s the sigmoid, with c_0 = 0, whose place the intercept takes, and
    c_k = c_(k - 1) + exp(gap_k). It knows no bounds: tests look at all rows.
    """

    num_classes: int

    def __call__(self, z: jax.Array, example: OrdinalExample) -> jax.Array:
        return self._log_probabilities(z)[example.label]

    def bounds(self, predictor: Any) -> None:
        return None

    def mean(self, z: jax.Array) -> jax.Array:
        """The probability of each class."""
        return jnp.exp(self._log_probabilities(z))

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.categorical(key, self._log_probabilities(z), axis=-1)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        labels = jnp.asarray(y)[..., None].astype(jnp.int32)
        return jnp.take_along_axis(self._log_probabilities(z), labels, axis=-1)[..., 0]

    def _log_probabilities(self, z: jax.Array) -> jax.Array:
        """log(s(u) - s(v)) = log s(u) + log s(-v) + log(1 - exp(v - u)), u the cutpoint above and v
        the one below.
        """
        gaps = jnp.exp(z[..., 1:])
        none = jnp.zeros_like(z[..., :1])
        away = jnp.concatenate([none, jnp.cumsum(gaps, axis=-1)], axis=-1) - z[..., :1]
        above = jnp.concatenate([log_sigmoid(away), none], axis=-1)
        below = jnp.concatenate([none, log_sigmoid(-away)], axis=-1)
        between = jnp.concatenate([none, jnp.log(-jnp.expm1(-gaps)), none], axis=-1)
        return above + below + between


@trees.record()
class OrdinalPrior:
    """The coefficients' prior, and log gap_k ~ N(log_centers_k, 1)."""

    coefficients: CoefficientPrior
    log_centers: jax.Array

    def __call__(self, position: dict[str, jax.Array]) -> jax.Array:
        away = (position["log_gaps"] - self.log_centers) / LOG_GAP_SCALE
        return self.coefficients(position["coefficients"]) - 0.5 * jnp.sum(away**2)

    def sentences(self) -> tuple[str, ...]:
        centers = ", ".join(f"{center:.4g}" for center in np.asarray(self.log_centers)[:5])
        more = ", ..." if len(self.log_centers) > 5 else ""
        return (
            *self.coefficients.sentences(),
            "The intercept stands for minus the first cutpoint; the logs of the gaps between "
            f"cutpoints are normal about those of the outcomes' shares ({centers}{more}), "
            f"with standard deviation {LOG_GAP_SCALE:g}.",
        )


@trees.record()
class OrdinalScale:
    """Slopes and cutpoints on the user's scale."""

    scale: UserScale | None

    def __call__(self, position: dict[str, Any]) -> dict[str, Any]:
        given = position["coefficients"]
        flat = given if self.scale is None else self.scale(given)
        here = jnp if isinstance(flat, Tracer) else np
        gaps = here.exp(position["log_gaps"])
        none = here.zeros_like(gaps[..., :1])
        up = here.concatenate([none, here.cumsum(gaps, axis=-1)], axis=-1)
        return {"coefficients": flat[..., 1:], "cutpoints": up - flat[..., :1]}

    def inverse(self, reported: dict[str, Any]) -> dict[str, Any]:
        cutpoints = np.asarray(reported["cutpoints"], np.float64)
        gaps = np.diff(cutpoints, axis=-1)
        if not (gaps > 0).all():
            raise ValueError("cutpoints must rise from each to the next; sort them")
        flat = np.concatenate([-cutpoints[..., :1], np.asarray(reported["coefficients"])], axis=-1)
        given = flat if self.scale is None else self.scale.inverse(flat)
        return {"coefficients": given, "log_gaps": np.log(gaps)}


def ordinal(
    X: ArrayLike,
    y: ArrayLike,
    prior_scale: float | None = None,
    *,
    num_classes: int | None = None,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    standardize: bool | None = None,
) -> Posterior:
    """The posterior of an ordinal regression, P(y <= k) = 1 / (1 + exp(x . theta - c_k)), with
    independent normal priors.

    `amagold.sample` reports a dict of `coefficients` on the scale of X, without an intercept, and
    of the rising `cutpoints` c_k.

    Args:
      X: predictors, one row per example.
      y: ordered classes, whole numbers from 0, each of them seen at least once; three or more.
      prior_scale: as for `models.logistic`. The first cutpoint at the predictors' means has the
        prior of minus an intercept, N(logit of the share of the first class, 2.5^2), and the log of
        each further gap is N(log of the gap of the outcomes' shares, 1).
      num_classes: how many classes there are; None takes them from y.
      weights: as for `models.logistic`.
      offset: added to x . theta, one number for each row.
      standardize: as for `models.logistic`.
    """
    sheet, observed = table_of(X, y, None, True, RowTerms(weights, offset))
    rows = sheet.rows
    check_offset(rows)
    labels, found = classes(observed, sheet.num_rows, num_classes)
    if found < 3:
        raise ValueError(f"y must hold at least three ordered classes, got {found}; use logistic")
    up_to = [rows.mean(np.asarray(labels) <= label) for label in range(found - 1)]
    cutpoints = np.array([log_odds(share, sheet.num_observations) for share in up_to])
    # classes that were not seen have no gap to speak of
    gaps = np.maximum(np.diff(cutpoints), 1e-2)
    design = design_of(sheet, of_link(-cutpoints[0] - rows.mean_offset), prior_scale, standardize)
    assert isinstance(design.prior, CoefficientPrior)
    log_gaps = jnp.asarray(np.log(gaps), jnp.float32)
    data = OrdinalExample(design.predictors, jnp.asarray(labels), **rows.stored())
    outcome: Any = Ordinal(found)
    predictor: Any = OrdinalPredictor(Predictor())
    return Posterior(
        Likelihood(predictor, outcome if rows.weights is None else Weighted(outcome)),
        OrdinalPrior(design.prior, log_gaps),
        data,
        init={
            "coefficients": np.zeros(num_predictors(data), np.float32),
            "log_gaps": np.asarray(log_gaps),
        },
        transform=OrdinalScale(design.transform),
    )
