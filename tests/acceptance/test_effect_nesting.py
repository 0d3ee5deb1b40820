"""Factors that lie within others are found from the levels of rows, and trade places with them
without any row noticing.
"""

from typing import Any

import jax
import numpy as np
import pytest

from amagold import models
from amagold.acceptance._effect_nesting import nested_pairs
from amagold.acceptance._effect_setup import untuned_effects
from amagold.mode._effect_sums import sums_at

INNER = np.arange(24) % 8
OUTER = np.array([0, 0, 1, 1, 1, 3, 3, 3])[INNER]  # level 2 has no children
WHOLE = np.array([0, 0, 0, 1])[OUTER]
X = np.linspace(-1.0, 1.0, 24)


def target_of(groups):
    return models.mixed(X[:, None], np.arange(24) % 2, groups, "poisson")


def test_nested_factors_are_found_whatever_they_are_called():
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
    moved = sweep.move_nested(pairs[0], target, sweep.draw(jax.random.key(2)).nested[0], state)
    assert np.abs(moved.effects[0][:, columns[0][0]]).max() > 0.1
    likelihood: Any = target.log_likelihood
    predictor = jax.vmap(likelihood.predictor, (None, 0))
    there = predictor(sweep.position(moved), target.data)
    np.testing.assert_allclose(there, predictor(target.init, target.data), atol=1e-5)
