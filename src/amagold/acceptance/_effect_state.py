"""Where a chain over a mixed model is, what one sweep draws, and what it tells."""

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

# how often levels walk: fresh draws would leave a chain that is far out where it is
SKEWED_WALKS, ALL_WALKS, SHORT_TURNS = 0.5, 0.1, 0.1


class EffectState(NamedTuple):
    """A position in the coordinates of the sweep; tuples have an entry for each factor."""

    slopes: Array  # d
    effects: tuple[Array, ...]  # eta, (levels, effects)
    scales: tuple[Array, ...]  # log s
    free: tuple[Array, ...]  # of the correlations
    noise: Array  # the log of the noise's scale, from the reference's

    def with_effects(self, number: int, effects: Array) -> "EffectState":
        return self._replace(effects=_put(self.effects, number, effects))

    def with_scales(self, number: int, scales: Array, free: Array) -> "EffectState":
        return self._replace(
            scales=_put(self.scales, number, scales), free=_put(self.free, number, free)
        )


class EffectDraws(NamedTuple):
    """The randomness of one sweep."""

    slopes: Array
    slope_test: Scalar  # logarithms of uniform numbers, here and below
    slope_key: RandomKey
    effects: tuple[Array, ...]
    tests: tuple[Array, ...]
    keys: tuple[RandomKey, ...]
    walks: tuple[Array, ...]
    scale_tests: tuple[Scalar, ...]
    scale_keys: tuple[RandomKey, ...]
    gammas: tuple[Scalar, ...]
    gamma_tests: tuple[Scalar, ...]
    long_walks: tuple[Array, ...]
    long_tests: tuple[Array, ...]
    noise_gamma: Scalar
    noise_test: Scalar
    stride: Scalar  # of walks, between the shortest and the longest
    skewed_walk: Array  # whether skewed levels walk
    all_walk: Array  # whether all levels do
    is_short: Array  # whether the slopes turn by less
    means: Array  # of the move of all factors' means
    mean_test: Scalar
    mean_key: RandomKey
    nested: "tuple[NestedDraws, ...]"  # an entry for each pair


class NestedDraws(NamedTuple):
    """The randomness of a pair of nested factors."""

    walks: Array  # (steps, scales and correlations of both)
    strides: Array  # (steps, 2), from 0 to 1
    tests: Array
    shares: Array  # of what the outer levels and their children share


class EffectMoves(NamedTuple):
    """What the moves of one sweep did; tuples have an entry for each factor."""

    log_ratio: Scalar  # of the slopes
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
) -> EffectDraws:
    shared, *own = jax.random.split(key, 1 + len(forms))
    of_factors: list[tuple[Any, ...]] = []
    for form, each in zip(forms, own, strict=True):
        effects, tests, visit, walk, scale, gamma, steps, coins = jax.random.split(each, 8)
        size = form.num_effects + form.num_correlations
        is_single = form.num_effects == 1
        length = 0 if is_single else num_steps
        one, two = jax.random.split(scale)
        uniforms = -jax.random.exponential(coins, (2,))
        of_factors.append(
            (
                jax.random.normal(effects, (form.num_levels, form.num_effects)),
                -jax.random.exponential(tests, (form.num_levels,)),
                visit,
                jax.random.normal(walk, (size,)),
                uniforms[0],
                one,
                jax.random.gamma(gamma, 0.5 * form.num_levels) if is_single else jnp.float32(1.0),
                uniforms[1],
                jax.random.normal(steps, (length, size)),
                -jax.random.exponential(two, (length,)),
            )
        )
    slopes, test, visit, stride, coins, noise, means, last = jax.random.split(shared, 8)
    chances = jnp.array([SKEWED_WALKS, ALL_WALKS, SHORT_TURNS])
    flags = jax.random.uniform(coins, (3,)) < chances
    tests = -jax.random.exponential(test, (3,))
    gamma = jax.random.gamma(noise, 0.5 * num_rows) if num_rows is not None else jnp.float32(1.0)
    columns: list[Any] = [tuple(column) for column in zip(*of_factors, strict=True)]
    drawn: list[Any] = [
        jax.random.normal(slopes, (num_slopes,)),
        tests[0],
        visit,
        *columns,
        gamma,
        tests[1],
        jax.random.uniform(stride),
        flags[0],
        flags[1],
        flags[2],
        jax.random.normal(means, (len(forms),)),
        tests[2],
        last,
        tuple(
            # beyond the keys above, which a fold of a small number would be again
            _draw_nested(jax.random.fold_in(key, 1 + len(forms) + number), pair, forms, num_steps)
            for number, pair in enumerate(pairs)
        ),
    ]
    return EffectDraws(*drawn)


def _draw_nested(
    key: RandomKey, pair: NestedPair, forms: tuple[FactorForm, ...], num_steps: int
) -> NestedDraws:
    walks, strides, tests, shares = jax.random.split(key, 4)
    both = [forms[number] for number in pair.factors]
    size = sum(form.num_effects + form.num_correlations for form in both)
    return NestedDraws(
        jax.random.normal(walks, (num_steps, size)),
        jax.random.uniform(strides, (num_steps, 2)),
        -jax.random.exponential(tests, (num_steps,)),
        jax.random.normal(shares, (both[0].num_levels, len(pair.columns[0]))),
    )


def precision_of(state: EffectState, number: int) -> Array:
    """Q, the inverse of Sigma."""
    rows = scale_factor(state.scales[number], state.free[number])
    size = len(rows)
    if size == 1:
        return jnp.exp(-2.0 * state.scales[number])[:, None]
    zero = jnp.zeros(())
    factor = jnp.stack([jnp.stack([*row, *[zero] * (size - len(row))]) for row in rows])
    inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(size), lower=True)
    return inverse.T @ inverse


def _put(parts: tuple[Array, ...], number: int, part: Array) -> tuple[Array, ...]:
    return (*parts[:number], part, *parts[number + 1 :])
