"""NumPyro models with effects of groups are mixed models with the same density."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.core import trees
from amagold.target._effects_prior import EffectsPrior

pytest.importorskip("numpyro")
import numpyro
from numpyro import distributions as dist
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from numpyro_mixed_models import COUNTS, INNER, MIXED, NOT_MIXED, PLATES, X, slopes

from amagold.interop import _mixed_target

pytestmark = [
    pytest.mark.filterwarnings("ignore::amagold.SamplingWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def target_of(name):
    case = (MIXED | NOT_MIXED)[name]
    plate = PLATES.get(name, "data")
    return amagold.from_numpyro(case.model, *case.args, plate=plate, **case.kwargs)


def places(target, count=4):
    random = np.random.default_rng(3)
    for _ in range(count):
        yield {
            name: jnp.float32(value + random.uniform(-0.7, 0.7, np.shape(value)))
            for name, value in target.init.items()
        }


def log_jacobian(target, position):
    """log |d values of the sites / d position|."""
    flat = trees.flatten(position)

    def values(at):
        found = target.transform.to_sites(trees.unflatten_like(at, position))
        return trees.flatten({name: jnp.asarray(value) for name, value in found.items()})

    return np.linalg.slogdet(np.asarray(jax.jacobian(values)(flat), np.float64))[1]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", MIXED)
def test_the_density_is_numpyros(name):
    case = MIXED[name]
    target = target_of(name)
    assert isinstance(target.log_prior, EffectsPrior)
    gaps = []
    for position in places(target):
        values = {n: jnp.asarray(v) for n, v in target.transform(position).items()}
        theirs, _ = log_density(case.model, case.args, case.kwargs, values)
        ours = target.log_prior(position) + sum(
            jax.vmap(target.log_likelihood, (None, 0))(position, target.data)
        )
        gaps.append(float(ours) - float(theirs) - log_jacobian(target, position))
    assert max(gaps) - min(gaps) < 2e-3 * (1.0 + abs(float(theirs)))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MIXED)
def test_values_of_sites_lead_back(name):
    target = target_of(name)
    for position in places(target, 2):
        back = target.transform.inverse(target.transform(position))
        assert set(back) == set(position)
        for part, value in position.items():
            np.testing.assert_allclose(back[part], value, atol=2e-5)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NOT_MIXED)
def test_what_is_no_mixed_model_stays_as_it_is(name):
    """Among them one whose effects a row sees twice, and one whose scale is seen without them."""
    target = target_of(name)
    assert not isinstance(target.log_prior, EffectsPrior)
    assert set(target.init) == set(target.transform(target.init))


def test_centring_makes_no_difference():
    """Effects that are written in two ways are the same target, up to what they are called."""
    one, other = (target_of(name) for name in ("centred", "reparametrised"))
    for part in ("data", "log_prior"):
        here, there = (jax.tree.leaves(getattr(target, part)) for target in (one, other))
        assert len(here) == len(there)
        for leaf, like in zip(here, there, strict=True):
            np.testing.assert_allclose(leaf, like, atol=1e-6)


def _other_levels(found):
    return found._replace(codes=tuple(np.roll(code, 1) for code in found.codes))


def _half_slopes(found):
    return found._replace(slopes=0.5 * found.slopes)


def _no_offset(found):
    return found._replace(offset=0.0 * found.offset)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "bug"),
    [("centred", _other_levels), ("nested", _half_slopes), ("weighted", _no_offset)],
)
def test_rows_that_are_read_wrongly_are_seen(name, bug, monkeypatch):
    right = _mixed_target.mixed_rows
    monkeypatch.setattr(_mixed_target, "mixed_rows", lambda *given: bug(right(*given)))
    assert not isinstance(target_of(name).log_prior, EffectsPrior)


@pytest.mark.parametrize("part", ["coefficients", "scale"])
def test_a_prior_that_is_read_wrongly_is_seen(part, monkeypatch):
    right = _mixed_target._prior
    wrong = {"coefficients": _narrower, "scale": _narrower_scale}[part]
    monkeypatch.setattr(_mixed_target, "_prior", lambda *given: wrong(right(*given)))
    assert not isinstance(target_of("centred").log_prior, EffectsPrior)


def _narrower(prior):
    fixed = dataclasses.replace(prior.fixed, scale=0.5 * prior.fixed.scale)
    return dataclasses.replace(prior, fixed=fixed)


def _narrower_scale(prior):
    (factor,) = prior.factors
    scale = jax.tree.map(lambda leaf: 0.5 * leaf, factor.scale)
    return dataclasses.replace(prior, factors=(dataclasses.replace(factor, scale=scale),))


def test_results_have_the_names_of_the_sites(tmp_path):
    target = target_of("slopes")
    run = amagold.sample(
        target, 60, 20, num_chains=2, progress=False, seed=1, store=tmp_path / "run.zarr"
    )
    sites = {"mean", "b", "of_level", "of_slope", "noise", "level", "slope"}
    assert set(run.posterior.data_vars) == sites | {"range"}
    assert run.posterior["level"].dims == ("chain", "draw", "groups")
    effects = run.posterior["level"]
    expected = effects.max("groups") - effects.min("groups")
    np.testing.assert_allclose(run.posterior["range"], expected, rtol=1e-5)
    assert run.label == "exact"
    assert "levels (12 of 'level', 12 of 'slope')" in str(run.plan)
    predicted = Predictive(slopes, run.to_numpyro())(jax.random.key(0), X, INNER, None)
    assert predicted["y"].shape == (120, len(X))
    # starts are values of sites, and a stored run knows its target
    start = {name: np.asarray(run.posterior[name][0, 0]) for name in sites}
    amagold.sample(target, 60, 20, num_chains=2, init=start, progress=False)
    again = amagold.resume(tmp_path / "run.zarr", target_of("slopes"), progress=False)
    np.testing.assert_array_equal(again.posterior["b"], run.posterior["b"])


def test_effects_of_rows_that_are_not_normal_are_refused():
    def model(X, y):
        b = numpyro.sample("b", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        with numpyro.plate("data", X.shape[0]):
            effect = numpyro.sample("effect", dist.Gamma(2.0, 2.0))
            numpyro.sample("y", dist.Poisson(effect * jnp.exp(X @ b)), obs=y)

    with pytest.raises(ValueError, match="'effect' must not be latent inside the plate 'data'"):
        amagold.from_numpyro(model, X, COUNTS)


def test_the_kernel_refuses_effects_of_rows():
    """Its driver wants free numbers, of which there are as many as rows."""
    case = MIXED["of rows"]
    kernel = amagold.interop.numpyro.AMAGOLD(case.model)
    with pytest.raises(ValueError, match="NumPyro's own driver does not"):
        kernel.init(jax.random.key(0), 10, None, case.args, {})
