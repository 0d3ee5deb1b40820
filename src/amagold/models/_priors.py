"""Priors as records: their numbers may change and nothing compiles again."""

import re

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees

LOG_SCALE, LOG_SHAPE = "log_noise_scale", "log_shape"
PLACE = re.compile(r"\{(\d):\.4g\}")  # in the words of a prior, for one of its figures


@trees.record()
class Normal:
    """Independent N(0, scale^2) on every parameter, up to a constant."""

    is_log_concave = True

    scale: jax.Array

    def __call__(self, position: trees.PyTree) -> jax.Array:
        return -0.5 / self.scale**2 * trees.dot(position, position)


@trees.record(static=("words",))
class CoefficientPrior:
    """Independent normals on the coefficients of a regression, up to a constant, with one row of
    the position for each.

    The first may stand for an intercept elsewhere than at zero: offsets_j of every other
    coefficient are added to it before.
    """

    is_log_concave = True

    center: jax.Array
    scale: jax.Array
    offsets: jax.Array | None
    figures: jax.Array  # what `words` says, on the user's scale
    words: str

    def __call__(self, position: jax.Array) -> jax.Array:
        # v_0 = u_0 + sum_j offsets_j u_j, v_j = u_j
        if self.offsets is not None:
            first = position[0] + jnp.sum(_column(self.offsets, position) * position[1:], axis=0)
            position = jnp.concatenate([first[None], position[1:]])
        return -0.5 * jnp.sum(
            ((position - _column(self.center, position)) / _column(self.scale, position)) ** 2
        )

    @property
    def has_intercept(self) -> bool:
        """Whether the first coefficient is one: the prior then speaks of it, with figure 1."""
        return "{1:" in self.words

    def sentences(self) -> tuple[str, ...]:
        """The prior in words."""
        # not str.format: the words may come from a stranger's store
        figures = {
            str(number): f"{figure:.4g}" for number, figure in enumerate(np.asarray(self.figures))
        }
        return (PLACE.sub(lambda place: figures.get(place[1], place[0]), self.words),)


@trees.record(static=("name",))
class NoisePrior:
    """The coefficients' prior, and log s ~ N(log_center, log_scale^2), where s is the scale of the
    noise or the shape of the outcomes' distribution.
    """

    coefficients: CoefficientPrior
    log_center: jax.Array
    log_scale: jax.Array
    name: str = LOG_SCALE  # what the position calls log s

    def __call__(self, position: dict[str, jax.Array]) -> jax.Array:
        of_noise = -0.5 * ((position[self.name] - self.log_center) / self.log_scale) ** 2
        return self.coefficients(position["coefficients"]) + of_noise

    def sentences(self) -> tuple[str, ...]:
        return self.coefficients.sentences()


def _column(numbers: jax.Array, position: jax.Array) -> jax.Array:
    """As an array that multiplies the rows of the position."""
    return numbers.reshape(-1, *[1] * (position.ndim - 1))
