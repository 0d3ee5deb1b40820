"""A target with data: prior times the likelihood of every example."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold import trees
from amagold.target import checks
from amagold.target.bounds import LinearBounds


@trees.record(static=("log_likelihood", "log_prior", "domain", "bounds"))
class Posterior:
    """pi(theta) proportional to exp(log_prior(theta) + sum_i log_likelihood(theta, example_i)) on the domain.

    Args:
      log_likelihood: (position, example) -> one number, for ONE example: a row of every array in `data`.
      log_prior: position -> one number.
      data: a pytree of arrays with one common leading axis, the examples.
      domain: position -> one boolean; a proposal where it is False is rejected. None is everywhere.
      init: a position, near which `amagold.sample` starts when it is not told where.
      bounds: how far the likelihood of one example can stray from its Taylor polynomial (`amagold.LinearBounds`), for tests that are
        exact on a few examples. None is unknown.
    """

    log_likelihood: Callable[[trees.PyTree, trees.PyTree], jax.Array]
    log_prior: Callable[[trees.PyTree], jax.Array]
    data: trees.PyTree
    domain: Callable[[trees.PyTree], jax.Array] | None = None
    init: trees.PyTree = None
    bounds: LinearBounds | None = None

    def __post_init__(self) -> None:
        for name in ("log_likelihood", "log_prior"):
            if not callable(getattr(self, name)):
                raise ValueError(f"{name} must be a function, got {type(getattr(self, name)).__name__}")
        for name in ("log_likelihood", "log_prior", "domain"):
            object.__setattr__(self, name, trees.hashable(getattr(self, name)))
        check_data(self.data)
        object.__setattr__(self, "data", jax.tree.map(jnp.asarray, self.data))
        object.__setattr__(self, "init", trees.as_position(self.init))

    @property
    def num_examples(self) -> int:
        return jax.tree.leaves(self.data)[0].shape[0]

    @property
    def example(self) -> trees.PyTree:
        """The form of one example: shapes and types alone."""
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.data)

    def log_likelihoods(self, position: trees.PyTree, rows: trees.PyTree) -> jax.Array:
        """One log likelihood for each of the rows."""
        return jax.vmap(self.log_likelihood, in_axes=(None, 0))(position, rows)

    def check(self, position: trees.PyTree) -> None:
        """Raise with a clear sentence when the target or the start cannot be used."""
        remedy = "it is called with one example (one row of each data array), so return the log likelihood of that one alone"
        checks.returns_one_number("log_likelihood", self.log_likelihood, position, self.example, remedy=remedy)
        checks.returns_one_number("log_prior", self.log_prior, position, remedy="sum over the parameters with jnp.sum")
        checks.position_is_usable(self, position)

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
        raise ValueError(f"{who} needs a target with data (amagold.Posterior), got a {type(target).__name__}; {instead}")
    return target


def check_data(data: trees.PyTree) -> None:
    """Raise unless the data is a pytree of finite arrays with one common leading axis."""
    leaves = jax.tree_util.tree_leaves_with_path(data)
    if not leaves:
        raise ValueError("data must hold at least one array; for a target without data use amagold.Density")
    lengths = {}
    for path, leaf in leaves:
        name = f"data{jax.tree_util.keystr(path)}"
        if not hasattr(leaf, "shape") or len(leaf.shape) == 0:
            raise ValueError(f"{name} must be an array with the examples along its first axis, got {leaf!r}; wrap it in an array")
        lengths[name] = leaf.shape[0]
        bad = count_non_finite(leaf) if trees.is_concrete(leaf) else 0
        if bad:
            raise ValueError(f"{name} must be finite, got {bad} non-finite value(s); drop or impute those examples first")
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(f"data must have one common leading axis, got lengths {found}; give every array one row per example")
    if not next(iter(lengths.values())):
        raise ValueError("data must hold at least one example, got none")


def count_non_finite(array: ArrayLike) -> int:
    """How many values are NaN or infinite, looked at in blocks of rows so that no copy of the whole is made."""
    values = np.asarray(array)
    if not np.issubdtype(values.dtype, np.floating):
        return 0
    block = max(1, 2**22 // max(1, values[:1].size))
    return sum(int(np.sum(~np.isfinite(values[start : start + block]))) for start in range(0, len(values), block))
