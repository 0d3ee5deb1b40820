"""The plan for a posterior with a horseshoe prior: where to expand the data, which test, and where
chains begin.

Draws under the expansion cost no data, so they say where the posterior lies: the expansion is taken
again about their median, and what it leaves out is measured at them.
"""

from dataclasses import asdict, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance import tuna
from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.mode._mode_search import Mode
from amagold.mode._reference import Reference, reference_at
from amagold.planning._at_mode import FEWEST_EXAMPLES, AtMode
from amagold.planning._candidate import Candidate
from amagold.planning._conditional_option import AFRESH, CONDITIONAL, conditional_draws
from amagold.planning._costs import MATRIX_OPERATIONS, costs_of
from amagold.planning._discretisation import acceptance_from
from amagold.planning._non_gaussianity import energies_above
from amagold.planning._plan import Plan
from amagold.planning._quarter_turn_option import LOWEST_ACCEPTANCE
from amagold.target import Posterior
from amagold.trajectory import Phase
from amagold.trajectory._conditional_draws import ConditionalDraws

NUM_CENTERS = 2  # expansions about the median of draws, one after the other
NUM_WALKS, NUM_STEPS = 16, 60  # of draws under an expansion
# rounds of a proposal: one brings about 0.1 effective draws of tau with a hundred coefficients, and
# 0.4 with ten
MANY, FEW, MOST_FOR_MANY = 8, 4, 256
KICKED_ACCEPTANCE = 0.75  # that warm-up keeps kicks small enough for
KICKED = 4  # rounds with kicks
MOST_UNKICKED = 0.1  # of log a's variance: beyond, chains would stay long in the tails
WORTH = 0.5  # of all examples, that a test on a few may look at
WIDER = 1.5  # times as far from the median as draws are: where chains begin


class Found(NamedTuple):
    """The plan, what it rests on, and starts on a leading axis."""

    plan: Plan
    at_mode: AtMode
    starts: trees.PyTree


def conditional_plan(
    target: Posterior, mode: Mode, key: jax.Array, num_chains: int, num_searches: int
) -> Found:
    """The plan of the target, from the mode of the one that guides it.

    Args:
      target: with a horseshoe prior.
      mode: of the target with the horseshoe's guide in its place.
      key: a random key, for draws under the expansion.
      num_chains: how many chains will run.
      num_searches: how many searches for the mode there were.
    """
    center, keys = trees.as_position(mode.position), jax.random.split(key, NUM_CENTERS + 1)
    for own_key in keys[:-1]:
        drawn = _walks(target, reference_at(target, center, 2), center, own_key, NUM_WALKS)
        median = jax.tree.map(lambda leaf: jnp.median(leaf, axis=0), drawn)
        center = median if bool(trees.all_finite(median)) else center
    reference = reference_at(target, center, 2)
    drawn = _walks(target, reference, center, keys[-1], max(NUM_WALKS, num_chains))
    at_mode = _with_test(target, reference)
    candidate = _candidate(target, at_mode, _left_out(target, reference, drawn))
    plan = Plan(
        **asdict(candidate),
        friction=0.0,
        trajectory_length=candidate.num_steps * candidate.step_size,
        target_acceptance=LOWEST_ACCEPTANCE if candidate.gradient != "full" else KICKED_ACCEPTANCE,
        gradient_variance=0.0,
        num_parameters=trees.size(center),
        num_examples=target.num_examples,
        num_chains=num_chains,
        slow_down=1.0,
        is_mode_found=mode.is_converged,
        is_curvature_positive=True,
        kinds=[{**asdict(candidate), "cost_per_draw": candidate.cost_per_draw}],
        num_searches=num_searches,
    )
    starts = jax.tree.map(
        lambda middle, leaf: np.asarray(middle + WIDER * (leaf[:num_chains] - middle)),
        center,
        drawn,
    )
    return Found(plan, at_mode, starts)


def guiding(target: Posterior) -> Posterior:
    """The target that searches for modes see."""
    return replace(target, log_prior=target.smooth_log_prior)


def _walks(
    target: Posterior, reference: Reference, start: trees.PyTree, key: jax.Array, count: int
) -> trees.PyTree:
    proposal = conditional_draws(target, reference, AFRESH)
    return _ends(proposal, start, jax.random.split(key, count))


@jit(ONCE)
def _ends(proposal: ConditionalDraws, start: trees.PyTree, keys: jax.Array) -> trees.PyTree:
    """Where draws under the expansion come to, for each key."""

    def walk(key: jax.Array) -> trees.PyTree:
        def step(at: trees.PyTree, key: jax.Array) -> tuple[trees.PyTree, None]:
            noise = proposal.draw(key, at)
            return proposal.step(Phase(at), noise, lambda position: position)[0].position, None

        return jax.lax.scan(step, start, jax.random.split(key, NUM_STEPS))[0]

    return jax.vmap(walk)(keys)


def _with_test(target: Posterior, reference: Reference) -> AtMode:
    """The exact test on a few examples, where it looks at clearly fewer than all."""
    found = AtMode(reference, position=reference.position)
    if target.bounds is None or target.num_examples < FEWEST_EXAMPLES:
        return found
    test: Any = tuna().bind(target, reference)
    is_worth_it = float(test.typical) <= WORTH * target.num_examples
    return found._replace(test=test if is_worth_it else None)


def _left_out(target: Posterior, reference: Reference, drawn: trees.PyTree) -> float:
    """The variance of log a: of what the expansion leaves out between two of these draws."""
    energies = np.asarray(energies_above(target, reference.position, drawn), np.float64)
    proposal = conditional_draws(target, reference, AFRESH)

    def expanded(position: trees.PyTree) -> jax.Array:
        return proposal.energy(*proposal.horseshoe.split(trees.flatten(position)))

    known = np.asarray(jax.jit(jax.vmap(expanded))(drawn), np.float64)
    rest = energies - known
    rest = rest[np.isfinite(rest)]
    # as wide as a Gaussian of the same 90%: tails count, and a single draw far off does not
    width = float(np.subtract(*np.quantile(rest, [0.95, 0.05]))) / 3.29 if len(rest) else np.inf
    return 2.0 * width**2


def _candidate(target: Posterior, at_mode: AtMode, variance: float) -> Candidate:
    costs, test = costs_of(target, at_mode.position), at_mode.test
    size = costs.num_parameters
    # few examples cost little, and their likelihood has tails that draws may not have seen
    is_kicked = variance > MOST_UNKICKED or target.num_examples < FEWEST_EXAMPLES
    num_steps = KICKED if is_kicked else MANY if size <= MOST_FOR_MANY else FEW
    drawn = 0.0 if test is None else float(test.noise)
    acceptance = float(acceptance_from(np.asarray(variance + drawn)))
    looked_at = float(target.num_examples) if test is None else float(test.typical)
    # a factorisation of the precision in every round
    own = num_steps * (MATRIX_OPERATIONS * size**2 + size**3 / 3.0) / costs.operations
    return Candidate(
        gradient="full" if is_kicked else "expansion",
        batch_plan=None,
        batch_size=None,
        mass="diagonal",
        num_steps=num_steps,
        step_size=AFRESH,
        acceptance=acceptance,
        noise_variance=0.0,
        discretisation_variance=variance,
        gradient_share=own / (own + looked_at),
        ess_per_transition=max(acceptance / (2.0 - acceptance), 1e-3),
        cost_per_transition=own + looked_at,
        test="full" if test is None else "tuna",
        test_examples=looked_at,
        integrator=CONDITIONAL,
    )
