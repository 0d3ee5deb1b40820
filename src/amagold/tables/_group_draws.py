"""Draws of random effects, by level; levels that were not fitted are drawn from their distribution.

A stranger's draws follow from its name and the seed, so that it is the same one wherever a table is
cut into parts.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amagold.tables._group_terms import GroupedRows, GroupTerm


class LevelTables(NamedTuple):
    """The levels of some rows, and every draw of their effects."""

    codes: np.ndarray  # (rows,), of the table
    effects: np.ndarray  # (effects, levels, draws)


class GroupDraws(NamedTuple):
    """Of one random effect (1 + x | g)."""

    effects: np.ndarray  # (effects, levels, draws)
    factor: np.ndarray  # (draws, effects, effects), L with the covariance L L^T
    salt: str  # what tells its strangers from those of the others
    seed: int

    def of(self, rows: GroupedRows) -> LevelTables:
        """The effects of the levels that these rows have."""
        met, codes = np.unique(rows.codes, return_inverse=True)
        known = self.effects.shape[1]
        found = self.effects[:, np.minimum(met, known - 1)]
        for place in np.flatnonzero(met >= known):
            found[:, place] = self._stranger(rows.strangers[met[place] - known])
        return LevelTables(codes.astype(np.int32), found)

    def _stranger(self, name: str) -> np.ndarray:
        """u = L e, e ~ N(0, 1), with axes (effects, draws)."""
        words = f"{self.seed}\0{self.salt}\0{name}".encode(errors="surrogatepass")
        key = int.from_bytes(hashlib.blake2b(words, digest_size=16).digest())
        noise = np.random.default_rng(key).normal(size=self.factor.shape[:2])
        return np.einsum("dij,dj->id", self.factor, noise)

    def mean(self) -> "GroupDraws":
        """One draw, which is the mean of all; strangers are at zero."""
        effects = self.effects.mean(axis=2, keepdims=True, dtype=np.float64)
        return self._replace(effects=effects, factor=np.zeros((1, *self.factor.shape[1:])))


def group_draws(term: GroupTerm, values: Callable[[str, int], np.ndarray], seed: int) -> GroupDraws:
    """The draws of a random effect; `values(name, width)` gives those of a variable as rows."""
    effects = [values(name, term.num_levels).T for name in term.variables]
    return GroupDraws(np.stack(effects).astype(np.float32), _factor(term, values), term.name, seed)


def _factor(term: GroupTerm, values: Callable[[str, int], np.ndarray]) -> np.ndarray:
    """diag(sigma) times a root of the correlations."""
    scales = np.stack([values(name, 1)[:, 0] for name in term.scales], axis=1)
    number = len(term.effects)
    whole = np.tile(np.eye(number), (len(scales), 1, 1))
    for name, (first, second) in term.correlations.items():
        whole[:, first, second] = whole[:, second, first] = values(name, 1)[:, 0]
    shares, vectors = np.linalg.eigh(whole)
    # rounding may leave a correlation of nearly one just outside of what can be
    return scales[:, :, None] * vectors * np.sqrt(np.maximum(shares, 0.0))[:, None, :]


def strangers_only(rows: GroupedRows, term: GroupTerm) -> GroupedRows:
    """As if no level of the rows were known."""
    names = np.asarray([*term.levels, *rows.strangers], object)
    met, codes = np.unique(rows.codes, return_inverse=True)
    return GroupedRows(
        (term.num_levels + codes).astype(np.int32), tuple(names[met].tolist()), rows.values
    )


class RowInputs(NamedTuple):
    """All that predictors of some rows are made of."""

    fixed: Any  # CodedTable
    offset: Any = None  # of each row; None where nothing is added
    groups: tuple[GroupedRows, ...] = ()  # none where random effects are left out

    def __len__(self) -> int:
        return len(self.fixed)
