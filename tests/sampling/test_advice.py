"""What a run says of draws that should not be trusted: each sentence where it belongs, and none on
good draws.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray

from amagold.sampling._advice import advice_on, advice_on_plan


def groups(draws, energy=None, acceptance=0.9):
    """The groups of a run with these draws, (chain, draw)."""
    shape = draws.shape
    stats = {"acceptance_rate": np.full(shape, acceptance), "diverging": np.zeros(shape, bool)}
    if energy is not None:
        stats["energy"] = energy
    dims = ("chain", "draw")
    named = lambda arrays: xarray.Dataset({name: (dims, values) for name, values in arrays.items()})  # noqa: E731
    return named({"theta": draws}), named(stats)


def walk(generator, shape, keep):
    """An autoregression with standard normal margins."""
    noise = generator.normal(size=shape)
    values = np.empty(shape)
    values[:, 0] = noise[:, 0]
    for index in range(1, shape[1]):
        values[:, index] = keep * values[:, index - 1] + np.sqrt(1.0 - keep**2) * noise[:, index]
    return values


def said(draws, energy=None):
    return [sentence.split(":")[0] for sentence in advice_on(*groups(draws, energy), has_test=True)]


def test_nothing_is_said_of_good_draws():
    generator = np.random.default_rng(0)
    draws = walk(generator, (4, 1000), 0.2)
    assert said(draws, energy=0.5 * walk(generator, (4, 1000), 0.5) ** 2) == []


def test_chains_in_different_modes_and_frozen_chains_are_told_apart():
    generator = np.random.default_rng(0)
    modes = generator.normal(size=(4, 1000)) + np.array([0.0, 50.0, 0.0, 50.0])[:, None]
    [sentence] = [
        each for each in advice_on(*groups(modes), has_test=True) if each.startswith("R-hat")
    ]
    assert "several modes" in sentence
    frozen = (
        np.cumsum(1e-6 * generator.normal(size=(4, 1000)), axis=1)
        + np.array([0.0, 50.0, 1.0, 7.0])[:, None]
    )
    [sentence] = [
        each for each in advice_on(*groups(frozen), has_test=True) if each.startswith("R-hat")
    ]
    assert "hardly move" in sentence
    assert "more draws would not help" in sentence


def test_a_slow_energy_is_said():
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(4, 1000))
    assert said(draws, energy=walk(generator, (4, 1000), 0.95)) == ["slow energy"]


def test_slow_tails_are_said():
    """The bulk is independent, and whether a draw is in the tail changes rarely."""
    generator = np.random.default_rng(0)
    scale = np.where(walk(generator, (4, 1000), 0.995) > 1.3, 6.0, 1.0)
    draws = generator.normal(size=(4, 1000)) * scale
    [sentence] = [
        each
        for each in advice_on(*groups(draws), has_test=True)
        if each.startswith("small tail ESS")
    ]
    # what helps, by arguments that `sample` has
    assert "warmup=amagold.Warmup(target_acceptance=0.95)" in sentence
    assert "non-centred" in sentence
    assert "small ESS" not in said(draws), "the bulk is well known"


def plan(**facts):
    known = {"is_mode_found": True, "num_searches": 16, "is_explained": True}
    return SimpleNamespace(**known | {"num_weighty_modes": 1, "mode_shares": (1.0,)} | facts)


@pytest.mark.parametrize("acceptance", [0.9, 0.0], ids=["slow", "frozen"])
def test_a_missing_mode_is_said_where_something_is_amiss(acceptance):
    generator = np.random.default_rng(0)
    lost = plan(is_mode_found=False)
    slow = groups(walk(generator, (4, 1000), 0.995), acceptance=acceptance)
    found = advice_on(*slow, has_test=True, plan=lost)
    assert found[0].startswith("no mode: 16 search(es) found none")
    assert "give an init inside the bulk" in found[0]
    assert len(found) > 1
    good = groups(generator.normal(size=(4, 1000)))
    assert advice_on(*good, has_test=True, plan=lost) == []


@pytest.mark.parametrize(
    ("facts", "num_chains", "starts_given", "words"),
    [
        ({}, 1, True, []),
        ({"num_weighty_modes": 2, "mode_shares": (0.7, 0.3)}, 4, False, []),
        ({"num_weighty_modes": 2, "mode_shares": (0.7, 0.3)}, 4, True, ["several modes"]),
        ({"num_weighty_modes": 2, "mode_shares": (0.7, 0.3)}, 1, False, ["several modes"]),
        ({"is_explained": False}, 4, False, []),
        ({"is_explained": False}, 4, True, ["hidden mass"]),
        ({"is_explained": False}, 1, False, ["hidden mass"]),
    ],
)
def test_modes_that_chains_do_not_start_at(facts, num_chains, starts_given, words):
    found = advice_on_plan(plan(**facts), num_chains, starts_given)
    assert [sentence.split(":")[0] for sentence in found] == words


@pytest.mark.parametrize("num_draws", [1, 3])
def test_few_draws_are_said(num_draws):
    assert said(np.random.default_rng(0).normal(size=(4, num_draws))) == ["few draws"]
