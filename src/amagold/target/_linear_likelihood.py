"""A user's own likelihood that sees the position through a few linear predictors: its bounds are
found by the machine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.target._found_bounds import FoundSize, why_not
from amagold.target._linear_bounds import LinearBounds
from amagold.target._outside_reads import Reading, read_by
from amagold.target._user_function import UserFunction

MOST_PREDICTORS = 3
REMEDY = 'such as columns="x", columns=(1, "age", "dose") or columns={"mean": "x", "log_sd": 1}'

Names = tuple[str | int | float, ...]  # a number is a column of it: 1 is the intercept


@dataclass(frozen=True)
class LinearPredictors:
    """z = x . theta for one or several groups of columns: a number, or a vector with one number for
    each group.
    """

    # of each group its name in the position, or None where the position is its vector, and columns
    groups: tuple[tuple[str | None, Names], ...]

    def __call__(self, position: trees.PyTree, example: trees.PyTree) -> jax.Array:
        found = [self._one(name, columns, position, example) for name, columns in self.groups]
        return found[0] if self.groups[0][0] is None else jnp.stack(found)

    def zeros(self, example: trees.PyTree) -> trees.PyTree:
        """A position: zeros; in a dict, a number where a group has one column."""
        found: dict[str | None, np.ndarray] = {}
        for name, columns in self.groups:
            form = jax.eval_shape(partial(_features, columns), example)
            is_number = name is not None and form.shape == (1,)
            found[name] = np.zeros(() if is_number else form.shape, np.float32)
        return found.get(None, found)

    def _one(
        self, name: str | None, columns: Names, position: trees.PyTree, example: trees.PyTree
    ) -> jax.Array:
        if name is None:
            part = position
        elif isinstance(position, Mapping) and name in position:
            part = position[name]
        else:
            raise ValueError(
                f"position must be a dict with {name!r}, a group of columns of LinearLikelihood; "
                "leave init out to start at zeros of the right form"
            )
        x, coefficients = _features(columns, example), jnp.ravel(jnp.asarray(part))
        if x.shape != coefficients.shape:
            where = "position" if name is None else f"position[{name!r}]"
            raise ValueError(
                f"{where} must have {x.shape[0]} coefficient(s), one for each of its columns, got "
                f"{coefficients.shape[0]}; leave init out to start at zeros of the right form"
            )
        return jnp.dot(x, coefficients)


@dataclass(frozen=True)
class NamedOutcome:
    """A user's function of predictors by their names, as one of a vector; or of a number."""

    function: Callable[[Any, trees.PyTree], jax.Array]
    reading: Reading  # what it reads from outside, which is a part of it
    names: tuple[str, ...] | None

    def __call__(self, z: jax.Array, example: trees.PyTree) -> jax.Array:
        return self.of_numbers([z] if self.names is None else list(z), example)

    def of_numbers(self, numbers: list[jax.Array], example: trees.PyTree) -> jax.Array:
        given = numbers[0] if self.names is None else dict(zip(self.names, numbers, strict=True))
        return jnp.asarray(self.function(given, example), float)


@trees.record(static=("outcome", "columns"))
class LinearLikelihood:
    """log p_i = outcome(z_i, example_i), where z_i = x_i . theta is linear in the position: the
    likelihood of a regression of your own, for `amagold.Posterior`.

    How far such a likelihood can stray from its Taylor polynomial is found from the outcome's own
    program, by interval arithmetic, so that exact tests on a few examples are to be had without a
    proof by hand.

    Args:
      outcome: (z, example) -> log likelihood of one example, for JAX. z is a number; or with a dict
        of columns a dict of numbers.
      columns: which entries of an example are x: a name, or several, of numbers or vectors; 1 is an
        intercept. The position is then the vector of coefficients, in this order. Or a dict of such
        columns for up to three predictors by name (`{"mean": (1, "x"), "log_sd": 1}`); the position
        is then a dict of these names. Without an `init`, the Posterior starts at zeros.
    """

    outcome: Callable[[Any, trees.PyTree], jax.Array]
    columns: Any

    def __post_init__(self) -> None:
        if not callable(self.outcome):
            raise ValueError(
                f"outcome must be a function of (z, example), got {type(self.outcome).__name__}"
            )
        predictors = self.columns
        if not isinstance(predictors, LinearPredictors):
            predictors = _predictors(self.columns)
        outcome = self.outcome
        if not isinstance(outcome, NamedOutcome):
            names = [name for name, _ in predictors.groups if name is not None]
            outcome = NamedOutcome(
                trees.hashable(outcome), read_by(outcome), tuple(names) if names else None
            )
        object.__setattr__(self, "columns", predictors)
        object.__setattr__(self, "outcome", outcome)

    @property
    def composition(self) -> tuple[Any, Any]:
        """The predictor and the outcome, of which it is nothing but the composition: bounds of
        these two need no comparison.
        """
        return self.columns, self.outcome

    def __call__(self, position: trees.PyTree, example: trees.PyTree) -> jax.Array:
        return self.outcome(self.columns(position, example), example)

    def check(self, name: str) -> None:
        """Raise when something that the outcome reads has changed since it was given."""
        outcome = self.outcome
        assert isinstance(outcome, NamedOutcome)
        UserFunction(outcome.function, outcome.reading).check(name)

    def not_covered(self, example: trees.PyTree) -> str | None:
        """Why there are no bounds, in a sentence; None where there are."""
        leaves, form = jax.tree.flatten(example)
        kinds = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        missing = _not_covered(self.outcome, len(self.columns.groups), form, kinds)
        if missing is None:
            return None
        return (
            f"No bounds of the likelihood were found, because its outcome uses {missing}, which "
            "is not covered: exact tests look at all data. Write it with other operations, or "
            "give bounds=amagold.LinearBounds(...)."
        )

    def bounds(self, example: trees.PyTree) -> LinearBounds | None:
        """The bounds that are found within a ball; None where an operation is not covered."""
        if self.not_covered(example) is not None:
            return None
        outcome = self.outcome
        assert isinstance(outcome, NamedOutcome)
        return LinearBounds(self.columns, outcome, (1.0, 1.0, 1.0), within=FoundSize(outcome))


@lru_cache(maxsize=64)
def _not_covered(
    outcome: Any, num_predictors: int, form: Any, kinds: tuple[Any, ...]
) -> str | None:
    example = jax.tree.unflatten(form, [jax.ShapeDtypeStruct(*kind) for kind in kinds])
    return why_not(outcome, num_predictors, example)


def _predictors(columns: Any) -> LinearPredictors:
    if not isinstance(columns, Mapping):
        return LinearPredictors(((None, _names(columns)),))
    if not 1 <= len(columns) <= MOST_PREDICTORS:
        raise ValueError(
            f"columns must be of one to {MOST_PREDICTORS} predictors, got {len(columns)}; {REMEDY}"
        )
    return LinearPredictors(tuple((str(name), _names(given)) for name, given in columns.items()))


def _names(columns: Any) -> Names:
    names = tuple(columns) if isinstance(columns, (tuple, list)) else (columns,)
    wrong = [
        name for name in names if isinstance(name, bool) or not isinstance(name, (str, int, float))
    ]
    if wrong or not names:
        found = f"{wrong[0]!r}" if wrong else "none"
        raise ValueError(
            f"columns must be names of the data's arrays, or 1 for an intercept, got {found}; "
            f"{REMEDY}"
        )
    return names


def _features(columns: Names, example: trees.PyTree) -> jax.Array:
    return jnp.concatenate([_column(name, example) for name in columns])


def _column(name: str | float, example: trees.PyTree) -> jax.Array:
    if not isinstance(name, str):
        return jnp.full((1,), name, jnp.float32)
    if isinstance(example, Mapping):
        known = [*example]
        value = example.get(name)
    else:
        known = [*getattr(example, "_fields", ())]
        value = getattr(example, name, None)
    if value is None:
        raise ValueError(
            f"columns must be names of the data's arrays, but {name!r} is none: they are "
            f"{', '.join(map(repr, known)) or 'not named'}; let data be a dict of arrays"
        )
    return jnp.ravel(jnp.asarray(value, jnp.float32))
