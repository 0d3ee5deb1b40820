"""A target without data: a log density that is computed whole.

To everybody else it is a posterior without examples, whose log prior is the log density.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.devices import use_all_cores
from amagold.data import NoData
from amagold.target._axis_names import Labels, labels_of
from amagold.target._constrained import constrain
from amagold.target._function_checks import position_is_usable, returns_one_number
from amagold.target._reported import Transform, check_transform
from amagold.target._user_function import as_function


@trees.record(static=("names", "dims"), functions=("log_density", "domain", "transform", "derived"))
class Density:
    """pi(theta) proportional to exp(log_density(theta)) on the domain.

    Args:
      log_density: position -> one number, up to a constant.
      domain: position -> one boolean; a proposal where it is False is rejected. None is everywhere.
      init: a position, near which `amagold.sample` starts when it is not told where.
      transform, names, dims, derived: as in `amagold.Posterior`.
    """

    log_density: Callable[[trees.PyTree], jax.Array]
    domain: Callable[[trees.PyTree], jax.Array] | None = None
    init: trees.PyTree = None
    transform: Transform | Any = None
    names: Any = None
    dims: Any = None
    derived: Callable[[trees.PyTree], dict[str, Any]] | None = None

    examples: ClassVar[NoData] = NoData()
    num_examples: ClassVar[int] = 0
    example: ClassVar[None] = None
    bounds: ClassVar[None] = None
    notes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        use_all_cores()  # before the first array is made, because JAX fixes its devices then
        if not callable(self.log_density):
            raise ValueError(
                "log_density must be a function of the position, got "
                f"{type(self.log_density).__name__}"
            )
        for name in ("log_density", "domain", "derived"):
            object.__setattr__(self, name, as_function(name, getattr(self, name)))
        if not isinstance(self.names, Labels):
            object.__setattr__(self, "names", labels_of(self.names, self.dims))
            object.__setattr__(self, "dims", None)
        object.__setattr__(self, "init", trees.as_position(self.init, "init"))
        constrain(self, "log_density")
        check_transform(self.transform)

    @property
    def labels(self) -> Labels | None:
        """What the axes of reported variables are called, and the places along them."""
        return self.names

    def check(self, position: trees.PyTree) -> None:
        """Raise with a clear sentence when the target or the start cannot be used."""
        self.check_functions(position)
        position_is_usable(self, position)

    def check_functions(self, position: trees.PyTree) -> None:
        """Raise when the density is not for positions like this one, or reads something that has
        changed since the target was built.
        """
        remedy = "sum over its parts with jnp.sum"
        returns_one_number("log_density", self.log_density, position=position, remedy=remedy)

    @property
    def log_prior(self) -> Callable[[trees.PyTree], jax.Array]:
        """All of the log density that is not a sum over examples: all of it."""
        return self.log_density

    @property
    def smooth_log_prior(self) -> Callable[[trees.PyTree], jax.Array]:
        return self.log_density

    def log_likelihoods(self, position: trees.PyTree, rows: trees.PyTree) -> jax.Array:
        raise ValueError("a Density has no examples, and so no log likelihoods")

    @property
    def has_one_mode(self) -> bool:
        """Whether the density is known to have one mode, because its logarithm is concave."""
        return False

    def is_inside(self, position: trees.PyTree) -> jax.Array:
        return jnp.asarray(np.True_) if self.domain is None else self.domain(position)
