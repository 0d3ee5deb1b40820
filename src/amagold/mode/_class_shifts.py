"""Directions along which data of several classes say nothing.

An outcome that sees only the differences of z = (z_1, ..., z_K) does not change where a coefficient
moves alike in all classes: the energy of the data is flat along 1 / sqrt K (1, ..., 1) of every
coefficient, and the prior alone curves there. Sums in float32 round what is zero to a ten-millionth
of the curvature elsewhere, which would hide a wide prior; here it is zero again, and curvature is
looked at in coordinates where the two do not mix.
"""

from typing import NamedTuple

import jax
import numpy as np

from amagold.core import trees
from amagold.core.shapes import HostMatrix, HostVector
from amagold.target import Posterior, Target


class ClassShifts(NamedTuple):
    """Of a matrix of coefficients, a column for each class, row by row."""

    num_coefficients: int
    num_classes: int

    @property
    def basis(self) -> HostMatrix:
        """Orthonormal columns: for each coefficient the shift of all classes, then contrasts."""
        shift = np.ones((self.num_classes, 1))
        others = np.eye(self.num_classes)[:, :-1]
        of_one = np.linalg.qr(np.concatenate([shift, others], axis=1))[0]
        return np.kron(np.eye(self.num_coefficients), of_one)

    def known_slope(self, gradient: HostVector) -> HostVector:
        """The data's gradient without what rounding left along shifts."""
        by_class = gradient.reshape(self.num_coefficients, self.num_classes)
        return (by_class - by_class.mean(axis=1, keepdims=True)).ravel()

    def known_curvature(self, hessian: HostMatrix) -> HostMatrix:
        """The same of the Hessian: P H P with P = I - N N^T, symmetric to the last bit but one."""
        once = np.stack([self.known_slope(row) for row in (hessian + hessian.T) / 2.0])
        return np.stack([self.known_slope(column) for column in once.T]).T


def class_shifts(target: Target, position: trees.PyTree) -> ClassShifts | None:
    """None where the data may say something in all directions; the position's form alone counts."""
    bounds = target.bounds if isinstance(target, Posterior) else None
    leaves = jax.tree.leaves(position)
    if bounds is None or not bounds.ignores_shifts or len(leaves) != 1 or leaves[0].ndim != 2:
        return None
    return ClassShifts(*leaves[0].shape)
