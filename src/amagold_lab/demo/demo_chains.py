"""One run of the demo."""

from typing import NamedTuple

import jax
import numpy as np

from amagold.runner import run_chains
from amagold.samplers import Sampler
from amagold_lab.demo.demo_settings import Sizes


class Chains(NamedTuple):
    """What is kept of a run; draws have axes (chain, draw, ...)."""

    label: str  # exact or biased
    draws: np.ndarray
    acceptance: float


def sample_chains(
    sampler: Sampler, key: jax.Array, starts: jax.Array | np.ndarray, sizes: Sizes
) -> Chains:
    """Run the chains and drop the burn-in afterwards: runs of two lengths would compile twice,
    which takes most of the time.
    """
    drawn = run_chains(sampler, key, starts, sizes.num_burn_in + sizes.num_samples, thin=sizes.thin)
    draws = np.asarray(drawn.position[:, sizes.num_burn_in :], np.float64)
    return Chains(
        drawn.info.label, draws, float(drawn.info.acceptance_rate[:, sizes.num_burn_in :].mean())
    )
