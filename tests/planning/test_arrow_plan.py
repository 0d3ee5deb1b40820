"""Mixed models that a sweep is not worth it for: planned with leapfrog steps in units of an arrow,
in words, stored, and with the draws that NUTS makes.
"""

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_effects import mixed_target
from monte_carlo_errors import apart

import amagold
from amagold import models
from amagold.mode._arrow_curvature import effects_curvature
from amagold.mode._effect_mode import find_reference
from amagold.planning._arrow_plan import unit_mass
from amagold.planning._effects_plan import EffectsPlan, plan_effects
from amagold.planning._plan import Plan
from amagold.trajectory._named_mass import arrow_of

PRIOR_SCALE = 1.5
# rows, groups and the effects' standard deviation
FEW_ROWS, FEW_GROUPS, MANY_ROWS = (400, 200, 4.0), (200, 5, 1.0), (4_000, 40, 1.0)


@cache
def table(size, levels, scale):
    generator = np.random.default_rng(0)
    group = np.concatenate([np.arange(levels), generator.integers(0, levels, size - levels)])
    x = generator.normal(size=size)
    z = -0.3 + 0.3 * x + scale * generator.normal(size=levels)[group]
    return x, (generator.random(size) < 1.0 / (1.0 + np.exp(-z))).astype(float), group


@cache
def target_of(kind):
    x, y, group = table(*kind)
    return models.mixed(x[:, None], y, {"1|g": group}, prior_scale=PRIOR_SCALE, standardize=False)


@cache
def planned(kind):
    return plan_effects(target_of(kind), 4, jax.random.key(0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FEW_ROWS, FEW_GROUPS])
def test_sweeps_that_save_nothing_are_left_and_the_plan_says_why(kind):
    plan = planned(kind).plan
    assert isinstance(plan, Plan)
    assert (plan.mass, plan.gradient, plan.test) == ("arrow", "full", "full")
    assert plan.sweep_slow_down >= 2.0
    said = str(plan)
    assert f"{kind[1]:,} of '1|g'" in said
    assert "an arrow: a block for each level" in said
    assert "Against a sweep over the levels" in said
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.slow
def test_a_sweep_stays_where_groups_have_rows():
    assert isinstance(planned(MANY_ROWS).plan, EffectsPlan)


@pytest.mark.slow
def test_a_sweep_stays_where_effects_may_become_narrow(monkeypatch):
    """Whatever it costs."""
    monkeypatch.setattr("amagold.planning._arrow_plan.NARROWEST", 1.0)
    found = plan_effects(target_of(FEW_GROUPS), 4, jax.random.key(0))
    assert isinstance(found.plan, EffectsPlan)


@cache
def nuts(kind):
    """The same model, not centred, by NumPyro: (chain, draw, numbers)."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    x, y, group = table(*kind)

    def model():
        theta = numpyro.sample("theta", dist.Normal(0.0, PRIOR_SCALE).expand([2]).to_event(1))
        scale = numpyro.sample("scale", dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0)))
        raw = numpyro.sample("raw", dist.Normal().expand([kind[1]]))
        effects = numpyro.deterministic("effects", scale * raw)
        z = theta[0] + theta[1] * jnp.asarray(x) + effects[group]
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)

    settings = {"num_warmup": 1_000, "num_samples": 2_500, "num_chains": 4}
    run = MCMC(NUTS(model), **settings, chain_method="vectorized", progress_bar=False)
    run.run(jax.random.PRNGKey(1))
    found = run.get_samples(group_by_chain=True)
    return side_by_side(found["theta"], np.log(found["scale"]), found["effects"])


def side_by_side(theta, log_scale, effects):
    parts = (theta, np.asarray(log_scale)[..., None], effects)
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=-1)


def drawn(run):
    found = {name: run.posterior[name].to_numpy() for name in run.posterior}
    return side_by_side(found["theta"], np.log(found["1|g_sigma"]), found["1|g"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FEW_ROWS, FEW_GROUPS])
def test_its_draws_are_those_of_nuts(kind):
    pytest.importorskip("numpyro")
    with warnings.catch_warnings():
        # of two rows a group little is known of, and the energy moves slowly
        warnings.simplefilter("ignore", amagold.SamplingWarning)
        run = amagold.sample(target_of(kind), 6_000, 1_000, num_chains=4, progress=False)
    assert run.plan.mass == "arrow"
    assert run.label == "exact"
    assert apart(drawn(run), nuts(kind)) < 1.0
    # the test sees effects that are a tenth too wide
    wide = drawn(run)
    wide[..., 3:] *= 1.1
    assert apart(wide, nuts(kind)) > 1.0


@pytest.mark.slow
def test_it_is_stored_stopped_and_resumed_to_the_bit(tmp_path):
    target = target_of(FEW_GROUPS)
    settings = {"num_samples": 60, "num_warmup": 40, "num_chains": 2, "progress": False}
    with pytest.warns(amagold.SamplingWarning):
        run = amagold.sample(target, **settings)
    with pytest.warns(amagold.SamplingWarning, match="no draws were kept"):
        amagold.sample(target, **settings, store=tmp_path / "run.zarr", max_time=1e-6)
    with pytest.warns(amagold.SamplingWarning):
        resumed = amagold.resume(tmp_path / "run.zarr", target, progress=False)
    np.testing.assert_array_equal(drawn(resumed), drawn(run))


def test_a_stored_mass_has_the_form_that_the_target_gives():
    target = mixed_target("logistic")
    made, form = arrow_of(effects_curvature(target, find_reference(target))), unit_mass(target)
    assert jax.tree.structure(made) == jax.tree.structure(form)
    assert [*map(jnp.shape, jax.tree.leaves(made))] == [*map(jnp.shape, jax.tree.leaves(form))]
    np.testing.assert_array_equal(form.variances(), np.ones(form.num_parameters))
