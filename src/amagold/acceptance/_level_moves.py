"""How far every level of a position is from the reference: what bounds the remainders of its rows.

    z_i - z_ref = m + x~_i . delta_0 + sum_f v_fi eta_f[l_fi]

holds for every matrix c and every m_f, with the numbers centred within levels, x~_i = x_i -
sum_f v_fi c_f[l_fi], eta_f = delta_f + c_f delta_0 - m_f, and m = sum_f v_f m_f. Without that, what
a level's coefficient shares with an intercept, or with the levels of another factor, would count as
a move of its own, though z hardly moves.

With numbers s that all rows share, z_i is the vector (x_i . theta, s), and what moves is the vector
(m, delta_s), the same for all rows, plus the others along the first axis. By the triangle
inequality |z_i - z_ref| <= |(m, delta_s)| + |x~_i . delta_0| + sum_f |v_fi eta_f[l_fi]|: the
constant's move is that of all that is common, and the rest is as for one number.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._level_rows import LevelRows, scale_of
from amagold.core import trees
from amagold.core.array_types import Float32
from amagold.core.shapes import Example, HostMatrix, Position, Scalar, Vector
from amagold.target._linear_bounds import LinearBounds, SparsePredictor


@trees.record()
class Centring:
    """c, and the norm of what is left of the numbers: S = L L^T, the precision that they have by
    themselves.
    """

    shifts: Float32[Array, "levels numbers"]  # c, factor by factor, with level 0
    whitening: Float32[Array, "numbers numbers"]  # L^T
    unwhitening: Float32[Array, "numbers numbers"]  # L^-1

    @property
    def num_numbers(self) -> int:
        return self.shifts.shape[1]


def centring_of(hessian: HostMatrix, num_numbers: int, num_levels: tuple[int, ...]) -> Centring:
    """From the Hessian of the whole energy: c = H_rr^-1 H_r0 and S = H_00 - H_0r c, where r are the
    levels and what all rows share. Any other would be as exact.
    """
    of_numbers = hessian[:num_numbers, :num_numbers]
    across = hessian[num_numbers:, :num_numbers]
    of_rest = hessian[num_numbers:, num_numbers:]
    known = np.linalg.solve(of_rest, across)
    left = of_numbers - across.T @ known
    factor = np.linalg.cholesky((left + left.T) / 2.0)
    # the last part is that of what is shared
    parts = np.split(known, np.cumsum(np.array(num_levels, int) - 1))[:-1]
    shifts = [np.concatenate([np.zeros((1, num_numbers)), part]) for part in parts]
    return Centring(
        jnp.asarray(np.concatenate(shifts) if shifts else np.zeros((0, num_numbers)), jnp.float32),
        jnp.asarray(factor.T, jnp.float32),
        jnp.asarray(np.linalg.inv(factor), jnp.float32),
    )


def level_moves(centring: Centring, rows: LevelRows, away: Vector) -> Float32[Array, " cells"]:
    """|(m, delta_s)|, the |eta| of all levels, and the length of the numbers' move."""
    numbers = away[: centring.num_numbers]
    constant = jnp.zeros((), away.dtype)
    moves, place, cell = [], centring.num_numbers, 0
    for factor, size in enumerate(rows.num_levels):
        own = jnp.concatenate([jnp.zeros((1,), away.dtype), away[place : place + size - 1]])
        own = own + centring.shifts[cell : cell + size] @ numbers
        if rows.is_plain[factor]:
            mean = jnp.dot(rows.shares[1 + cell : 1 + cell + size], own)
            own, constant = own - mean, constant + rows.values[factor] * mean
        else:
            own = own.at[0].set(0.0)  # its rows have no coefficient, whatever their value
        moves.append(own)
        place, cell = place + size - 1, cell + size
    length = jnp.linalg.norm(centring.whitening @ numbers)
    common = jnp.linalg.norm(jnp.concatenate([constant[None], away[place:]]))
    return jnp.abs(jnp.concatenate([common[None], *moves, length[None]]))


@trees.record(static=("bounds",))
class NumbersBound:
    """scale_i h_i^3, h_i = |L^-1 x~_i|: how much an example can matter by its numbers."""

    bounds: LinearBounds
    position: Position
    centring: Centring

    def __call__(self, example: Example) -> tuple[Scalar, Scalar]:
        predictor = self.bounds.predictor
        assert isinstance(predictor, SparsePredictor)
        split = predictor.split(example)
        left, cell = split.numbers, 0
        for factor, size in enumerate(predictor.num_levels(example)):
            shift = self.centring.shifts[cell + split.levels[factor]]
            left = left - split.values[factor] * shift
            cell += size
        length = jnp.linalg.norm(self.centring.unwhitening @ left)
        return scale_of(self.bounds, self.position, example) * length**3, length
