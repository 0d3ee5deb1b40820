"""The plan: which gradient, batch, trajectory, mass and step size to start the warm-up from, and
why.
"""

from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

import jax
import numpy as np

from amagold.acceptance import LevelTest, TunaTest
from amagold.core import checks, trees
from amagold.mode._curvature import Curvature
from amagold.mode._mode_search import Mode
from amagold.mode._reference import Reference
from amagold.mode._spectrum import grouped
from amagold.mode._survey_result import NEGLIGIBLE, Survey
from amagold.planning._at_mode import AtMode
from amagold.planning._candidate import Candidate
from amagold.planning._candidate_search import best_of, best_of_each_kind, every_candidate
from amagold.planning._conditional_option import CONDITIONAL
from amagold.planning._costs import TransitionCosts, costs_of
from amagold.planning._gradient_noise import GradientNoise, at_least_expected, measure_noise
from amagold.planning._leapfrog_option import FRICTION_SHARE
from amagold.planning._non_gaussianity import (
    NonGaussianity,
    measure_by_energies,
    measure_non_gaussianity,
)
from amagold.planning._option_registry import GRADIENTS, TESTS, TRAJECTORIES
from amagold.planning._plan_inputs import FewExamples, PlanInputs
from amagold.planning._plan_words import plan_sentences
from amagold.planning._quarter_turn_option import LOWEST_ACCEPTANCE
from amagold.planning._starts import NUM_PLACES, disperse
from amagold.samplers import Sampler
from amagold.target import Posterior, Target
from amagold.trajectory._mass_matrix import DenseMass, as_mass
from amagold.trajectory._named_mass import ARROW

# where the Gaussian at the mode says little: steps of a trajectory to begin with, its length once
# every parameter's width is one, a little more than a quarter period, and an acceptance that leaves
# room for walls and necks
STEPS_UNTRUSTED, LENGTH_UNTRUSTED, ACCEPTANCE_UNTRUSTED = 8, 2.0, 0.85
MOST_CORRELATED = 256  # parameters, up to which their correlations are a part of the mass
NUM_NOISY_PLACES = 4  # of them, where every example's is
MOST_ROUNDING = 1e-4  # of a turn's mass against its inverse
# of the step size, where leapfrog steps are planned: no direction is then in step with the
# trajectory for long
JITTER = 0.3
# times the planned trajectory: adaptation to an acceptance that hardly falls would go on and on
LONGEST = 1.15


@dataclass(frozen=True, kw_only=True)
class Plan(Candidate):
    """What the warm-up starts from: the choice and its figures, and what it rests on. Plain numbers
    and words, so that it can be stored with the draws.

    Costs are in evaluations of one example's log likelihood (of the density, for a target without
    data).
    """

    friction: float  # beta
    trajectory_length: float  # tau = T epsilon, in units of the mass
    target_acceptance: float  # what adaptation aims for
    gradient_variance: float  # V^2 of one gradient, in units of the mass
    num_parameters: int
    num_examples: int  # 0 for a target without data
    num_chains: int
    slow_down: float  # cost per effective draw, relative to the best with the full gradient
    is_mode_found: bool
    is_curvature_positive: bool
    kinds: list[dict[str, Any]]  # the best of each kind of gradient and test, the cheapest first
    # whether the Gaussian at the mode describes the posterior, at its draws too
    is_trusted: bool = True
    mode_shares: tuple[float, ...] = (1.0,)  # of the mass that was found, by mode
    is_explained: bool = True  # whether the modes account for all the mass that was found
    num_searches: int = 1  # for modes
    jitter: float = 0.0  # of the step size, from transition to transition
    # whether warm-up looks for the number of steps, because nothing here tells it
    searches_steps: bool = False
    # of a mixed model: its factors, and what a sweep over their levels would look at and cost, in
    # effective draws of this plan
    levels: dict[str, int] = field(default_factory=dict)
    sweep_rows: float = 0.0
    sweep_slow_down: float = 0.0

    @property
    def searched_mass(self) -> str:
        """What such a warm-up makes of the draws: with few of them, a diagonal and a low rank."""
        return "dense" if self.num_parameters <= MOST_CORRELATED else "diagonal"

    @property
    def friction_share(self) -> float:
        """T b: the share of the momentum that friction renews over a trajectory."""
        return self.friction * self.trajectory_length

    @property
    def predicted_acceptance(self) -> float:
        """At the step size that adaptation starts from."""
        return self.acceptance

    def to_json(self) -> dict[str, Any]:
        """The plan as a dictionary of numbers, words and lists."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Plan":
        """The plan that `to_json` stored."""
        if "acceptance" not in stored and "predicted_acceptance" in stored:
            # the name that earlier versions gave it
            stored = {**stored, "acceptance": stored["predicted_acceptance"]}
        missing = [
            each.name
            for each in fields(cls)
            if each.name not in stored
            and each.default is MISSING
            and each.default_factory is MISSING
        ]
        if missing:
            raise ValueError(
                f"stored must be a plan from to_json, got one without {', '.join(missing)}; make "
                "the plan again"
            )
        known: dict[str, Any] = {
            each.name: stored[each.name] for each in fields(cls) if each.name in stored
        }
        known["mode_shares"] = tuple(known.get("mode_shares", (1.0,)))
        return cls(**known)

    def sentences(self) -> list[str]:
        """The plan in plain words, with its figures."""
        return plan_sentences(self)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def initial_mass(self, curvature: Curvature) -> np.ndarray:
        """The mass to start from: the Hessian, or one over each parameter's variance, over the
        flattened position.
        """
        return _mass(curvature, self.mass, self.is_mode_found)

    @property
    def has_one_mode(self) -> bool:
        """Whether one mode seems to hold nearly all of the mass."""
        return self.is_explained and self.num_weighty_modes <= 1

    @property
    def num_weighty_modes(self) -> int:
        """Modes that may hold mass that matters."""
        return sum(share >= NEGLIGIBLE for share in self.mode_shares)

    @property
    def adapts_mass(self) -> bool:
        """Rotations and control variates are for posteriors near their Laplace approximation, whose
        curvature is the mass; an arrow is the curvature too.
        """
        return not self.is_nearly_right and self.mass != ARROW

    @property
    def is_nearly_right(self) -> bool:
        """Whether the posterior is known so well that little is left to tune."""
        return self.order is not None or self.integrator in ("rotation", CONDITIONAL)

    @property
    def begins_short(self) -> bool:
        """Far out a planned step may never be accepted, so that chains come in by shorter ones
        first.
        """
        return self.is_nearly_right

    @property
    def longest_trajectory(self) -> float:
        """What warm-up may lengthen a trajectory to; a quarter turn is as long as any should be,
        and nothing is more than afresh.
        """
        is_whole = self.integrator in ("rotation", CONDITIONAL)
        return self.trajectory_length * (1.0 if is_whole else LONGEST)

    def build(self, target: Target, mass: trees.PyTree, at_mode: AtMode | None = None) -> Sampler:
        """The sampler of this plan.

        Args:
          target: the target the plan was made for.
          mass: from `initial_mass`, or what adaptation has made of it.
          at_mode: what was found there when the plan was made; None finds it again.
        """
        at_mode = AtMode() if at_mode is None else at_mode
        gradient = GRADIENTS[self.gradient].build(self, at_mode)
        test = TESTS[self.test].build(self, target, at_mode)
        trajectory = TRAJECTORIES[self.integrator]
        return trajectory.build(self, target, mass, gradient, test, at_mode)


def make_plan(
    target: Target,
    mode: Mode,
    curvature: Curvature,
    key: jax.Array,
    *,
    num_chains: int,
    at_mode: AtMode | None = None,
    allow_turns: bool = True,
    found: Survey | None = None,
    noise_key: jax.Array | None = None,
) -> Plan:
    """Choose how to sample: the least cost per effective draw that theory predicts.

    For each mass, gradient, batch plan, batch size and number of steps, the variance of log a is
    predicted from the curvature (the leapfrog's error on a Gaussian) and from the gradients'
    measured noise; the step size follows from the acceptance that allows, and the effective draws
    from how far a trajectory turns along the slowest direction.

    Args:
      target: an `amagold.Posterior` or `amagold.Density`.
      mode: from `find_mode`.
      curvature: there, from `curvature_at`.
      key: a random key, for the places where gradients are looked at.
      num_chains: how many chains will run.
      at_mode: a reference for control variates and an exact test on a few examples, from
        `build_at_mode`; None leaves both out.
      allow_turns: whether a nearly Gaussian posterior may be crossed by quarter turns, which have
        no step size or mass to adapt.
      found: how many modes there are, from `survey`; None takes the one for granted.
      noise_key: another one, for the batches that the noise is measured with; None derives it.
    """
    checks.whole_number("num_chains", num_chains, at_least=1, remedy="give the number of chains")
    costs = costs_of(target, mode.position)
    at_mode = AtMode() if at_mode is None else at_mode
    has_one_region = found is None or found.has_one_region
    places, rest = _look_around(target, mode, curvature, key, num_chains, at_mode)
    is_trusted = mode.is_converged and has_one_region and (rest is None or rest.is_moderate)
    if not is_trusted:
        at_mode = AtMode(position=at_mode.position)
    masses = list(_masses(mode, curvature, is_trusted))
    noise_key = jax.random.fold_in(key, 1) if noise_key is None else noise_key
    known = curvature.of_data
    noises = at_least_expected(
        _noises(target, places, noise_key, at_mode.reference),
        None if known is None else np.asarray(known.hessian, np.float64),
        target.num_examples,
    )
    turns = (
        rest
        if allow_turns and is_trusted and "dense" in masses and _may_turn(curvature, rest)
        else None
    )
    by_mass = {
        kind: _inputs(kind, is_trusted, mode, curvature, noises, costs, at_mode.test, turns)
        for kind in masses
    }
    fewest = 1 if is_trusted else STEPS_UNTRUSTED
    candidates = [
        candidate for inputs in by_mass.values() for candidate in every_candidate(inputs, fewest)
    ]
    kinds = best_of_each_kind(candidates)
    full = next(candidate for candidate in kinds if candidate.gradient == "full")
    # the full gradient first: another must be clearly cheaper
    best = best_of([full, *kinds])
    searches_steps = not is_trusted and best.gradient == "full"
    if searches_steps:
        best = replace(
            best,
            num_steps=STEPS_UNTRUSTED,
            step_size=LENGTH_UNTRUSTED / STEPS_UNTRUSTED,
            acceptance=ACCEPTANCE_UNTRUSTED,
        )
    inputs, is_turning = by_mass[best.mass], best.integrator == "rotation"
    chosen_noise = inputs.noise if best.order is None else inputs.controlled[best.order]
    return Plan(
        **asdict(best),
        friction=0.0 if is_turning else FRICTION_SHARE / (best.num_steps * best.step_size),
        trajectory_length=best.num_steps * best.step_size,
        target_acceptance=LOWEST_ACCEPTANCE if is_turning else best.acceptance,
        gradient_variance=0.0
        if chosen_noise is None
        else _gradient_variance(best, float(chosen_noise.sum()), costs.num_examples),
        num_parameters=curvature.num_parameters,
        num_examples=target.num_examples,
        num_chains=int(num_chains),
        slow_down=best.cost_per_draw / full.cost_per_draw,
        is_mode_found=mode.is_converged,
        is_curvature_positive=curvature.is_positive,
        kinds=[{**asdict(kind), "cost_per_draw": kind.cost_per_draw} for kind in kinds],
        is_trusted=is_trusted,
        mode_shares=(1.0,) if found is None else tuple(found.shares),
        is_explained=found is None or found.is_explained,
        num_searches=1 if found is None else found.num_searches,
        jitter=0.0 if is_turning else JITTER,
        searches_steps=searches_steps,
    )


def _mass(curvature: Curvature, kind: str, is_mode_found: bool) -> np.ndarray:
    """M = H for a dense mass; for a diagonal one over each parameter's variance, to which
    adaptation converges.
    """
    if not is_mode_found:
        return 1.0 / curvature.modest_variances()
    return (
        curvature.matrix
        if kind == "dense" and curvature.matrix is not None
        else 1.0 / curvature.variances()
    )


def _masses(mode: Mode, curvature: Curvature, is_trusted: bool) -> Iterator[str]:
    """The masses to choose from; a matrix that does not describe the posterior is used for its
    diagonal alone.
    """
    yield "diagonal"
    if curvature.is_dense and curvature.is_positive and is_trusted and curvature.num_parameters > 1:
        yield "dense"


def _look_around(
    target: Target,
    mode: Mode,
    curvature: Curvature,
    key: jax.Array,
    num_chains: int,
    at_mode: AtMode,
) -> tuple[trees.PyTree, NonGaussianity | None]:
    """A few draws of the Laplace approximation, and what it leaves of the gradient there."""
    places = disperse(target, mode, curvature, NUM_PLACES, key, scale=1.0, at_least=num_chains)
    if not (mode.is_converged and curvature.is_dense and curvature.is_positive):
        return places, None
    mass = _mass(curvature, "dense", True)
    if at_mode.tilt is not None:
        return places, measure_by_energies(target, mode.position, mass, places, at_mode)
    return places, measure_non_gaussianity(target, mode.position, mass, places)


def _noises(
    target: Target, places: trees.PyTree, key: jax.Array, reference: Reference | None
) -> dict[int | None, GradientNoise]:
    """The gradients' noise at a few places, by the order of the control variates."""
    few = jax.tree.map(lambda leaf: leaf[:NUM_NOISY_PLACES], places)
    return measure_noise(target, few, key, reference) if isinstance(target, Posterior) else {}


def _may_turn(curvature: Curvature, rest: NonGaussianity | None) -> bool:
    """A turn goes there and back through the mass, and would not come back where that rounds too
    much.
    """
    mass = as_mass(_mass(curvature, "dense", True))
    return (
        rest is not None
        and rest.is_small
        and isinstance(mass, DenseMass)
        and mass.rounding <= MOST_ROUNDING
    )


def _inputs(
    kind: str,
    is_trusted: bool,
    mode: Mode,
    curvature: Curvature,
    noises: dict[int | None, GradientNoise],
    costs: TransitionCosts,
    test: TunaTest | LevelTest | None,
    rest: NonGaussianity | None,
) -> PlanInputs:
    mass = _mass(curvature, kind, mode.is_converged)
    spectrum, directions = curvature.whitened_by(mass)
    # where it is not trusted no direction counts as wider than the step its mass stands for
    seen = spectrum if is_trusted else spectrum.at_least(1.0)
    by_direction = {
        order: grouped(seen, noise.along(mass, spectrum, directions))[1]
        for order, noise in noises.items()
    }
    controlled = {
        order: noise
        for order, noise in by_direction.items()
        if order is not None and noise is not None
    }
    few = None if test is None else FewExamples(float(test.typical), float(test.noise), _rare(test))
    return PlanInputs(
        kind,
        grouped(seen, None)[0],
        by_direction.get(None),
        costs,
        controlled,
        few,
        rest if kind == "dense" else None,
    )


def _rare(test: TunaTest | LevelTest) -> int:
    return test.rare.num_rows if isinstance(test, LevelTest) and test.rare is not None else 0


def _gradient_variance(candidate: Candidate, of_one_example: float, num_examples: int) -> float:
    """V^2 of the plan's gradient: 1 / B of one example's, less what drawing without replacement
    saves.
    """
    if candidate.batch_size is None:
        return 0.0
    left = (
        1.0
        if candidate.batch_plan == "iid"
        else (num_examples - candidate.batch_size) / (num_examples - 1.0)
    )
    return left * of_one_example / candidate.batch_size
