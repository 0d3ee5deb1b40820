"""Exact draws for mixed models: effects of groups, their scales, and coefficients, at a cost that
does not grow with the data. A sweep moves every block once, each by a file of its own:

    effects of a factor, level by level     `_move_effects.py`
    coefficients, effects moving along      `_move_slopes.py`
    horseshoe priors of coefficients        `_shrunk_turn.py`
    means of crossed factors                `_move_means.py`
    nested factors, their sums fixed        `_move_nested.py`
    scales, whitened effects fixed          `_move_scales.py`
    scales, effects fixed                   `_redraw_scales.py`
    Gaussian noise's scale                  `_redraw_noise.py`

What they know of all rows is in `_effect_expansion.py`; which rows their tests look at, and why so
few are enough, in `_effect_visits.py` and `_effect_bounds.py`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from amagold.acceptance import (
    _move_effects,
    _move_means,
    _move_nested,
    _move_scales,
    _move_slopes,
    _redraw_noise,
    _redraw_scales,
    _shrunk_turn,
)
from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._effect_state import (
    EffectDraws,
    EffectMoves,
    EffectState,
    SharedTurn,
    draw_sweep,
    move_names,
)
from amagold.acceptance._effect_visits import EffectVisits, no_visit
from amagold.acceptance._group_visit import Visit, together
from amagold.core import trees
from amagold.core.shapes import Position, RandomKey, Scalar
from amagold.mode._reference import Reference
from amagold.target import Target


@trees.record(static=("num_turns",))
class EffectSweep(EffectVisits, Acceptance):
    """It moves the chain itself: what it is given as a proposal is where the chain is."""

    num_turns: int = 1  # of what all levels share, in a sweep

    name = "effects"
    label = "exact"
    uses_work = False
    is_count_fixed = False

    move_effects = _move_effects.move_effects
    move_slopes = _move_slopes.move_slopes
    move_means = _move_means.move_means
    move_nested = _move_nested.move_nested
    move_scales = _move_scales.move_scales
    redraw_scales = _redraw_scales.redraw_scales
    redraw_noise = _redraw_noise.redraw_noise
    redraw_taus = _shrunk_turn.redraw_taus

    def draw(self, key: RandomKey) -> EffectDraws:
        forms = tuple(each.form for each in self.factors)
        rows = self.num_rows if self.bounds is None else None
        steps = _redraw_scales.STEPS
        width = self.slope.shape[0]
        shrunk = None if self.shrunk is None else self.shrunk.prior
        return draw_sweep(key, width, forms, steps, rows, self.nested, self.num_turns, shrunk)

    def sweep(
        self, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, EffectMoves]:
        """Every block once."""
        reports: dict[str, Any] = {"effects": [], "scales": []}
        for number in range(len(self.factors)):
            state, *found = self.move_effects(number, target, draws, state)
            reports["effects"].append(tuple(found))
        state, of_slopes, log_ratio, reports["means"] = self.turn(target, draws, state)
        for pair, drawn in zip(self.nested, draws.nested, strict=True):
            state = self.move_nested(pair, target, drawn, state)
        for number in range(len(self.factors)):
            state, *found = self.move_scales(number, target, draws, state)
            reports["scales"].append(tuple(found))
            state = self.redraw_scales(number, target, draws, state)
        if self.bounds is None:
            state = self.redraw_noise(target, draws, state)
        return state, EffectMoves.of(of_slopes, log_ratio, **reports)

    def turn(
        self, target: Target, draws: EffectDraws, state: EffectState
    ) -> tuple[EffectState, Visit, Scalar, tuple[Visit, Scalar]]:
        """What all levels share, `num_turns` times: where it is short of rows, but slow."""

        def step(state: EffectState, drawn: SharedTurn) -> tuple[EffectState, Any]:
            state = self.redraw_taus(drawn, state)
            state, of_slopes, log_ratio = self.move_slopes(target, drawn, state)
            of_means = no_visit(self.factors[0]), jnp.float32(1.0)
            if self.means is not None:
                state, *found = self.move_means(target, drawn, state)
                of_means = tuple(found)
            return state, (of_slopes, log_ratio, of_means)

        state, (of_slopes, log_ratios, (of_means, rates)) = jax.lax.scan(step, state, draws.turns)
        mean = jax.nn.logsumexp(jnp.minimum(log_ratios, 0.0)) - math.log(self.num_turns)
        # one that is no number is told
        log_ratio = jnp.where(jnp.all(jnp.isfinite(log_ratios)), mean, jnp.nan)
        return state, together(of_slopes), log_ratio, (together(of_means), jnp.mean(rates))

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
            found.by_name(self.move_names),
        )

    @property
    def move_names(self) -> tuple[str, ...]:
        return move_names([terms.form.name for terms in self.factors])

    def num_examples(self, target: Target) -> int:
        return self.block_size if self.bounds is not None else 0

    def known_reference(self) -> Reference:
        return self.reference
