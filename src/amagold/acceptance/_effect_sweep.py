"""Exact draws for mixed models: effects of groups, their scales, and coefficients, at a cost that
does not grow with the data.

Given coefficients and scales, levels of a factor are independent: each is proposed and tested by
itself. Coefficients are proposed with the effects moving along, scales with whitened effects fixed
and with effects fixed. In the coordinates of `_effect_terms.py` a sweep is

    effects      eta*_g = mean_g + P_g^(-1/2) xi_g; each level accepted with min(1, exp(l_g))
    slopes       d* = m + cos(h) (d - m) + sin(h) M^(-1/2) xi, eta fixed; accepted with
                 min(1, exp(t . (d* - d) + sum_g l_g)), t the tilt that m is moved by
    scales       log s* = log s + stride xi with v_g = P_g^(1/2) (eta_g - mean_g) fixed, whose
                 Jacobian is prod |P_g|^(1/2) / |P*_g|^(1/2); accepted with
                 min(1, exp(sum_g [J_g - J*_g + l_g]) p(s*) / p(s)),
                 J_g = (a Q a - slope P_g^-1 slope + log |P_g| - log |Q|) / 2, a = u_r - C_g d
    scales       with effects fixed: from sums of their squares, no rows

where l_g is what the remainders of the level's rows add to log a (`_group_visit.py`). One bound
serves all moves: a row's predictor differs from the reference by a = y . d + sum_f t_f . eta_f,
|y| <= h_g, so that with A >= |a* - a| and C >= |a* + a|, both sums over what moves,

    |D_i| <= (k / 6) |a*^3 - a^3| <= (k / 6) A (3/4 C^2 + 1/4 A^2).

It is symmetric in the two states. Everything that is frozen may be anything: draws stay exact.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._effect_state import (
    EffectDraws,
    EffectMoves,
    EffectState,
    draw_sweep,
    precision_of,
)
from amagold.acceptance._effect_terms import (
    CrossedTable,
    Effects,
    FactorTerms,
    PerLevel,
    SharedMeans,
)
from amagold.acceptance._group_visit import GroupQuestion, Visit, visit_by
from amagold.acceptance._remainders import Remainder, remainder
from amagold.core import trees
from amagold.core.array_types import Float32
from amagold.core.shapes import Position, RandomKey, Scalar
from amagold.core.small_matrices import (
    cholesky,
    log_determinant,
    solve_lower,
    solve_upper,
    times,
    times_upper,
)
from amagold.mode._reference import Reference
from amagold.target import Posterior, Target, with_data
from amagold.target._group_effects import FIXED, NOISE, correlation_name, scale_name
from amagold.target._linear_bounds import LinearBounds

SHORTEST, USUAL, LONG = 0.5, 2.0, 6.0  # strides of walks, in standard deviations
SHORT = 0.25  # of the slopes' angle, now and then: out of tails
STEPS = 8  # of the scales' walk with several effects fixed


class Conditional(NamedTuple):
    """The Gaussian of a factor's effects given all others, to second order."""

    slope: Effects
    factor: Array  # the Cholesky factor of P_g
    mean: Effects


@trees.record(static=("bounds", "block_size"))
class EffectSweep(Acceptance):
    """It moves the chain itself: what it is given as a proposal is where the chain is."""

    name = "effects"
    label = "exact"
    uses_work = False
    is_count_fixed = False

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

    # what a test of acceptance offers

    def draw(self, key: RandomKey) -> EffectDraws:
        forms = tuple(each.form for each in self.factors)
        return draw_sweep(
            key, self.slope.shape[0], forms, STEPS, self.num_rows if self.bounds is None else None
        )

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
                position[correlation_name(form.name)] if form.num_correlations else jnp.zeros((0,))
            )
        noise = position[NOISE] - center[NOISE] if NOISE in position else jnp.float32(0.0)
        return EffectState(slopes, tuple(effects), tuple(scales), tuple(free), noise)

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
        return found

    def decide(
        self,
        target: Target,
        draws: EffectDraws,
        memory: EffectState,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        """A sweep from where the chain is; it always ends somewhere."""
        moved, found = self.sweep(target, draws, memory)
        return Decision(
            jnp.bool_(True),
            found.log_ratio,
            ~jnp.isfinite(found.log_ratio),
            moved,
            found.num_examples,
            found.broken_bound,
            self.position(moved),
        )

    def num_examples(self, target: Target) -> int:
        return self.block_size if self.bounds is not None else 0

    def known_reference(self) -> Reference:
        return self.reference

    # the moves

    def sweep(
        self, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, EffectMoves]:
        """Every block once."""
        reports: dict[str, Any] = {"effects": [], "scales": []}
        for number in range(len(self.factors)):
            state, *found = self.move_effects(number, target, draws, state)
            reports["effects"].append(tuple(found))
        state, of_slopes, log_ratio = self.move_slopes(target, draws, state)
        reports["means"] = (no_visit(self.factors[0]), jnp.float32(1.0))
        if self.means is not None:
            state, *found = self.move_means(target, draws, state)
            reports["means"] = tuple(found)
        for number in range(len(self.factors)):
            state, *found = self.move_scales(number, target, draws, state)
            reports["scales"].append(tuple(found))
            state = self.redraw_scales(number, target, draws, state)
        if self.bounds is None:
            state = self.redraw_noise(target, draws, state)
        return state, EffectMoves.of(of_slopes, log_ratio, **reports)

    def move_effects(
        self, number: int, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, Visit, Scalar]:
        """Every level of a factor by itself, given everything else."""
        terms, here = self.factors[number], state.effects[number]
        known = self.conditional(number, state, precision_of(state, number))
        step = solve_upper(known.factor, draws.effects[number])
        afresh = known.mean + step
        if self.bounds is None:
            moved = state.with_effects(number, afresh)
            return moved, no_visit(terms), jnp.float32(1.0)
        walks = draws.all_walk | (draws.skewed_walk & terms.is_skewed)
        # evenly in its logarithm: tails may be several times as wide as the Gaussian
        longest = jnp.where(terms.is_skewed, LONG, USUAL)
        stride = SHORTEST * (longest / SHORTEST) ** draws.stride
        there = jnp.where(walks[:, None], here + stride[:, None] * step, afresh)
        # E(eta) - E(eta*); a fresh draw has it already
        fall = _squares(known.factor, here - known.mean) - _squares(
            known.factor, there - known.mean
        )
        ratio = jnp.where(walks, 0.5 * fall, 0.0)
        proposed = state.with_effects(number, there)
        bounds = self.row_bounds(number, state, proposed)
        # of the level alone, so that levels stay independent
        kappa = jnp.maximum(1.0, terms.effect_spread * _counts(terms) * bounds)
        found = self._visit(number, target, state, proposed, bounds, kappa, draws.keys[number])
        is_accepted = draws.tests[number] < ratio + found.log_ratios
        moved = jnp.where(is_accepted[:, None], there, here)
        rate = jnp.mean(is_accepted.astype(jnp.float32))
        return state.with_effects(number, moved), found, rate

    def move_slopes(
        self, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, Visit, Scalar]:
        """The coefficients, with the effects moving along; and log a."""
        slope, matrix, tilt = self.slopes_given(state)
        factor = jnp.linalg.cholesky(matrix)
        mean = -jax.scipy.linalg.cho_solve((factor, True), slope + tilt)
        is_short = draws.is_short & (self.bounds is not None)
        angle = self.angle * jnp.where(is_short, SHORT, 1.0)
        noise = jax.scipy.linalg.solve_triangular(factor, draws.slopes, lower=True, trans=1)
        there = mean + jnp.cos(angle) * (state.slopes - mean) + jnp.sin(angle) * noise
        log_ratio = jnp.dot(tilt, there - state.slopes)
        proposed = state._replace(slopes=there)
        largest = self.largest
        found = no_visit(self.factors[largest])
        if self.bounds is not None:
            bounds = self.row_bounds(largest, state, proposed)
            rate = jnp.sum(_counts(self.factors[largest]) * bounds)
            kappa = jnp.maximum(1.0, self.slope_spread * rate) * jnp.ones_like(bounds)
            key = draws.slope_key
            found = self._visit(largest, target, state, proposed, bounds, kappa, key)
            log_ratio = log_ratio + jnp.sum(found.log_ratios)
        is_accepted = jnp.isfinite(log_ratio) & (draws.slope_test < log_ratio)
        return trees.where(is_accepted, proposed, state), found, log_ratio

    def move_means(
        self, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, Visit, Scalar]:
        """The means of all factors at once: eta* = eta + D w, w from its Gaussian."""
        assert self.means is not None
        share, count = self.quotient(state), len(self.factors)
        slope, matrix = jnp.zeros(count), share * jnp.eye(count)
        for number, terms in enumerate(self.factors):
            precision = precision_of(state, number)
            known = self.conditional(number, state, precision)
            eta = state.effects[number]
            # the slope of the energy along eta, and from there along w
            here = known.slope + times(share * terms.curvature + precision, eta)
            slope = slope + jnp.einsum("gam,ga->m", self.means.directions[number], here)
            change = precision - share * terms.precision
            matrix = matrix + jnp.einsum("ab,abmn->mn", change, self.means.spans[number])
        factor = jnp.linalg.cholesky(matrix)
        noise = jax.scipy.linalg.solve_triangular(factor, draws.means, lower=True, trans=1)
        move = noise - jax.scipy.linalg.cho_solve((factor, True), slope)
        proposed = state
        for number, directions in enumerate(self.means.directions):
            proposed = proposed.with_effects(number, state.effects[number] + directions @ move)
        largest, log_ratio = self.largest, jnp.float32(0.0)
        found = no_visit(self.factors[largest])
        if self.bounds is not None:
            apart = self.means.lengths * jnp.linalg.norm(move)
            together = self._reaches(largest, state) + self._reaches(largest, proposed)
            bounds = self._bounded(largest, apart, together)
            rate = jnp.sum(_counts(self.factors[largest]) * bounds)
            kappa = jnp.maximum(1.0, self.means.spread * rate) * jnp.ones_like(bounds)
            found = self._visit(largest, target, state, proposed, bounds, kappa, draws.mean_key)
            log_ratio = jnp.sum(found.log_ratios)
        is_accepted = jnp.isfinite(log_ratio) & (draws.mean_test < log_ratio)
        rate = jnp.where(jnp.isfinite(log_ratio), jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
        return trees.where(is_accepted, proposed, state), found, rate

    def move_scales(
        self, number: int, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, Visit, Scalar]:
        """A factor's scales, with its whitened effects fixed; and the chance to accept."""
        terms = self.factors[number]
        walk = terms.stride * draws.walks[number]
        scales, free = state.scales[number], state.free[number]
        wanted = state.with_scales(number, scales + walk[: scales.size], free + walk[scales.size :])
        here = self.conditional(number, state, precision_of(state, number))
        there = self.conditional(number, wanted, precision_of(wanted, number))
        # v = P^(1/2) (eta - mean) stays
        whitened = times_upper(here.factor, state.effects[number] - here.mean)
        proposed = wanted.with_effects(number, there.mean + solve_upper(there.factor, whitened))
        of_levels = self._evidence(number, state, here) - self._evidence(number, wanted, there)
        prior = self._scale_prior(number, target, wanted) - self._scale_prior(number, target, state)
        log_ratio = jnp.sum(of_levels) + prior
        found = no_visit(terms)
        if self.bounds is not None:
            bounds = self.row_bounds(number, state, proposed)
            rate = jnp.sum(_counts(terms) * bounds)
            kappa = jnp.maximum(1.0, terms.scale_spread * rate) * jnp.ones_like(bounds)
            key = draws.scale_keys[number]
            found = self._visit(number, target, state, proposed, bounds, kappa, key)
            log_ratio = log_ratio + jnp.sum(found.log_ratios)
        is_accepted = jnp.isfinite(log_ratio) & (draws.scale_tests[number] < log_ratio)
        rate = jnp.where(jnp.isfinite(log_ratio), jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
        return trees.where(is_accepted, proposed, state), found, rate

    def redraw_scales(
        self, number: int, target: Target, draws: EffectDraws, state: EffectState
    ) -> EffectState:
        """A factor's scales, with its effects fixed."""
        terms, form = self.factors[number], self.factors[number].form
        effects = terms.center + state.effects[number] - terms.shifts @ state.slopes
        products = effects.T @ effects
        if form.num_effects == 1:
            # 1 / s^2 ~ Gamma(levels / 2, rate sum u^2 / 2) but for the prior
            log_scale = 0.5 * (jnp.log(0.5 * products[0, 0]) - jnp.log(draws.gammas[number]))
            wanted = state.with_scales(number, log_scale[None], state.free[number])
            ratio = self._scale_prior(number, target, wanted) - self._scale_prior(
                number, target, state
            )
            is_accepted = jnp.isfinite(log_scale) & (draws.gamma_tests[number] < ratio)
            return trees.where(is_accepted, wanted, state)

        def energy(at: EffectState) -> Scalar:
            precision = precision_of(at, number)
            own = 0.5 * jnp.sum(precision * products)
            own = own - 0.5 * form.num_levels * log_determinant(cholesky(precision))
            return own - self._scale_prior(number, target, at)

        def walk(at: EffectState, drawn: tuple[Array, Array]) -> tuple[EffectState, None]:
            move = drawn[0] * (2.4 / (2.0 * form.num_levels * drawn[0].size) ** 0.5)
            size = form.num_effects
            moved = at.with_scales(
                number, at.scales[number] + move[:size], at.free[number] + move[size:]
            )
            ratio = energy(at) - energy(moved)
            return trees.where(jnp.isfinite(ratio) & (drawn[1] < ratio), moved, at), None

        drawn = draws.long_walks[number], draws.long_tests[number]
        return jax.lax.scan(walk, state, drawn)[0]

    def redraw_noise(self, target: Target, draws: EffectDraws, state: EffectState) -> EffectState:
        """The noise's scale, from the sum of squared residuals: 1 / s^2 ~ Gamma(n / 2, rate / 2)
        but for the prior.
        """
        prior: Any = with_data(target, "a sweep", "use acceptance.full()").log_prior
        center: Any = self.reference.position
        # as if the noise were the reference's
        squares = self.squares + 2.0 * self._energy(state._replace(noise=jnp.float32(0.0)))
        wanted = 0.5 * (jnp.log(0.5 * squares) - jnp.log(draws.noise_gamma))

        def log_prior(noise: Scalar) -> Scalar:
            return -0.5 * ((center[NOISE] + noise - prior.noise[0]) / prior.noise[1]) ** 2

        ratio = log_prior(wanted) - log_prior(state.noise)
        is_accepted = jnp.isfinite(wanted) & (draws.noise_test < ratio)
        return state._replace(noise=jnp.where(is_accepted, wanted, state.noise))

    # what they know

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
        slope = slope + share * self._crossed(number, state)
        mean = -solve_upper(factor, solve_lower(factor, slope))
        return Conditional(slope, factor, mean)

    def slopes_given(self, state: EffectState) -> tuple[Array, Array, Array]:
        """Of the coefficients given eta and the scales: slope at zero, precision, and tilt."""
        share, width = self.quotient(state), self.slope.shape[0]
        slope = share * self.slope + (1.0 - share) * self.prior_slope
        matrix = share * jnp.eye(width) + (1.0 - share) * self.prior_matrix
        tilt = self.tilt
        for number, terms in enumerate(self.factors):
            change = precision_of(state, number) - share * terms.precision
            eta = state.effects[number]
            slope = slope - jnp.einsum("gap,ga->p", terms.shifts, times(change, terms.center + eta))
            matrix = matrix + jnp.einsum("ab,abpq->pq", change, terms.spans)
            if terms.tilts is not None:
                tilt = tilt + 0.5 * jnp.sum(terms.tilts * eta[:, :1] ** 2, axis=0)
        return slope, matrix, tilt

    def row_bounds(self, number: int, here: EffectState, there: EffectState) -> PerLevel:
        """B_g of the rows of a factor's levels."""
        assert self.bounds is not None
        terms = self.factors[number]
        apart = terms.lengths * jnp.linalg.norm(there.slopes - here.slopes)
        together = terms.lengths * jnp.linalg.norm(there.slopes + here.slopes)
        for other, others in enumerate(self.factors):
            ours, theirs = here.effects[other], there.effects[other]
            less, more = others.sizes(theirs - ours), others.sizes(theirs + ours)
            if other != number:
                less, more = (self._met(number, other, sizes) for sizes in (less, more))
            apart, together = apart + less, together + more
        return self._bounded(number, apart, together)

    def _bounded(self, number: int, apart: PerLevel, together: PerLevel) -> PerLevel:
        """B_g from A_g and C_g."""
        assert self.bounds is not None
        terms = self.factors[number]
        growing = jnp.exp(0.5 * (apart + together))
        third = self.bounds.derivatives[2] * terms.scales
        if self.bounds.growth:
            third = third * growing**self.bounds.growth
        third = jnp.minimum(third, terms.weights * growing)
        return third / 6.0 * apart * (0.75 * together**2 + 0.25 * apart**2)

    def _reaches(self, number: int, state: EffectState) -> PerLevel:
        """How far the rows of a factor's levels can be from the reference."""
        found = self.factors[number].lengths * jnp.linalg.norm(state.slopes)
        for other, others in enumerate(self.factors):
            sizes = others.sizes(state.effects[other])
            found = found + (sizes if other == number else self._met(number, other, sizes))
        return found

    def _met(self, number: int, other: int, sizes: PerLevel) -> PerLevel:
        """The largest of another factor's sizes that each level of this one meets."""
        ours, theirs = self.factors[number].form, self.factors[other].form
        table = next(each for each in self.crossed if {number, other} == set(each.factors))
        return table.largest(number, sizes, ours.num_levels, (ours.num_effects, theirs.num_effects))

    def _crossed(self, number: int, state: EffectState) -> Effects | float:
        total: Any = 0.0
        for table in self.crossed:
            if number in table.factors:
                other = sum(table.factors) - number
                like = self.factors[number].center
                total = total + table.times(number, state.effects[other], like)
        return total

    def _evidence(self, number: int, state: EffectState, known: Conditional) -> PerLevel:
        """J_g."""
        terms, precision = self.factors[number], precision_of(state, number)
        apart = terms.center - terms.shifts @ state.slopes
        own = jnp.sum(apart * times(precision, apart), axis=-1)
        gained = jnp.sum(solve_lower(known.factor, known.slope) ** 2, axis=-1)
        logs = log_determinant(known.factor) - log_determinant(cholesky(precision))
        return 0.5 * (own - gained + logs)

    def _scale_prior(self, number: int, target: Target, state: EffectState) -> Scalar:
        prior: Any = with_data(target, "a sweep", "use acceptance.full()").log_prior
        return prior.factors[number](state.scales[number], state.free[number])

    def _energy(self, state: EffectState) -> Scalar:
        """Of the rows, to second order, from the reference: without priors."""
        d = state.slopes
        # what is left of g and I without the priors of coefficients and effects
        slope, matrix = self.slope - self.prior_slope, jnp.eye(d.size) - self.prior_matrix
        total = jnp.float32(0.0)
        for number, terms in enumerate(self.factors):
            eta = state.effects[number]
            matrix = matrix - jnp.einsum("ab,abpq->pq", terms.precision, terms.spans)
            pulled = times(terms.precision, terms.center)
            slope = slope + jnp.einsum(
                "gap,ga->p", terms.shifts, pulled + times(terms.precision, eta)
            )
            own = terms.slope - pulled + 0.5 * times(terms.curvature, eta)
            crossed = self._crossed(number, state)
            total = total + jnp.sum(eta * (own + 0.5 * crossed))
        return total + jnp.dot(slope, d) + 0.5 * jnp.dot(d, matrix @ d)

    def _visit(
        self,
        number: int,
        target: Target,
        here: EffectState,
        there: EffectState,
        bounds: PerLevel,
        kappa: PerLevel,
        key: RandomKey,
    ) -> Visit:
        posterior = with_data(target, "a sweep", "use acceptance.full()")
        moves = jax.tree.map(lambda *both: jnp.stack(both), self.away(here), self.away(there))
        question = GroupQuestion((), (), bounds, kappa)
        rows = self.factors[number].rows
        assert rows is not None

        def differences(examples: Array) -> Remainder:
            return self._differences(posterior, moves, posterior.examples.rows(examples))

        return visit_by(differences, rows, question, key, self.block_size)

    def _differences(self, target: Posterior, moves: dict[str, Array], rows: Any) -> Remainder:
        """D_i of rows, from the two distances of the states from the reference."""
        likelihood: Any = target.log_likelihood
        predictor, outcome = likelihood.predictor, likelihood.outcome
        center: Any = self.reference.position
        at = {name: center[name] for name in moves}

        def one(row: Any) -> Remainder:
            def change(move: dict[str, Array]) -> tuple[Array, Array]:
                return jax.jvp(lambda there: predictor(there, row), (at,), (move,))

            z, steps = jax.vmap(change, out_axes=(None, 0))(moves)
            return jax.vmap(
                lambda step: remainder(lambda place: -outcome(place, row.own), 2, z, step)
            )(steps)

        found = jax.vmap(one)(rows)
        return Remainder(found.value[:, 1] - found.value[:, 0], found.rounding.sum(axis=1))


def no_visit(terms: FactorTerms) -> Visit:
    """Of a test that needs no rows."""
    zero = jnp.int32(0)
    nothing = jnp.zeros(terms.form.num_levels)
    return Visit(nothing, zero, jnp.int32(-1), jnp.float32(0.0), zero)


def _counts(terms: FactorTerms) -> Array:
    assert terms.rows is not None
    return terms.rows.counts


def _squares(factor: Array, vectors: Effects) -> PerLevel:
    """v P v of every level."""
    return jnp.sum(times_upper(factor, vectors) ** 2, axis=-1)
