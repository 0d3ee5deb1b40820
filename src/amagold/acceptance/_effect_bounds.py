"""How far a row's remainder can differ between two states of a sweep over effects, level by level.

One bound serves all moves: a row's predictor differs from the reference by a = y . d + sum_f t_f .
eta_f, |y| <= h_g, so that with A >= |a* - a| and C >= |a* + a|, both sums over what moves,

    |D_i| <= (k / 6) |a*^3 - a^3| <= (k / 6) A (3/4 C^2 + 1/4 A^2).

It is symmetric in the two states.
"""

import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_expansion import EffectExpansion
from amagold.acceptance._effect_state import EffectState
from amagold.acceptance._effect_terms import PerLevel
from amagold.core import trees
from amagold.core.array_types import Float32


@trees.record()
class EffectBounds(EffectExpansion):
    """Where tests look at rows at all."""

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
        return self.bounded(number, apart, together)

    def bounded(self, number: int, apart: PerLevel, together: PerLevel) -> PerLevel:
        """B_g from A_g and C_g."""
        assert self.bounds is not None
        terms = self.factors[number]
        growing = jnp.exp(0.5 * (apart + together))
        third = self.bounds.derivatives[2] * terms.scales
        if self.bounds.growth:
            third = third * growing**self.bounds.growth
        third = jnp.minimum(third, terms.weights * growing)
        return third / 6.0 * apart * (0.75 * together**2 + 0.25 * apart**2)

    def reaches(self, number: int, state: EffectState) -> PerLevel:
        """How far the rows of a factor's levels can be from the reference."""
        found = self.factors[number].lengths * jnp.linalg.norm(state.slopes)
        for other, others in enumerate(self.factors):
            sizes = others.sizes(state.effects[other])
            found = found + (sizes if other == number else self._met(number, other, sizes))
        return found

    def _met(self, number: int, other: int, sizes: Float32[Array, " others"]) -> PerLevel:
        """The largest of another factor's sizes that each level of this one meets."""
        ours, theirs = self.factors[number].form, self.factors[other].form
        table = next(each for each in self.crossed if {number, other} == set(each.factors))
        return table.largest(number, sizes, ours.num_levels, (ours.num_effects, theirs.num_effects))
