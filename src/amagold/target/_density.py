"""A target without data: a log density that is computed whole."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.devices import use_all_cores
from amagold.target._function_checks import position_is_usable, returns_one_number
from amagold.target._user_function import as_function


@trees.record(functions=("log_density", "domain"))
class Density:
    """pi(theta) proportional to exp(log_density(theta)) on the domain.

    Args:
      log_density: position -> one number, up to a constant.
      domain: position -> one boolean; a proposal where it is False is rejected. None is everywhere.
      init: a position, near which `amagold.sample` starts when it is not told where.
    """

    log_density: Callable[[trees.PyTree], jax.Array]
    domain: Callable[[trees.PyTree], jax.Array] | None = None
    init: trees.PyTree = None

    transform = None  # positions are reported as they are
    notes = ()

    def __post_init__(self) -> None:
        use_all_cores()  # before the first array is made, because JAX fixes its devices then
        if not callable(self.log_density):
            raise ValueError(
                "log_density must be a function of the position, got "
                f"{type(self.log_density).__name__}"
            )
        for name in ("log_density", "domain"):
            object.__setattr__(self, name, as_function(name, getattr(self, name)))
        object.__setattr__(self, "init", trees.as_position(self.init, "init"))

    def check(self, position: trees.PyTree) -> None:
        """Raise with a clear sentence when the target or the start cannot be used."""
        remedy = "sum over its parts with jnp.sum"
        returns_one_number("log_density", self.log_density, position=position, remedy=remedy)
        position_is_usable(self, position)

    @property
    def has_one_mode(self) -> bool:
        """Whether the density is known to have one mode, because its logarithm is concave."""
        return False

    def is_inside(self, position: trees.PyTree) -> jax.Array:
        return jnp.asarray(np.True_) if self.domain is None else self.domain(position)
