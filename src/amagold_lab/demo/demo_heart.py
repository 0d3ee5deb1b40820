"""Logistic regression on the heart data: minibatch AMAGOLD and SGHMC beside a long exact run."""

from typing import Any, NamedTuple

import jax
import numpy as np

from amagold import datasets
from amagold.gradients import minibatch
from amagold.models import logistic
from amagold.report._part_progress import PartReport
from amagold.samplers import Sampler, amagold, sghmc
from amagold.sampling._run import Run
from amagold.sampling._sample import sample as one_call
from amagold.target import Posterior
from amagold_lab.demo import summaries
from amagold_lab.demo.demo_chains import Chains, sample_chains
from amagold_lab.demo.demo_settings import Sizes

# Five batches of 54 are the 270 patients: a trajectory of one whole shuffled epoch, whose gradient
# errors nearly cancel.
BATCH_SIZE = 54
NUM_STEPS = 5
# large enough for SGHMC's bias to be seen, small enough for AMAGOLD to accept about half
STEP_SIZE = 0.04
FRICTION = 0.25
NUM_RUNS = 3
WARMUP = 300
TRUTH = "one call"  # amagold.sample(posterior) plans its own exact sampler


class Patients(NamedTuple):
    """The posterior of each coefficient by each sampler, and the run of the one call."""

    names: tuple[str, ...]
    chains: dict[str, Chains]
    run: Run

    def mean_error(self, sampler: str) -> np.ndarray:
        """How far the mean is off, in the true posterior's standard deviations."""
        found, truth = self.chains[sampler].draws, self.chains[TRUTH].draws
        return (summaries.mean(found) - summaries.mean(truth)) / summaries.sd(truth)

    def sd_error(self, sampler: str) -> np.ndarray:
        """How far the standard deviation is off, as a part of the true one."""
        return (
            summaries.sd(self.chains[sampler].draws) / summaries.sd(self.chains[TRUTH].draws) - 1.0
        )

    @property
    def order(self) -> list[int]:
        """Predictors from the largest coefficient to the smallest, then the intercept."""
        mean = summaries.mean(self.chains[TRUTH].draws)
        return [*sorted(range(1, len(mean)), key=lambda at: -mean[at]), 0]


def sample(seed: int, sizes: Sizes, report: PartReport) -> Patients:
    """One call for the truth, then both minibatch samplers with the same settings."""
    table = datasets.heart()
    posterior = logistic(table.X, table.y, prior_scale=1.0)
    report("Heart data: amagold.sample(posterior)")
    run = one_call(
        posterior, sizes.num_samples, WARMUP, sizes.num_chains, seed=seed, progress=False
    )
    draws = np.asarray(run.posterior["theta"].values, np.float64)
    chains = {TRUTH: Chains(run.label, draws, float(run.sample_stats["acceptance_rate"].mean()))}
    centre = summaries.mean(draws)
    key = jax.random.fold_in(jax.random.key(seed), 1000)
    # wider than the posterior, whose standard deviations are about 0.2
    starts = centre + 0.3 * jax.random.normal(key, (sizes.num_chains, *centre.shape))
    for number, (name, sampler) in enumerate(_samplers(posterior).items()):
        report(f"Heart data: {name}")
        chains[name] = sample_chains(sampler, jax.random.fold_in(key, number), starts, sizes)
    return Patients(("intercept", *table.names), chains, run)


def _samplers(posterior: Posterior) -> dict[str, Sampler]:
    # both keep their momentum between trajectories, as SGHMC was first published
    dynamics = {
        "step_size": STEP_SIZE,
        "friction": FRICTION,
        "num_steps": NUM_STEPS,
        "resample_momentum": False,
    }
    gradient = minibatch(BATCH_SIZE, plan="epoch")
    return {
        "SGHMC": sghmc(posterior, gradient=gradient, **dynamics),
        "AMAGOLD": amagold(posterior, gradient=gradient, **dynamics),
    }


def numbers(patients: Patients) -> dict[str, Any]:
    """What is saved of the results."""
    samplers = {}
    for name, chains in patients.chains.items():
        draws = chains.draws
        samplers[name] = {
            "label": chains.label,
            "acceptance": chains.acceptance,
            "draws": draws.shape[0] * draws.shape[1],
            "largest_r_hat": float(summaries.r_hat(draws).max()),
            "smallest_effective_draws": float(summaries.effective_draws(draws).min()),
            "worst_mean_error_in_sd": float(np.abs(patients.mean_error(name)).max()),
            "worst_sd_error": float(np.abs(patients.sd_error(name)).max()),
            "mean": dict(zip(patients.names, summaries.mean(draws).tolist(), strict=True)),
            "sd": dict(zip(patients.names, summaries.sd(draws).tolist(), strict=True)),
            "interval_90": dict(
                zip(patients.names, summaries.interval(draws).T.tolist(), strict=True)
            ),
        }
    return {"truth": TRUTH, "samplers": samplers}
