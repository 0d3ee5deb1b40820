"""Bayesian ordinal regression: ordered classes by a cumulative logit."""

import math
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
from amagold.models._regression import regression
from amagold.models._row_terms import RowTerms, check_offset
from amagold.models._scale import UserScale
from amagold.models._table import table_of
from amagold.target import LinearBounds, Posterior

GAPS = "gaps"  # what the position calls t; it comes after the coefficients
LOG_GAP_SCALE = 1.0
UNIT = 2.0  # of t: gaps move less with it than z does, so that bounds are little wider for them
THIRD = 1.0 / (6.0 * math.sqrt(3.0))  # the largest third derivative of a log sigmoid


class OrdinalExample(NamedTuple):
    """One row of the table: its predictors and its class, from 0."""

    predictors: Any
    label: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


@dataclass(frozen=True)
class Ordinal:
    """P(y <= k | z) = s(c_k - z), s the sigmoid, with c_0 = 0, whose place the intercept takes, and
    c_k = c_(k - 1) + gap_k. A predictor is (z, t_1, t_2, ...) with gap_k = log(1 + exp(t_k / 2)).

    With u = c_k - z and v = c_(k - 1) - z, log p = log s(u) + log s(-v) + log(1 - exp(-gap_k)); for
    the first class only the first term is there, for the last only the second. 1 - exp(-gap) is
    s(t / 2), so that all three are log sigmoids and have bounded derivatives, however near two
    cutpoints are.
    """

    num_classes: int

    def __call__(self, z: jax.Array, example: OrdinalExample) -> jax.Array:
        label, last = example.label, self.num_classes - 1
        numbers = jnp.arange(1, last)
        gaps = gaps_of(z[1:])
        # masked sums, which are quicker than looking up what differs from row to row
        above = jnp.where(numbers <= label, gaps, 0.0).sum() - z[0]
        below = jnp.where(numbers < label, gaps, 0.0).sum() - z[0]
        own = jnp.where(numbers == label, z[1:], 0.0).sum()
        return (
            jnp.where(label < last, log_sigmoid(above), 0.0)
            + jnp.where(label > 0, log_sigmoid(-below), 0.0)
            + jnp.where((label > 0) & (label < last), log_sigmoid(own / UNIT), 0.0)
        )

    def bounds(self, predictor: Any) -> LinearBounds:
        """Along a unit vector (p, q) of (z, t), with r = 1 / 2 and s_j = s(r t_j), a cutpoint
        u = sum_{j <= m} gap_j - z above m gaps has

            u' = r sum_j q_j s_j - p,  u'' = r^2 sum_j q_j^2 s_j',  u''' = r^3 sum_j q_j^3 s_j'',

        where |u'| <= w = sqrt(1 + m r^2) by Cauchy and Schwarz, |u''| <= r^2 / 4 and |u'''| <=
        r^3 K, K = 1 / (6 sqrt 3); the last two are zero without gaps. With L = log s, |L'| <= 1,
        |L''| <= 1/4 and |L'''| <= K, the derivatives of L(u) are

            L' u',  L'' u'^2 + L' u'',  L''' u'^3 + 3 L'' u' u'' + L' u''',

        the third at most K w^3 + 3 w r^2 / 16 + K r^3, and those of L(-v) likewise. The scale of an
        example adds up this for its two cutpoints, k and k - 1 gaps above the first, and K r^3 for
        its own gap. The first and the second derivative, at most w and (w^2 + r^2) / 4 for each
        cutpoint, r and r^2 / 4 for the gap, are the largest share of it in the first class, where
        w = 1 and nothing else is there.
        """
        derivatives = 1.0 / THIRD, 0.25 / THIRD, 1.0
        return LinearBounds(predictor, self, derivatives, scale=LargestThird(self.num_classes))

    def mean(self, z: jax.Array) -> jax.Array:
        """The probability of each class."""
        return jnp.exp(self._log_probabilities(z))

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.categorical(key, self._log_probabilities(z), axis=-1)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        labels = jnp.asarray(y)[..., None].astype(jnp.int32)
        return jnp.take_along_axis(self._log_probabilities(z), labels, axis=-1)[..., 0]

    def _log_probabilities(self, z: jax.Array) -> jax.Array:
        """Of all classes, along a last axis."""
        none = jnp.zeros_like(z[..., :1])
        up = jnp.cumsum(gaps_of(z[..., 1:]), axis=-1)
        away = jnp.concatenate([none, up], axis=-1) - z[..., :1]
        above = jnp.concatenate([log_sigmoid(away), none], axis=-1)
        below = jnp.concatenate([none, log_sigmoid(-away)], axis=-1)
        between = jnp.concatenate([none, log_sigmoid(z[..., 1:] / UNIT), none], axis=-1)
        return above + below + between


@dataclass(frozen=True)
class LargestThird:
    """The largest third derivative in a class, along any unit vector."""

    num_classes: int

    def __call__(self, z: jax.Array, example: OrdinalExample) -> jax.Array:
        label, last = example.label, self.num_classes - 1
        above = jnp.where(label < last, _of_cutpoint(label), 0.0)
        below = jnp.where(label > 0, _of_cutpoint(label - 1), 0.0)
        return above + below + jnp.where((label > 0) & (label < last), THIRD / UNIT**3, 0.0)


def _of_cutpoint(num_gaps: jax.Array) -> jax.Array:
    slope = jnp.sqrt(1.0 + jnp.maximum(num_gaps, 0) / UNIT**2)
    bent = 0.1875 * slope / UNIT**2 + THIRD / UNIT**3
    return THIRD * slope**3 + jnp.where(num_gaps > 0, bent, 0.0)


def gaps_of(t: jax.Array) -> jax.Array:
    """log(1 + exp(t / 2))."""
    return -log_sigmoid(-t / UNIT)


def places_of(gaps: np.ndarray) -> np.ndarray:
    """t of the gaps: 2 log(exp(gap) - 1)."""
    return UNIT * (gaps + np.log(-np.expm1(-gaps)))


@trees.record()
class OrdinalPrior:
    """The coefficients' prior, and log gap_k ~ N(log_center_k, log_scale^2), as a density of t."""

    coefficients: CoefficientPrior
    log_centers: jax.Array
    log_scale: jax.Array

    def __call__(self, position: dict[str, jax.Array]) -> jax.Array:
        t = position[GAPS]
        log_gaps = jnp.log(gaps_of(t))
        away = (log_gaps - self.log_centers) / self.log_scale
        # log |d log gap / dt| = log s(t / 2) - log gap, up to a constant
        stretch = log_sigmoid(t / UNIT) - log_gaps
        return self.coefficients(position["coefficients"]) + jnp.sum(stretch - 0.5 * away**2)

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
        t = position[GAPS]
        here = jnp if isinstance(flat, Tracer) or isinstance(t, Tracer) else np
        gaps = here.logaddexp(0.0, t / UNIT)
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
        return {"coefficients": given, GAPS: places_of(gaps)}


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
    log_centers = jnp.asarray(np.log(gaps), jnp.float32)
    prior = OrdinalPrior(design.prior, log_centers, jnp.float32(LOG_GAP_SCALE))
    data = OrdinalExample(design.predictors, jnp.asarray(labels), **rows.stored())
    shared = {GAPS: places_of(gaps).astype(np.float32)}
    return regression(Ordinal(found), data, prior, OrdinalScale(design.transform), shared=shared)
