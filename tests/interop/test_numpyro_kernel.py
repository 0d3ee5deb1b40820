"""NumPyro's driver runs our samplers: the same draws for the same key, by every chain method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold

pytest.importorskip("numpyro")
from numpyro.infer import MCMC, Predictive
from numpyro_models import BINARY, EVERY, X, logistic

ARGS = (X, BINARY)
START = {"b": jnp.array([0.1, 0.2, 0.3])}


def kernel(**options):
    return amagold.interop.numpyro.AMAGOLD(logistic, **options)


def given(target):
    return amagold.amagold(target, step_size=0.1, num_steps=3, batch_size=8)


def mcmc(own, num_chains=1, method="sequential", num_warmup=10, num_samples=30):
    return MCMC(
        own,
        num_warmup=num_warmup,
        num_samples=num_samples,
        num_chains=num_chains,
        chain_method=method,
        progress_bar=False,
    )


@pytest.mark.parametrize("resample", [pytest.param(True, marks=pytest.mark.slow), False])
def test_one_chain_is_that_of_the_native_driver(resample):
    def sampler(target):
        return amagold.amagold(
            target, step_size=0.1, num_steps=3, batch_size=8, resample_momentum=resample
        )

    run = mcmc(kernel(sampler=sampler))
    run.run(jax.random.key(3), *ARGS, init_params=START, extra_fields=("accept_prob",))
    native = amagold.run_chains(
        sampler(amagold.from_numpyro(logistic, *ARGS)),
        jax.random.key(3),
        {"b": START["b"][None]},
        30,
        num_burn_in=10,
    )
    np.testing.assert_allclose(run.get_samples()["b"], native.position["b"][0], atol=1e-5)
    rates = run.get_extra_fields()["accept_prob"]
    np.testing.assert_allclose(rates, native.info.acceptance_rate[0], atol=1e-4)
    assert len(np.unique(native.position["b"][0], axis=0)) > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(None, id="planned"),
        pytest.param(given, id="given", marks=pytest.mark.slow),
    ],
)
def test_every_chain_method_gives_the_same_draws(sampler):
    draws = {}
    for method in ("sequential", "vectorized", "parallel"):
        run = mcmc(kernel(sampler=sampler), 2, method)
        run.run(jax.random.key(0), *ARGS)
        draws[method] = run.get_samples(group_by_chain=True)
    for method in ("vectorized", "parallel"):
        for name, values in draws["sequential"].items():
            np.testing.assert_allclose(draws[method][name], values, atol=2e-4, err_msg=name)
    assert set(draws["sequential"]) == {"b", "odds"}
    assert not np.array_equal(*draws["sequential"]["b"])


def test_extra_fields_and_words(capsys):
    own = kernel()
    run = mcmc(own)
    wanted = ("accept_prob", "potential_energy", "num_energy_examples", "step_size", "num_steps")
    run.run(jax.random.key(0), *ARGS, extra_fields=wanted)
    fields = run.get_extra_fields()
    assert set(wanted) | {"diverging"} == set(fields)
    assert np.all((fields["accept_prob"] >= 0) & (fields["accept_prob"] <= 1))
    assert np.all(fields["num_energy_examples"] > 0)
    run.print_summary()
    assert "Number of divergences: 0" in capsys.readouterr().out
    assert "acc. prob=" in own.get_diagnostics_str(run.last_state)
    assert "60 examples" in str(own.plan)


def test_warm_up_goes_on_to_draws():
    run = mcmc(kernel(sampler=given))
    run.warmup(jax.random.key(0), *ARGS, init_params=START)
    run.run(jax.random.key(1), *ARGS)
    assert int(run.last_state.i) == 40


@pytest.mark.slow
@pytest.mark.parametrize("mass", [pytest.param("diagonal", marks=pytest.mark.slow), "dense"])
def test_warm_up_tunes(mass):
    own = kernel(
        plate=None,
        sampler=lambda target: amagold.hmc(target, step_size=1e-3, num_steps=4),
        warmup=amagold.Warmup(target_acceptance=0.8, mass=mass),
    )
    run = mcmc(own, num_warmup=200, num_samples=50)
    run.run(jax.random.key(0), *ARGS, init_params=START, extra_fields=("step_size",))
    steps = run.get_extra_fields()["step_size"]
    assert steps.min() == steps.max() > 0.1
    assert run.last_state.adapt_state.inverse_mass_matrix.ndim == 1 + (mass == "dense")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_predictive_takes_the_draws():
    case = EVERY["logistic"]
    target = amagold.from_numpyro(case.model, *case.args)
    run = amagold.sample(target, 20, 40, num_chains=2, progress=False)
    draws = run.to_numpyro()
    np.testing.assert_array_equal(
        draws["b"], run.posterior["b"].to_numpy().reshape(40, 3), strict=True
    )
    found = Predictive(case.model, draws)(jax.random.key(0), X[:5], None)
    assert found["y"].shape == (40, 5)
