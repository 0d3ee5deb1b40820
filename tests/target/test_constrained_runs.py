"""Constrained parameters and derived quantities through a run: starts, store, resume, update."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, worst
from scipy.stats import norm

import amagold
from amagold import transforms
from amagold.target._constrained import OfConstrained

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

DATA = np.random.default_rng(3).normal(1.0, 2.0, 60).astype(np.float32)
INIT = {"middle": 0.5, "scale": 2.0, "weights": np.array([0.2, 0.3, 0.5])}
SETTINGS = {"num_samples": 30, "num_warmup": 20, "num_chains": 2, "progress": False}


def log_likelihood(position, x):
    return -0.5 * ((x - position["middle"]) / position["scale"]) ** 2 - jnp.log(position["scale"])


def log_prior(position):
    return (
        -0.5 * position["middle"] ** 2
        - 0.1 * position["scale"]
        + jnp.sum(jnp.log(position["weights"]))
    )


def derived(position):
    return {
        "ratio": position["middle"] / position["scale"],
        "odds": position["weights"] / (1.0 - position["weights"]),
    }


TARGET = amagold.Posterior(
    log_likelihood,
    log_prior,
    DATA,
    init=INIT,
    transform={"scale": transforms.positive(), "weights": transforms.simplex()},
    dims={"weights": ["part"], "odds": ["part"]},
    names={"part": ["a", "b", "c"]},
    derived=derived,
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.zarr"
    sampler = amagold.amagold(TARGET, step_size=0.1, num_steps=3, batch_size=10)
    return sampler, amagold.sample(sampler, init=INIT, store=path, **SETTINGS)


def test_draws_are_reported_in_constrained_terms(stored):
    _, run = stored
    draws = run.posterior
    assert set(draws.data_vars) == {"middle", "scale", "weights", "ratio", "odds"}
    assert float(draws["scale"].min()) > 0.0
    np.testing.assert_allclose(draws["weights"].sum("part"), 1.0, atol=1e-9)
    np.testing.assert_allclose(draws["ratio"], draws["middle"] / draws["scale"], rtol=1e-5)
    np.testing.assert_allclose(draws["odds"], draws["weights"] / (1 - draws["weights"]), rtol=1e-4)
    assert draws["odds"].dims == draws["weights"].dims == ("chain", "draw", "part")
    assert {"weights[b]", "odds[b]", "ratio"} <= set(run.summary().index)


def test_a_run_is_loaded_and_resumed(stored, tmp_path):
    sampler, run = stored
    loaded = amagold.load(run.path)
    assert loaded.posterior.identical(run.posterior)
    path = tmp_path / "stopped.zarr"
    stopped = amagold.sample(sampler, init=INIT, store=path, max_time=1e-9, **SETTINGS)
    assert stopped.is_partial
    resumed = amagold.resume(path, sampler, progress=False)
    np.testing.assert_array_equal(resumed.posterior["odds"], run.posterior["odds"])


@pytest.mark.slow
def test_a_run_is_updated(stored):
    _, run = stored
    updated = amagold.update(run, DATA[:5] + 1.0, num_samples=5, num_warmup=5, progress=False)
    assert float(updated.posterior["scale"].min()) > 0.0
    assert updated.posterior["odds"].dims == ("chain", "draw", "part")


def test_starts_are_taken_in_constrained_terms(stored):
    sampler, _ = stored
    run = amagold.sample(sampler, 1, 0, 1, init=INIT, progress=False)
    # no more than a trajectory from where it was told
    assert abs(np.log(float(run.posterior["scale"][0, 0]) / 2.0)) < 2.0
    with pytest.raises(ValueError, match="'weights' must be shares greater than zero"):
        amagold.sample(sampler, 1, 0, 1, init=INIT | {"weights": np.ones(3)}, progress=False)
    with pytest.raises(ValueError, match="init must be like the target's own positions"):
        amagold.sample(sampler, 1, 0, 1, init=INIT | {"weights": np.ones(2)}, progress=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda position: position["middle"], "derived must return a dict of arrays by name"),
        (lambda position: {"scale": 1.0}, "but 'scale' is a parameter"),
        (lambda position: {"new": position["none"]}, r"derived\(position\) must work for"),
        (lambda position: {"new": np.exp(position["scale"])}, "derived must be written for JAX"),
    ],
)
def test_derived_quantities_that_cannot_be_are_said(stored, wrong, words):
    sampler, _ = stored
    broken = dataclasses.replace(sampler, target=dataclasses.replace(TARGET, derived=wrong))
    with pytest.raises(ValueError, match=words):
        amagold.sample(broken, 1, 0, 1, init=INIT, progress=False)


def test_a_lone_array_has_room_for_derived_quantities():
    target = amagold.Density(
        lambda x: -x, init=1.0, transform=transforms.positive(), derived=lambda x: {"root": x**0.5}
    )
    sampler = amagold.hmc(target, step_size=0.5, num_steps=2)
    draws = amagold.sample(sampler, 5, 0, 2, init=1.0, progress=False).posterior
    assert set(draws.data_vars) == {"theta", "root"}
    np.testing.assert_allclose(draws["root"] ** 2, draws["theta"], rtol=1e-5)


def every_kind(x):
    """Half normal; Beta(2, 4); Dirichlet(1, 2, 3); two normals in order."""
    return (
        -0.5 * x["half"] ** 2
        + jnp.log(x["share"])
        + 3.0 * jnp.log1p(-x["share"])
        + jnp.sum(jnp.array([0.0, 1.0, 2.0]) * jnp.log(x["weights"]))
        - 0.5 * jnp.sum(x["cuts"] ** 2)
    )


EVERY_INIT = {
    "half": 1.0,
    "share": 0.4,
    "weights": np.array([0.2, 0.3, 0.5]),
    "cuts": np.array([-0.5, 0.5]),
}
EVERY = amagold.Density(
    every_kind,
    init=EVERY_INIT,
    transform={
        "half": transforms.positive(),
        "share": transforms.unit_interval(),
        "weights": transforms.simplex(),
        "cuts": transforms.ordered(),
    },
)


def functionals(target, seed):
    """Of independent chains: means of what is known, one row each."""
    draws = amagold.sample(target, 200, 300, 200, seed, progress=False).posterior
    columns = [
        draws["half"],
        draws["half"] ** 2,
        draws["half"] < norm.ppf(0.75),  # half of the half normal
        draws["share"],
        *(draws["weights"][:, :, place] for place in range(3)),
        *(draws["cuts"][:, :, place] for place in range(2)),
    ]
    return np.stack([np.asarray(column, np.float64).mean(axis=1) for column in columns], axis=1)


MEANS = np.array(
    [np.sqrt(2 / np.pi), 1.0, 0.5, 1 / 3, 1 / 6, 1 / 3, 1 / 2, -1 / np.sqrt(np.pi), np.pi**-0.5]
)


@pytest.mark.slow
def test_draws_have_the_density_that_was_written():
    assert worst(functionals(EVERY, 1), MEANS) <= 1.0
    # planted: the Jacobian left out
    wrong = OfConstrained(EVERY.log_density.function, EVERY.transform)
    assert worst(functionals(dataclasses.replace(EVERY, log_density=wrong), 1), MEANS) > PLANTED


@pytest.mark.slow
def test_the_self_test_takes_constrained_targets():
    sampler = amagold.hmc(EVERY, step_size=0.3, num_steps=5)
    report = amagold.check(EVERY, sampler, num_chains=100, num_transitions=20, num_reference=50)
    assert report.is_exact_looking is not False
