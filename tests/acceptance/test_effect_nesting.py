"""Factors that lie within others are found from the levels of rows, and trade places with them
without any row noticing.
"""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import block_diag

from amagold import models
from amagold.acceptance import _move_nested
from amagold.acceptance._effect_nesting import Nesting
from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_state import precision_of
from amagold.mode import _effect_sums
from amagold.mode._effect_sums import effect_rows, forms_of, sums_at

INNER = np.arange(24) % 8
OUTER = np.array([0, 0, 1, 1, 1, 3, 3, 3])[INNER]  # level 2 has no children
WHOLE = np.array([0, 0, 0, 1])[OUTER]
X = np.linspace(-1.0, 1.0, 24)


def target_of(groups):
    return models.mixed(X[:, None], np.arange(24) % 2, groups, "poisson")


def nested_pairs(target):
    nesting = Nesting(forms_of(target))
    place = {name: np.asarray(values) for name, values in target.init.items()}
    for rows in effect_rows(target, place):
        nesting.see(rows)
    return nesting.pairs()


@pytest.mark.parametrize("chunk", [_effect_sums.CHUNK, 48])
def test_nested_factors_are_found_whatever_they_are_called(chunk, monkeypatch):
    monkeypatch.setattr(_effect_sums, "CHUNK", chunk)
    monkeypatch.setattr(_effect_sums, "SHORTEST", 1)
    target = target_of({"1|c": INNER, "1|x": np.arange(24) % 5, "1|b": OUTER, "1|a": WHOLE})
    found = {pair.factors: pair for pair in nested_pairs(target)}
    assert set(found) == {(2, 0), (3, 2), (3, 0)}
    np.testing.assert_array_equal(found[2, 0].counts, [2, 3, 0, 3])
    np.testing.assert_array_equal(found[2, 0].parents, [0, 0, 1, 1, 1, 3, 3, 3])
    # level 2 of the second has no rows, and no parent
    np.testing.assert_array_equal(found[3, 2].parents, [0, 0, 2, 1])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("outer", "inner", "columns"),
    [
        (None, np.stack([X, np.ones(24)], axis=1), ((0,), (1,))),
        (np.stack([np.ones(24), X], axis=1), np.stack([X, X**2], axis=1), ((1,), (0,))),
        (None, X[:, None], None),
    ],
)
def test_only_columns_that_both_have_trade_places(outer, inner, columns):
    groups = {"a": models.Group(OUTER, outer), "b": models.Group(INNER, inner)}
    target = target_of(groups)
    pairs = nested_pairs(target)
    assert [pair.columns for pair in pairs] == ([] if columns is None else [columns])
    if columns is None:
        return
    place = {name: np.asarray(values) for name, values in target.init.items()}
    sweep = untuned_effects(target, sums_at(target, place))
    state = sweep.remember(target, target.init)
    likelihood: Any = target.log_likelihood
    predictor = jax.vmap(likelihood.predictor, (None, 0))
    longest = 0.0
    for seed in range(8):
        drawn = sweep.draw(jax.random.key(seed)).nested[0]
        moved = sweep.move_nested(pairs[0], target, drawn, state)
        longest = max(longest, float(np.abs(moved.effects[0][:, columns[0][0]]).max()))
        there = predictor(sweep.position(moved), target.data)
        np.testing.assert_allclose(there, predictor(target.init, target.data), atol=1e-5)
    assert longest > 0.1


COLUMNS = {
    "one": (None, None),
    "one of two": (None, np.stack([X, np.ones(24)], axis=1)),
    "one of two in both": (np.stack([np.ones(24), X], axis=1), np.stack([X, X**2], axis=1)),
}


def gaps_of(columns, change=lambda pair: pair):
    """Of the energy of scales, and of the Gaussian of what levels trade, from those of matrices of
    all effects in float64, at several scales.
    """
    groups = {
        name: models.Group(codes, each)
        for name, codes, each in zip("ab", (OUTER, INNER), COLUMNS[columns], strict=True)
    }
    target, generator = target_of(groups), np.random.default_rng(0)
    place = {name: np.asarray(values) for name, values in target.init.items()}
    sweep = untuned_effects(target, sums_at(target, place))
    (pair,) = sweep.nested
    state = sweep.remember(target, {name: jnp.asarray(value) for name, value in place.items()})
    outer, inner = (
        generator.normal(size=terms.center.shape).astype(np.float32) for terms in sweep.factors
    )
    ours, theirs = pair.columns
    # one column for every number that is traded: added to a level, taken from its children
    trades = np.zeros((outer.size + inner.size, len(outer) * len(ours)))
    for level, (place, (one, other)) in itertools.product(
        range(len(outer)), enumerate(zip(ours, theirs, strict=True))
    ):
        column = level * len(ours) + place
        trades[level * outer.shape[1] + one, column] = 1.0
        for child in np.flatnonzero(np.asarray(pair.parents) == level):
            trades[outer.size + child * inner.shape[1] + other, column] = -1.0
    both = np.concatenate([outer.ravel(), inner.ravel()]).astype(np.float64)
    pair, energies, gaussians = change(pair), [], []
    for _ in range(4):
        state = state._replace(
            scales=tuple(
                jnp.asarray(generator.uniform(-1.5, 0.5, each.shape), jnp.float32)
                for each in state.scales
            ),
            free=tuple(
                jnp.asarray(generator.normal(size=each.shape), jnp.float32) for each in state.free
            ),
        )
        of_outer, of_inner = (np.asarray(precision_of(state, f), np.float64) for f in pair.factors)
        precision = block_diag(*[of_outer] * len(outer), *[of_inner] * len(inner))
        matrix, pull = trades.T @ precision @ trades, trades.T @ precision @ both
        wanted = both @ precision @ both - pull @ np.linalg.solve(matrix, pull)
        wanted += np.linalg.slogdet(matrix)[1] - np.linalg.slogdet(precision)[1]
        sums = _move_nested.children_sums(pair, jnp.asarray(inner))
        known = _move_nested.effects_of_pair(pair, jnp.asarray(outer), jnp.asarray(inner), sums)
        found = _move_nested.energy_given(sweep, pair, target, known, state)
        priors = sum(float(sweep.scale_prior(f, target, state)) for f in pair.factors)
        energies.append(2.0 * (float(found) + priors) - wanted)
        factor, slope = _move_nested.exchange(pair, state, jnp.asarray(outer), sums)
        found = block_diag(*np.asarray(factor @ jnp.swapaxes(factor, -1, -2)))
        gaussians.append(np.abs(found / matrix.max() - matrix / matrix.max()).max())
        gaussians.append(np.abs(np.ravel(slope) - pull).max() / np.abs(pull).max())
    return np.ptp(energies) / np.abs(wanted), max(gaussians)


@pytest.mark.parametrize("columns", COLUMNS)
def test_scales_and_trades_are_those_of_both_priors(columns):
    assert max(gaps_of(columns)) < 1e-4


@pytest.mark.parametrize(
    "change",
    [
        lambda pair: dataclasses.replace(pair, counts=jnp.minimum(pair.counts, 1.0)),
        lambda pair: dataclasses.replace(pair, counts=pair.counts + 1.0),
    ],
    ids=["one child", "a child too many"],
)
def test_children_that_are_counted_wrongly_are_seen(change):
    assert min(gaps_of("one", change)) > 1e-2
