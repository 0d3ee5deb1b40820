"""amagold.check passes exact samplers, fails biased ones, and says when it cannot tell."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from broken_samplers import broken_samplers
from doubles import some_of
from exact_samplers import exact_samplers
from exact_target import exact_draws, target, upper_half
from false_alarms import NUM_CHECKS, PLANTED, SUITE_FALSE_ALARM_RATE, worst

import amagold
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.core import trees
from amagold.datasets import heart
from amagold.diagnose import _exactness as exactness, check
from amagold.diagnose._exactness import BALANCE, _balance
from amagold.diagnose._reference_draws import all_at, run_reference

START = np.zeros(2, np.float32)
RIDGE = 0.999999
FIELDS = [field.name for field in dataclasses.fields(EffectSweep)]
# of one call: for its verdict, and for calling it undecided
FALSE_ALARM_RATE = SUITE_FALSE_ALARM_RATE / NUM_CHECKS / 2


@pytest.fixture(autouse=True)
def _seldom_undecided(monkeypatch):
    monkeypatch.setattr(exactness, "UNSETTLED_RATE", FALSE_ALARM_RATE)


SIZES = dict(
    num_chains=256, num_transitions=100, num_reference=100, false_alarm_rate=FALSE_ALARM_RATE
)
FAST = dict(position=START, **SIZES)


@cache
def report_of(name):
    sampler = exact_samplers()[name] if name in exact_samplers() else broken_samplers()[name]
    return check(target(), sampler, **{**FAST, "num_transitions": 200}, seed=1)


@pytest.mark.parametrize(
    "name",
    some_of(["amagold reversible iid", "amagold irreversible epoch"], "amagold reversible iid"),
)
def test_exact_samplers_pass(name):
    report = report_of(name)
    assert report.is_exact_looking is True, str(report)
    assert report.largest_deviation < 1.0
    assert report.smallest_visible_bias < 0.2
    assert report.sentence.startswith("Looks exact")


@pytest.mark.parametrize(
    "name",
    [
        "reversible: prior left out of the test",
        pytest.param("reversible: noise off by sqrt(2)", marks=pytest.mark.slow),
        pytest.param("reversible: work from other gradients", marks=pytest.mark.slow),
        "irreversible: fixed order of batches",
    ],
)
def test_broken_samplers_fail(name):
    report = report_of(name)
    assert report.is_exact_looking is False, str(report)
    assert report.largest_deviation > PLANTED
    assert report.sentence.startswith("Not exact")


def test_sghmc_fails():
    sampler = amagold.sghmc(target(), step_size=0.1, friction=0.7, num_steps=4, batch_size=2)
    report = check(target(), sampler, **FAST)
    assert report.is_exact_looking is False
    assert report.largest_deviation > PLANTED
    assert BALANCE not in {quantity.name for quantity in report.quantities}, (
        "without a test there is no ratio"
    )
    assert "shifted by" in report.sentence
    assert "spread of position[1]" in str(report)


@pytest.mark.slow
def test_sampling_another_model_fails():
    """A sampler of the tempered target does not leave the target alone, though it is exact for its
    own.
    """
    other = amagold.Density(lambda position: -0.5 * jnp.sum(position**2))
    model = amagold.Density(lambda position: -0.45 * jnp.sum(position**2), init=START)
    report = check(model, amagold.hmc(other, step_size=0.5, num_steps=3), **SIZES)
    assert report.is_exact_looking is False


@pytest.mark.slow
def test_a_logistic_regression_as_a_user_would():
    data = heart()
    model = amagold.models.logistic(data.X[:, :2], data.y, prior_scale=1.0)
    sampler = amagold.amagold(model, step_size=0.02, num_steps=10, batch_size=27)
    report = check(model, sampler, **SIZES)
    assert report.is_exact_looking is True, str(report)
    assert "mean of position[0]" in str(report)


@pytest.mark.slow
def test_an_unsettled_reference_is_undecided(monkeypatch):
    """A ridge, on which the reference has not yet spread: a sampler that knows its shape goes on
    spreading, and is not blamed.
    """
    monkeypatch.setattr(exactness, "UNSETTLED_RATE", 1e-2)
    precision = np.linalg.inv(np.array([[1.0, RIDGE], [RIDGE, 1.0]])).astype(np.float32)
    ridge = amagold.Density(lambda position: -0.5 * position @ precision @ position, init=START)
    report = check(
        ridge,
        amagold.hmc(ridge, step_size=0.5, num_steps=3, mass=precision),
        num_chains=256,
        num_reference=10,
    )
    assert report.is_exact_looking is None, str(report)
    assert "the reference has not settled" in report.sentence
    assert report.largest_control_deviation > 1.0


def test_a_sampler_that_does_not_move_is_undecided():
    frozen = amagold.hmc(target(), step_size=1e-4, num_steps=1)
    report = check(target(), frozen, **FAST)
    assert report.is_exact_looking is None
    assert "hardly moved" in report.sentence
    assert report.start_end_correlation > 0.9


@pytest.mark.slow
def test_draws_that_blow_up_are_not_exact():
    # steps far beyond what is stable, and no test to stop them
    sampler = amagold.sgld(target(), step_size=1.0, num_steps=10, batch_size=2)
    report = check(target(), sampler, **{**FAST, "num_chains": 32, "num_transitions": 10})
    assert report.is_exact_looking is False
    assert report.largest_deviation == np.inf


@pytest.mark.slow
def test_trees_and_domains():
    def log_density(position):
        return -position["scale"] - 0.5 * jnp.sum(position["at"] ** 2)

    model = amagold.Density(
        log_density,
        lambda position: position["scale"] > 0.0,
        init={"at": np.zeros((1, 2)), "scale": 1.0},
    )
    report = check(model, amagold.hmc(model, step_size=0.4, num_steps=3), **SIZES)
    assert report.is_exact_looking is True, str(report)
    names = [quantity.name for quantity in report.quantities]
    assert names[:3] == [
        "mean of position['at'][0, 0]",
        "mean of position['at'][0, 1]",
        "mean of position['scale']",
    ]


@pytest.mark.slow
def test_the_reference_draws_the_target():
    """Against exact draws: the starts of the check are what they should be."""
    start = jnp.asarray([0.0, 0.5])
    for inside in (False, True):
        model = target(upper_half if inside else None)
        found = np.asarray(
            run_reference(model, start, all_at(start, 2000), 60, jax.random.key(0)).positions,
            np.float64,
        )
        exact = exact_draws(200_000, inside).astype(np.float64)
        for power in (1, 2, 3):
            assert worst(found**power, (exact**power).mean(axis=0)) < 1.0
        assert worst(found * 1.2, exact.mean(axis=0)) > PLANTED


def test_the_balance_of_a_gaussian_ratio():
    """log a ~ N(-s^2/2, s^2) satisfies p(Delta) e^Delta = p(-Delta), so its balance has mean zero;
    a shifted one does not.
    """
    generator = np.random.default_rng(0)
    log_ratio = generator.normal(-0.5, 1.0, size=200_000)
    assert worst(_balance(log_ratio)) < 1.0
    assert worst(_balance(log_ratio + 0.05)) > PLANTED
    np.testing.assert_array_equal(_balance(np.array([np.nan, -np.inf, np.inf])), 0.0)


@trees.record()
class NoPriorOfScales(EffectSweep):
    """Scales of effects have none."""

    def scale_prior(self, number, target, state):
        return jnp.float32(0.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize("is_broken", [False, True])
def test_a_sweep_over_effects_is_checked(is_broken):
    """Narrow effects of unknown scale take the reference longer than its default."""
    generator = np.random.default_rng(0)
    x, group = generator.normal(size=(1_200, 1)), np.arange(1_200) % 6
    z = 0.5 * x[:, 0] + generator.normal(size=6)[group]
    y = generator.random(1_200) < 1.0 / (1.0 + np.exp(-z))
    model = amagold.models.mixed(x, y, {"g": group}, scale_prior=amagold.priors.normal(0.0, 1.0))
    run = amagold.sample(model, 300, 100, progress=False)
    sampler = run.sampler
    assert isinstance(sampler.acceptance, EffectSweep)
    if is_broken:
        sweep = {name: getattr(sampler.acceptance, name) for name in FIELDS}
        sampler = dataclasses.replace(sampler, acceptance=NoPriorOfScales(**sweep))
    position = {
        name: values.mean(("chain", "draw")).to_numpy() for name, values in run.posterior.items()
    }
    report = check(model, sampler, **{**SIZES, "num_reference": 1_000}, position=position)
    assert report.is_exact_looking is not is_broken


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"position": None}, "position must be given for a target without init"),
        ({"num_chains": 5}, "num_chains must be a whole number of at least 20"),
        ({"num_transitions": 0}, "num_transitions must be a whole number"),
        ({"num_reference": 2}, "num_reference must be a whole number"),
        ({"false_alarm_rate": 1.5}, "false_alarm_rate must be below 1"),
    ],
)
def test_bad_input(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        check(target(), exact_samplers()["hmc"], **{**FAST, **change})


def test_an_outside_loader_cannot_be_checked():
    sampler = amagold.amagold(
        target(),
        step_size=0.1,
        num_steps=2,
        gradient=amagold.gradients.minibatch(2, plan="external"),
    )
    with pytest.raises(ValueError, match="sampler must draw its own batches"):
        check(target(), sampler, **FAST)


@pytest.mark.parametrize(
    ("target", "sampler", "sentence"),
    [(None, None, "target must be"), (amagold.models.double_well(), None, "sampler must be")],
)
def test_what_is_no_target_or_sampler_is_refused(target, sampler, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.check(target, sampler)
