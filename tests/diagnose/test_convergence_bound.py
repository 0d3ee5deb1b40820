"""Theorem 2 of the paper, as published."""

import math

import pytest

from amagold.diagnose import convergence_bound


def test_by_hand():
    # epsilon V^2 / (sigma^2 beta) = 0.25 * 8 / (2 * 0.5) = 2; T = 2, d = 4: c = 1 + sqrt(2 / (16 *
    # 2 * 16)) = 1.0625
    found = convergence_bound(8.0, step_size=0.25, friction=0.5, num_steps=2, mass=2.0, dimension=4)
    assert found.c == pytest.approx(1.0625)
    assert found.step_size == 0.25
    assert found.mass == pytest.approx(2.0 * 1.0625**-0.5)
    assert found.friction == pytest.approx(0.5 * 1.0625**-0.5)
    # exp(-2 * 2 / 4 - sqrt(2 * 2)) = exp(-3)
    assert found.gap_ratio == pytest.approx(math.exp(-3.0))
    assert found.is_assumption_met


def test_without_noise_nothing_changes():
    found = convergence_bound(0.0, step_size=0.1, friction=0.3, num_steps=7, mass=2.0, dimension=3)
    assert found == (1.0, 0.1, 2.0, 0.3, 1.0, True)
    assert convergence_bound(
        1e-12, step_size=0.1, friction=0.3, num_steps=7
    ).gap_ratio == pytest.approx(1.0, abs=1e-5)


def test_more_noise_and_less_friction_lower_it():
    by_noise = [
        convergence_bound(v, step_size=0.1, friction=0.3, num_steps=7).gap_ratio
        for v in (0.1, 0.2, 0.4)
    ]
    by_friction = [
        convergence_bound(0.1, step_size=0.1, friction=f, num_steps=7).gap_ratio
        for f in (0.4, 0.2, 0.1)
    ]
    assert by_noise == sorted(by_noise, reverse=True)
    assert by_friction == sorted(by_friction, reverse=True)


def test_the_assumption():
    # epsilon V^2 <= 4 sigma^2 beta d
    settings = dict(step_size=0.25, friction=0.25, num_steps=10)
    assert convergence_bound(4.0, **settings).is_assumption_met
    assert not convergence_bound(4.1, **settings).is_assumption_met
    assert convergence_bound(4.1, **settings, dimension=2).is_assumption_met


def test_in_units_of_the_ratio():
    """x = epsilon T V^2 / (sigma^2 beta) = s^2 (1 + b) / b: with s = 0.1 and b = 0.01
    already 1.01.
    """
    step_size, num_steps, b = 0.1, 5, 0.01
    variance = 0.1**2 * (1 + b) / (step_size**2 * num_steps)
    found = convergence_bound(
        variance, step_size=step_size, friction=b / step_size, num_steps=num_steps
    )
    assert found.gap_ratio == pytest.approx(math.exp(-0.25 * 1.01 - math.sqrt(1.01)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gradient_variance": -1.0}, "gradient_variance must be a finite number at least 0"),
        ({"step_size": 0.0}, "step_size must be a finite number above 0"),
        (
            {"friction": 0.0},
            "friction must be a finite number above 0.*without friction it says nothing",
        ),
        ({"mass": 0.0}, "mass must be a finite number above 0"),
        ({"num_steps": 0}, "num_steps must be a whole number of at least 1"),
        ({"dimension": 1.5}, "dimension must be a whole number of at least 1"),
    ],
)
def test_bad_input(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        convergence_bound(
            **{
                "gradient_variance": 1.0,
                "step_size": 0.1,
                "friction": 0.3,
                "num_steps": 5,
                **change,
            }
        )
