"""The rows that tests of a sweep over effects look at (`_group_visit.py`), and what they say."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_bounds import EffectBounds
from amagold.acceptance._effect_state import EffectState
from amagold.acceptance._effect_terms import FactorTerms, PerLevel
from amagold.acceptance._group_visit import GroupQuestion, Visit, visit_by
from amagold.acceptance._remainders import Remainder, remainder
from amagold.core import trees
from amagold.core.shapes import RandomKey, Scalar
from amagold.target import Posterior, Target, with_data


@trees.record()
class EffectVisits(EffectBounds):
    """What moves ask for: l_g, which the remainders of a level's rows add to log a."""

    def visit(
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
            return self.differences(posterior, moves, posterior.examples.rows(examples))

        return visit_by(differences, rows, question, key, self.block_size)

    def differences(self, target: Posterior, moves: dict[str, Array], rows: Any) -> Remainder:
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

    def visit_all(
        self,
        number: int,
        target: Target,
        here: EffectState,
        there: EffectState,
        bounds: PerLevel,
        spread: Scalar,
        key: RandomKey,
    ) -> Visit:
        """For one test that all levels share: kappa = max(1, spread times the whole rate)."""
        rate = jnp.sum(counts_of(self.factors[number]) * bounds)
        kappa = jnp.maximum(1.0, spread * rate) * jnp.ones_like(bounds)
        return self.visit(number, target, here, there, bounds, kappa, key)


def no_visit(terms: FactorTerms) -> Visit:
    """Of a test that needs no rows."""
    zero = jnp.int32(0)
    nothing = jnp.zeros(terms.form.num_levels, jnp.float32)
    return Visit(nothing, zero, jnp.int32(-1), jnp.float32(0.0), zero)


def counts_of(terms: FactorTerms) -> Array:
    assert terms.rows is not None
    return terms.rows.counts
