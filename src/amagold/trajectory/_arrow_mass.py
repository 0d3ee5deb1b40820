"""A mass matrix in the shape of an arrow: small blocks D_g down the diagonal, one for each level of
a factor, a border B of the few parameters that all levels know of, and their own matrix A.

With the blocks first the Cholesky factor fills nothing in, so that no matrix of levels x levels is
made:

    M = [[D, B^T], [B, A]] = L L^T,   L = [[L_D, 0], [B L_D^-T, L_S]],   S = A - B D^-1 B^T.

With C = D^-1 B^T, the shifts, the whitening of `_mass_matrix.py` and its relatives are

    W = L^-1:      (u, b) -> (L_D^-1 u,  L_S^-1 (b - C^T u))
    W^T:           (u, b) -> (L_D^-T u - C L_S^-T b,  L_S^-T b)
    W^-T = L^T:    (u, b) -> (L_D^T (u + C b),  L_S^T b).

Parameters that are left out of the arrow have a variance each. A product costs levels x (k + p) for
blocks of k and a border of p.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float, Real
from amagold.core.shapes import Form, Position, Vector
from amagold.core.small_matrices import times

BLOCKS, BORDER, ALONE = "blocks", "border", "alone"
# what the parameters are, in order: how many of which kind, one run after the other
Sections = tuple[tuple[str, int], ...]


class ArrowParts(NamedTuple):
    """A vector of all parameters, cut up."""

    blocks: Float[Array, "levels effects"]
    border: Float[Array, " border"]
    alone: Float[Array, " alone"]


@trees.record(static=("sections",))
class ArrowMass:
    """M = [[D, B^T], [B, A]] over some of the parameters, and a diagonal over the others."""

    sections: Sections
    inverse_blocks: Float[Array, "levels effects effects"]  # L_D^-1
    blocks: Float[Array, "levels effects effects"]  # L_D: as of a dense mass, both are kept
    shifts: Float[Array, "level_effects border"]  # C
    inverse_corner: Float[Array, "border border"]  # L_S^-1
    corner: Float[Array, "border border"]  # L_S
    inverse_scale: Float[Array, " alone"]

    @property
    def num_parameters(self) -> int:
        return sum(count for _, count in self.sections)

    def check(self, position: Form) -> None:
        size = self.num_parameters
        if size != trees.size(position):
            raise ValueError(
                f"mass must be an arrow over the {trees.size(position)} parameters of this "
                f"position, got one over {size}; make it for this target"
            )

    def force(self, gradient: Position) -> Position:
        parts = self._cut(trees.flatten(gradient))
        return self._joined(
            times(self.inverse_blocks, parts.blocks),
            self.inverse_corner @ (parts.border - jnp.ravel(parts.blocks) @ self.shifts),
            self.inverse_scale * parts.alone,
            gradient,
        )

    def velocity(self, momentum: Position) -> Position:
        parts = self._cut(trees.flatten(momentum))
        border = parts.border @ self.inverse_corner
        own = times(jnp.swapaxes(self.inverse_blocks, -1, -2), parts.blocks)
        return self._joined(
            own - (self.shifts @ border).reshape(own.shape),
            border,
            self.inverse_scale * parts.alone,
            momentum,
        )

    def unwhiten(self, distance: Position) -> Position:
        parts = self._cut(trees.flatten(distance))
        along = (self.shifts @ parts.border).reshape(parts.blocks.shape)
        return self._joined(
            times(jnp.swapaxes(self.blocks, -1, -2), parts.blocks + along),
            parts.border @ self.corner,
            parts.alone / self.inverse_scale,
            distance,
        )

    @property
    def log_determinant(self) -> float:
        """log det(W)."""
        diagonals = [
            np.asarray(part, np.float64)
            for part in (
                jnp.einsum("gaa->ga", self.inverse_blocks),
                jnp.diagonal(self.inverse_corner),
                self.inverse_scale,
            )
        ]
        return float(sum(np.sum(np.log(np.abs(part))) for part in diagonals))

    def variances(self) -> Vector:
        """The diagonal of M^-1, parameter by parameter."""
        # M^-1 = W^T W: of a level D^-1 + C S^-1 C^T
        along = self.shifts @ self.inverse_corner.T
        own = jnp.sum(self.inverse_blocks**2, axis=-2)
        return self._in_order(
            own + jnp.sum(along**2, axis=-1).reshape(own.shape),
            jnp.sum(self.inverse_corner**2, axis=0),
            self.inverse_scale**2,
        )

    def _cut(self, flat: Vector) -> ArrowParts:
        runs: dict[str, list[Array]] = {BLOCKS: [], BORDER: [], ALONE: []}
        start = 0
        for kind, count in self.sections:
            runs[kind].append(flat[start : start + count])
            start += count
        blocks, border, alone = (
            jnp.concatenate(found) if found else jnp.zeros(0, flat.dtype) for found in runs.values()
        )
        return ArrowParts(blocks.reshape(self.blocks.shape[:2]), border, alone)

    def _in_order(self, blocks: Array, border: Array, alone: Array) -> Vector:
        """The opposite of `_cut`."""
        left = {BLOCKS: jnp.ravel(blocks), BORDER: border, ALONE: alone}
        runs = []
        for kind, count in self.sections:
            runs.append(left[kind][:count])
            left[kind] = left[kind][count:]
        return jnp.concatenate(runs)

    def _joined(self, blocks: Array, border: Array, alone: Array, like: Position) -> Position:
        return trees.unflatten_like(self._in_order(blocks, border, alone), like)


def unit_arrow(sections: Sections, effects: int) -> ArrowMass:
    """The identity, in the form of an arrow with blocks of so many effects."""
    sizes = {kind: 0 for kind in (BLOCKS, BORDER, ALONE)}
    for kind, count in sections:
        sizes[kind] += count
    levels, border = sizes[BLOCKS] // effects, sizes[BORDER]
    return arrow_mass(
        sections,
        np.broadcast_to(np.eye(effects), (levels, effects, effects)),
        np.zeros((levels, effects, border)),
        np.eye(border),
        np.ones(sizes[ALONE]),
    )


def arrow_mass(
    sections: Sections,
    blocks: Real[np.ndarray, "levels effects effects"],
    border: Real[np.ndarray, "levels effects border"],
    corner: Real[np.ndarray, "border border"],
    alone: Real[np.ndarray, " alone"],
) -> ArrowMass:
    """The mass with D, B^T and A as given, and the variances of momenta that stand alone.

    Raises numpy's LinAlgError where the matrix is not positive definite.
    """
    blocks, border, corner, alone = (
        np.asarray(part, np.float64) for part in (blocks, border, corner, alone)
    )
    kinds = {BLOCKS: blocks[..., 0].size, BORDER: len(corner), ALONE: len(alone)}
    for kind, wanted in kinds.items():
        found = sum(count for each, count in sections if each == kind)
        if found != wanted:
            raise ValueError(
                f"sections must name {wanted} parameters of kind {kind!r}, got {found}; name every "
                "parameter once, in order"
            )
    if not (np.isfinite(alone).all() and (alone > 0).all()):
        raise np.linalg.LinAlgError("a variance that stands alone is not positive")
    inverse_blocks = np.linalg.inv(np.linalg.cholesky(blocks))
    # C = D^-1 B^T = L_D^-T (L_D^-1 B^T)
    shifts = np.swapaxes(inverse_blocks, -1, -2) @ (inverse_blocks @ border)
    own = corner - np.einsum("gap,gaq->pq", border, shifts)
    inverse_corner = np.linalg.inv(np.linalg.cholesky(0.5 * (own + own.T)))
    # inverses of what is kept, so that the two are as near as float32 allows
    kept = [part.astype(np.float32) for part in (inverse_blocks, inverse_corner)]
    back = [np.linalg.inv(part.astype(np.float64)).astype(np.float32) for part in kept]
    parts = (
        kept[0],
        back[0],
        shifts.reshape(-1, len(corner)).astype(np.float32),
        kept[1],
        back[1],
        (1.0 / np.sqrt(alone)).astype(np.float32),
    )
    return ArrowMass(sections, *map(jax.device_put, parts))
