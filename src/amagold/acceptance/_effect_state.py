"""Where a chain over a mixed model is, what one sweep draws, and what it tells."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._acceptance_test import MoveReport
from amagold.acceptance._effect_terms import NestedPair
from amagold.acceptance._group_visit import Visit
from amagold.core.shapes import RandomKey, Scalar
from amagold.target._effects_prior import FactorForm, scale_factor
from amagold.target._group_effects import FIXED, scale_name
from amagold.target._horseshoe import Horseshoe

# of scales with whitened effects fixed, in a sweep: few levels leave a scale wide, and cost little
MOST_WALKS, LEVELS_WALKED = 6, 1024
TAU_STEPS = 3  # of log tau in a turn of the coefficients
# how often levels walk: fresh draws would leave a chain that is far out where it is
SKEWED_WALKS, ALL_WALKS, SHORT_TURNS = 0.5, 0.1, 0.1


class EffectState(NamedTuple):
    """A position in the coordinates of the sweep; tuples have an entry for each factor."""

    slopes: Array  # d
    effects: tuple[Array, ...]  # eta, (levels, effects)
    scales: tuple[Array, ...]  # log s
    free: tuple[Array, ...]  # of the correlations
    noise: Array  # the log of the noise's scale, from the reference's
    taus: Array | None = None  # log tau of horseshoe priors, where there are any

    def with_effects(self, number: int, effects: Array) -> "EffectState":
        return self._replace(effects=_put(self.effects, number, effects))

    def with_scales(self, number: int, scales: Array, free: Array) -> "EffectState":
        return self._replace(
            scales=_put(self.scales, number, scales), free=_put(self.free, number, free)
        )


class EffectDraws(NamedTuple):
    """The randomness of one sweep."""

    turns: "SharedTurn"  # with a leading axis of steps
    effects: tuple[Array, ...]
    tests: tuple[Array, ...]  # logarithms of uniform numbers, here and below
    keys: tuple[RandomKey, ...]
    walks: "tuple[ScaleWalk, ...]"
    gammas: tuple[Scalar, ...]
    gamma_tests: tuple[Scalar, ...]
    long_walks: tuple[Array, ...]
    long_tests: tuple[Array, ...]
    noise_gamma: Scalar
    noise_test: Scalar
    stride: Scalar  # of walks, between the shortest and the longest
    skewed_walk: Array  # whether skewed levels walk
    all_walk: Array  # whether all levels do
    nested: "tuple[NestedDraws, ...]"  # an entry for each pair


class SharedTurn(NamedTuple):
    """The randomness of a turn of what all levels share."""

    slopes: Array
    slope_test: Array
    slope_key: Array
    is_short: Array  # whether the slopes turn by less
    means: Array  # of the move of all factors' means
    mean_test: Array
    mean_key: Array
    shrunk: "ShrunkDraws | None" = None


class ShrunkDraws(NamedTuple):
    """The randomness of horseshoe priors in one turn."""

    shares: Array  # of the local scales' distributions, above zero
    strides: Array  # of log tau, (steps, groups)
    tests: Array


class ScaleWalk(NamedTuple):
    """The randomness of a walk of a factor's scales; of a sweep with a leading axis of steps."""

    noise: Array  # of scales and correlations
    test: Array
    key: Array


class NestedDraws(NamedTuple):
    """The randomness of a pair of nested factors."""

    walks: Array  # (steps, scales and correlations of both)
    strides: Array  # (steps, 2), from 0 to 1
    tests: Array
    shares: Array  # of what the outer levels and their children share


class EffectMoves(NamedTuple):
    """What the moves of one sweep did; tuples have an entry for each factor."""

    log_ratio: Scalar  # of the slopes; of several turns the logarithm of the mean chance to accept
    num_examples: Array
    broken_bound: Array
    slopes: Visit
    effects: tuple[Visit, ...]
    scales: tuple[Visit, ...]
    effect_rates: tuple[Scalar, ...]  # accepted
    scale_rates: tuple[Scalar, ...]
    means: Visit
    mean_rate: Scalar

    def by_name(self, names: tuple[str, ...]) -> dict[str, MoveReport]:
        """Each with its acceptance and its rows, by the names of `move_names`."""
        is_finite = jnp.isfinite(self.log_ratio)
        rate = jnp.where(is_finite, jnp.exp(jnp.minimum(self.log_ratio, 0.0)), 0.0)
        visits = [self.slopes, *self.effects, *self.scales, self.means]
        rates = [rate, *self.effect_rates, *self.scale_rates, self.mean_rate]
        # one factor alone has no move of means, and no name for it
        each = zip(names, rates, visits, strict=False)
        return {name: MoveReport(rate, visit.num_examples) for name, rate, visit in each}

    @classmethod
    def of(
        cls,
        of_slopes: Visit,
        log_ratio: Scalar,
        effects: list[tuple[Visit, Scalar]],
        scales: list[tuple[Visit, Scalar]],
        means: tuple[Visit, Scalar],
    ) -> "EffectMoves":
        visits = [of_slopes, means[0], *(visit for visit, _ in (*effects, *scales))]
        total: Any = sum(visit.num_examples for visit in visits)
        broken = jnp.stack([visit.broken_bound for visit in visits]).max()
        told: list[Any] = [
            log_ratio,
            total,
            broken,
            of_slopes,
            *(tuple(visit for visit, _ in each) for each in (effects, scales)),
            *(tuple(rate for _, rate in each) for each in (effects, scales)),
            *means,
        ]
        return cls(*told)


def move_names(factors: list[str]) -> tuple[str, ...]:
    """What each move is called by: the parameters that it moves."""
    shared = ["means"] if len(factors) > 1 else []
    return (FIXED, *factors, *map(scale_name, factors), *shared)


def draw_sweep(
    key: RandomKey,
    num_slopes: int,
    forms: tuple[FactorForm, ...],
    num_steps: int,
    num_rows: Any,
    pairs: tuple[NestedPair, ...] = (),
    num_turns: int = 1,
    shrunk: Horseshoe | None = None,
) -> EffectDraws:
    """All numbers of one kind by one call of the generator: each call takes its time to compile,
    and to begin.
    """
    of_normals, of_tests, of_uniforms, of_gammas, of_keys = jax.random.split(key, 5)
    widths = [form.num_effects + form.num_correlations for form in forms]
    lengths = [0 if form.num_effects == 1 else num_steps for form in forms]
    levels = [form.num_levels for form in forms]
    both = [[forms[number] for number in pair.factors] for pair in pairs]
    normals = _Cut(lambda size: jax.random.normal(of_normals, (size,), jnp.float32))
    effects = [normals.part(form.num_levels, form.num_effects) for form in forms]
    steps = [max(1, min(MOST_WALKS, LEVELS_WALKED // count)) for count in levels]
    walks = [normals.part(count, width) for count, width in zip(steps, widths, strict=True)]
    long_walks = [
        normals.part(length, width) for length, width in zip(lengths, widths, strict=True)
    ]
    slopes, means = normals.part(num_turns, num_slopes), normals.part(num_turns, len(forms))
    nested_walks = [
        normals.part(num_steps, sum(each.num_effects + each.num_correlations for each in two))
        for two in both
    ]
    nested_shares = [
        normals.part(two[0].num_levels, len(pair.columns[0]))
        for two, pair in zip(both, pairs, strict=True)
    ]
    # logarithms of uniform numbers
    tests = _Cut(lambda size: -jax.random.exponential(of_tests, (size,), jnp.float32))
    level_tests = [tests.part(count) for count in levels]
    scale_tests = [tests.part(count) for count in steps]
    gamma_tests = [tests.part() for _ in forms]
    long_tests = [tests.part(length) for length in lengths]
    slope_test, mean_test, noise_test = tests.part(num_turns), tests.part(num_turns), tests.part()
    nested_tests = [tests.part(num_steps) for _ in pairs]
    uniforms = _Cut(lambda size: jax.random.uniform(of_uniforms, (size,), jnp.float32))
    stride, flags, shorts = uniforms.part(), uniforms.part(2), uniforms.part(num_turns)
    nested_strides = [uniforms.part(num_steps, 2) for _ in pairs]
    shapes = [0.5 * form.num_levels if form.num_effects == 1 else 1.0 for form in forms]
    last_shape = 1.0 if num_rows is None else 0.5 * num_rows
    shapes = [jnp.float32(shape) for shape in (*shapes, last_shape)]
    gammas = jax.random.gamma(of_gammas, jnp.stack(shapes), dtype=jnp.float32)
    keys = jax.random.split(of_keys, 2 + 2 * len(forms))
    of_shrunk = None
    if shrunk is not None:
        tries = num_turns, TAU_STEPS, shrunk.num_groups
        shares = uniforms.part(num_turns, shrunk.places.shape[0])
        of_shrunk = shares, normals.part(*tries), tests.part(*tries)
    for cut in (normals, tests, uniforms):
        cut.fill()
    is_so = flags() < jnp.array([SKEWED_WALKS, ALL_WALKS])
    return EffectDraws(
        turns=SharedTurn(
            slopes(),
            slope_test(),
            jax.random.split(keys[0], num_turns),
            shorts() < SHORT_TURNS,
            means(),
            mean_test(),
            jax.random.split(keys[1], num_turns),
            _shrunk_draws(of_shrunk),
        ),
        effects=_all(effects),
        tests=_all(level_tests),
        keys=tuple(keys[2 + 2 * number] for number in range(len(forms))),
        walks=tuple(
            ScaleWalk(noise(), test(), jax.random.split(keys[3 + 2 * number], count))
            for number, (noise, test, count) in enumerate(
                zip(walks, scale_tests, steps, strict=True)
            )
        ),
        gammas=tuple(gammas[number] for number in range(len(forms))),
        gamma_tests=_all(gamma_tests),
        long_walks=_all(long_walks),
        long_tests=_all(long_tests),
        noise_gamma=gammas[-1],
        noise_test=noise_test(),
        stride=stride(),
        skewed_walk=is_so[0],
        all_walk=is_so[1],
        nested=tuple(
            NestedDraws(*(part() for part in parts))
            for parts in zip(nested_walks, nested_strides, nested_tests, nested_shares, strict=True)
        ),
    )


def _shrunk_draws(parts: tuple[Callable[[], Array], ...] | None) -> ShrunkDraws | None:
    if parts is None:
        return None
    shares, strides, tests = (part() for part in parts)
    return ShrunkDraws(1.0 - shares, strides, tests)


class _Cut:
    """One long vector of random numbers, to be cut into parts: first asked for, then drawn."""

    def __init__(self, draw: Callable[[int], Array]) -> None:
        self.draw, self.size, self.values = draw, 0, jnp.zeros(0, jnp.float32)

    def part(self, *shape: int) -> Callable[[], Array]:
        start = self.size
        self.size += math.prod(shape)
        return lambda: self.values[start : start + math.prod(shape)].reshape(shape)

    def fill(self) -> None:
        self.values = self.draw(self.size)


def _all(parts: list[Callable[[], Array]]) -> tuple[Array, ...]:
    return tuple(part() for part in parts)


def precision_of(state: EffectState, number: int) -> Array:
    """Q, the inverse of Sigma."""
    rows = scale_factor(state.scales[number], state.free[number])
    size = len(rows)
    if size == 1:
        return jnp.exp(-2.0 * state.scales[number])[:, None]
    zero = jnp.float32(0.0)
    factor = jnp.stack([jnp.stack([*row, *[zero] * (size - len(row))]) for row in rows])
    inverse = jax.scipy.linalg.solve_triangular(
        factor, jnp.eye(size, dtype=jnp.float32), lower=True
    )
    return inverse.T @ inverse


def _put(parts: tuple[Array, ...], number: int, part: Array) -> tuple[Array, ...]:
    return (*parts[:number], part, *parts[number + 1 :])
