"""A warm-up that looks for everything: the mass by gradients, the number of steps by trials."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.adaptation import (
    _length_search as lengths,
    _moments as moments,
    _search_adaptation as search_adaptation,
)
from amagold.adaptation._dual_averaging import start_search
from amagold.adaptation._fisher_mass import fisher_mass
from amagold.adaptation._window_adaptation import DEEPEST, common_rate
from amagold.adaptation._windows import block_length, make_search_schedule
from amagold.runner._placed_chains import _run_chunk
from amagold.trajectory._mass_matrix import DenseMass, DiagonalMass

SIZE = 8


def covariance():
    scales = np.geomspace(0.01, 10.0, SIZE)
    between = np.abs(np.subtract.outer(np.arange(SIZE), np.arange(SIZE)))
    return 0.8**between * np.outer(scales, scales)


def collected(draws, kind="dense"):
    found = moments.no_moments(kind, SIZE)
    return moments.update(found, jnp.bool_(True), jnp.asarray(draws, jnp.float32), None)


def error(mass, wanted):
    """The largest of |log eigenvalue| of one covariance in units of the other."""
    root = np.asarray(mass.inverse_factor, np.float64)
    return np.abs(np.log(np.linalg.eigvals(np.linalg.solve(wanted, root.T @ root)).real)).max()


def test_few_draws_from_elsewhere_tell_the_covariance_by_their_gradients():
    wanted = covariance()
    generator = np.random.default_rng(1)
    scales = np.sqrt(np.diagonal(wanted))
    # draws of another law altogether: independent, and half as wide
    draws = 0.5 * scales * generator.normal(size=(3000, SIZE))
    start = DenseMass(jnp.diag(jnp.asarray(scales, jnp.float32)), jnp.diag(1.0 / scales))
    slopes = draws @ np.linalg.inv(wanted)
    found = fisher_mass(collected(draws), collected(slopes), start)
    assert error(found, wanted) < 0.4
    product = np.asarray(found.inverse_factor) @ np.asarray(found.factor)
    np.testing.assert_allclose(product, np.eye(SIZE), atol=1e-3)
    by_draws = moments.estimate_mass(collected(draws), start)
    assert error(by_draws, wanted) > 1.5, "draws alone do not tell it"
    # gradients with a wrong sign of half of them
    wrong = slopes * np.where(np.arange(SIZE) % 2, -1.0, 1.0)
    assert error(fisher_mass(collected(draws), collected(wrong), start), wanted) > 1.5


def test_fewer_draws_than_parameters_change_few_directions():
    generator = np.random.default_rng(2)
    direction = np.ones(SIZE) / np.sqrt(SIZE)
    wanted = np.eye(SIZE) + 99.0 * np.outer(direction, direction)
    draws = generator.normal(size=(5, SIZE)) @ np.linalg.cholesky(wanted).T
    slopes = draws @ np.linalg.inv(wanted)
    start = DenseMass(jnp.eye(SIZE), jnp.eye(SIZE))
    found = fisher_mass(collected(draws), collected(slopes), start)
    assert np.all(np.isfinite(found.inverse_factor))
    assert error(found, wanted) < error(start, wanted)


def test_a_diagonal_has_the_scales_of_independent_parameters():
    scales = np.geomspace(0.01, 10.0, SIZE)
    draws = 0.2 * scales * np.random.default_rng(3).normal(size=(50, SIZE))
    start = DiagonalMass(jnp.ones(SIZE))
    found = fisher_mass(
        collected(draws, "diagonal"), collected(draws / scales**2, "diagonal"), start
    )
    np.testing.assert_allclose(found.inverse_scale, scales, rtol=1e-4)


def test_what_is_not_finite_leaves_the_mass_as_it_was():
    start = DiagonalMass(jnp.ones(SIZE))
    still = collected(np.zeros((9, SIZE)), "diagonal")
    np.testing.assert_array_equal(fisher_mass(still, still, start).inverse_scale, np.ones(SIZE))


def tried(angle, num_chains=64, num_rounds=30):
    """Trials on independent normal numbers that a step turns by an angle, and always accepts."""
    generator = np.random.default_rng(4)
    search = lengths.begin_trials(lengths.no_trials(SIZE), lengths.COARSE, np.zeros(SIZE))
    update = jax.jit(lambda *moved: lengths.update(*moved, None))
    position = generator.normal(size=(num_chains, SIZE))
    for turn in range(num_rounds * lengths.NUM_TRIED):
        total = angle * lengths.COARSE[turn % lengths.NUM_TRIED]
        after = np.cos(total) * position + np.sin(total) * generator.normal(size=position.shape)
        moved = (jnp.asarray(position, jnp.float32), jnp.asarray(after, jnp.float32))
        search = update(search, jnp.bool_(True), *moved, jnp.zeros(num_chains, bool))
        position = after
    return search


@pytest.mark.parametrize("quarter", [2, 4, 16])
def test_a_quarter_turn_is_the_best_number_of_steps(quarter):
    search = tried(0.5 * np.pi / quarter)
    assert lengths.best(search) == quarter
    # a half turn moves every mean as far as it can, and no spread
    half = lengths.COARSE.index(2 * quarter)
    assert lengths.costs(search)[half] > 3.0 * lengths.costs(search)[half - 1]


def test_trials_that_were_not_made_choose_nothing():
    assert lengths.best(lengths.no_trials(SIZE)) == lengths.FIRST_STEPS
    assert lengths.finer(1)[0] == 1
    assert max(lengths.finer(lengths.MOST_STEPS)) == lengths.MOST_STEPS


@pytest.mark.parametrize("num_warmup", [20, 37, 1_000, 1_010])
def test_stages_of_a_search_cover_the_warm_up(num_warmup):
    stages = make_search_schedule(num_warmup)
    assert [stage.start for stage in stages] == [0, *(stage.stop for stage in stages[:-1])]
    assert stages[-1].stop == num_warmup
    length = block_length(num_warmup, 7)
    assert all((stage.stop - stage.start) % length == 0 for stage in stages[:-1])


def bent(position):
    """A banana beside a wide direction and a narrow one, all of them turned."""
    turned = jnp.asarray(TURN) @ position
    across = turned[1] + turned[0] ** 2
    return -0.5 * (turned[0] ** 2 + 4.0 * across**2 + jnp.sum((turned[2:] / SCALES) ** 2))


TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 6)))[0].astype(np.float32)
SCALES = np.array([0.01, 0.1, 1.0, 10.0], np.float32)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_everything_is_found_and_little_is_compiled():
    target = amagold.Density(bent, init=jnp.zeros(6))
    before = _run_chunk.compiled()._cache_size()
    run = amagold.sample(target, 500, 400, progress=False)
    # one program that warms up, whatever it tries, and one that draws
    assert _run_chunk.compiled()._cache_size() - before <= 2
    assert run.plan.searches_steps
    assert run.label == "exact"
    tried_steps = set(run.warmup_sample_stats["n_steps"].to_numpy().ravel())
    assert set(lengths.COARSE) <= tried_steps
    steps = int(run.sample_stats["n_steps"][0, 0])
    assert 1 <= steps <= 16, "scales a thousand apart and turned are no reason for many steps"
    draws = next(iter(run.posterior.data_vars.values())).to_numpy()
    found = np.log((draws @ TURN.T)[..., 2:].reshape(-1, 4).std(axis=0) / SCALES)
    assert np.abs(found).max() < 0.35
    assert "looks for" in str(run.plan)
    assert run.sample_stats["diverging"].to_numpy().mean() < 0.03, "0.065 by acceptance alone"


def banana(position):
    return -0.5 * (position[0] ** 2 + (position[1] - position[0] ** 2) ** 2)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize(
    ("share", "is_calm"),
    [(search_adaptation.CAREFUL, True), pytest.param(1.0, False, marks=pytest.mark.slow)],
)
def test_where_trials_diverge_steps_become_smaller(share, is_calm, monkeypatch):
    monkeypatch.setattr(search_adaptation, "CAREFUL", share)
    run = amagold.sample(amagold.Density(banana, init=np.zeros(2, np.float32)), progress=False)
    diverged = run.sample_stats["diverging"].to_numpy().mean()
    assert (diverged <= lengths.CALM) == is_calm, diverged


def test_a_chain_that_is_stuck_counts_while_chains_come_in():
    step = start_search(np.float32(1.0))
    rates = jnp.array([0.9, 0.9, 0.9, 0.0])
    assert common_rate(rates, step, jnp.bool_(True), None) < 0.05
    np.testing.assert_allclose(common_rate(rates, step, jnp.bool_(False), None), 0.675)
    # one that no step brings in does not hold the others back for ever
    deep = step._replace(log_step=step.log_step - DEEPEST)
    np.testing.assert_allclose(common_rate(rates, deep, jnp.bool_(True), None), 0.675)
