"""Problems whose data is large: each as `amagold.sample` takes it, and as the fastest log density
for NUTS.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold import datasets, models
from amagold.target import Posterior


class BenchmarkPosterior(NamedTuple):
    """One posterior, written twice.

    Functions, so that the data is made when it is needed. `log_density(position, *data)` is
    vectorised over all examples, over a flat position in the order of the target's parameters.
    """

    name: str  # of the posterior, however it is written
    target: Callable[[], Posterior]
    log_density: Callable[..., jax.Array]
    data: Callable[[], tuple[Any, ...]]


@lru_cache(maxsize=1)
def logistic_table(num_examples: int, num_parameters: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated predictors, one column fewer than there are parameters (an intercept comes first),
    and outcomes of 0 and 1.
    """
    generator = np.random.default_rng(0)
    predictors = generator.standard_normal((num_examples, num_parameters - 1), np.float32)
    # in place: a second copy of the table would show in the memory that is measured
    for column in range(1, num_parameters - 1):
        predictors[:, column] *= np.float32(0.8)
        predictors[:, column] += np.float32(0.6) * predictors[:, column - 1]
    coefficients = generator.normal(0.0, 1.0 / np.sqrt(num_parameters), num_parameters).astype(
        np.float32
    )
    z = predictors @ coefficients[1:] + coefficients[0]
    return predictors, (
        generator.random(num_examples, np.float32) < 1.0 / (1.0 + np.exp(-z))
    ).astype(np.int8)


def logistic(num_examples: int, num_parameters: int) -> BenchmarkPosterior:
    """The library's own logistic regression."""
    return BenchmarkPosterior(
        f"logistic {num_examples} x {num_parameters}",
        lambda: models.logistic(*logistic_table(num_examples, num_parameters), prior_scale=1.0),
        logistic_log_density,
        lambda: (signed_rows(*logistic_table(num_examples, num_parameters)),),
    )


def own_likelihood(num_examples: int, num_parameters: int) -> BenchmarkPosterior:
    """The same posterior as a user writes it, who knows nothing of bounds."""

    def target() -> Posterior:
        predictors, outcomes = logistic_table(num_examples, num_parameters)
        data = (predictors, outcomes.astype(np.float32))
        return Posterior(
            user_log_likelihood, user_log_prior, data, init=np.zeros(num_parameters, np.float32)
        )

    return logistic(num_examples, num_parameters)._replace(target=target)


def user_log_likelihood(coefficients: jax.Array, example: tuple[jax.Array, jax.Array]) -> jax.Array:
    predictors, outcome = example
    z = coefficients[0] + predictors @ coefficients[1:]
    return outcome * z - jnp.logaddexp(0.0, z)


def user_log_prior(coefficients: jax.Array) -> jax.Array:
    return -0.5 * jnp.sum(coefficients**2)


def softmax(num_examples: int, num_predictors: int, num_classes: int) -> BenchmarkPosterior:
    """Softmax regression: (num_predictors + 1) x num_classes parameters."""

    @lru_cache(maxsize=1)
    def table() -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(0)
        predictors = generator.standard_normal((num_examples, num_predictors), np.float32)
        coefficients = generator.normal(
            0.0, 1.5 / np.sqrt(num_predictors), (num_predictors, num_classes)
        )
        return predictors, np.argmax(
            predictors @ coefficients + generator.gumbel(size=(num_examples, num_classes)), axis=1
        )

    def data() -> tuple[jax.Array, jax.Array]:
        predictors, labels = table()
        return signed_rows(predictors, np.ones(num_examples)), jnp.asarray(labels, jnp.int32)[
            :, None
        ]

    def log_density(position: jax.Array, rows: jax.Array, labels: jax.Array) -> jax.Array:
        z = rows @ position.reshape(-1, num_classes)
        chosen = jnp.take_along_axis(z, labels, axis=1)[:, 0]
        return jnp.sum(chosen - jax.nn.logsumexp(z, axis=1)) - 0.5 * jnp.sum(position**2)

    name = f"softmax {num_examples} x {num_predictors} x {num_classes}"
    return BenchmarkPosterior(
        name,
        lambda: models.softmax(*table(), prior_scale=1.0, num_classes=num_classes),
        log_density,
        data,
    )


def robust(num_examples: int, num_parameters: int) -> BenchmarkPosterior:
    """Linear regression with Student-t noise of 4 degrees of freedom."""

    @lru_cache(maxsize=1)
    def table() -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(0)
        predictors = generator.standard_normal((num_examples, num_parameters - 1), np.float32)
        coefficients = generator.normal(size=num_parameters)
        return predictors, coefficients[0] + predictors @ coefficients[1:] + generator.standard_t(
            4.0, num_examples
        )

    def data() -> tuple[jax.Array, jax.Array]:
        predictors, responses = table()
        return signed_rows(predictors, np.ones(num_examples)), jnp.asarray(responses, jnp.float32)

    def log_density(position: jax.Array, rows: jax.Array, responses: jax.Array) -> jax.Array:
        return -2.5 * jnp.sum(jnp.log1p((responses - rows @ position) ** 2 / 4.0)) - 0.5 * jnp.sum(
            position**2
        )

    name = f"robust {num_examples} x {num_parameters}"
    return BenchmarkPosterior(
        name, lambda: models.robust(*table(), prior_scale=1.0, noise_scale=1.0), log_density, data
    )


def australian() -> BenchmarkPosterior:
    """The credit data, 690 x 15."""
    table = datasets.australian()
    data = lambda: (signed_rows(table.X, table.y),)  # noqa: E731
    return BenchmarkPosterior(
        "australian",
        lambda: models.logistic(table.X, table.y, prior_scale=1.0),
        logistic_log_density,
        data,
    )


def signed_rows(predictors: np.ndarray, outcomes: np.ndarray) -> jax.Array:
    """The rows with their intercept, multiplied by the outcome's sign: one matrix product is then
    all that NUTS needs.
    """
    rows = np.empty((len(predictors), predictors.shape[1] + 1), np.float32)
    rows[:, 0], rows[:, 1:] = 1.0, predictors
    rows *= np.where(outcomes > 0, np.float32(1.0), np.float32(-1.0))[:, None]
    return jnp.asarray(rows)


def logistic_log_density(coefficients: jax.Array, rows: jax.Array) -> jax.Array:
    return jnp.sum(jax.nn.log_sigmoid(rows @ coefficients)) - 0.5 * jnp.sum(coefficients**2)
