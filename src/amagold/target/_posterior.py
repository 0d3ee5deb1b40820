"""A target with data: prior times the likelihood of every example."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.devices import use_all_cores
from amagold.data import Data, InMemory, checked_data
from amagold.target._axis_names import Labels, labels_of
from amagold.target._constrained import constrain
from amagold.target._function_checks import position_is_usable, returns_one_number
from amagold.target._linear_bounds import LinearBounds
from amagold.target._linear_likelihood import LinearLikelihood
from amagold.target._reported import Transform, check_transform
from amagold.target._user_function import as_function


@trees.record(
    static=("bounds", "names", "dims"),
    functions=("log_likelihood", "log_prior", "domain", "transform", "derived"),
)
class Posterior:
    """pi(theta) proportional to exp(log_prior(theta) + sum_i log_likelihood(theta, example_i)) on
    the domain.

    Args:
      log_likelihood: (position, example) -> one number, for ONE example: a row of every array in
        `data`.
      log_prior: position -> one number; `lambda position: 0.0` is flat.
      data: a pytree of arrays with one common leading axis, the examples; or a place where they
        are (`amagold.data`).
      domain: position -> one boolean; a proposal where it is False is rejected. None is everywhere.
      init: a position, near which `amagold.sample` starts when it is not told where.
      bounds: how far the likelihood of one example can stray from its Taylor polynomial
        (`amagold.LinearBounds`), for tests that are exact on a few examples. None is unknown, or
        found by the machine where the likelihood is an `amagold.LinearLikelihood`.
      transform: for each constrained parameter its kind, by its name in the position
        (`{"sigma": amagold.transforms.positive()}`), or the kind of a position that is one array.
        All functions and `init` are then in constrained parameters, and so are reported draws and
        starts; free numbers are sampled, with the log Jacobian added to the prior. Or an object
        that maps a position to what `amagold.sample` reports and takes for its starts, and back
        with `transform.inverse`; the functions are then of positions before it. None reports
        positions as they are.
      names: labels of parameters: a list for a position that is one vector, or for each axis that
        `dims` mentions a list of the places along it.
      dims: for each reported variable a list of what its axes are called.
      derived: reported position -> a dict of further quantities by name, which are computed for
        each kept draw and reported with it.

    JAX traces each function once and keeps what it saw, so a function must depend on its arguments
    alone. Define it once: a new one, a lambda within a loop above all, is compiled anew, and JAX
    keeps each program. A record of arrays may stand for a function; then its arrays may change and
    nothing compiles again.
    """

    log_likelihood: Callable[[trees.PyTree, trees.PyTree], jax.Array]
    log_prior: Callable[[trees.PyTree], jax.Array]
    data: Data | trees.PyTree
    domain: Callable[[trees.PyTree], jax.Array] | None = None
    init: trees.PyTree = None
    bounds: LinearBounds | None = None
    transform: Transform | Any = None
    names: Any = None
    dims: Any = None
    derived: Callable[[trees.PyTree], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        use_all_cores()  # before the first array is made, because JAX fixes its devices then
        for name in ("log_likelihood", "log_prior"):
            if not callable(getattr(self, name)):
                raise ValueError(
                    f"{name} must be a function, got {type(getattr(self, name)).__name__}"
                )
        for name in ("log_likelihood", "log_prior", "domain", "derived"):
            object.__setattr__(self, name, as_function(name, getattr(self, name)))
        if not isinstance(self.names, Labels):
            # both are kept as one, which is checked against draws when there are some
            object.__setattr__(self, "names", labels_of(self.names, self.dims))
            object.__setattr__(self, "dims", None)
        if not isinstance(self.data, Data):
            object.__setattr__(self, "data", checked_data(self.data))
        if self.init is None and isinstance(self.log_likelihood, LinearLikelihood):
            object.__setattr__(self, "init", self.log_likelihood.columns.zeros(self.example))
        object.__setattr__(self, "init", trees.as_position(self.init, "init"))
        constrain(self, "log_prior", "log_likelihood")
        if self.bounds is None and isinstance(self.log_likelihood, LinearLikelihood):
            object.__setattr__(self, "bounds", self.log_likelihood.bounds(self.example))
        check_transform(self.transform)

    @property
    def labels(self) -> Labels | None:
        """What the axes of reported variables are called, and the places along them."""
        return self.names

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about choices that were made for the user, such as priors or rows that were
        merged; said with the plan.
        """
        said_by = (self.log_prior, self.log_likelihood)
        notes = [note for part in said_by for note in getattr(part, "sentences", tuple)()]
        if self.bounds is None and isinstance(self.log_likelihood, LinearLikelihood):
            notes.append(self.log_likelihood.not_covered(self.example))
        return tuple(notes)

    @property
    def smooth_log_prior(self) -> Callable[[trees.PyTree], jax.Array]:
        """The log prior, or one near it without kinks, for the mode and its curvature: they guide
        what is proposed, while what is sampled has the prior itself.
        """
        return getattr(self.log_prior, "smooth", self.log_prior)

    @property
    def examples(self) -> Data:
        """The data as everybody asks for them: arrays are examples in memory."""
        return self.data if isinstance(self.data, Data) else InMemory(self.data)

    @property
    def num_examples(self) -> int:
        return self.examples.num_examples

    @property
    def example(self) -> trees.PyTree:
        """The form of one example: shapes and types alone."""
        return self.examples.example

    def log_likelihoods(self, position: trees.PyTree, rows: trees.PyTree) -> jax.Array:
        """One log likelihood for each of the rows."""
        return jax.vmap(self.log_likelihood, in_axes=(None, 0))(position, rows)

    def check(self, position: trees.PyTree) -> None:
        """Raise with a clear sentence when the target or the start cannot be used."""
        self.check_functions(position)
        position_is_usable(self, position)

    def check_functions(self, position: trees.PyTree) -> None:
        """Raise when the functions are not for positions like this one, or read something that has
        changed since the target was built.
        """
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
