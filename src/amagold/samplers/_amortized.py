"""Amortized Metropolis adjustment (Section 4 of the paper): T steps of any proposal, corrected
once.

One transition is `advance(state, draw(key), gather(...))`: the randomness is drawn apart from its
use, so that it can be drawn in bulk, fed backwards by a test, or told to a data loader ahead of
time.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.acceptance import Acceptance, UnboundTest, full
from amagold.acceptance._acceptance_test import Decision
from amagold.core import checks, trees
from amagold.core.randomness import draw_all, resolve
from amagold.gradients import GradientEstimator, full as full_gradient
from amagold.samplers._info import Info, MoveInfo, count
from amagold.samplers._kernel import Kernel
from amagold.target import Target
from amagold.trajectory._densities import from_densities
from amagold.trajectory._phase import Phase, Proposal
from amagold.trajectory._trajectory import run_trajectory
from amagold.trajectory._tunable import settings_of, with_settings

STRETCH = 0x57E7  # folded into a transition's key for the step size's own number
# a transition of all chains that needs more noise than this draws it step by step
LATE_BYTES = 256 * 2**20


class State(NamedTuple):
    """What the next transition needs."""

    position: trees.PyTree  # theta
    # r in standardised units, N(0, I); empty when it is drawn afresh for every transition
    momentum: trees.PyTree
    memory: Any  # what the test remembers of the position
    # of the transition, where step sizes go in cycles; else empty
    number: Any = ()


class Randomness(NamedTuple):
    """Everything random about one transition; nothing here depends on the state."""

    momentum: trees.PyTree  # empty when the momentum is kept
    noise: Any  # the proposal's noise, steps on the leading axis
    gradient_noise: Any  # the gradient estimator's own noise, steps on the leading axis
    batches: Any  # which examples the steps' gradients see, steps on the leading axis
    test: Any  # the uniform number of the test
    # what the step size is multiplied by in this transition; empty where it is fixed
    stretch: Any = ()


# chains come after the steps where there are steps, so that a step's scan reads them without a
# transposition
CHAIN_AXES = Randomness(momentum=0, noise=1, gradient_noise=1, batches=1, test=0, stretch=0)


@trees.record(static=("num_steps", "resample_momentum", "jitter", "cycle"))
class Sampler(Kernel):
    """A target, a proposal, a gradient and a test: BlackJAX's `init` and `step`, and the three
    parts of a step.

    The record is a pytree: pass it to your own jitted functions as an argument, and a new step
    size, friction or mass does not recompile them, nor is the data baked into them.
    """

    target: Target
    proposal: Proposal
    gradient: GradientEstimator
    acceptance: Acceptance
    num_steps: int
    resample_momentum: bool
    # each transition's step size is drawn from step_size (1 - jitter, 1 + jitter), against
    # resonances
    jitter: float = 0.0
    # how many of the num_steps a trajectory makes, where warm-up looks for their number: one
    # traced number for all chains, which no state has a say in; None makes all of them
    first_steps: Any = None
    # transitions in which the step size falls along half a cosine, and then begins anew; 0: it
    # stays
    cycle: int = 0

    @property
    def label(self) -> str:
        """Whether draws are exact in the limit: "exact", "biased", or "approximate" with
        its error.
        """
        return "biased" if self.proposal.symmetry == "none" else self.acceptance.label

    @property
    def settings(self) -> dict[str, Any]:
        """What of the proposal warm-up may set: its step size, friction and mass, where it has
        them.
        """
        return settings_of(self.proposal)

    def with_settings(self, **settings: Any) -> "Sampler":
        """The sampler with other settings of its proposal; traced values may be given."""
        return dataclasses.replace(self, proposal=with_settings(self.proposal, **settings))

    @property
    def tuned(self) -> Proposal:
        return self.proposal

    def with_tuned(self, tuned: Proposal) -> "Sampler":
        return dataclasses.replace(self, proposal=tuned)

    def init(self, position: trees.PyTree, key: jax.Array | None = None) -> State:
        """The state at a position. A kept momentum starts from its stationary law if a key is
        given, else from zero.
        """
        position = trees.as_position(position)
        self.check(position)
        state = self.rest(position, key)._replace(memory=_remember(self, position))
        if trees.is_concrete(state.memory) and not all(
            bool(trees.all_finite(leaf)) for leaf in jax.tree.leaves(state.memory)
        ):
            raise ValueError(
                "position must have a finite log density, got one that is not; start where the "
                "density is positive"
            )
        return state

    def rest(self, position: trees.PyTree, key: jax.Array | None) -> State:
        """The same without what the test remembers."""
        momentum: trees.PyTree = ()
        if not self.resample_momentum:
            momentum = _first_momentum(self.proposal, key, position)
        return State(position, momentum, (), jnp.int32(0) if self.cycle else ())

    def remember(self, position: trees.PyTree) -> Any:
        return self.acceptance.remember(self.target, position)

    def energy(self, state: State) -> Any:
        return self.acceptance.energy(state.memory)

    def known_reference(self) -> Any:
        return self.gradient.known_reference() or self.acceptance.known_reference()

    def known_norm(self) -> Any:
        return self.acceptance.known_norm()

    @property
    def uses_work(self) -> bool:
        return self.acceptance.uses_work

    @property
    def is_count_fixed(self) -> bool:
        return self.acceptance.is_count_fixed

    @property
    def is_external(self) -> bool:
        return self.gradient.is_external

    @property
    def chain_axes(self) -> Randomness:
        return CHAIN_AXES

    def check(self, position: trees.PyTree) -> None:
        """Raise with a clear sentence when the target or the proposal does not fit positions like
        this one.
        """
        self.target.check(position)
        self.proposal.check(position)

    def step(
        self, key: jax.Array, state: State, batches: trees.PyTree = None
    ) -> tuple[State, Info]:
        """One transition. `batches` is for plan="external": T batches of rows, stacked on a leading
        axis.
        """
        return _step(self, key, state, batches)

    def draw(self, key: jax.Array, position: trees.PyTree, late: bool = False) -> Randomness:
        """All randomness of one transition. Only shapes and types of the position are read.

        With `late`, large noise stays a key until its step; the bits are the same.
        """
        noise_key, batch_key, test_key = jax.random.split(key, 3)
        draws = {
            "momentum": (self.proposal.draw_momentum if self.resample_momentum else None, None),
            "noise": (self.proposal.draw, self.num_steps),
            "gradient_noise": (self.gradient.draw_noise, self.num_steps),
        }
        batches = self.gradient.draw(batch_key, self.target, self.num_steps)
        drawn = draw_all(draws, noise_key, position, late)
        return Randomness(
            **drawn,
            batches=batches,
            test=self.acceptance.draw(test_key),
            stretch=self._draw_stretch(key),
        )

    def _draw_stretch(self, key: jax.Array) -> Any:
        """The same for all steps of a trajectory and the same both ways, so that the transition
        stays exact.
        """
        if not self.jitter:
            return ()
        return jax.random.uniform(
            jax.random.fold_in(key, STRETCH), minval=1.0 - self.jitter, maxval=1.0 + self.jitter
        )

    def draws_late(self, position: trees.PyTree, num_chains: int = 1) -> bool:
        """Whether one transition of all chains needs so much noise that it is better drawn late."""
        drawn = jax.eval_shape(lambda key: self.draw(key, position), jax.random.key(0))
        return trees.num_bytes((drawn.noise, drawn.gradient_noise)) * num_chains > LATE_BYTES

    def gather(self, randomness: Randomness, batches: trees.PyTree = None) -> Any:
        """The rows that the transition's minibatches name, steps on the leading axis."""
        if self.gradient.is_external:
            return self.gradient.arrange(randomness.batches, _checked(self, batches))
        return self.gradient.gather(self.target, randomness.batches)

    @property
    def can_go_ahead(self) -> bool:
        """Whether all rows that transitions mostly need are known from their randomness alone."""
        return self.gradient.can_foresee and self.acceptance.can_foresee

    def num_gradients(self, position: trees.PyTree) -> int:
        """How many gradients one transition evaluates. Nothing is computed, and the target is not
        asked.
        """
        counted: list[int] = []

        def count(key: jax.Array, position: trees.PyTree) -> None:
            randomness = self.draw(key, position)
            momentum = (
                randomness.momentum
                if self.resample_momentum
                else _first_momentum(self.proposal, key, position)
            )
            zero_gradient = lambda at, step: jax.tree.map(jnp.zeros_like, at)  # noqa: E731
            noise = randomness.noise
            counted.append(
                run_trajectory(
                    self.proposal,
                    Phase(position, momentum),
                    noise,
                    (),
                    zero_gradient,
                    self.num_steps,
                )[2]
            )

        jax.eval_shape(count, jax.random.key(0), position)
        return self.num_steps * counted[0]

    def num_gradient_examples(self, position: trees.PyTree) -> int:
        return self.num_gradients(position) * self.gradient.num_examples(self.target)

    @property
    def num_energy_examples(self) -> int:
        return self.acceptance.num_examples(self.target)

    def _stretch(self, state: State, randomness: Randomness) -> Any:
        """What the step size is multiplied by: drawn apart from the state, or known from the
        transition's number, so that every transition stays exact.
        """
        stretch = randomness.stretch if self.jitter else 1.0
        if not self.cycle:
            return stretch
        # epsilon_k = (epsilon / 2) (1 + cos(pi (k mod C) / C))
        return 0.5 * stretch * (1.0 + jnp.cos(jnp.pi * state.number / self.cycle))

    def _run(
        self, state: State, origin: Phase, randomness: Randomness, rows: Any
    ) -> tuple[Phase, jax.Array, int]:
        """The trajectory's end, its work, and the gradients that each step asked for."""

        def gradient(position: trees.PyTree, step: tuple[Any, Any]) -> trees.PyTree:
            step_rows, noise = step
            if rows is None:
                step_rows = self.gradient.gather(self.target, step_rows)
            return self.gradient.estimate(
                self.target, position, step_rows, resolve(self.gradient.draw_noise, noise, position)
            )

        proposal: Any = self.proposal
        if self.jitter or self.cycle:
            step_size = self.settings["step_size"] * self._stretch(state, randomness)
            proposal = with_settings(proposal, step_size=step_size)
        needed = (randomness.batches if rows is None else rows, randomness.gradient_noise)
        return run_trajectory(
            proposal,
            origin,
            randomness.noise,
            needed,
            gradient,
            self.num_steps,
            self.first_steps,
        )

    def advance(self, state: State, randomness: Randomness, rows: Any = None) -> tuple[State, Info]:
        """The transition itself: pure arithmetic. With `rows=None` each step gathers its own rows
        from the target's data.
        """
        origin = self._origin(state, randomness)
        end, work, calls = self._run(state, origin, randomness, rows)
        decision = self.acceptance.decide(
            self.target, randomness.test, state.memory, end.position, work
        )
        return self._moved(state, origin, end, calls, decision)

    def advance_from(
        self, state: State, randomness: Randomness, rows: Any, foreseen: Any, test_rows: Any
    ) -> tuple[State, Info, jax.Array]:
        """The transition from rows that were brought ahead, for the gradients and for the test, and
        whether they were enough; if not, it has to be made by `advance`.
        """
        origin = self._origin(state, randomness)
        end, work, calls = self._run(state, origin, randomness, rows)
        decision, is_decided = self.acceptance.decide_from(
            foreseen, test_rows, self.target, randomness.test, state.memory, end.position, work
        )
        return *self._moved(state, origin, end, calls, decision), is_decided

    def _origin(self, state: State, randomness: Randomness) -> Phase:
        return Phase(
            state.position, randomness.momentum if self.resample_momentum else state.momentum
        )

    def _moved(
        self, state: State, origin: Phase, end: Phase, calls: int, decision: Decision
    ) -> tuple[State, Info]:
        """The next state and the diagnostics, from the decision."""
        # accepted: (theta*, r*); rejected: (theta, r)^, which negates the momentum
        turned = self.proposal.reverse(origin)
        reached = end.position if decision.position is None else decision.position
        following: Any = (state.number + 1) % self.cycle if self.cycle else ()
        accepted = State(
            reached, () if self.resample_momentum else end.momentum, decision.memory, following
        )
        rejected = State(
            turned.position,
            () if self.resample_momentum else turned.momentum,
            state.memory,
            following,
        )
        state = trees.where(decision.is_accepted, accepted, rejected)

        acceptance_rate = jnp.where(
            jnp.isfinite(decision.log_ratio), jnp.exp(jnp.minimum(decision.log_ratio, 0.0)), 0.0
        )
        info = Info(
            is_accepted=decision.is_accepted,
            acceptance_rate=acceptance_rate,
            log_ratio=decision.log_ratio,
            is_divergent=decision.is_divergent,
            num_gradient_examples=self._num_gradient_examples(calls),
            num_energy_examples=count(self.acceptance.num_examples(self.target))
            if decision.num_examples is None
            else decision.num_examples,
            label=self.label,
            broken_bound=decision.broken_bound,
            blocks={
                name: MoveInfo(move.acceptance_rate, move.num_examples)
                for name, move in dict(decision.moves).items()
            }
            or (),
        )
        return state, info

    def _num_gradient_examples(self, calls: int) -> jax.Array:
        """Of a transition whose steps ask for so many gradients each."""
        per_step = calls * self.gradient.num_examples(self.target)
        if self.first_steps is None:
            return count(self.num_steps * per_step)
        return count(per_step) * jnp.minimum(self.first_steps, self.num_steps)


def amortized(
    target: Target,
    proposal: Any,
    num_steps: int = 10,
    gradient: GradientEstimator | None = None,
    acceptance: Acceptance | UnboundTest | None = None,
    resample_momentum: bool = True,
) -> Sampler:
    """T steps of any proposal, corrected once by a Metropolis-Hastings test (eq. 3 and eq. 6 of the
    paper).

    Args:
      target: what to sample from.
      proposal: one stochastic step with tractable densities. With `draw`, `propose` and
        `log_density` on positions it is corrected by the reversible form; with `reverse`,
        `draw_momentum` and `log_momentum` too, on phases, by the skew-reversible form; one that
        knows its own work has `step`. `amagold.trajectory` has examples.
      num_steps: T.
      gradient: how grad U is estimated; None is the exact gradient.
      acceptance: the test; None is the exact test over all data.
      resample_momentum: draw the momentum afresh for every transition (reversible), or keep it and
        negate it on rejection.
    """
    gradient = full_gradient() if gradient is None else gradient
    acceptance = full() if acceptance is None else acceptance
    checks.whole_number(
        "num_steps", num_steps, at_least=1, remedy="give the number of proposal steps per test"
    )
    _check_part("gradient", gradient, "amagold.gradients.GradientEstimator")
    _check_part("acceptance", acceptance, "amagold.acceptance.Acceptance")
    gradient.check(target, int(num_steps))
    estimator = gradient.bind(target)
    test = acceptance.bind(target, estimator.known_reference())
    if not resample_momentum and test.needs_fresh_momentum:
        raise ValueError(
            "resample_momentum must be True with acceptance.barker, got False: each of its many "
            "rejections would turn the chain around; "
            "use another test, or a fresh momentum"
        )
    if test.label == "exact" and not estimator.keeps_exactness:
        raise ValueError(
            "gradient must use a batch plan that is reversal-invariant with an exact test, got "
            "one that says it is not: the "
            "T batches of a trajectory must be as likely in reverse; use plan='iid', 'epoch', "
            "'palindrome' or 'external'"
        )
    moves = from_densities(proposal, test.uses_work)
    _check_proposal(moves, test, resample_momentum)
    return Sampler(target, moves, estimator, test, int(num_steps), bool(resample_momentum))


def _check_part(name: str, part: Any, base: str) -> None:
    """Raise where something was given that is no gradient, or no test."""
    if not callable(getattr(part, "bind", None)):
        raise ValueError(
            f"{name} must be of a class that derives from {base}, got {type(part).__name__}; "
            "use one of amagold's own, or derive yours from it"
        )


def _check_proposal(proposal: Proposal, test: Acceptance, resample_momentum: bool) -> None:
    """Raise where a test could not make the draws exact, or chains would stay on few paths."""
    if proposal.symmetry == "none" and test.uses_work:
        raise ValueError(
            "proposal must be reversible or skew-reversible for a test to follow, got "
            f"{type(proposal).__name__}, whose work does "
            "not account for the way back; use trajectory.Leapfrog, or acceptance.never_reject(), "
            "which is biased"
        )
    if (
        proposal.symmetry == "skew-reversible"
        and not resample_momentum
        and not proposal.refreshes_momentum
    ):
        raise ValueError(
            "friction must be positive with resample_momentum=False, got none in "
            f"{type(proposal).__name__}: the momentum would "
            "never be refreshed; give a positive friction, or use resample_momentum=True"
        )


@jax.jit
def _step(
    sampler: Sampler, key: jax.Array, state: State, batches: trees.PyTree
) -> tuple[State, Info]:
    randomness = sampler.draw(key, state.position, late=sampler.draws_late(state.position))
    rows = (
        None
        if batches is None and not sampler.gradient.is_external
        else sampler.gather(randomness, batches)
    )
    return sampler.advance(state, randomness, rows)


@jax.jit
def _remember(sampler: Sampler, position: trees.PyTree) -> Any:
    return sampler.remember(position)


def _first_momentum(
    proposal: Proposal, key: jax.Array | None, position: trees.PyTree
) -> trees.PyTree:
    draw = proposal.draw_momentum
    if draw is None:
        return ()
    if key is not None:
        return draw(key, position)
    form = jax.eval_shape(lambda unused: draw(unused, position), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form)


def _checked(sampler: Sampler, batches: trees.PyTree) -> trees.PyTree:
    """The outside loader's batches, if they have the form the trajectory needs."""
    leading = (sampler.num_steps, sampler.gradient.batch_size)  # type: ignore[attr-defined]
    wanted = jax.tree.map(lambda leaf: (*leading, *leaf.shape), sampler.target.example)
    found = jax.tree.map(jnp.shape, batches)
    if batches is None or found != wanted:
        raise ValueError(
            "batches must hold num_steps x batch_size rows of every data array with "
            f"plan='external': shapes {wanted}, got "
            f"{'none' if batches is None else found}; stack the next {sampler.num_steps} batches "
            "of the loader"
        )
    return batches
