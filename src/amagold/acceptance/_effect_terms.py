"""What a sweep over the effects of a mixed model knows beforehand, factor by factor.

In the coordinates d = L^T delta and eta = omega + C delta, with (W + Q_r) C = b and S = A - b^T C =
L L^T at the reference, coefficients and effects are apart to second order where the scales are the
reference's. Elsewhere, with Q the inverse of Sigma, e = u_r + eta, and p = 1 but for Gaussian noise
of another scale than the reference's, where it is the quotient of the noise's precisions,

    d given eta      precision M = p I + (1 - p) (prior) + sum_f sum_ab (Q - p Q_r)_ab K_ab,
                     slope at d = 0: p g + (1 - p) (prior) + sum_g C_g^T (p Q_r - Q) e_g
    eta_g given d    precision P_g = p W_g + Q,
                     slope at eta = 0: p (s_g + Q_r u_r) + (Q - p Q_r) (u_r - C_g d) + p W_fl eta_l

with K_ab = sum_g C_ga C_gb^T: all that depends on the scales costs no pass over the levels' rows.
"""

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._group_rows import GroupRows
from amagold.core import trees
from amagold.core.array_types import Bool, Float32, Int32
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import times_upper
from amagold.target._effects_prior import FactorForm
from amagold.target._horseshoe import Horseshoe

PerLevel = Float32[Array, " levels"]
Effects = Float32[Array, "levels effects"]
Blocks = Float32[Array, "levels effects effects"]


@trees.record(static=("form",))
class FactorTerms:
    """Of one factor."""

    form: FactorForm
    rows: GroupRows | None  # None where no test looks at rows
    slope: Effects  # s + Q_r u_r
    curvature: Blocks  # W
    center: Effects  # u_r
    precision: Float32[Array, "effects effects"]  # Q_r
    shifts: Float32[Array, "levels effects slopes"]  # C, in whitened coordinates
    spans: Float32[Array, "effects effects slopes slopes"]  # K_ab
    lengths: PerLevel  # the longest |L^-1 x~| of the level's rows
    reach: PerLevel  # the longest column of effects, in the norm below
    norm: Blocks  # a Cholesky factor: |t . eta| <= reach |norm^T eta|
    scales: PerLevel  # the largest scale_i
    weights: PerLevel  # the largest w_i
    # sum of f''' t^2 L^-1 x~ over the level's rows, half of which a square of its effect tilts the
    # coefficients by; none with several effects
    tilts: Float32[Array, "levels slopes"] | None
    is_skewed: Bool[Array, " levels"]
    stride: Float32[Array, " _scales"]  # of scales and correlations, with whitened effects fixed
    effect_spread: Scalar  # kappa_g = max(1, spread times the level's rate)
    scale_spread: Scalar

    def sizes(self, effects: Effects) -> PerLevel:
        """How much a row's predictor can have of these effects."""
        if self.form.num_effects == 1:
            return self.reach * jnp.abs(effects[:, 0])
        return self.reach * jnp.sqrt(jnp.sum(times_upper(self.norm, effects) ** 2, axis=-1))


@trees.record()
class SharedMeans:
    """Directions along which the means of crossed factors trade places: a row hardly sees them, and
    factors that are drawn one by one would take long to find out (Papaspiliopoulos, Roberts and
    Zanella 2020). eta moves by D w, D = (W + Q_r)^-1 E with E the factors' means, and D^T (W + Q_r)
    D = I; precisions at other scales as in the table above, K_ab = sum_g D_ga D_gb^T.
    """

    # D, by factor: axes are of a length of their own in each
    directions: tuple[Float32[Array, "_levels _effects means"], ...]
    spans: tuple[Float32[Array, "_effects _effects means means"], ...]
    lengths: PerLevel  # of the rows of the largest factor's levels: the longest sum_f t_f D_f
    spread: Scalar


@trees.record()
class ShrunkTerms:
    """Of coefficients with horseshoe priors, which are Gaussians about zero once local scales are
    drawn; the table above has others about zero in their place (`_shrunk_turn.py`).
    """

    prior: Horseshoe
    root: Float32[Array, "slopes slopes"]  # L: d = L^T delta
    precisions: Float32[Array, " shrunk"]  # of those others


@trees.record(static=("factors", "columns"))
class NestedPair:
    """A factor each of whose levels lies within one level of another, its parent, where both have
    effects of the same columns.
    """

    factors: tuple[int, int]  # of the parents and of the children
    columns: tuple[tuple[int, ...], tuple[int, ...]]  # of either, that are the same
    parents: Int32[Array, " children"]  # of levels without rows: one beyond the last
    counts: Float32[Array, " parents"]  # of children


@trees.record(static=("factors",))
class CrossedTable:
    """W_fl of two factors: dense, or by the pairs of effects that meet in a row."""

    factors: tuple[int, int]
    table: Float32[Array, "..."]  # values
    places: tuple[Int32[Array, " pairs"], Int32[Array, " pairs"]] | None  # None: dense

    def times(
        self, factor: int, effects: Float32[Array, "others _theirs"], like: Effects
    ) -> Effects:
        """What the other factor's effects add to the slope of `factor`."""
        other = jnp.ravel(effects)
        is_first = factor == self.factors[0]
        if self.places is None:
            found = self.table @ other if is_first else other @ self.table
        else:
            own, theirs = self.places if is_first else self.places[::-1]
            found = jax.ops.segment_sum(self.table * other[theirs], own, like.size)
        return found.reshape(like.shape)

    def largest(
        self, factor: int, sizes: Float32[Array, " others"], num_levels: int, widths: tuple
    ) -> PerLevel:
        """The largest of the other factor's sizes that each level meets, or of all."""
        if self.places is None:
            return jnp.broadcast_to(jnp.max(sizes), (num_levels,))
        is_first = factor == self.factors[0]
        own, theirs = self.places if is_first else self.places[::-1]
        met = sizes[theirs // widths[1]]
        return jnp.maximum(jax.ops.segment_max(met, own // widths[0], num_levels), 0.0)
