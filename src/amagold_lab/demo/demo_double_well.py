"""The paper's Figure 1: SGHMC and AMAGOLD on the double well with noisy gradients, at three step
sizes.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.diagnose import symmetric_kl
from amagold.gradients import noisy
from amagold.models._double_well import (
    DOUBLE_WELL_BOUNDS,
    double_well,
    double_well_moments,
    log_density,
)
from amagold.report._part_progress import PartReport
from amagold.samplers import amagold, sghmc
from amagold_lab.demo.demo_chains import sample_chains
from amagold_lab.demo.demo_settings import Sizes

STEP_SIZES = (0.05, 0.15, 0.25)
SAMPLERS = {"SGHMC": sghmc, "AMAGOLD": amagold}
FRICTION = 0.25
NUM_STEPS = 10
NOISE = 1.0  # standard deviation of the gradient's error
NUM_RUNS = len(STEP_SIZES) * len(SAMPLERS)


class Well(NamedTuple):
    """One sampler at one step size."""

    sampler: str
    label: str  # exact or biased
    step_size: float
    symmetric_kl: float
    mean: float
    variance: float
    acceptance: float
    draws: np.ndarray


def sample(seed: int, sizes: Sizes, report: PartReport) -> list[Well]:
    """Both samplers at all step sizes, from the same starts."""
    # spread over both wells and the barrier between them, so that neither well is favoured
    starts = np.linspace(-4.5, 3.5, sizes.num_chains, dtype=np.float32)
    wells = []
    for number, step_size in enumerate(STEP_SIZES):
        for name, make in SAMPLERS.items():
            report(f"Double well: {name}, step size {step_size:g}")
            sampler = make(
                double_well(),
                step_size=step_size,
                friction=FRICTION,
                num_steps=NUM_STEPS,
                gradient=noisy(NOISE),
            )
            chains = sample_chains(
                sampler, jax.random.fold_in(jax.random.key(seed), number), starts, sizes
            )
            draws = chains.draws.ravel()
            distance = symmetric_kl(draws, log_density, DOUBLE_WELL_BOUNDS)
            moments = (float(draws.mean()), float(draws.var()))
            wells.append(
                Well(name, chains.label, step_size, distance, *moments, chains.acceptance, draws)
            )
    return wells


def numbers(wells: list[Well]) -> dict[str, Any]:
    """What is saved of the results."""
    runs = [well._asdict() | {"draws": well.draws.size} for well in wells]
    return {"truth": double_well_moments()._asdict(), "runs": runs}
