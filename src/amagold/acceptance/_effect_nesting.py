"""Which factors of a mixed model lie within which others, from the levels of its rows."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.acceptance._effect_terms import NestedPair
from amagold.data import InMemory
from amagold.mode._effect_sums import forms_of
from amagold.target import Posterior


def nested_pairs(target: Posterior) -> tuple[NestedPair, ...]:
    """Every factor with every other that its levels lie within."""
    data = target.examples
    assert isinstance(data, InMemory)
    rows: Any = data.arrays
    levels = [form.num_levels for form in forms_of(target)]
    codes = [np.asarray(each) for each in rows.codes]
    found: dict[tuple[int, int], NestedPair] = {}
    for outer, inner in itertools.permutations(range(len(levels)), 2):
        if (inner, outer) in found:
            continue  # the same levels twice
        columns = shared_columns(rows.columns[outer], rows.columns[inner])
        parents = np.full(levels[inner], levels[outer], np.int32)
        parents[codes[inner]] = codes[outer]
        if not columns[0] or not np.array_equal(parents[codes[inner]], codes[outer]):
            continue
        counts = np.bincount(parents, minlength=levels[outer] + 1)[:-1]
        found[outer, inner] = NestedPair(
            (outer, inner),
            columns,
            jnp.asarray(parents, jnp.int32),
            jnp.asarray(counts, jnp.float32),
        )
    return tuple(found.values())


def shared_columns(outer: Any, inner: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the columns that both factors have; None is one column of ones."""
    if outer is None and inner is None:
        return (0,), (0,)
    ours, theirs = (
        np.ones((1, 1), np.float32) if each is None else np.asarray(each) for each in (outer, inner)
    )
    pairs = [
        (one, other)
        for one in range(ours.shape[1])
        for other in range(theirs.shape[1])
        if bool(np.all(ours[:, one] == theirs[:, other]))
    ]
    # a column that is there twice is taken once
    pairs = list({one: (one, other) for one, other in reversed(pairs)}.values())[::-1]
    pairs = list({other: (one, other) for one, other in reversed(pairs)}.values())[::-1]
    return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
