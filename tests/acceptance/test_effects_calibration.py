"""Mixed models of every shape: parameters from the prior, outcomes given them, and sweeps from
there leave parameters distributed as the prior has them (simulation-based calibration, as
paired differences).
"""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, worst
from scipy import special, stats

from amagold import models, priors
from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.mode._effect_mode import find_reference
from amagold.models._mixed_scale import correlations
from amagold.target._effects_prior import LogNormalScale

NUM_ROWS, NUM_CHAINS, NUM_SWEEPS, NUM_TURNS = 60, 8, 4, 2
NUM_REPLICATIONS = {("one", "logistic"): 500}
FEWER = 150
LEVELS, OTHERS = 6, 4
NOISE_PRIOR = LogNormalScale(jnp.float32(0.0), jnp.float32(0.3))
SHAPES = ("one", "crossed", "nested", "slopes")
FAMILIES = ("logistic", "poisson", "linear")
CASES = [
    *((shape, family) for shape in SHAPES for family in FAMILIES),
    ("nested slopes", "linear"),
    ("two by two", "linear"),
    ("two by two", "logistic"),
    ("one", "binomial"),
    ("one", "negative_binomial"),
    ("one", "probit"),
    ("slopes", "probit"),
    ("shrunk", "logistic"),
    ("shrunk", "linear"),
]
SHRUNK = 4  # coefficients with a horseshoe
HORSESHOE = priors.horseshoe(0.5, slab=1.0)
OF_FAMILIES = {
    "binomial": {"trials": np.full(NUM_ROWS, 4)},
    "negative_binomial": {"dispersion": 1.5},
}


@cache
def template(shape, family):
    """The model of a shape, whose outcomes are to be replaced."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=NUM_ROWS).astype(np.float32)
    group = np.sort(generator.integers(0, LEVELS, NUM_ROWS))
    other = generator.integers(0, OTHERS, NUM_ROWS)
    groups = {"1|g": models.Group(group, num_levels=LEVELS)}
    if shape == "crossed":
        groups["1|h"] = models.Group(other, num_levels=OTHERS)
    if shape == "two by two":
        groups = {"1|g": models.Group(group % 2), "1|h": models.Group(other % 2)}
    if shape == "nested":
        groups["1|g:h"] = models.Group(group * 2 + other % 2, num_levels=2 * LEVELS)
    columns = np.stack([np.ones(NUM_ROWS), x], axis=1)
    columns = columns / np.sqrt(np.mean(columns**2, axis=0))
    if shape == "slopes":
        groups = {"1 + x|g": models.Group(group, columns, LEVELS)}
    if shape == "nested slopes":
        groups = {"1 + x|g:h": models.Group(group * 2 + other % 2, columns, 2 * LEVELS)}
        groups["x|g"] = models.Group(group, columns[:, 1:], LEVELS)
    y = np.arange(NUM_ROWS) % 2 * 1.0
    several = generator.normal(size=(NUM_ROWS, SHRUNK)).astype(np.float32)
    return models.mixed(
        several if shape == "shrunk" else x[:, None],
        y,
        groups,
        family,
        prior_scale=0.7,
        scale_prior=priors.normal(0.0, 0.7),
        standardize=False,
        shrinkage=HORSESHOE if shape == "shrunk" else None,
        **OF_FAMILIES.get(family, {}),
    )


def outcomes(family, z, own, generator):
    """The rows with outcomes given their predictors."""
    if family == "linear":
        y = z[:, 0] + np.exp(z[:, 1]) * generator.normal(size=NUM_ROWS)
        return own._replace(response=jnp.asarray(y, jnp.float32))
    if family == "poisson":
        return own._replace(events=jnp.asarray(generator.poisson(np.exp(z)), jnp.float32))
    if family == "negative_binomial":
        # a gamma rate of mean exp(z)
        shape = OF_FAMILIES[family]["dispersion"]
        rate = generator.gamma(shape, np.exp(z) / shape)
        return own._replace(events=jnp.asarray(generator.poisson(rate), jnp.float32))
    chance = stats.norm.cdf(z) if family == "probit" else special.expit(z)
    if family == "binomial":
        successes = generator.binomial(OF_FAMILIES[family]["trials"], chance)
        return own._replace(successes=jnp.asarray(successes, jnp.float32))
    sign = np.where(generator.random(NUM_ROWS) < chance, 1.0, -1.0)
    return own._replace(sign=jnp.asarray(sign, jnp.float32))


def shrunk_coefficients(generator):
    """beta, and log tau: of the horseshoe's draws as many are taken as the slab says."""
    while True:
        tau = HORSESHOE.scale * np.abs(generator.standard_cauchy())
        local = np.abs(generator.standard_cauchy(SHRUNK))
        beta = tau * local * generator.normal(size=SHRUNK)
        if generator.random() < np.exp(-0.5 * np.sum((beta / HORSESHOE.slab) ** 2)):
            return beta, np.log([tau])


def drawn(target, family, generator):
    """A position from the prior, and the target with outcomes given it."""
    position = {"theta": 0.7 * generator.normal(size=2)}
    prior = target.log_prior
    if prior.shrunk is not None:
        beta, position["tau"] = shrunk_coefficients(generator)
        position["theta"] = np.concatenate([position["theta"][:1], beta])
    if family == "linear":
        prior = dataclasses.replace(prior, noise=NOISE_PRIOR)
        position["sigma"] = 0.3 * generator.normal()
    for factor in prior.factors:
        form = factor.form
        scales = 0.7 * np.abs(generator.normal(size=form.num_effects))
        covariance = np.diag(scales**2)
        if form.num_correlations:
            # LKJ(2) of two effects: (1 + r) / 2 ~ Beta(2, 2)
            free = np.arctanh(2.0 * generator.beta(2.0, 2.0, 1) - 1.0)
            position[f"{form.name}_correlation"] = free
            covariance = scales[:, None] * correlations(free, 2) * scales
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(form.num_effects))
        effects = generator.normal(size=(form.num_levels, form.num_effects)) @ root.T
        position[form.name] = effects if form.is_vector else effects[:, 0]
        position[f"{form.name}_sigma"] = np.log(scales if form.is_vector else scales[0])
    position = {name: jnp.asarray(each, jnp.float32) for name, each in position.items()}
    predictor = target.log_likelihood.predictor
    z = np.asarray(jax.vmap(predictor, (None, 0))(position, target.data), np.float64)
    data = target.data._replace(own=outcomes(family, z, target.data.own, generator))
    return position, dataclasses.replace(target, data=data, log_prior=prior)


def features(target, position):
    """Of parameters, and of how well they fit the outcomes."""
    flat = np.concatenate([np.ravel(np.asarray(each, np.float64)) for _, each in position.items()])
    flat = np.clip(flat, -6.0, 6.0)
    fit = np.clip(np.asarray(_fit(target, position), np.float64), -10.0, 10.0)
    found = [flat, flat**2, np.tanh(2.0 * flat), flat[:1] * flat, [fit, fit**2]]
    if "tau" in position:
        # next to the pole
        near = np.log(np.abs(np.asarray(position["theta"], np.float64)[1:]) + 1e-6)
        found.extend([near, near**2])
    return np.concatenate(found)


@jit(ONCE)
def _fit(target, position):
    """The mean log likelihood of a row."""
    return jnp.mean(jax.vmap(target.log_likelihood, (None, 0))(position, target.data))


@jit(ONCE)
def _swept(target, sweep, position, key):
    def chain(key):
        state = sweep.remember(target, position)

        def step(state, key):
            state, moves = sweep.sweep(target, sweep.draw(key), state)
            return state, moves.broken_bound

        state, broken = jax.lax.scan(step, state, jax.random.split(key, NUM_SWEEPS))
        return sweep.position(state), broken.max()

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def calibration(shape, family, kind=EffectSweep, count=None):
    """How far parameters have moved, on average over replications, in units of the threshold."""
    generator, found = np.random.default_rng(7), []
    for number in range(count or NUM_REPLICATIONS.get((shape, family), FEWER)):
        position, target = drawn(template(shape, family), family, generator)
        sums = find_reference(target)
        if sums is None:
            continue  # by the outcomes alone, which leaves the others as they were
        sweep = untuned_effects(target, sums)
        names = [field.name for field in dataclasses.fields(EffectSweep)]
        sweep = kind(**{name: getattr(sweep, name) for name in names})
        sweep = dataclasses.replace(
            sweep, angle=jnp.float32(1.2), slope_spread=jnp.float32(0.3), num_turns=NUM_TURNS
        )
        there, broken = _swept(target, sweep, position, jax.random.key(number))
        assert int(broken.max()) == -1
        there = {name: np.asarray(there[name]) for name in position}
        chains = [features(target, {n: v[c] for n, v in there.items()}) for c in range(NUM_CHAINS)]
        found.append(np.mean(chains, axis=0) - features(target, position))
    assert len(found) > 0.8 * number
    return worst(np.stack(found))


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "family"), CASES)
def test_parameters_from_the_prior_stay_there(shape, family):
    assert calibration(shape, family) < 1.0


@trees.record()
class Held(EffectSweep):
    """As with many levels: effects follow the coefficients as the reference's scales have it."""

    is_followed = False


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["one", "slopes", "shrunk"])
def test_so_they_do_where_effects_do_not_follow(shape):
    assert calibration(shape, "logistic", Held, FEWER) < 1.0


@trees.record()
class FollowTooFar(EffectSweep):
    """Effects follow by more than the Gaussian has it."""

    def slopes_given(self, state):
        found = super().slopes_given(state)
        return found._replace(follow=1.5 * found.follow - self.factors[0].shifts)


@trees.record()
class NoVolume(EffectSweep):
    """The Jacobian of whitened effects is left out."""

    def evidence(self, number, state, known):
        volume = jnp.sum(jnp.log(jnp.diagonal(known.factor, axis1=-2, axis2=-1)), axis=-1)
        return super().evidence(number, state, known) - volume


@trees.record()
class CrossedTheWrongWay(EffectSweep):
    """A factor follows where another goes; without that they would only not know of each other,
    which so few replications do not show.
    """

    def crossed_slope(self, number, state):
        return -super().crossed_slope(number, state)


@trees.record()
class ChildrenFollow(EffectSweep):
    """What is added to a level is added to its children too."""

    def move_nested(self, pair, target, draws, state):
        moved, inner = super().move_nested(pair, target, draws, state), pair.factors[1]
        return moved.with_effects(inner, 2.0 * state.effects[inner] - moved.effects[inner])


@trees.record()
class TwiceAsWide(EffectSweep):
    """What nested levels share is drawn twice as wide as it is."""

    def move_nested(self, pair, target, draws, state):
        draws = draws._replace(shares=2.0 * draws.shares)
        return super().move_nested(pair, target, draws, state)


@trees.record()
class SmallerLocalScales(EffectSweep):
    """Local scales are drawn from another distribution than theirs."""

    def draw(self, key):
        draws = super().draw(key)
        shrunk = draws.turns.shrunk
        shrunk = shrunk._replace(shares=shrunk.shares**4)
        return draws._replace(turns=draws.turns._replace(shrunk=shrunk))


@trees.record()
class WanderingTau(EffectSweep):
    """The scale of the horseshoe walks wherever it likes."""

    def draw(self, key):
        draws = super().draw(key)
        shrunk = draws.turns.shrunk
        shrunk = shrunk._replace(tests=jnp.full_like(shrunk.tests, -1e9))
        return draws._replace(turns=draws.turns._replace(shrunk=shrunk))


@trees.record()
class GuideToo(EffectSweep):
    """The reference's Gaussians are left in the prior."""

    def slopes_given(self, state):
        found = super().slopes_given(state)
        places = self.shrunk.prior.places
        own = self.unwhitening[places]
        pulled = self.shrunk.precisions[:, None] * own
        slope = found.slope + pulled.T @ self.reference.position["theta"][places]
        return found._replace(slope=slope, matrix=found.matrix + own.T @ pulled)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "family", "broken"),
    [
        ("slopes", "logistic", NoVolume),
        ("two by two", "linear", CrossedTheWrongWay),
        ("two by two", "logistic", CrossedTheWrongWay),
        ("nested", "poisson", ChildrenFollow),
        ("nested slopes", "linear", TwiceAsWide),
        ("slopes", "linear", FollowTooFar),
        ("shrunk", "linear", SmallerLocalScales),
        ("shrunk", "linear", WanderingTau),
        ("shrunk", "linear", GuideToo),
    ],
)
def test_planted_bugs_of_shapes_are_seen(shape, family, broken):
    assert calibration(shape, family, broken) > PLANTED
