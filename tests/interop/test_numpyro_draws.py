"""Draws of NumPyro models agree with NumPyro's NUTS: means and squares of all sites, within joint
Monte Carlo error.
"""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from false_alarms import PLANTED, threshold

import amagold
from amagold_lab.bench.effective_sample_size import differences, effective_draws

pytest.importorskip("numpyro")
from numpyro.infer import MCMC, NUTS
from numpyro_mixed_models import MIXED, PLATES
from numpyro_models import EVERY, SCHOOLS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::amagold.SamplingWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

NUM_CHAINS, NUM_SAMPLES = 16, 1_500
# mixed models that NUTS samples well as they are written, and one of them otherwise
OF_GROUPS = ("reparametrised", "non-centred", "crossed", "slopes", "standard schools")
CASES = EVERY | {"schools": SCHOOLS["non-centred"]} | {name: MIXED[name] for name in OF_GROUPS}
CHOSEN = (
    "logistic",
    "poisson",
    "negative binomial",
    "linear",
    "robust",
    "groups",
    "constrained",
    "masked and scaled",
    "schools",
    *OF_GROUPS,
)
NUM_COMPARISONS = 20  # more than there are below: together they are one check of the suite


def flat(samples, latents):
    """Axes (chain, draw, coordinate)."""
    arrays = [np.asarray(samples[name], np.float64) for name in sorted(latents)]
    return np.concatenate([array.reshape(*array.shape[:2], -1) for array in arrays], axis=-1)


@functools.cache
def nuts(name):
    case = CASES[name]
    mcmc = MCMC(
        NUTS(case.model, target_accept_prob=0.95),
        num_warmup=800,
        num_samples=NUM_SAMPLES,
        num_chains=NUM_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), *case.args, **case.kwargs)
    return mcmc.get_samples(group_by_chain=True)


def target_of(name):
    case = CASES[name]
    plate = None if name == "schools" else PLATES.get(name, "data")
    return amagold.from_numpyro(case.model, *case.args, plate=plate, **case.kwargs)


def disagreement(ours, name, latents):
    theirs = flat(nuts(name), latents)
    middle = theirs.mean(axis=(0, 1))
    assert effective_draws(ours) > 300.0
    # squares within bounds, because heavy tails have none of their own
    spread = 4.0 * theirs.std(axis=(0, 1)) + 1e-6
    bounded = lambda draws: np.tanh((draws - middle) / spread)  # noqa: E731
    found = np.abs(
        [differences(bounded(ours) ** power, bounded(theirs) ** power) for power in (1, 2)]
    )
    return float(np.max(found) / threshold(found.size * NUM_COMPARISONS))


@pytest.mark.parametrize("name", CHOSEN)
def test_draws_agree_with_nuts(name):
    target = target_of(name)
    run = amagold.sample(target, NUM_SAMPLES, 800, num_chains=NUM_CHAINS, progress=False)
    assert run.label == "exact"
    latents = list(target.transform(target.init))
    ours = flat({key: run.posterior[key].to_numpy() for key in latents}, latents)
    assert disagreement(ours, name, latents) < 1.0


@pytest.mark.parametrize("name", ["logistic", "linear"])
def test_the_kernel_agrees_with_nuts(name):
    case = CASES[name]
    mcmc = MCMC(
        amagold.interop.numpyro.AMAGOLD(case.model),
        num_warmup=300,
        num_samples=NUM_SAMPLES,
        num_chains=NUM_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1), *case.args, **case.kwargs)
    latents = target_of(name).init
    assert disagreement(flat(mcmc.get_samples(group_by_chain=True), latents), name, latents) < 1.0


def test_a_jacobian_left_out_is_seen():
    right = target_of("negative binomial")
    wrong = dataclasses.replace(right, log_prior=lambda at: right.log_prior(at) - at["shape"])
    run = amagold.sample(wrong, NUM_SAMPLES, 800, num_chains=NUM_CHAINS, progress=False)
    ours = flat({key: run.posterior[key].to_numpy() for key in right.init}, right.init)
    assert disagreement(ours, "negative binomial", right.init) > PLANTED
