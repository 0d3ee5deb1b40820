"""Every exact test, on small posteriors far from Gaussian, leaves exact draws as they are; with a
planted bug it does not.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from broken_bounds import fewer_arrivals, smaller_bounds
from false_alarms import PLANTED
from following_gradient import FollowingGradient
from quadrature import moved
from small_posteriors import (
    counts,
    few_and_agreed,
    nearly_separable,
    normal_link,
    through_the_origin,
    two_clumps,
    two_columns,
)

import amagold
from amagold import acceptance, gradients
from amagold.acceptance import DelayedTest, FireflyTest, TunaTest
from amagold.core import trees
from amagold.mode._derivatives import derivatives_at
from amagold.mode._reference import Reference
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass

# arrivals above which a test looks at all data: more than there are examples, so that most tests do
# not
MOST = 200.0
slow = pytest.mark.slow


def tuna(order, **settings):
    # noise: so that the arrivals are few, and their randomness is most of what the test rests on
    return lambda center: acceptance.tuna(order, center, **{"noise": 1.0, "most": MOST, **settings})


TESTS = {
    "full": lambda center: acceptance.full(),
    "tuna, order 0": tuna(0),
    "tuna, order 1": tuna(1),
    "tuna, order 2": tuna(2),
    "tuna or all data": tuna(2, most=6.0),
    "firefly": lambda center: acceptance.firefly(center, most=MOST),
    "firefly or all data": lambda center: acceptance.firefly(center, most=6.0),
    "delayed": lambda center: acceptance.delayed(2, center),
}


def sampler_of(case, test, resample_momentum, **settings):
    settings = {"step_size": case.step_size, "gradient": gradients.minibatch(4), **settings}
    return amagold.amagold(
        case.target,
        friction=0.3,
        num_steps=3,
        acceptance=test,
        resample_momentum=resample_momentum,
        **settings,
    )


def combinations():
    """(posterior, test, whether the momentum is drawn afresh): all of them on two posteriors, each
    test once on the others.
    """
    fast = [
        (through_the_origin, "tuna, order 1", False),
        (two_clumps, "firefly", False),
        (two_clumps, "delayed", False),
    ]
    once = {"tuna, order 1": True, "tuna, order 2": False, "firefly": False, "delayed": True}
    both = (True, False)
    found = fast + [
        (posterior, test, resample)
        for posterior in (nearly_separable, two_clumps)
        for test in TESTS
        for resample in both
    ]
    found += [
        (posterior, test, resample)
        for posterior in (counts, normal_link, two_columns)
        for test, resample in once.items()
    ]
    for posterior, test, resample in dict.fromkeys(found):
        if (posterior, test) == (counts, "firefly"):  # no parabola stays below -exp(z)
            continue
        name = f"{posterior.__name__}, {test}, {'reversible' if resample else 'irreversible'}"
        yield pytest.param(
            posterior,
            test,
            resample,
            id=name,
            marks=() if (posterior, test, resample) in fast else slow,
        )


@pytest.mark.few(1)
@pytest.mark.parametrize(("posterior", "test", "resample_momentum"), list(combinations()))
def test_exact_draws_stay_exact(posterior, test, resample_momentum, request):
    case = posterior()
    is_slow = request.node.get_closest_marker("slow") is not None
    found = moved(
        case.density,
        sampler_of(case, TESTS[test](case.center), resample_momentum),
        40_000 if is_slow else 10_000,
    )
    assert 0.05 < float(found.info.is_accepted.mean()) < 0.95
    assert max(jax.tree.leaves(jax.tree.map(np.max, found.info.broken_bound)), default=-1) == -1
    if test.endswith("all data"):
        assert (
            0.05
            < float(jnp.mean(found.info.num_energy_examples == case.target.num_examples))
            < 0.95
        )
    assert found.change < 1.0
    assert found.error < 1.0


@slow
@pytest.mark.parametrize("resample_momentum", [True, False], ids=["reversible", "irreversible"])
@pytest.mark.parametrize("order", [1, 2])
def test_exact_draws_stay_exact_where_less_than_one_arrival_is_expected(order, resample_momentum):
    """The test is then scalable MH, without a ratio; wrong numbers are seen there too."""
    case = few_and_agreed()
    sampler = sampler_of(
        case, tuna(order)(case.center), resample_momentum, step_size=0.7 if order == 2 else 0.3
    )
    found = moved(case.density, sampler, 40_000)
    assert 0.1 < float(found.info.num_energy_examples.mean()) < 0.7
    assert found.worst < 1.0
    assert (
        moved(
            case.density,
            dataclasses.replace(sampler, acceptance=halve_the_rate(sampler.acceptance)),
            40_000,
        ).worst
        > PLANTED
    )
    if order == 2:
        assert (
            moved(
                case.density,
                dataclasses.replace(sampler, acceptance=halve_the_bounds(sampler.acceptance)),
                40_000,
            ).worst
            > PLANTED
        )


def changed(posterior, test, change, resample_momentum=True):
    """An exact sampler with one thing changed in its test."""
    case = posterior()
    sampler = sampler_of(case, TESTS[test](case.center), resample_momentum)
    return case, dataclasses.replace(sampler, acceptance=change(sampler.acceptance))


def halve_the_bounds(test):
    return smaller_bounds(test, 2.0)


def halve_the_rate(test):
    return fewer_arrivals(test, 2.0)


@pytest.mark.parametrize("change", [halve_the_bounds, halve_the_rate])
def test_wrong_numbers_are_seen(change):
    case, sampler = changed(through_the_origin, "tuna, order 1", change, resample_momentum=False)
    assert moved(case.density, sampler, 10_000).worst > PLANTED


def as_another(kind):
    """The same test, as a class that decides wrongly."""
    return lambda test: kind(*(getattr(test, field.name) for field in dataclasses.fields(test)))


@trees.record(static=("order", "block_size", "bounds", "is_scalar"))
class WithoutWork(TunaTest):
    def decide(self, target, draws, memory, proposed, work):
        return TunaTest.decide(self, target, draws, memory, proposed, jnp.zeros_like(work))


@trees.record(static=("order", "block_size", "bounds", "is_scalar"))
class FollowingReference(TunaTest):
    """The reference is where the chain is, with all sums over the data as they are there."""

    def decide(self, target, draws, memory, proposed, work):
        found = derivatives_at(target, memory.position, 2)
        reference = Reference(memory.position, found.gradient, found.hessian)
        there = dataclasses.replace(self, reference=reference)
        decision = TunaTest.decide(
            there, target, draws, there.remember(target, memory.position), proposed, work
        )
        return decision._replace(memory=self.remember(target, proposed))


@trees.record(static=("block_size", "bounds"))
class ShiningThere(FireflyTest):
    """The bright examples are drawn at theta* instead of theta."""

    def decide(self, target, draws, memory, proposed, work):
        there = self.remember(target, proposed)
        back = FireflyTest.decide(self, target, draws, there, memory.position, -work)
        log_ratio = -back.log_ratio
        return back._replace(is_accepted=draws[0] < log_ratio, log_ratio=log_ratio, memory=there)


@trees.record(static=("block_size", "bounds"))
class WithoutBrightOnes(FireflyTest):
    def _look(self, *arguments):
        return FireflyTest._look(self, *arguments)._replace(log_ratio=jnp.float32(0.0))


@trees.record()
class WithoutSecondStage(DelayedTest):
    def decide(self, target, draws, memory, proposed, work):
        never = jnp.full_like(draws[1], -jnp.inf)
        return DelayedTest.decide(self, target, (draws[0], never), memory, proposed, work)


@slow
@pytest.mark.parametrize("resample_momentum", [True, False], ids=["reversible", "irreversible"])
@pytest.mark.parametrize(
    ("posterior", "test", "kind"),
    [
        (through_the_origin, "tuna, order 1", WithoutWork),
        (through_the_origin, "firefly", ShiningThere),
        (through_the_origin, "firefly", WithoutBrightOnes),
        (two_clumps, "delayed", WithoutSecondStage),
    ],
)
def test_wrong_tests_are_seen(posterior, test, kind, resample_momentum):
    case, sampler = changed(posterior, test, as_another(kind), resample_momentum)
    assert moved(case.density, sampler, 40_000).worst > PLANTED


@slow
@pytest.mark.parametrize("resample_momentum", [True, False], ids=["reversible", "irreversible"])
def test_a_test_whose_reference_moves_is_seen(resample_momentum):
    case = through_the_origin()
    # as few arrivals as are exact, because the error is of the order of their noise
    sampler = sampler_of(case, tuna(1, noise=1e3)(case.center), resample_momentum)
    assert moved(case.density, sampler, 120_000).worst < 1.0
    broken = as_another(FollowingReference)(sampler.acceptance)
    assert (
        moved(case.density, dataclasses.replace(sampler, acceptance=broken), 120_000).worst
        > PLANTED
    )


@slow
@pytest.mark.parametrize("change", [halve_the_bounds, halve_the_rate])
def test_firefly_with_wrong_numbers_is_seen(change):
    case, sampler = changed(through_the_origin, "firefly", change)
    assert moved(case.density, sampler, 40_000).worst > PLANTED


@slow
@pytest.mark.parametrize("kind", ["control variate", "expansion"])
@pytest.mark.parametrize("resample_momentum", [True, False], ids=["reversible", "irreversible"])
def test_a_gradient_whose_reference_moves_is_seen(resample_momentum, kind):
    case = two_clumps()
    gradient = {
        "control variate": gradients.control_variate(2, 2, case.center),
        "expansion": gradients.expansion(case.center),
    }[kind]
    honest = sampler_of(case, tuna(2)(None), resample_momentum, gradient=gradient)
    assert moved(case.density, honest, 40_000).worst < 1.0
    assert moved(case.density, as_another(FollowingGradient)(honest), 40_000).worst > PLANTED


@trees.record()
class FollowingCenter(Rotation):
    """The turn is about a place between the centre and where the step begins."""

    def step(self, phase, noise, gradient):
        center = 0.3 * self.center + 0.7 * phase.position
        return Rotation(self.step_size, self.mass, center, self.friction).step(
            phase, noise, gradient
        )


def turning(case, test, resample_momentum, kind=Rotation, step_size=None):
    """Turns about the reference, kicked by control variates of two examples."""
    proposal = kind(
        step_size or case.step_size, as_mass(1.0), jnp.asarray(case.center), friction=0.3
    )
    gradient = gradients.control_variate(2, 2, case.center)
    return amagold.amortized(
        case.target,
        proposal,
        2,
        gradient,
        TESTS[test](None if "tuna" in test else case.center),
        resample_momentum,
    )


@slow
@pytest.mark.parametrize("resample_momentum", [True, False], ids=["reversible", "irreversible"])
@pytest.mark.parametrize("test", ["full", "tuna, order 2", "firefly", "delayed"])
@pytest.mark.parametrize("posterior", [nearly_separable, two_clumps])
def test_turns_leave_exact_draws_exact(posterior, test, resample_momentum):
    case = posterior()
    found = moved(case.density, turning(case, test, resample_momentum), 40_000)
    assert 0.05 < float(found.info.is_accepted.mean()) < 0.98
    assert found.worst < 1.0


@slow
@pytest.mark.parametrize("resample_momentum", [True, False], ids=["reversible", "irreversible"])
def test_a_turn_whose_center_moves_is_seen(resample_momentum):
    case = nearly_separable()
    found = [
        moved(case.density, turning(case, "full", resample_momentum, kind, 2.0), 40_000).worst
        for kind in (Rotation, FollowingCenter)
    ]
    assert found[0] < 1.0
    assert found[1] > PLANTED
