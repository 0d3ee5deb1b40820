"""When each member of the family is worth using: effective draws per pass over the data, and biases
without a test, at equal gradient evaluations. `pytest -s -m slow tests/samplers/test_worth.py`
prints the figures of docs/samplers.md.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold import acceptance, gradients
from amagold.diagnose._rank_statistics import bulk_effective_draws

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")]

NUM_EXAMPLES, BATCH_SIZE, NUM_CHAINS = 500, 50, 4
SWEEP = 2 * NUM_EXAMPLES // BATCH_SIZE  # steps of all batches, there and back


@cache
def regression():
    """Logistic regression with predictors of unequal scales."""
    generator = np.random.default_rng(4)
    X = generator.normal(size=(NUM_EXAMPLES, 6)) * np.geomspace(0.3, 3.0, 6)
    y = generator.random(NUM_EXAMPLES) < 1.0 / (1.0 + np.exp(-X @ np.full(6, 0.4)))
    return amagold.models.logistic(X, y.astype(int), 2.0, standardize=False)


CORRELATION = 0.5


def gaussian_likelihood(position, row):
    """Rows around the position, each direction but the first shared with correlation 0.5."""
    away = row - position
    along = jnp.sum(away) / jnp.sqrt(position.shape[0])
    across = jnp.sum(away**2) - along**2
    size = position.shape[0]
    return -0.5 * along**2 / (1.0 + (size - 1) * CORRELATION) - 0.5 * across / (1.0 - CORRELATION)


def flat_prior(position):
    return -0.5e-4 * jnp.sum(position**2)


@cache
def gaussian():
    """Ten means of correlated rows."""
    generator = np.random.default_rng(5)
    covariance = np.full((10, 10), CORRELATION) + (1.0 - CORRELATION) * np.eye(10)
    rows = generator.multivariate_normal(np.zeros(10), covariance, NUM_EXAMPLES)
    init = np.zeros(10, np.float32)
    return amagold.Posterior(gaussian_likelihood, flat_prior, rows.astype(np.float32), init=init)


PROBLEMS = {"regression": regression, "gaussian": gaussian}


def exact_members(target, step_size):
    """The same gradients per transition: a sweep there and back."""
    swept, dealt = (gradients.minibatch(BATCH_SIZE, plan=plan) for plan in ("palindrome", "epoch"))
    settings = dict(step_size=step_size, acceptance=acceptance.full())
    # every row twice: on the way there and back, or at either end of a step
    once = dict(num_steps=SWEEP, gradient=swept)
    twice = dict(num_steps=SWEEP // 2, gradient=dealt)
    return {
        "amagold": amagold.amagold(target, **settings, **once),
        "amagold iid": amagold.amagold(
            target, step_size=step_size, batch_size=BATCH_SIZE, num_steps=SWEEP
        ),
        "ggmc": amagold.ggmc(target, **settings, **twice),
        "sms_ubu": amagold.sms_ubu(target, **settings, **once, resample_momentum=True),
        "sgnht": amagold.sgnht(target, **settings, **once, resample_momentum=True),
        "sgld": amagold.sgld(target, **settings, **twice),
    }


def effective_draws(found):
    if not np.ptp(found, axis=1).all():
        return 0.0  # a chain that never moves tells nothing
    values = np.asarray(found, np.float64)
    return float(np.min(bulk_effective_draws(values.reshape(*values.shape[:2], -1))))


def measure(problem, num_samples):
    """Name -> (acceptance, effective draws per thousand passes over the data)."""
    target, found = PROBLEMS[problem](), {}
    for name, sampler in exact_members(target, 0.05).items():
        warmup = amagold.Warmup(target_acceptance=0.7, mass="diagonal")
        run = amagold.sample(
            sampler, num_samples, 400, NUM_CHAINS, progress=False, warmup=warmup, init=target.init
        )
        passes = NUM_CHAINS * num_samples * (SWEEP * BATCH_SIZE / NUM_EXAMPLES + 1.0)
        ess = ess_of(run)
        rate = float(run.sample_stats["acceptance_rate"].mean())
        found[name] = rate, 1000.0 * ess / passes
        print(f"{problem:12}{name:12} acceptance {rate:.2f}  ESS/1000 passes {found[name][1]:.1f}")
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
def test_effective_draws_of_exact_members(problem):
    found = {name: ess for name, (_, ess) in measure(problem, 1000).items()}
    assert min(found["amagold"], found["sms_ubu"], found["sgnht"]) > 3.0 * found["amagold iid"]
    assert found["amagold"] > found["ggmc"]


def biased_members(target, step_size, mass):
    settings = dict(step_size=step_size, mass=mass, num_steps=SWEEP, resample_momentum=False)
    iid, swept = (gradients.minibatch(BATCH_SIZE, plan=plan) for plan in ("iid", "palindrome"))
    return {
        "sghmc": amagold.sghmc(target, **settings, gradient=iid),
        "sgnht": amagold.sgnht(target, **settings, gradient=iid),
        "sghmc swept": amagold.sghmc(target, **settings, gradient=swept),
        "sms_ubu": amagold.sms_ubu(target, **settings, gradient=swept),
        "ggmc, no test": amagold.ggmc(
            target,
            **settings | {"num_steps": SWEEP // 2},
            gradient=gradients.minibatch(BATCH_SIZE, plan="epoch"),
            acceptance=acceptance.never_reject(),
        ),
    }


def test_biases_without_a_test():
    """Standard deviations of draws against the exact ones, which are the mass too."""
    target = regression()
    exact = amagold.sample(target, 3000, 500, NUM_CHAINS, progress=False)
    [draws] = exact.posterior.data_vars.values()
    spread = draws.to_numpy().reshape(-1, draws.shape[-1]).std(axis=0)
    found = {}
    for name, sampler in biased_members(target, 0.1, spread**-2.0).items():
        run = amagold.sample(
            sampler, 2000, 200, NUM_CHAINS, progress=False, init=np.asarray(target.init)
        )
        [values] = run.posterior.data_vars.values()
        ratio = values.to_numpy().reshape(-1, draws.shape[-1]).std(axis=0) / spread
        found[name] = float(np.abs(np.log(ratio)).mean())
        print(f"{name:16} mean |log(sd / exact sd)| {found[name]:.3f}")
    assert found["sgnht"] < 0.2 * found["sghmc"]
    assert found["sms_ubu"] < 0.2 * found["sghmc"]


def learnt_scales(target):
    """What a run without a test learns."""
    learning = amagold.psgld(target, step_size=0.5, batch_size=BATCH_SIZE, num_steps=200)
    state = learning.init(target.init)
    for number in range(5):
        state, _ = learning.step(jax.random.key(number), state)
    return learning.proposal.scales(state.momentum)


def tuned(sampler, num_samples, **settings):
    warmup = amagold.Warmup(target_acceptance=0.6, **settings)
    return amagold.sample(
        sampler,
        num_samples,
        400,
        NUM_CHAINS,
        progress=False,
        warmup=warmup,
        init=np.asarray(sampler.target.init),
    )


def ess_of(run):
    [draws] = run.posterior.data_vars.values()
    return effective_draws(draws.to_numpy())


def test_what_a_preconditioner_brings():
    """Against SGLD without a mass, and with the one that warm-up learns from the draws."""
    target = regression()
    settings = dict(step_size=0.1, num_steps=1, acceptance=acceptance.full())
    found = {
        "sgld": ess_of(tuned(amagold.sgld(target, **settings), 4000)),
        "sgld, mass": ess_of(tuned(amagold.sgld(target, **settings), 4000, mass="diagonal")),
        "psgld, frozen": ess_of(
            tuned(amagold.psgld(target, **settings, preconditioner=learnt_scales(target)), 4000)
        ),
    }
    print({name: round(ess) for name, ess in found.items()})
    assert found["sgld, mass"] > found["psgld, frozen"] > 3.0 * found["sgld"]


def funnel(position):
    """v ~ N(0, 1.5^2), x | v ~ N(0, exp(v))."""
    return (
        -0.5 * (position[0] / 1.5) ** 2
        - 0.5 * position[1] ** 2 / jnp.exp(position[0])
        - 0.5 * position[0]
    )


def along_the_funnel(position):
    return jnp.stack([jnp.ones_like(position[0]), jnp.exp(position[0])])


def test_what_a_preconditioner_by_place_brings():
    target = amagold.Density(funnel, init=np.zeros(2, np.float32))
    settings = dict(step_size=0.5, num_steps=3, acceptance=acceptance.full())
    found = {
        "sgld": ess_of(tuned(amagold.sgld(target, **settings), 20_000)),
        "psgld by place": ess_of(
            tuned(amagold.psgld(target, **settings, preconditioner=along_the_funnel), 20_000)
        ),
    }
    print({name: round(ess) for name, ess in found.items()})
    assert found["psgld by place"] > found["sgld"]


def wells(position):
    """Two wells, five standard deviations apart."""
    centers = jnp.array([[1.25, 0.0], [-1.25, 0.0]])
    away = jnp.sum((position - centers) ** 2, axis=-1) / 0.5**2
    return jax.scipy.special.logsumexp(-0.5 * away)


def test_what_cycles_bring():
    """Effective draws of fixed step sizes, and of cycles from them, with the same gradients."""
    target = amagold.Density(wells, init=np.zeros(2, np.float32))
    found = {}
    for step_size in (0.25, 0.5, 1.0, 2.0):
        fixed = amagold.l2mc(target, step_size=step_size, num_steps=5)
        for name, sampler in (("fixed", fixed), ("cyclical", amagold.cyclical(fixed, 10))):
            run = amagold.sample(
                sampler, 20_000, 0, NUM_CHAINS, progress=False, init=np.full(2, 1.0, np.float32)
            )
            found[name, step_size] = ess_of(run)
            print(f"{name:9} step size {step_size:4}: {found[name, step_size]:.0f} effective draws")
    assert found["cyclical", 2.0] > 10.0 * found["fixed", 2.0]
    assert found["fixed", 0.5] > found["cyclical", 0.5]
