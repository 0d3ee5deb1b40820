"""What regressions share: a linear predictor, an outcome that depends on it, and a normal prior."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.data import Data
from amagold.models._coded_rows import CodedRows
from amagold.models._priors import NoisePrior
from amagold.models._weighted import Weighted
from amagold.target import LinearBounds, Posterior
from amagold.target._linear_bounds import SparsePredictor, SplitRow


class Outcome(Protocol):
    """log p(y | z) of one example, how fast it can change with z, and what outcomes to expect.

    z is what the predictor gives; in the last three it may have leading axes, and y is as the user
    has it: 0 or 1, a class, a count, a number.
    """

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        """Up to a constant that may depend on y."""
        ...

    def bounds(self, predictor: Any) -> LinearBounds | None:
        """None where none are known."""
        ...

    def mean(self, z: jax.Array) -> jax.Array:
        """E[y | z]; of classes the probability of each, along a last axis."""
        ...

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        """One outcome for each z."""
        ...

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        """log p(y | z) with all constants."""
        ...


AnyOutcome = TypeVar("AnyOutcome", bound=type[Outcome])


class Family(NamedTuple):
    """What a stored run needs to build its model again."""

    outcome: type[Outcome]
    example: type[Any]  # a NamedTuple with `predictors`


FAMILIES: dict[str, Family] = {}


def family(name: str, example: type[Any]) -> Callable[[AnyOutcome], AnyOutcome]:
    """Decorates the outcome of the model `name`, whose data are such examples."""

    def remember(outcome: AnyOutcome) -> AnyOutcome:
        FAMILIES[name] = Family(outcome, example)
        return outcome

    return remember


def every_family() -> dict[str, Family]:
    """Of all models: each is remembered when its file is loaded."""
    from amagold import models

    for name in dir(models):
        getattr(models, name)
    return FAMILIES


@dataclass(frozen=True)
class Predictor:
    """z = offset + x . theta, one number for each column of the position. Equal settings make equal
    predictors, so nothing compiles again.
    """

    # subtract the mean over the columns, where only their differences matter
    is_contrast: bool = False

    def __call__(self, position: jax.Array, example: Any) -> jax.Array:
        # only the last line touches the example, so that the rest is done once for all of them
        if self.is_contrast:
            position = position - jnp.mean(position, axis=-1, keepdims=True)
        x = example.predictors
        z = x.dot(position) if isinstance(x, CodedRows) else jnp.dot(x, position)
        return z if example.offset is None else z + example.offset


class BesidePredictor(Predictor):
    """The same of positions that hold the coefficients beside what the likelihood does not see."""

    def __call__(self, position: Any, example: Any) -> jax.Array:
        return super().__call__(position["coefficients"], example)


class CodedPredictor(Predictor, SparsePredictor):
    """The same of numbers and codes."""

    def split(self, example: Any) -> SplitRow:
        return example.predictors.split()

    def num_levels(self, example: Any) -> tuple[int, ...]:
        return tuple(size + 1 for size in example.predictors.sizes)

    def is_plain(self, example: Any) -> tuple[bool, ...]:
        return tuple(place is None for place in example.predictors.multiplied_by)

    def gram(self, rows: Any, weights: jax.Array) -> jax.Array:
        return rows.predictors.gram(weights)

    def times(self, example: Any, matrix: jax.Array) -> jax.Array:
        return example.predictors.dot(matrix)


@dataclass(frozen=True)
class SharedPredictor:
    """(x . theta, numbers that all rows share), of a position that is a dict of both, and perhaps
    of others: the logarithm of a scale, or the gaps between cutpoints.
    """

    coefficients: Predictor
    shared: str  # what the position calls them; it comes after the coefficients
    num_shared: int = 1

    def __call__(self, position: dict[str, jax.Array], example: Any) -> jax.Array:
        z = self.coefficients(position["coefficients"], example)
        return jnp.concatenate([z[None], jnp.ravel(jnp.asarray(position[self.shared], z.dtype))])


@dataclass(frozen=True)
class SharedCodedPredictor(SharedPredictor, SparsePredictor):
    """The same of numbers and codes."""

    coefficients: CodedPredictor

    def split(self, example: Any) -> SplitRow:
        return self.coefficients.split(example)

    def num_levels(self, example: Any) -> tuple[int, ...]:
        return self.coefficients.num_levels(example)

    def is_plain(self, example: Any) -> tuple[bool, ...]:
        return self.coefficients.is_plain(example)

    def gram(self, rows: Any, weights: jax.Array) -> jax.Array:
        x = rows.predictors
        square = self.coefficients.gram(rows, weights[:, 0, 0])

        def total(theta: jax.Array) -> jax.Array:
            return weights[:, 0, 1:].T @ jax.vmap(lambda row: row.dot(theta))(x)

        # sum_i W_i01 x_i
        across = jax.jacrev(total)(jnp.zeros(x.width, square.dtype))
        return jnp.block([[square, across.T], [across, weights[:, 1:, 1:].sum(axis=0)]])

    def times(self, example: Any, matrix: jax.Array) -> jax.Array:
        of_x = self.coefficients.times(example, matrix[: -self.num_shared])
        return jnp.concatenate([of_x[None], matrix[-self.num_shared :]])


@trees.record(static=("predictor", "outcome"))
class Likelihood:
    """log p(y | x, theta) = outcome(z, y)."""

    predictor: Predictor | SharedPredictor
    outcome: Outcome
    merged: jax.Array | None = None  # from how many rows to how many, where equal ones are one

    @property
    def composition(self) -> tuple[Any, Any]:
        """The predictor and the outcome, of which it is nothing but the composition: bounds of
        these two need no comparison.
        """
        return self.predictor, self.outcome

    def __call__(self, position: trees.PyTree, example: Any) -> jax.Array:
        return self.outcome(self.predictor(position, example), example)

    def sentences(self) -> tuple[str, ...]:
        if self.merged is None:
            return ()
        before, after = np.asarray(self.merged).tolist()
        return (f"{before:,} rows are merged into {after:,}, which differ and count as often.",)


def with_shared(coefficients: Predictor, shared: str, num_shared: int = 1) -> SharedPredictor:
    """The predictor of the coefficients and of what all rows share."""
    if isinstance(coefficients, CodedPredictor):
        return SharedCodedPredictor(coefficients, shared, num_shared)
    return SharedPredictor(coefficients, shared, num_shared)


def example_of(data: Any) -> Any:
    """Of arrays, or of a place that is asked for them."""
    return data.example if isinstance(data, Data) else data


def num_predictors(data: Any) -> int:
    """Of examples in arrays, or in a place that is asked for them."""
    predictors = example_of(data).predictors
    return predictors.width if isinstance(predictors, CodedRows) else predictors.shape[-1]


def regression(
    outcome: Outcome,
    data: Any,
    prior: Callable[[Any], jax.Array],
    transform: Callable[[Any], Any] | None,
    num_classes: int | None = None,
    *,
    shared: dict[str, np.ndarray] | None = None,
) -> Posterior:
    """The posterior of the coefficients: a vector, or with `num_classes` a matrix with a column per
    class; with the prior of a scale, or numbers by a name that all rows share, of a dict of both.
    """
    is_coded = isinstance(example_of(data).predictors, CodedRows) and num_classes is None
    predictor = CodedPredictor() if is_coded else Predictor(is_contrast=num_classes is not None)
    width = num_predictors(data)
    init: Any = np.zeros(width if num_classes is None else (width, num_classes), np.float32)
    if isinstance(prior, NoisePrior):
        shared = {prior.name: np.zeros((), np.float32)}
    if shared is not None:
        ((name, numbers),) = shared.items()
        predictor = with_shared(predictor, name, numbers.size)
        init = {"coefficients": init, **shared}
    if example_of(data).weight is not None:
        outcome = Weighted(outcome)
    bounds = outcome.bounds(predictor)
    return Posterior(
        Likelihood(predictor, outcome), prior, data, init=init, bounds=bounds, transform=transform
    )
