"""What independent draws cost: effective draws per gradient and per pass over the data."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from amagold.core import checks
from amagold.diagnose._convergence import minimum_ess

if TYPE_CHECKING:
    import xarray


class Cost(NamedTuple):
    """Effective draws, and what they took over all chains. A pass is N examples looked at, by
    gradients or by tests.
    """

    minimum_ess: float  # bulk, of the worst coordinate
    num_gradients: int
    num_data_passes: float | None  # None for a target without data, as below
    ess_per_gradient: float  # infinite where no gradient is asked for
    ess_per_data_pass: float | None


def effective_cost(
    posterior: "xarray.Dataset",
    num_gradient_examples: ArrayLike,
    num_energy_examples: ArrayLike,
    num_examples: int | None,
    num_gradients: int,
) -> Cost:
    """The effective sample size of the worst coordinate over what all chains together spent on it.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
      num_gradient_examples: examples that gradients looked at; arrays, such as those of `Info`, are
        summed.
      num_energy_examples: examples that tests looked at; summed likewise.
      num_examples: N; None (or 0) for a target without data.
      num_gradients: gradient evaluations of all chains.
    """
    checks.whole_number(
        "num_gradients",
        num_gradients,
        at_least=0,
        remedy="give the gradient evaluations of all chains together",
    )
    if num_examples is not None:
        checks.whole_number(
            "num_examples",
            num_examples,
            at_least=0,
            remedy="give the number of examples, or None without data",
        )
    # in float64: the counts of a long run overflow an int32
    looked_at = float(
        np.sum(num_gradient_examples, dtype=np.float64)
        + np.sum(num_energy_examples, dtype=np.float64)
    )
    if looked_at < 0.0:
        raise ValueError(
            "num_gradient_examples and num_energy_examples must not be negative, got "
            f"{looked_at:g} together"
        )
    found = minimum_ess(posterior)
    passes = looked_at / num_examples if num_examples else None
    per_gradient = found / num_gradients if num_gradients else math.inf
    per_pass = found / passes if passes else None
    return Cost(found, int(num_gradients), passes, per_gradient, per_pass)
