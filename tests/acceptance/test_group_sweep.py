"""Sweeps over many levels: exact draws stay exact, planted bugs are seen, and what the sweep knows
beforehand is what all rows say.
"""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, worst
from scipy.special import log_ndtr

import amagold
from amagold import models
from amagold.acceptance._group_rows import sorted_by_level
from amagold.acceptance._group_setup import untuned_sweep
from amagold.acceptance._group_sweep import GroupSweep
from amagold.core import trees
from amagold.gradients import full as full_gradient
from amagold.mode._arrow import arrow_at, arrow_mode, is_gaussian, layout_of
from amagold.models._coded_rows import CodedTable
from amagold.planning._sweep_plan import SweepPlan, plan_sweep
from amagold.samplers import Sampler
from amagold.trajectory._rest import Rest

# rows of each level: the first has no coefficient of its own, one has no row
SIZES = (14, 1, 2, 0, 5, 12, 30)
NUM_DRAWS = 20_000
GRID = np.linspace(-9.0, 9.0, 1201)


def outcomes(family):
    generator = np.random.default_rng(4)
    level = np.repeat(np.arange(len(SIZES)), SIZES)
    z = -0.4 + np.linspace(-1.0, 1.5, len(SIZES))[level]
    if family is models.poisson:
        return level, generator.poisson(np.exp(z)).astype(float)
    return level, (generator.random(len(level)) < 1.0 / (1.0 + np.exp(-z))).astype(float)


def table_of(level):
    nothing = np.zeros((len(level), 0))
    codes = (level - 1).astype(np.int32)[:, None]
    names = tuple(map(str, range(len(SIZES) - 1)))
    return CodedTable(nothing, codes, nothing, names, (len(SIZES) - 1,), (None,))


@cache
def target_of(family):
    """An intercept, and a level for each group but the first; all N(0, 1)."""
    level, y = outcomes(family)
    return family(table_of(level), y, prior_scale=1.0, standardize=False)


def log_likelihood(family, y, z):
    if family is models.poisson:
        return np.sum(y) * z - len(y) * np.exp(z)
    if family is models.probit:
        return np.sum(y) * log_ndtr(z) + np.sum(1.0 - y) * log_ndtr(-z)
    return np.sum(y) * z - len(y) * np.logaddexp(0.0, z)


@cache
def exact_draws(family, num_draws=NUM_DRAWS):
    """The intercept from its marginal, then every level by itself, on grids in float64."""
    level, y = outcomes(family)
    prior = np.asarray(target_of(family).log_prior.scale, np.float64)
    center = np.asarray(target_of(family).log_prior.center, np.float64)
    generator = np.random.default_rng(0)
    at = -0.5 * ((GRID - center[0]) / prior[0]) ** 2 + log_likelihood(family, y[level == 0], GRID)
    of_groups = []
    for group in range(1, len(SIZES)):
        own = -0.5 * ((GRID - center[group]) / prior[group]) ** 2
        joint = own + log_likelihood(family, y[level == group], GRID[:, None] + GRID)
        of_groups.append(joint)
        at = at + np.logaddexp.reduce(joint, axis=1)
    first = _from_grid(np.broadcast_to(at, (num_draws, len(GRID))), generator)
    rows = np.clip(np.rint((first - GRID[0]) / (GRID[1] - GRID[0])), 0, len(GRID) - 1).astype(int)
    columns = [first]
    for joint in of_groups:
        columns.append(_from_grid(joint[rows], generator))
    return np.stack(columns, axis=1).astype(np.float32)


def _from_grid(log_mass, generator):
    mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
    upto = np.cumsum(mass, axis=1)
    drawn = generator.random(len(mass)) * upto[:, -1]
    places = (upto <= drawn[:, None]).sum(axis=1)
    width = GRID[1] - GRID[0]
    return GRID[places] + width * generator.uniform(-0.5, 0.5, len(mass))


def sweep_of(family, away=0.25):
    """About a place that is not the mode, with turns that are no fresh draws."""
    target = target_of(family)
    layout = layout_of(target, target.bounds)
    mode = arrow_mode(target, target.bounds, layout).position
    signs = np.where(np.arange(len(mode)) % 2, 1.0, -1.0)
    place = (mode + away * signs).astype(np.float32).astype(np.float64)
    sweep = untuned_sweep(target, target.bounds, arrow_at(target, target.bounds, layout, place))
    return dataclasses.replace(
        sweep,
        angle=jnp.float32(1.1),
        group_spread=jnp.float32(0.5),
        slope_spread=jnp.float32(0.5),
    )


def features(positions):
    u = np.asarray(positions, np.float64)
    pairs = u[:, :1] * u[:, 1:]
    return np.concatenate([u, u**2, np.tanh(2.0 * u), np.tanh(2.0 * (u - 1.0)), pairs], axis=1)


@jax.jit
def _run(sampler, positions, key):
    states = jax.vmap(sampler.init)(positions)

    def transition(states, key):
        return jax.vmap(sampler.step)(jax.random.split(key, len(positions)), states)

    return jax.lax.scan(transition, states, jax.random.split(key, 3))


def moved(family, sweep, num_draws=NUM_DRAWS):
    draws = exact_draws(family)[:num_draws]
    sampler = Sampler(target_of(family), Rest(), full_gradient(), sweep, 1, True)
    states, info = _run(sampler, draws, jax.random.key(3))
    return worst(features(states.position) - features(draws)), info


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(models.logistic, marks=pytest.mark.slow),
        models.poisson,  # whose bounds grow
        pytest.param(models.probit, marks=pytest.mark.slow),
    ],
)
def test_exact_draws_stay_exact(family):
    found, info = moved(family, sweep_of(family), 8_000)
    assert found < 1.0
    assert int(info.broken_bound.max()) == -1
    assert 0.2 < float(info.acceptance_rate.mean()) < 0.99
    rows = np.asarray(info.num_energy_examples)
    assert 0.0 < rows.mean() < 2.0 * sum(SIZES), "neither nothing nor all of it, twice"


@trees.record()
class HalvedRates(GroupSweep):
    """Half as many arrivals as the bounds need, and scans that leave out as many."""

    def row_bounds(self, apart, together):
        return 0.1 * super().row_bounds(apart, together)


@trees.record()
class OthersTests(GroupSweep):
    """Each group is accepted by what the rows of its neighbour say."""

    def move_groups(self, target, draws, memory):
        afresh = draws._replace(all_walk=jnp.bool_(False), skewed_walk=jnp.bool_(False))
        _, found, _ = super().move_groups(target, afresh, memory)
        is_accepted = draws.tests < jnp.roll(found.log_ratios, 1)
        proposed = self.group_means + self.group_widths * draws.groups
        groups = jnp.where(is_accepted, proposed, memory.groups)
        return memory._replace(groups=groups), found, is_accepted


@trees.record()
class NotMovingAlong(GroupSweep):
    """Levels stay where they are while the slopes move, though the ratio thinks they come along."""

    def move_slopes(self, target, draws, memory):
        moved, found, log_ratio = super().move_slopes(target, draws, memory)
        left = 2.0 * self.shifts @ (moved.slopes - memory.slopes)
        return moved._replace(groups=moved.groups + left), found, log_ratio


@trees.record()
class WalksWithoutEnergy(GroupSweep):
    """Walks are tested as if they were fresh draws."""

    def move_groups(self, target, draws, memory):
        walks = draws._replace(all_walk=jnp.bool_(True))
        _, found, _ = super().move_groups(target, walks, memory)
        step = self.group_widths * draws.groups * 0.5 * 4.0**draws.stride
        is_accepted = draws.tests < found.log_ratios
        groups = jnp.where(is_accepted, memory.groups + step, memory.groups)
        return memory._replace(groups=groups), found, is_accepted


@trees.record()
class MovingReference(GroupSweep):
    """The center of turns follows the chain."""

    def move_slopes(self, target, draws, memory):
        moving = dataclasses.replace(self, slope_mean=0.5 * memory.slopes)
        return GroupSweep.move_slopes(moving, target, draws, memory)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        HalvedRates,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (OthersTests, NotMovingAlong, WalksWithoutEnergy, MovingReference)
        ),
    ],
)
def test_planted_bugs_are_seen(broken):
    sweep = sweep_of(models.logistic)
    values = {field.name: getattr(sweep, field.name) for field in dataclasses.fields(GroupSweep)}
    assert moved(models.logistic, broken(**values))[0] > PLANTED


@pytest.mark.slow
def test_broken_bounds_are_noticed():
    """Rows that exceed what they were bounded by are named."""
    sweep = sweep_of(models.poisson)
    sweep = dataclasses.replace(sweep, scales=0.02 * sweep.scales)
    assert int(moved(models.poisson, sweep, 500)[1].broken_bound.max()) >= 0


def test_bounds_hold_for_every_row():
    """Of pairs of positions far apart too, in both moves."""
    target, sweep = target_of(models.poisson), sweep_of(models.poisson)
    draws = exact_draws(models.poisson)
    level, _ = outcomes(models.poisson)
    largest = 0.0
    for number in range(40):
        memory = sweep.remember(target, draws[number])
        for there in (
            memory._replace(groups=sweep.remember(target, draws[number + 50]).groups),
            memory._replace(slopes=sweep.remember(target, draws[number + 90]).slopes),
        ):
            apart = sweep.lengths * jnp.linalg.norm(there.slopes - memory.slopes)
            apart += sweep.value * jnp.abs(there.groups - memory.groups)
            together = sweep.lengths * jnp.linalg.norm(there.slopes + memory.slopes)
            together += sweep.value * jnp.abs(there.groups + memory.groups)
            bounds = np.asarray(sweep.row_bounds(apart, together), np.float64)[level]
            differences = _remainders(sweep, memory, there)
            assert (np.abs(differences) <= bounds * 1.001 + 1e-5).all()
            largest = max(largest, float(np.max(np.abs(differences) / (bounds + 1e-9))))
    assert largest > 0.3, "bounds that are never near would say nothing"


def _remainders(sweep, memory, there):
    """D_i of all rows in float64: that of exp(z) - y z, where y does not count."""
    level, _ = outcomes(models.poisson)

    def z(position):
        flat = np.concatenate([[0.0], np.asarray(position, np.float64)[1:]])
        return float(position[0]) + flat[level]

    center = z(sweep.reference.position)
    found = []
    for at in (memory, there):
        a = z(sweep.position(at)) - center
        found.append(np.exp(center) * (np.expm1(a) - a - 0.5 * a**2))
    return found[1] - found[0]


@pytest.mark.slow
def test_the_arrow_is_the_hessian():
    generator = np.random.default_rng(1)
    size = 300
    codes = np.stack([generator.integers(-1, 2, size), generator.integers(-1, 20, size)], axis=1)
    nothing = np.zeros((size, 0))
    names = tuple(map(str, range(24)))
    numbers = generator.normal(size=(size, 2))
    table = CodedTable(numbers, codes.astype(np.int32), nothing, names, (2, 20), (None, None))
    target = models.logistic(table, generator.random(size) < 0.4)
    layout = layout_of(target, target.bounds)
    assert layout.factor == 1
    assert is_gaussian(target, layout)
    arrow = arrow_mode(target, target.bounds, layout)

    def energy(position):
        values = jax.vmap(target.log_likelihood, (None, 0))(position, target.examples.arrays)
        return -jnp.sum(values) - target.log_prior(position)

    at = jnp.asarray(arrow.position, jnp.float32)
    hessian = np.asarray(jax.hessian(energy)(at), np.float64)
    slopes, groups = layout.slopes, layout.groups
    np.testing.assert_allclose(hessian[np.ix_(slopes, slopes)], arrow.slope_matrix, atol=2e-3)
    np.testing.assert_allclose(np.diag(hessian)[groups], arrow.precisions[1:], atol=2e-3)
    np.testing.assert_allclose(hessian[groups][:, slopes], arrow.border[1:], atol=2e-3)
    assert np.abs(np.asarray(jax.grad(energy)(at))).max() < 1e-2


def test_positions_come_back():
    sweep, target = sweep_of(models.logistic), target_of(models.logistic)
    for draw in exact_draws(models.logistic)[:20]:
        np.testing.assert_allclose(sweep.position(sweep.remember(target, draw)), draw, atol=1e-5)


def test_rows_are_sorted_by_level_part_by_part(monkeypatch):
    monkeypatch.setattr("amagold.acceptance._group_rows.CHUNK", 7)
    levels = np.random.default_rng(0).integers(0, 5, 60).astype(np.int32)
    order, counts = sorted_by_level(levels, 6)
    np.testing.assert_array_equal(order, np.argsort(levels, kind="stable"))
    np.testing.assert_array_equal(counts, np.bincount(levels, minlength=6))


def many_levels(num_levels=40, size=3_000):
    generator = np.random.default_rng(2)
    level = generator.integers(0, num_levels, size)
    x = generator.normal(size=size)
    z = 0.5 * x - 0.5 + generator.normal(size=num_levels)[level]
    names = ("x", *map(str, range(num_levels - 1)))
    codes, nothing = (level - 1).astype(np.int32)[:, None], np.zeros((size, 0))
    table = CodedTable(x[:, None], codes, nothing, names, (num_levels - 1,), (None,))
    return models.logistic(table, generator.random(size) < 1.0 / (1.0 + np.exp(-z)))


@pytest.mark.slow
def test_a_plan_of_many_levels_is_a_sweep(monkeypatch, tmp_path):
    """Through the public call, stored, stopped and resumed: the same draws to the bit."""
    monkeypatch.setattr("amagold.planning._sweep_plan.NEWTON_SPARSE", 30)
    target = many_levels()
    run = amagold.sample(target, num_samples=2_000, num_warmup=200, progress=False)
    assert isinstance(run.plan, SweepPlan)
    assert "a test of its own" in str(run.plan)
    assert run.label == "exact"
    whole = run.posterior["theta"].to_numpy()
    assert float(run.sample_stats["num_energy_examples"].mean()) < 0.5 * target.num_examples
    with pytest.warns(amagold.SamplingWarning, match="no draws were kept"):
        amagold.sample(
            target,
            num_samples=2_000,
            num_warmup=200,
            progress=False,
            store=tmp_path / "run.zarr",
            max_time=1e-6,
        )
    resumed = amagold.resume(tmp_path / "run.zarr", target, progress=False)
    np.testing.assert_array_equal(resumed.posterior["theta"].to_numpy(), whole)


@pytest.mark.slow
def test_sweeps_agree_with_the_full_test(monkeypatch):
    """Means over chains, which are independent; a shift that is easily overlooked is seen."""
    target, settings = many_levels(), {"num_samples": 500, "num_chains": 64, "progress": False}
    with monkeypatch.context() as patched:
        patched.setattr("amagold.planning._sweep_plan.NEWTON_SPARSE", 30)
        swept = amagold.sample(target, **settings)
    other = amagold.sample(target, **settings, seed=9)
    assert isinstance(swept.plan, SweepPlan)
    assert not isinstance(other.plan, SweepPlan)
    ours, theirs = (run.posterior["theta"].to_numpy() for run in (swept, other))

    def difference(draws):
        moments = [
            np.concatenate([each.mean(axis=1), (each**2).mean(axis=1)], axis=1)
            for each in (draws, theirs)
        ]
        return worst(moments[0] - moments[1])

    assert difference(ours) < 1.0
    assert difference(ours + 0.1 * theirs.std(axis=(0, 1))) > PLANTED


@pytest.mark.parametrize("spoilt", ["few levels", "other prior", "many slopes", "no bounds"])
def test_other_posteriors_are_planned_as_before(spoilt, monkeypatch):
    monkeypatch.setattr("amagold.planning._sweep_plan.NEWTON_SPARSE", 30)
    target = many_levels()
    if spoilt == "few levels":
        target = many_levels(20)
    if spoilt == "other prior":
        target = dataclasses.replace(target, log_prior=lambda at: -jnp.sum(jnp.abs(at)))
    if spoilt == "many slopes":
        monkeypatch.setattr("amagold.planning._sweep_plan.MOST_SLOPES", 1)
    if spoilt == "no bounds":
        target = dataclasses.replace(target, bounds=None)
    assert plan_sweep(target, 4, jax.random.key(0)) is None


def test_questions_are_symmetric():
    """Which is here and which is there does not matter to bounds, and so not to what is scanned."""
    sweep, target = sweep_of(models.logistic), target_of(models.logistic)
    first, second = (sweep.remember(target, draw) for draw in exact_draws(models.logistic)[[3, 11]])
    bounds = [
        sweep.row_bounds(
            sweep.value * jnp.abs(there.groups - here.groups),
            sweep.value * jnp.abs(there.groups + here.groups),
        )
        for here, there in ((first, second), (second, first))
    ]
    np.testing.assert_array_equal(*bounds)
