"""A label follows from the parts of a sampler, whoever puts them together."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_samplers import Jump

import amagold
from amagold import acceptance, gradients
from amagold.trajectory import (
    Euler,
    Langevin,
    Leapfrog,
    NoseHoover,
    Obabo,
    Phase,
    RandomWalk,
    Rotation,
    RunningPreconditioner,
    Ubu,
)
from amagold.trajectory._mass_matrix import as_mass

TARGET = amagold.Density(lambda at: -0.5 * jnp.sum(at**2), init=np.zeros(2, np.float32))
UNIT = as_mass(1.0)
CENTER = jnp.zeros(2)


@pytest.mark.parametrize(
    ("proposal", "settings", "sentence"),
    [
        (
            Euler(0.1, 0.3, UNIT),
            {},
            "proposal must be reversible or skew-reversible for a test to follow, got Euler",
        ),
        (
            Euler(0.1, 0.3, UNIT),
            {"resample_momentum": False},
            "proposal must be reversible or skew-reversible",
        ),
        (
            Leapfrog(0.1, 0.0, UNIT),
            {"resample_momentum": False},
            "friction must be positive with resample_momentum=False, got none in Leapfrog",
        ),
        (
            Leapfrog(0.1, jnp.float32(0.0), UNIT),
            {"resample_momentum": False},
            "friction must be positive",
        ),
        (
            Rotation(0.5, UNIT, CENTER),
            {"resample_momentum": False},
            "friction must be positive with resample_momentum=False, got none in Rotation",
        ),
        (
            NoseHoover(0.1, 0.0, UNIT),
            {"resample_momentum": False},
            "friction must be positive with resample_momentum=False, got none in NoseHoover",
        ),
        (
            RunningPreconditioner(0.1),
            {"resample_momentum": False},
            "proposal must be reversible or skew-reversible for a test to follow",
        ),
        (
            Rotation(0.5, UNIT, CENTER, 0.0),
            {"resample_momentum": False},
            "friction must be positive",
        ),
    ],
)
def test_wrong_combinations_are_refused(proposal, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.amortized(TARGET, proposal, 3, **settings)


@pytest.mark.parametrize(
    ("proposal", "settings", "label"),
    [
        (Euler(0.1, 0.3, UNIT), {"acceptance": acceptance.never_reject()}, "biased"),
        (Leapfrog(0.1, 0.3, UNIT), {"acceptance": acceptance.never_reject()}, "biased"),
        (Leapfrog(0.1, 0.0, UNIT), {}, "exact"),
        (Leapfrog(0.1, 0.3, UNIT), {"resample_momentum": False}, "exact"),
        (Rotation(0.5, UNIT, CENTER), {}, "exact"),
        (Rotation(0.5, UNIT, CENTER, 0.2), {"resample_momentum": False}, "exact"),
        (Langevin(0.3, UNIT), {}, "exact"),
        (RandomWalk(0.3), {"resample_momentum": False}, "exact"),
        (Obabo(0.1, 0.3, UNIT), {"resample_momentum": False}, "exact"),
        (Ubu(0.1, 0.3, UNIT), {"resample_momentum": False}, "exact"),
        (NoseHoover(0.1, 0.3, UNIT), {"resample_momentum": False}, "exact"),
        (RunningPreconditioner(0.1), {"acceptance": acceptance.never_reject()}, "biased"),
        (Jump(0.1), {}, "exact"),
        (Jump(0.1), {"resample_momentum": False}, "exact"),
    ],
)
def test_right_ones_are_labelled(proposal, settings, label):
    assert amagold.amortized(TARGET, proposal, 3, **settings).label == label


def test_a_test_put_in_afterwards_does_not_make_it_exact():
    sampler = amagold.sghmc(TARGET, step_size=0.1, gradient=gradients.full())
    assert dataclasses.replace(sampler, acceptance=acceptance.full()).label == "biased"


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: amagold.psgld(TARGET, step_size=0.1, acceptance=acceptance.full()),
            "preconditioner must be fixed for a test to follow, got none",
        ),
        (
            lambda: amagold.psgld(TARGET, step_size=0.1, preconditioner=np.array([1.0, -1.0])),
            "preconditioner must be positive everywhere",
        ),
        (
            lambda: amagold.psgld(TARGET, step_size=0.1, preconditioner=np.ones(3)).init(CENTER),
            "preconditioner must give one positive number per parameter",
        ),
        (
            lambda: amagold.sgnht(TARGET, step_size=0.1, inertia=0.0),
            "inertia must be a finite number above 0",
        ),
        (
            lambda: amagold.cyclical(amagold.hmc(TARGET, step_size=0.1), 1),
            "length must be a whole number of at least 2",
        ),
        (
            lambda: amagold.cyclical(amagold.amortized(TARGET, RandomWalk(0.3)), 5),
            "sampler must have a step size, but its proposal RandomWalk",
        ),
    ],
)
def test_what_the_family_refuses(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()


def test_what_a_run_has_learnt_may_be_frozen():
    """A preconditioner that was learnt without a test is fixed afterwards, and then exact."""
    learning = amagold.psgld(TARGET, step_size=0.1)
    state, info = learning.step(jax.random.key(0), learning.init(np.ones(2)))
    assert info.label == "biased"
    learnt = learning.proposal.scales(state.momentum)
    sampler = amagold.psgld(
        TARGET, step_size=0.1, preconditioner=learnt, acceptance=acceptance.full()
    )
    state, info = sampler.step(jax.random.key(1), sampler.init(state.position))
    assert info.label == "exact"


class Silent(NamedTuple):
    """A step that does not say what its work accounts for."""

    draw = draw_momentum = staticmethod(amagold.normal_like)

    def check(self, position):
        pass

    def reverse(self, phase):
        return phase

    def step(self, phase, noise, gradient):
        return Phase(phase.position + noise, phase.momentum), jnp.float32(0.0)


class Walk(Silent):
    symmetry = "reversible"
    refreshes_momentum = True


def test_a_step_of_ones_own_says_what_it_is():
    with pytest.raises(
        ValueError,
        match="proposal must say what its work accounts for, but the symmetry of Silent is None",
    ):
        amagold.amortized(TARGET, Silent(), 3)
    sampler = amagold.amortized(TARGET, Walk(), 3)
    _, info = sampler.step(jax.random.key(0), sampler.init(np.zeros(2)))
    assert info.label == "exact"


def test_what_the_refusal_prevents():
    """Euler's step with a test has half of the variance, so the refusal is no formality."""
    honest = amagold.amortized(TARGET, Leapfrog(1.0, 0.3, UNIT), 2)
    wrong = dataclasses.replace(honest, proposal=Euler(jnp.float32(1.0), jnp.float32(0.3), UNIT))
    starts = jax.random.normal(jax.random.key(0), (500, 2))
    variances = [
        np.var(amagold.run_chains(each, jax.random.key(1), starts, 40).position)
        for each in (honest, wrong)
    ]
    assert abs(variances[0] - 1.0) < 0.05
    assert abs(variances[1] - 1.0) > 0.2
