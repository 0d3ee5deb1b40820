"""A target with data: prior times the likelihood of every example."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.core.arrays import as_numbers, check_fits
from amagold.core.devices import use_all_cores
from amagold.target._function_checks import position_is_usable, returns_one_number
from amagold.target._linear_bounds import LinearBounds
from amagold.target._transform import Transform, check_transform
from amagold.target._user_function import as_function


@trees.record(static=("bounds",), functions=("log_likelihood", "log_prior", "domain", "transform"))
class Posterior:
    """pi(theta) proportional to exp(log_prior(theta) + sum_i log_likelihood(theta, example_i)) on
    the domain.

    Args:
      log_likelihood: (position, example) -> one number, for ONE example: a row of every array in
        `data`.
      log_prior: position -> one number; `lambda position: 0.0` is flat.
      data: a pytree of arrays with one common leading axis, the examples.
      domain: position -> one boolean; a proposal where it is False is rejected. None is everywhere.
      init: a position, near which `amagold.sample` starts when it is not told where.
      bounds: how far the likelihood of one example can stray from its Taylor polynomial
        (`amagold.LinearBounds`), for tests that are exact on a few examples. None is unknown.
      transform: maps a position to what `amagold.sample` reports and takes for its starts, and back
        with `transform.inverse`; None reports positions as they are.

    JAX traces each function once and keeps what it saw, so a function must depend on its arguments
    alone. Define it once: a new one, a lambda within a loop above all, is compiled anew, and JAX
    keeps each program. A record of arrays may stand for a function; then its arrays may change and
    nothing compiles again.
    """

    log_likelihood: Callable[[trees.PyTree, trees.PyTree], jax.Array]
    log_prior: Callable[[trees.PyTree], jax.Array]
    data: trees.PyTree
    domain: Callable[[trees.PyTree], jax.Array] | None = None
    init: trees.PyTree = None
    bounds: LinearBounds | None = None
    transform: Transform | None = None

    def __post_init__(self) -> None:
        use_all_cores()  # before the first array is made, because JAX fixes its devices then
        for name in ("log_likelihood", "log_prior"):
            if not callable(getattr(self, name)):
                raise ValueError(
                    f"{name} must be a function, got {type(getattr(self, name)).__name__}"
                )
        for name in ("log_likelihood", "log_prior", "domain"):
            object.__setattr__(self, name, as_function(name, getattr(self, name)))
        check_transform(self.transform)
        object.__setattr__(self, "data", checked_data(self.data))
        object.__setattr__(self, "init", trees.as_position(self.init, "init"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about choices that were made for the user, such as priors; said with
        the plan.
        """
        return getattr(self.log_prior, "sentences", tuple)()

    @property
    def num_examples(self) -> int:
        return jax.tree.leaves(self.data)[0].shape[0]

    @property
    def example(self) -> trees.PyTree:
        """The form of one example: shapes and types alone."""
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.data
        )

    def log_likelihoods(self, position: trees.PyTree, rows: trees.PyTree) -> jax.Array:
        """One log likelihood for each of the rows."""
        return jax.vmap(self.log_likelihood, in_axes=(None, 0))(position, rows)

    def check(self, position: trees.PyTree) -> None:
        """Raise with a clear sentence when the target or the start cannot be used."""
        remedy = (
            "it is called with one example (one row of each data array), so return the log "
            "likelihood of that one alone"
        )
        of_one = {"position": position, "example": self.example}
        returns_one_number("log_likelihood", self.log_likelihood, **of_one, remedy=remedy)
        returns_one_number(
            "log_prior",
            self.log_prior,
            position=position,
            remedy="sum over the parameters with jnp.sum",
        )
        position_is_usable(self, position)

    @property
    def has_one_mode(self) -> bool:
        """Whether the density is known to have one mode, because its logarithm is concave."""
        is_concave = self.bounds is not None and self.bounds.upper_curvature == 0.0
        return is_concave and bool(getattr(self.log_prior, "is_log_concave", False))

    def is_inside(self, position: trees.PyTree) -> jax.Array:
        return jnp.asarray(np.True_) if self.domain is None else self.domain(position)


def with_data(target: object, who: str, instead: str) -> Posterior:
    """The target, if it has data; else an error that says who needs it and what to use instead."""
    if not isinstance(target, Posterior):
        raise ValueError(
            f"{who} needs a target with data (amagold.Posterior), got a {type(target).__name__}; "
            f"{instead}"
        )
    return target


def checked_data(data: trees.PyTree) -> trees.PyTree:
    """The data as arrays of JAX; raises unless they are finite numbers with one common leading
    axis, which JAX can hold.
    """
    leaves = jax.tree_util.tree_leaves_with_path(data, is_leaf=_is_list_of_numbers)
    if not leaves:
        raise ValueError(
            "data must hold at least one array; for a target without data use amagold.Density"
        )
    lengths, arrays = {}, []
    for path, leaf in leaves:
        name = f"data{jax.tree_util.keystr(path)}"
        if isinstance(leaf, list) and isinstance(leaf[0], list):
            remedy = (
                "give np.asarray(...) of it where they are rows, or a tuple of arrays where they "
                "are columns"
            )
            raise ValueError(
                f"{name} must be an array, got a list of lists, which may be rows or columns; "
                f"{remedy}"
            )
        array = as_numbers(name, leaf)
        if array.ndim == 0:
            raise ValueError(
                f"{name} must be an array with the examples along its first axis, got {leaf!r}; "
                "wrap it in an array"
            )
        lengths[name] = array.shape[0]
        bad = count_non_finite(array) if trees.is_concrete(array) else 0
        if bad:
            raise ValueError(
                f"{name} must be finite, got {bad} non-finite value(s); drop or impute those "
                "examples first"
            )
        check_fits(name, array)
        arrays.append(jnp.asarray(array))
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"data must have one common leading axis, got lengths {found}; give every array one "
            "row per example"
        )
    if not next(iter(lengths.values())):
        raise ValueError("data must hold at least one example, got none")
    return jax.tree.unflatten(jax.tree.structure(data, is_leaf=_is_list_of_numbers), arrays)


def _is_list_of_numbers(tree: trees.PyTree) -> bool:
    """Such a list, or a list of such lists, is an array that was not made yet; any other is a
    container.
    """

    def is_number(entry: object) -> bool:
        return isinstance(entry, (int, float, np.number)) or _is_list_of_numbers(entry)

    return isinstance(tree, list) and bool(tree) and all(map(is_number, tree))


def count_non_finite(array: ArrayLike) -> int:
    """How many values are NaN or infinite, looked at in blocks of rows so that no copy of the whole
    is made.
    """
    values = np.asarray(array)
    if not np.issubdtype(values.dtype, np.floating):
        return 0
    block = max(1, 2**22 // max(1, values[:1].size))
    return sum(
        int(np.sum(~np.isfinite(values[start : start + block])))
        for start in range(0, len(values), block)
    )
