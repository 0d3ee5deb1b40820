"""What regressions share: a linear predictor, an outcome that depends on it, and a normal prior."""

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from amagold import trees
from amagold.models.columns import Columns, NormalOnColumns
from amagold.models.priors import Normal
from amagold.target import LinearBounds, Posterior, checks

Prior = Normal | NormalOnColumns


class Outcome(Protocol):
    """log p(y | z) of one example, and how fast it can change with z."""

    def __call__(self, z: jax.Array, example: Any) -> jax.Array: ...

    def bounds(self, predictor: Any) -> LinearBounds: ...


@dataclass(frozen=True)
class Predictor:
    """z = x . theta, one number for each column of the position. Equal settings make equal predictors, so nothing compiles again."""

    columns: Columns | None = None
    is_contrast: bool = False  # subtract the mean over the columns, where only their differences matter

    def __call__(self, position: jax.Array, example: Any) -> jax.Array:
        # only the last line touches the example, so that the rest is done once for all of them
        coefficients = position if self.columns is None else self.columns.coefficients(position)
        if self.is_contrast:
            coefficients = coefficients - jnp.mean(coefficients, axis=-1, keepdims=True)
        return jnp.dot(example.predictors, coefficients)


@dataclass(frozen=True)
class Likelihood:
    """log p(y | x, theta) = outcome(z, y)."""

    predictor: Predictor
    outcome: Outcome

    @property
    def composition(self) -> tuple[Any, Any]:
        """The predictor and the outcome, of which it is nothing but the composition: bounds of these two need no comparison."""
        return self.predictor, self.outcome

    def __call__(self, position: trees.PyTree, example: Any) -> jax.Array:
        return self.outcome(self.predictor(position, example), example)


def prior_of(scale: float, columns: Columns | None) -> Prior:
    """N(0, scale^2) on the coefficients of the predictors as they are stored."""
    checks.number("prior_scale", scale, above=0.0, remedy="give the prior's standard deviation")
    return Normal(float(scale)) if columns is None else NormalOnColumns(float(scale), columns)


def regression(
    outcome: Outcome, data: Any, prior_scale: float, columns: Columns | None = None, num_classes: int | None = None
) -> Posterior:
    """The posterior of coefficients on the user's scale: a vector, or with `num_classes` a matrix with a column per class."""
    predictor = Predictor(columns, is_contrast=num_classes is not None)
    width = data.predictors.shape[1]
    init = np.zeros(width if num_classes is None else (width, num_classes), np.float32)
    prior = prior_of(prior_scale, columns)
    return Posterior(Likelihood(predictor, outcome), prior, data, init=init, bounds=outcome.bounds(predictor))
