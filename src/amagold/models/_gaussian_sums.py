"""Gaussian noise of unknown scale from sums alone: X'X, X'y, y'y and the number of rows.

With W the weights and theta^ the least squares, sum_i w_i (y_i - x_i . theta)^2 =
|R (theta - theta^)|^2 + r^2, where R'R = X'WX and r^2 is what theta^ leaves. So the rows of R and
one more stand for any number of rows of a table: d + 1 examples, whose log likelihoods add up to
those of all. Sums are accumulated in float64; what is kept is counted from theta^ and from the
noise that it leaves, so that float32 has all of the differences.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.arrays import blocks
from amagold.models._coded_rows import CodedRows
from amagold.models._design import NoisyDesign
from amagold.models._noise_shapes import Gaussian
from amagold.models._priors import NoisePrior
from amagold.models._scale import UserScale
from amagold.models._stored_table import StoredPredictors
from amagold.models._unknown_noise import UnknownNoise
from amagold.target import Posterior

MOST_COLUMNS = 2_048  # whose products still take little room
CHUNK = 2**16  # rows of codes, whose products are added up at a time
SMALLEST_SHARE = 1e-6  # of the outcomes' width, which float32 can tell from none


class SumsExample(NamedTuple):
    """A row of R, or a row of a table that came later."""

    predictors: jax.Array
    residual: jax.Array  # y - x . theta^
    observations: jax.Array  # how many observations it stands for
    weight: None = None
    offset: None = None


@trees.record()
class GaussianSums:
    """log p = -(y - x . theta)^2 / (2 s^2) - n log s, less its value at theta^ and s^."""

    center: jax.Array  # theta^
    log_scale: jax.Array  # log s^, r^2 = n s^2
    num_rows: jax.Array  # of the table that the sums are of

    @property
    def outcome(self) -> UnknownNoise:
        """Of one row of the table."""
        return UnknownNoise(Gaussian())

    def __call__(self, position: dict[str, jax.Array], example: SumsExample) -> jax.Array:
        per_scale = jnp.exp(-self.log_scale)
        before = example.residual * per_scale
        move = jnp.dot(example.predictors, position["coefficients"] - self.center) * per_scale
        after = before - move
        e = position["log_noise_scale"] - self.log_scale
        # -(after^2 exp(-2 e) - before^2) / 2 - n e
        squares = after**2 * jnp.expm1(-2.0 * e) - move * (after + before)
        return -0.5 * squares - example.observations * e

    def sentences(self) -> tuple[str, ...]:
        num_rows, width = int(self.num_rows), self.center.shape[0]
        return (
            f"The {num_rows:,} rows are kept as sums of squares and products, which is all that "
            f"the likelihood needs: {width + 1:,} rows stand for them.",
        )


def are_fewer(design: NoisyDesign) -> bool:
    """Whether sums take less room than the rows, which must be in memory."""
    if isinstance(design.predictors, StoredPredictors) or isinstance(design.response, tuple):
        return False
    width = (
        design.predictors.width
        if isinstance(design.predictors, CodedRows)
        else (design.predictors.shape[1])
    )
    return width <= MOST_COLUMNS and width + 1 < design.response.shape[0]


def from_sums(design: NoisyDesign) -> Posterior:
    """The posterior of a table that is ready, whose noise is unknown."""
    assert isinstance(design.prior, NoisePrior)
    response = np.asarray(design.response, np.float64)
    weights = np.ones(len(response)) if design.rows.weights is None else design.rows.weights
    products = _products(design.predictors, response, weights)
    gram, moments, square = products[:-1, :-1], products[:-1, -1], float(products[-1, -1])
    root, best = _root_and_best(gram, moments)
    # rounded first, so that what is left is counted from where the center is
    center = best.astype(np.float32).astype(np.float64)
    total = float(weights.sum())
    left = max(square - 2.0 * moments @ best + best @ gram @ best, 0.0)
    scale = max(np.sqrt(left / total), SMALLEST_SHARE * np.sqrt(square / total), 1e-12)
    data = SumsExample(
        jnp.asarray(np.vstack([root, np.zeros(len(best))]), jnp.float32),
        jnp.asarray(np.append(root @ (best - center), np.sqrt(left)), jnp.float32),
        jnp.asarray(np.append(np.zeros(len(best)), total), jnp.float32),
    )
    likelihood = GaussianSums(
        jnp.asarray(center, jnp.float32),
        jnp.asarray(np.log(scale), jnp.float32),
        jnp.asarray(len(response), jnp.int32),
    )
    return regression_of_sums(likelihood, data, design.prior, design.transform)


def regression_of_sums(
    likelihood: GaussianSums, data: SumsExample, prior: NoisePrior, transform: UserScale | None
) -> Posterior:
    init = {
        "coefficients": np.asarray(likelihood.center),
        "log_noise_scale": np.asarray(likelihood.log_scale),
    }
    return Posterior(likelihood, prior, data, init=init, transform=transform)


def _root_and_best(gram: np.ndarray, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with R'R the matrix, and theta^; of columns that say the same, one of many."""
    try:
        root = np.linalg.cholesky(gram).T
        if np.linalg.cond(root) < 1e6:
            return root, np.linalg.solve(gram, moments)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(gram)
    is_known = values > 1e-12 * values[-1]
    kept, along = values[is_known], vectors[:, is_known]
    root = np.zeros_like(gram)
    root[: len(kept)] = np.sqrt(kept)[:, None] * along.T
    return root, along @ (along.T @ moments / kept)


def _products(predictors: Any, response: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[X y]'W[X y] in float64, the outcome last."""
    if isinstance(predictors, CodedRows):
        return _products_of_codes(predictors, response, weights)
    width = predictors.shape[1]
    total, values = np.zeros((width + 1, width + 1)), np.asarray(predictors)
    for rows in blocks(values):
        both = np.column_stack([values[rows].astype(np.float64), response[rows]])
        total += (weights[rows, None] * both).T @ both
    return total


def _products_of_codes(rows: CodedRows, response: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The outcome is one more number, which is then moved behind the levels."""
    num_rows, num_numbers = rows.numbers.shape
    total: Any = 0.0
    with jax.enable_x64(True):
        gram = jax.jit(lambda some, weights: some.gram(weights))
        for start in range(0, num_rows, CHUNK):
            # the last chunk reaches back, where its rows count nothing
            first = max(0, min(start, num_rows - CHUNK))
            here = slice(first, min(first + CHUNK, num_rows))
            some = jax.tree.map(lambda leaf, here=here: leaf[here], rows)
            numbers = np.column_stack([np.asarray(some.numbers, np.float64), response[here]])
            wide = dataclasses.replace(
                some,
                numbers=jnp.asarray(numbers),
                multipliers=some.multipliers.astype(jnp.float64),
                unit=some.unit.astype(jnp.float64),
            )
            counted = np.where(np.arange(here.start, here.stop) >= start, weights[here], 0.0)
            total = total + np.asarray(gram(wide, jnp.asarray(counted)))
    order = np.r_[0:num_numbers, num_numbers + 1 : len(total), num_numbers]
    return total[np.ix_(order, order)]
