"""What effects of a group are times. Beside a column of ones columns are counted from their means,
and in units of their spread, so that neither their origin nor their units matter:

    t'_0 = t_0 = 1,  t'_k = (t_k - m_k) / w_k,  u . t = u' . t'  with
    u_k = u'_k / w_k,  u_0 = u'_0 - sum_k m_k u_k
"""

from typing import Any

import jax
import numpy as np

from amagold.core import trees


@trees.record(static=("ones",))
class ColumnUnits:
    """Means and widths; `ones` is the place of the column of ones, where means are taken off."""

    centers: jax.Array
    widths: jax.Array
    ones: int | None

    def scaled(self, columns: np.ndarray) -> np.ndarray:
        """t' of columns in float64."""
        away = columns - np.asarray(self.centers, np.float64)
        return (away / np.asarray(self.widths, np.float64)).astype(np.float32)

    def to_user(self) -> np.ndarray:
        """A with u = A u'."""
        widths, centers = (np.asarray(each, np.float64) for each in (self.widths, self.centers))
        found = np.diag(1.0 / widths)
        if self.ones is not None:
            found[self.ones] -= centers / widths
        return found


def column_units(means: Any, variances: Any, ones: int | None) -> ColumnUnits:
    """Of columns with these means and variances; without a column of ones they are counted from
    zero. Rounded to float32 before they are used, so that rows in memory and on disk are the same.
    """
    centers, squares = np.asarray(means, np.float64), np.array(variances, np.float64)
    if ones is None:
        squares, centers = squares + centers**2, np.zeros_like(centers)
    else:
        is_ones = np.arange(len(centers)) == ones
        squares, centers = np.where(is_ones, 1.0, squares), np.where(is_ones, 0.0, centers)
    # on the host: JAX fixes its devices when the first array is made
    both: Any = centers.astype(np.float32), np.sqrt(squares).astype(np.float32)
    return ColumnUnits(both[0], both[1], ones)


def ones_alone() -> ColumnUnits:
    """Of effects that are intercepts."""
    return column_units([1.0], [0.0], None)
