"""NumPyro models whose likelihood is of no known kind: bounds of its program are found, the draws
are those of NUTS, and a wrong rule stops the run.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import threshold

import amagold
from amagold import acceptance, gradients
from amagold.acceptance._bounds_agreement import compare
from amagold.target import _jet_program as program, _smooth_functions as smooth
from amagold.target._intervals import scaled
from amagold_lab.bench.effective_sample_size import differences, effective_draws

pytest.importorskip("numpyro")
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import potential_energy
from numpyro_own_likelihoods import COUNTS, FOUND, NUMBERS, X, coefficients

QUICK = {"own link"}
COMPARED = ("zero-inflated", "censored", "censored normal", "truncated normal", "own link")


def marked(names):
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def target_of(name):
    case = FOUND[name][0]
    return amagold.from_numpyro(case.model, *case.args, **case.kwargs)


@pytest.mark.parametrize("name", marked(FOUND))
def test_bounds_are_found_without_asking(name):
    target = target_of(name)
    assert target.bounds is not None
    assert target.bounds.within is not None
    case, num_numbers = FOUND[name]
    assert target.log_likelihood.predictor.program.cut(target.example).num_numbers == num_numbers
    compare(target, target.bounds, target.init)
    random = np.random.default_rng(1)
    position = {
        key: jnp.asarray(random.uniform(-0.7, 0.7, zero.shape), jnp.float32)
        for key, zero in target.init.items()
    }
    rows = np.float64(target.log_likelihoods(position, target.examples.arrays))
    wanted = -float(potential_energy(case.model, case.args, case.kwargs, position))
    assert abs(float(target.log_prior(position)) + rows.sum() - wanted) < 2e-5 * np.abs(rows).sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_every_row_has_a_bound(name):
    test = acceptance.tuna().bind(target_of(name))
    assert float(test.typical) < len(X)


def through_many(X, y):
    """Of four numbers."""
    b, c = coefficients(), coefficients("c")
    with numpyro.plate("data", X.shape[0]):
        z = jnp.stack([X @ b, X @ c, X[:, 0] * b[0], X[:, 1] * c[1]])
        numpyro.factor("y", -jnp.sum(jnp.exp(z), axis=0) + y * 0.0)


def with_a_root(X, y):
    """Of an operation without a rule."""
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.factor("y", -((y - jax.lax.cbrt(3.0 + X @ b)) ** 2))


def with_a_product(X, y):
    """Not linear: three coefficients, of a few numbers at most."""
    b, c = coefficients(), coefficients("c")
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ (b * c), 1.0), obs=y)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (through_many, "through more than 3 numbers"),
        (with_a_root, "uses `cbrt`, which is not covered"),
        (with_a_product, "through more than 3 numbers"),
    ],
)
def test_plans_say_why_there_are_none(model, words):
    target = amagold.from_numpyro(model, X, NUMBERS)
    assert target.bounds is None
    assert any(words in note for note in target.notes)


def test_what_is_written_twice_is_one_number():
    def model(X, y):
        b = coefficients()
        with numpyro.plate("data", X.shape[0]):
            numpyro.factor("y", -y * jnp.tanh(X @ b) - jnp.exp(-(X @ b)) + 0.0 * y)

    target = amagold.from_numpyro(model, X, COUNTS)
    assert target.log_likelihood.predictor.program.cut(target.example).num_numbers == 1
    assert jax.eval_shape(target.bounds.predictor, target.init, target.example).shape == ()


def test_equal_models_share_their_programs():
    one, other = (target_of("own link") for _ in range(2))
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert one.bounds == other.bounds


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", COMPARED)
def test_draws_agree_with_nuts(name):
    case = FOUND[name][0]
    target = target_of(name)
    run = amagold.sample(target, 800, 400, num_chains=8, progress=False)
    assert run.plan.test == "tuna"
    mcmc = MCMC(
        NUTS(case.model),
        num_warmup=400,
        num_samples=800,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), *case.args)
    ours = [np.float64(run.posterior[key].to_numpy()) for key in target.init]
    theirs = [np.float64(mcmc.get_samples(group_by_chain=True)[key]) for key in target.init]
    flat = [
        np.concatenate([each.reshape(*each.shape[:2], -1) for each in draws], axis=-1)
        for draws in (ours, theirs)
    ]
    assert effective_draws(flat[0]) > 300.0
    middle = flat[1].mean(axis=(0, 1))
    found = np.abs(
        [differences((flat[0] - middle) ** power, (flat[1] - middle) ** power) for power in (1, 2)]
    )
    assert np.max(found) < threshold(found.size * len(COMPARED))


@pytest.mark.slow
def test_a_wrong_rule_stops_the_run(monkeypatch):
    """Derivatives of exp a tenth as large as they are."""

    def too_small(space, params, x):
        value, *others = smooth.exponential(x.value)
        return program.rules.compose([value, *(scaled(part, 0.1) for part in others)], x)

    def model(X, y):
        b = coefficients()
        with numpyro.plate("data", X.shape[0]):
            z = X @ b
            numpyro.factor("y", y * z - jnp.exp(z))

    monkeypatch.setitem(program.RULES, "exp", too_small)
    jax.clear_caches()
    found = amagold.from_numpyro(model, X[:8], 1.0 + COUNTS[:8])
    within = dataclasses.replace(found.bounds.within, spare=3.0)
    target = dataclasses.replace(found, bounds=found.bounds._replace(within=within))
    sampler = amagold.amagold(
        target,
        step_size=0.25,
        num_steps=3,
        gradient=gradients.control_variate(2, 2),
        acceptance=acceptance.tuna(0, block_size=16, noise=100.0, most=400.0),
    )
    starts = {"b": 0.5 * jax.random.normal(jax.random.key(1), (64, 3))}
    with pytest.raises(ValueError, match=r"example \d+ broke its bound in chain"):
        amagold.run_chains(sampler, jax.random.key(0), starts, 50)
    jax.clear_caches()
