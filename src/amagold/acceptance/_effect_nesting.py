"""Which factors of a mixed model lie within which others, from the levels of its rows."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.acceptance._effect_terms import NestedPair
from amagold.mode._effect_sums import EffectRows
from amagold.target._effects_prior import FactorForm


class Nesting:
    """Every factor with every other that its levels lie within, as far as rows were seen."""

    def __init__(self, forms: tuple[FactorForm, ...]) -> None:
        pairs = list(itertools.permutations(range(len(forms)), 2))
        self._levels = [form.num_levels for form in forms]
        # the parent of every level of the second; one beyond the last where it has no row
        self._parents = {
            (outer, inner): np.full(self._levels[inner], self._levels[outer], np.int32)
            for outer, inner in pairs
        }
        # which columns of the two are the same
        self._shared = {
            (outer, inner): np.ones((forms[outer].num_effects, forms[inner].num_effects), bool)
            for outer, inner in pairs
        }

    def see(self, rows: EffectRows) -> None:
        """More rows."""
        for pair in list(self._parents):
            outer, inner = pair
            parents, children = self._parents[pair], rows.codes[inner]
            own, known = rows.codes[outer], parents[children]
            parents[children] = own
            was_other = (known != self._levels[outer]) & (known != own)
            same = rows.columns[outer][:, :, None] == rows.columns[inner][:, None, :]
            self._shared[pair] &= same.all(axis=0)
            # a child with two parents, in these rows or before, or no column that both have
            is_one = np.array_equal(parents[children], own) and not was_other.any()
            if not is_one or not self._shared[pair].any():
                del self._parents[pair], self._shared[pair]

    def pairs(self) -> tuple[NestedPair, ...]:
        found: dict[tuple[int, int], NestedPair] = {}
        for (outer, inner), parents in self._parents.items():
            if (inner, outer) in found:
                continue  # the same levels twice
            counts = np.bincount(parents, minlength=self._levels[outer] + 1)[:-1]
            found[outer, inner] = NestedPair(
                (outer, inner),
                each_once(self._shared[outer, inner]),
                jnp.asarray(parents, jnp.int32),
                jnp.asarray(counts, jnp.float32),
            )
        return tuple(found.values())


def each_once(shared: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pairs of columns that are the same; one that is there twice is taken once."""
    ours, theirs = [], []
    for one, other in np.argwhere(shared):
        if one not in ours and other not in theirs:
            ours.append(int(one))
            theirs.append(int(other))
    return tuple(ours), tuple(theirs)
