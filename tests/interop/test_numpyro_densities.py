"""A NumPyro model and its target are one density: prior and rows add up to NumPyro's own potential
at random points.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold

pytest.importorskip("numpyro")
from numpyro import distributions as dist
from numpyro.infer.util import constrain_fn, potential_energy
from numpyro_models import EVERY, LINEAR, NOT_LINEAR, SCHOOLS, X

POINTS = 5
ROUNDING = 2e-5  # of the sizes that are added up


def somewhere(target, seed):
    random = np.random.default_rng(seed)
    return {
        name: jnp.asarray(random.uniform(-1.5, 1.5, zero.shape), jnp.float32)
        for name, zero in target.init.items()
    }


@jax.jit
def parts_of(target, position):
    if isinstance(target, amagold.Density):
        return target.log_density(position), jnp.zeros(1)
    return target.log_prior(position), target.log_likelihoods(position, target.examples.arrays)


def disagreement(target, case):
    """The largest difference to NumPyro's potential, in units of rounding."""
    found = []
    for seed in range(POINTS):
        position = somewhere(target, seed)
        prior, rows = map(np.float64, parts_of(target, position))
        wanted = -float(potential_energy(case.model, case.args, case.kwargs, position))
        size = 1.0 + np.abs(prior) + np.abs(rows).sum()
        found.append(abs(prior + rows.sum() - wanted) / (ROUNDING * size))
    return max(found)


def target_of(case, **options):
    return amagold.from_numpyro(case.model, *case.args, **case.kwargs, **options)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", EVERY)
def test_prior_and_rows_are_the_potential(name):
    target = target_of(EVERY[name])
    assert target.num_examples == len(X)
    assert disagreement(target, EVERY[name]) < 1.0


@pytest.mark.parametrize("name", [*EVERY, *SCHOOLS])
def test_the_whole_model_is_the_potential(name):
    case = (EVERY | SCHOOLS)[name]
    target = target_of(case, plate=None)
    assert isinstance(target, amagold.Density)
    assert disagreement(target, case) < 1.0


def test_a_jacobian_left_out_is_seen():
    case = EVERY["linear"]
    right = target_of(case)
    wrong = dataclasses.replace(right, log_prior=lambda at: right.log_prior(at) - at["sigma"])
    assert disagreement(right, case) < 1.0 < 10.0 < disagreement(wrong, case)


def test_a_prior_counted_with_every_row_is_seen():
    case = EVERY["linear"]
    right = target_of(case)

    def with_prior(position, example):
        return right.log_likelihood(position, example) + right.log_prior(position)

    wrong = dataclasses.replace(right, log_likelihood=with_prior, bounds=None)
    assert disagreement(wrong, case) > 10.0


@pytest.mark.parametrize("name", ["constrained", "groups", "linear"])
def test_reported_values_are_those_of_the_sites(name):
    case = EVERY[name]
    target = target_of(case)
    positions = [somewhere(target, seed) for seed in range(6)]
    stacked = {
        key: np.stack([np.asarray(each[key]) for each in positions]).reshape(
            2, 3, *target.init[key].shape
        )
        for key in target.init
    }
    shown = target.transform(stacked)
    for number, position in enumerate(positions):
        wanted = constrain_fn(case.model, case.args, case.kwargs, position)
        assert set(shown) == set(wanted)
        for key, value in wanted.items():
            np.testing.assert_allclose(
                shown[key][divmod(number, 3)], value, rtol=1e-5, atol=1e-6, err_msg=key
            )
    back = target.transform.inverse(shown)
    for key in stacked:
        np.testing.assert_allclose(back[key], stacked[key], rtol=1e-3, atol=1e-4)


def test_no_draws_have_the_form_of_draws():
    target = target_of(EVERY["constrained"])
    none = {name: np.zeros((2, 0, *zero.shape), np.float32) for name, zero in target.init.items()}
    shown = target.transform(none)
    assert shown["shares"].shape == (2, 0, 3)
    assert shown["sigma"].shape == (2, 0)


def test_a_start_outside_its_support_is_refused():
    target = target_of(EVERY["linear"])
    start = {"a": 0.0, "b": np.zeros(3), "sigma": -1.0}
    with pytest.raises(ValueError, match="'sigma' must lie inside the support"):
        amagold.sample(target, 10, 10, init=start, progress=False)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", LINEAR)
def test_likelihoods_through_a_linear_predictor_have_bounds(name):
    target = target_of(LINEAR[name])
    assert target.bounds is not None
    from amagold.acceptance._bounds_agreement import compare

    compare(target, target.bounds, target.init)


@pytest.mark.parametrize("name", ["bent", "product", "scaled"])
def test_others_are_cut_before_they_bend(name):
    """Their predictor is not the link's: what is found begins where the program is affine."""
    target = target_of(NOT_LINEAR[name])
    assert target.bounds.within is not None
    from amagold.acceptance._bounds_agreement import compare

    compare(target, target.bounds, target.init)


def test_what_sees_many_numbers_has_none():
    target = target_of(EVERY["constrained"])
    assert target.bounds is None
    assert any("more than 3 numbers" in note for note in target.notes)


def test_normal_priors_are_known_to_have_one_mode():
    assert target_of(EVERY["logistic"]).has_one_mode
    assert not target_of(EVERY["groups"]).has_one_mode
    assert not target_of(
        EVERY["binomial"]._replace(model=dist_prior, args=(X, X[:, 0] > 0))
    ).has_one_mode


def dist_prior(X, y):
    import numpyro

    b = numpyro.sample("b", dist.StudentT(3.0, 0.0, 1.0).expand([3]).to_event(1))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ b), obs=y)


def test_equal_models_share_their_programs():
    one, other = (target_of(EVERY["logistic"]) for _ in range(2))
    assert jax.tree.structure(one) == jax.tree.structure(other)


def test_rows_are_arguments_of_programs():
    target = target_of(EVERY["logistic"])
    program = jax.make_jaxpr(
        lambda target, at: target.log_likelihoods(at, target.examples.arrays).sum()
    )(target, target.init)
    assert all(np.size(constant) < len(X) for constant in program.consts)
    assert max(np.prod(variable.aval.shape) for variable in program.jaxpr.invars) == X.size
