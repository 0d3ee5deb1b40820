"""Systems over all effects of a mixed model: one factor is a block for each level; crossed factors
are one matrix, dense where it is small, and iterated where it is not.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from amagold.mode._effect_sums import EffectSums

DENSE = 5_000  # effects whose matrix is factorised
MOST_ROUNDS = 500
PRECISE = 1e-11  # of the right side, that is left


class EffectSolver:
    """(W + Q)^-1 over all effects, Q = the inverse of Sigma for every level."""

    def __init__(self, sums: EffectSums, precisions: list[np.ndarray]) -> None:
        self.sums = sums
        self.shapes = [factor.gradient.shape for factor in sums.factors]
        sizes = [levels * effects for levels, effects in self.shapes]
        self.ends = np.cumsum([0, *sizes])
        self.blocks = [
            factor.curvature + precision
            for factor, precision in zip(sums.factors, precisions, strict=True)
        ]
        self.inverses = [np.linalg.inv(block) for block in self.blocks]
        self.dense = None
        if sums.crossed and self.ends[-1] <= DENSE:
            self.dense = cho_factor(self._matrix(), lower=True)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Of columns over all effects, factor by factor."""
        if not self.sums.crossed:
            return self._by_blocks(self.inverses, right)
        if self.dense is not None:
            return cho_solve(self.dense, right)
        return self._iterated(right)

    def times(self, values: np.ndarray) -> np.ndarray:
        """(W + Q) v."""
        found = self._by_blocks(self.blocks, values)
        for (one, other), table in self.sums.crossed.items():
            here, there = self._slice(one), self._slice(other)
            found[here] += table @ values[there]
            found[there] += table.T @ values[here]
        return found

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """By factor: (levels, effects, columns)."""
        return [
            values[self._slice(number)].reshape(*shape, -1)
            for number, shape in enumerate(self.shapes)
        ]

    def _slice(self, factor: int) -> slice:
        return slice(self.ends[factor], self.ends[factor + 1])

    def _by_blocks(self, blocks: list[np.ndarray], values: np.ndarray) -> np.ndarray:
        parts = [
            np.einsum("gab,gbc->gac", block, part)
            for block, part in zip(blocks, self.split(values), strict=True)
        ]
        return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])

    def _matrix(self) -> np.ndarray:
        found = np.zeros((self.ends[-1], self.ends[-1]))
        for number, (levels, effects) in enumerate(self.shapes):
            places = self.ends[number] + np.arange(levels * effects).reshape(levels, effects)
            found[places[:, :, None], places[:, None, :]] = self.blocks[number]
        for (one, other), table in self.sums.crossed.items():
            here, there = self._slice(one), self._slice(other)
            found[here, there] = table.toarray()
            found[there, here] = found[here, there].T
        return found

    def _iterated(self, right: np.ndarray) -> np.ndarray:
        """Conjugate gradients for all columns at once, scaled by the blocks."""
        found, left = np.zeros_like(right), right.copy()
        scaled = self._by_blocks(self.inverses, left)
        along, size = scaled.copy(), np.sum(left * scaled, axis=0)
        small = PRECISE**2 * np.maximum(size, 1e-300)
        for _ in range(MOST_ROUNDS):
            moved = self.times(along)
            step = size / np.maximum(np.sum(along * moved, axis=0), 1e-300)
            found += step * along
            left -= step * moved
            scaled = self._by_blocks(self.inverses, left)
            new = np.sum(left * scaled, axis=0)
            if (new <= small).all():
                break
            along = scaled + (new / np.maximum(size, 1e-300)) * along
            size = new
        return found
