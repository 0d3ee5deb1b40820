"""What a sweep over the effects of a mixed model knows without looking at rows: the energy to
second order about the reference, and the Gaussian that each block has given the others.

A position is kept as d, eta and the log scales (`_effect_terms.py`). Everything that is frozen may
be anything: draws stay exact.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_state import EffectState, precision_of
from amagold.acceptance._effect_terms import (
    CrossedTable,
    Effects,
    FactorTerms,
    NestedPair,
    PerLevel,
    SharedMeans,
    ShrunkTerms,
)
from amagold.core import trees
from amagold.core.array_types import Float32
from amagold.core.shapes import Position, Scalar
from amagold.core.small_matrices import (
    cholesky,
    log_determinant,
    solve_lower,
    solve_upper,
    times,
)
from amagold.mode._reference import Reference
from amagold.target import Target, with_data
from amagold.target._group_effects import FIXED, NOISE, TAU, correlation_name, scale_name
from amagold.target._linear_bounds import LinearBounds

MOST_FOLLOWED = 2**16  # products of a turn


class Conditional(NamedTuple):
    """The Gaussian of a factor's effects given all others, to second order."""

    slope: Effects
    factor: Array  # the Cholesky factor of P_g
    mean: Effects


class SharedGaussian(NamedTuple):
    """The Gaussian of the coefficients, as effects move along with them, to second order."""

    slope: Array  # at d = 0
    matrix: Array
    tilt: Array  # that remainders move them by
    follow: Array | None  # B: eta moves by B_g (d* - d); None is not at all


@trees.record(static=("bounds", "block_size"))
class EffectExpansion:
    """About one reference."""

    bounds: LinearBounds | None  # None: Gaussian noise, and no remainders
    block_size: int
    num_rows: Scalar  # that the noise's scale is known from
    reference: Reference
    factors: tuple[FactorTerms, ...]
    crossed: tuple[CrossedTable, ...]
    unwhitening: Float32[Array, "slopes slopes"]  # L^-T: delta = L^-T d
    slope: Float32[Array, " slopes"]  # g
    # of the coefficients' prior, in whitened coordinates
    prior_slope: Float32[Array, " slopes"]
    prior_matrix: Float32[Array, "slopes slopes"]
    tilt: Float32[Array, " slopes"]  # that remainders move the slopes by whatever the effects are
    angle: Scalar  # h
    slope_spread: Scalar
    squares: Scalar  # sum of squared residuals at the reference, in units of its noise
    means: SharedMeans | None  # None with one factor
    nested: tuple[NestedPair, ...]
    shrunk: ShrunkTerms | None  # None without horseshoe priors

    # coordinates

    def remember(self, target: Target, position: Position) -> EffectState:
        center: Any = self.reference.position
        slopes = jnp.linalg.solve(self.unwhitening, position[FIXED] - center[FIXED])
        effects, scales, free = [], [], []
        for terms in self.factors:
            form = terms.form
            away = (position[form.name] - center[form.name]).reshape(terms.center.shape)
            effects.append(away + terms.shifts @ slopes)
            scales.append(jnp.reshape(position[scale_name(form.name)], (form.num_effects,)))
            free.append(
                position[correlation_name(form.name)]
                if form.num_correlations
                else jnp.zeros((0,), jnp.float32)
            )
        noise = position[NOISE] - center[NOISE] if NOISE in position else jnp.float32(0.0)
        taus = None if self.shrunk is None else position[TAU]
        return EffectState(slopes, tuple(effects), tuple(scales), tuple(free), noise, taus)

    def away(self, state: EffectState) -> dict[str, Array]:
        """Coefficients and effects as distances from the reference."""
        center: Any = self.reference.position
        found = {FIXED: self.unwhitening @ state.slopes}
        for terms, eta in zip(self.factors, state.effects, strict=True):
            omega = eta - terms.shifts @ state.slopes
            found[terms.form.name] = omega.reshape(center[terms.form.name].shape)
        return found

    def position(self, state: EffectState) -> dict[str, Array]:
        """Back to the target's coordinates."""
        center: Any = self.reference.position
        found = {name: center[name] + away for name, away in self.away(state).items()}
        for terms, scales, free in zip(self.factors, state.scales, state.free, strict=True):
            name = scale_name(terms.form.name)
            found[name] = scales.reshape(center[name].shape)
            if terms.form.num_correlations:
                found[correlation_name(terms.form.name)] = free
        if NOISE in center:
            found[NOISE] = center[NOISE] + state.noise
        if state.taus is not None:
            found[TAU] = state.taus
        return found

    # Gaussians

    @property
    def largest(self) -> int:
        """The factor of most levels, by which rows are looked for where all of them may move."""
        return max(range(len(self.factors)), key=lambda f: self.factors[f].form.num_levels)

    def quotient(self, state: EffectState) -> Scalar | float:
        """p, the noise's precision over that of the reference."""
        return jnp.exp(-2.0 * state.noise) if self.bounds is None else 1.0

    def conditional(self, number: int, state: EffectState, precision: Array) -> Conditional:
        """Of a factor's effects, at these scales."""
        terms, share = self.factors[number], self.quotient(state)
        factor = cholesky(share * terms.curvature + precision)
        apart = terms.center - terms.shifts @ state.slopes
        slope = share * terms.slope + times(precision - share * terms.precision, apart)
        slope = slope + share * self.crossed_slope(number, state)
        mean = -solve_upper(factor, solve_lower(factor, slope))
        return Conditional(slope, factor, mean)

    @property
    def is_followed(self) -> bool:
        """Whether effects follow the coefficients as their own scales have it, not the reference's:
        for few levels, whose scales are known badly, at little cost.
        """
        width, form = self.slope.shape[0], self.factors[0].form
        size = form.num_levels * form.num_effects * width * (width + form.num_effects)
        return len(self.factors) == 1 and size <= MOST_FOLLOWED

    def slopes_given(self, state: EffectState) -> SharedGaussian:
        """Given the scales, and eta but for what follows."""
        share, width = self.quotient(state), self.slope.shape[0]
        slope = share * self.slope + (1.0 - share) * self.prior_slope
        matrix = share * jnp.eye(width, dtype=jnp.float32) + (1.0 - share) * self.prior_matrix
        if self.is_followed:
            return self._integrated(state, slope, matrix)
        tilt = self.tilt
        for number, terms in enumerate(self.factors):
            change = precision_of(state, number) - share * terms.precision
            eta = state.effects[number]
            slope = slope - jnp.einsum("gap,ga->p", terms.shifts, times(change, terms.center + eta))
            matrix = matrix + jnp.einsum("ab,abpq->pq", change, terms.spans)
            if terms.tilts is not None:
                tilt = tilt + 0.5 * jnp.sum(terms.tilts * eta[:, :1] ** 2, axis=0)
        return SharedGaussian(slope, matrix, tilt, None)

    def _integrated(self, state: EffectState, slope: Array, matrix: Array) -> SharedGaussian:
        """With the effects of the one factor integrated out: their mean moves by

            B = (W + Q)^-1 (Q - Q_r) C,

        which brings B^T (W + Q_r) C to the matrix, and -B^T ((W + Q_r) u_r - s) to the slope.
        """
        (terms,), share = self.factors, self.quotient(state)
        precision = precision_of(state, 0)
        factor = cholesky(share * terms.curvature + precision)[:, None]
        pulled = jnp.einsum("ab,gbp->gpa", precision - share * terms.precision, terms.shifts)
        follow = jnp.swapaxes(solve_upper(factor, solve_lower(factor, pulled)), 1, 2)
        whole = terms.curvature + terms.precision
        matrix = matrix + share * jnp.einsum("gap,gab,gbq->pq", follow, whole, terms.shifts)
        force = times(whole, terms.center) - terms.slope
        slope = slope - share * jnp.einsum("gap,ga->p", follow, force)
        tilt = self.tilt
        if terms.tilts is not None:
            # of what stays as it is
            eta = state.effects[0] - follow @ state.slopes
            tilt = tilt + 0.5 * jnp.sum(terms.tilts * eta[:, :1] ** 2, axis=0)
        return SharedGaussian(slope, matrix, tilt, follow)

    def crossed_slope(self, number: int, state: EffectState) -> Effects | float:
        total: Any = 0.0
        for table in self.crossed:
            if number in table.factors:
                other = sum(table.factors) - number
                like = self.factors[number].center
                total = total + table.times(number, state.effects[other], like)
        return total

    def evidence(self, number: int, state: EffectState, known: Conditional) -> PerLevel:
        """J_g, up to what does not depend on the factor's scales.

        In effects u their prior has no slope, so that nothing large cancels where scales are small.
        """
        terms, precision = self.factors[number], precision_of(state, number)
        share, moved = self.quotient(state), terms.shifts @ state.slopes
        apart = terms.center - moved
        # c = s + Q_r C d + W_fl eta_l - W (u_r - C d), the slope of the rows at u = 0
        own = terms.slope + times(terms.precision, moved - terms.center)
        slope = share * (own + self.crossed_slope(number, state) - times(terms.curvature, apart))
        gained = jnp.sum(solve_lower(known.factor, slope) ** 2, axis=-1)
        return 0.5 * (_log_growth(share * terms.curvature, precision) - gained)

    def scale_prior(self, number: int, target: Target, state: EffectState) -> Scalar:
        prior: Any = with_data(target, "a sweep", "use acceptance.full()").log_prior
        return prior.factors[number](state.scales[number], state.free[number])

    def rows_energy(self, state: EffectState) -> Scalar:
        """Of the rows, to second order, from the reference: without priors."""
        d = state.slopes
        # what is left of g and I without the priors of coefficients and effects
        slope, matrix = (
            self.slope - self.prior_slope,
            jnp.eye(d.size, dtype=jnp.float32) - self.prior_matrix,
        )
        total = jnp.float32(0.0)
        for number, terms in enumerate(self.factors):
            eta = state.effects[number]
            matrix = matrix - jnp.einsum("ab,abpq->pq", terms.precision, terms.spans)
            pulled = times(terms.precision, terms.center)
            slope = slope + jnp.einsum(
                "gap,ga->p", terms.shifts, pulled + times(terms.precision, eta)
            )
            own = terms.slope - pulled + 0.5 * times(terms.curvature, eta)
            crossed = self.crossed_slope(number, state)
            total = total + jnp.sum(eta * (own + 0.5 * crossed))
        return total + jnp.dot(slope, d) + 0.5 * jnp.dot(d, matrix @ d)


def _log_growth(curvature: Array, precision: Array) -> PerLevel:
    """log |W + Q| - log |Q| of every level."""
    if precision.shape[0] == 1:
        return jnp.log1p(curvature[:, 0, 0] / precision[0, 0])
    root = cholesky(precision)
    size = root.shape[0]
    inverse = jnp.stack([solve_lower(root, unit) for unit in jnp.eye(size)], axis=-1)
    grown = jnp.eye(size) + jnp.einsum("ab,gbc,dc->gad", inverse, curvature, inverse)
    return log_determinant(cholesky(grown))
