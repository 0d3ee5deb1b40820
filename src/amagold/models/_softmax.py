"""Bayesian softmax regression: several classes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from amagold.data import Data
from amagold.models._default_priors import of_link
from amagold.models._design import design_of
from amagold.models._outcomes import classes
from amagold.models._regression import Predictor, family, regression
from amagold.models._row_terms import RowTerms
from amagold.models._stored_table import examples_of
from amagold.models._table import table_of
from amagold.target import LinearBounds, Posterior


class SoftmaxExample(NamedTuple):
    """One row of the table: its predictors and its class."""

    predictors: jax.Array
    label: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


@family("softmax", SoftmaxExample)
@dataclass(frozen=True)
class Softmax:
    """log p(y | z) = z_y - log sum_k exp(z_k)."""

    num_classes: int

    def __call__(self, z: jax.Array, example: SoftmaxExample) -> jax.Array:
        return jax.nn.log_softmax(z)[example.label]

    def mean(self, z: jax.Array) -> jax.Array:
        """The probability of each class."""
        return jax.nn.softmax(z, axis=-1)

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.categorical(key, z, axis=-1)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        labels = jnp.asarray(y)[..., None].astype(jnp.int32)
        return jnp.take_along_axis(jax.nn.log_softmax(z, axis=-1), labels, axis=-1)[..., 0]

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """Derivatives along unit vectors u are cumulants of the number u_k, k drawn with the class
        probabilities p.

        The first is E[u_k] - u_y, the second the variance, the third the third central moment. The
        numbers of a unit vector lie within an interval of length r <= sqrt 2, so the first is at
        most r and the second r^2 / 4. Given its mean, a moment is linear in p and largest on two
        points, where it is (their distance)^3 p (1 - p)(1 - 2p) <= r^3 / (6 sqrt 3): 2^(3/2) / (6
        sqrt 3) = 0.2722. The remainder of order 2 needs D^3 f[u, u, v] with two directions, which
        for a symmetric form is no larger (Banach).
        """
        derivatives = math.sqrt(2.0), 0.5, math.sqrt(8.0) / (6.0 * math.sqrt(3.0))
        return LinearBounds(predictor, self, derivatives, upper_curvature=0.0, ignores_shifts=True)


def softmax(
    X: ArrayLike | Data,
    y: ArrayLike | None = None,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    num_classes: int | None = None,
    weights: ArrayLike | None = None,
    standardize: bool | None = None,
    outcome: str | None = None,
) -> Posterior:
    """The posterior of a softmax (multinomial logistic) regression with independent normal priors.

    `amagold.sample` reports a matrix on the scale of X: a row per predictor, the intercept's first,
    and a column per class. All classes are treated alike: the data know only the differences of the
    columns, and what is the same in all of them follows the prior alone.

    Args:
      X: predictors, one row per example.
      y: classes, whole numbers from 0, each of them seen at least once.
      prior_scale: standard deviation of the prior on every coefficient. None scales the priors by
        the data: a slope times its predictor's standard deviation is N(0, 1), an intercept at the
        predictors' means N(0, 2.5^2).
      intercept: whether to put a column of ones first, so that the first row of the position holds
        the intercepts.
      num_classes: how many classes there are, where y does not hold them all; None takes them from
        y.
      weights: as for `models.logistic`.
      standardize: as for `models.logistic`.
      outcome: the column of y, for a table on disk (`amagold.data.open`) in place of X; its other
        columns are the predictors.
    """
    sheet, observed = table_of(X, y, outcome, intercept, RowTerms(weights))
    labels, found = classes(observed, sheet.num_rows, num_classes)
    design = design_of(sheet, of_link(0.0), prior_scale, standardize, is_matrix=True)
    return regression(
        Softmax(found),
        examples_of(SoftmaxExample, design.predictors, labels, sheet.rows),
        design.prior,
        design.transform,
        found,
    )
