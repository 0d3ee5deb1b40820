"""Run the posteriors with the library's defaults, as a user would."""

import time
import warnings

import numpy as np
from calibration import MORE_SEEDS, Outcome, is_doubtful, z_scores
from record import Row

import amagold
from amagold.planning._effects_plan import EffectsPlan


def run_seeds(row: Row, num_seeds: int) -> list[Outcome]:
    """Several seeds, and more where they leave a doubt."""
    outcomes = [run_row(row, seed) for seed in range(num_seeds)]
    if is_doubtful(outcomes):
        outcomes += [run_row(row, seed) for seed in range(num_seeds, MORE_SEEDS * num_seeds)]
    return outcomes


def run_row(row: Row, seed: int) -> Outcome:
    """`amagold.sample(target)`, and how far off it is."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", amagold.SamplingWarning)
            run = amagold.sample(row.target(), seed=seed, progress=False)
    except Exception as reason:  # the row says so, and the others go on
        return Outcome(
            {}, [], "", round(time.monotonic() - began, 1), f"{type(reason).__name__}: {reason}"
        )
    seconds = round(time.monotonic() - began, 1)
    draws = {
        str(name): np.asarray(values, np.float64)
        for name, values in run.posterior.data_vars.items()
    }
    return Outcome(z_scores(row, draws), list(run.warnings), plan_in_short(run.plan), seconds)


def plan_in_short(plan) -> str:
    if isinstance(plan, EffectsPlan):
        return "sweeps over effects"
    steps = {"rotation": "turn"}.get(plan.integrator, plan.integrator)
    gradient = "full gradient" if plan.gradient == "full" else f"{plan.gradient} {plan.batch_size}"
    test = "" if plan.test == "full" else f", {plan.test}"
    return f"{plan.num_steps} x {steps}, {gradient}{test}"
