"""Does a sampler leave the posterior alone? A test that anyone can run on their own model."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance import FullTest
from amagold.core import checks, trees
from amagold.diagnose._reference_draws import ReferenceDraws, all_at, run_reference
from amagold.diagnose._test_functions import Standardisation, measure, names, remember_total
from amagold.runner import run_chunks, start_chains
from amagold.samplers import Kernel, Sampler
from amagold.target import Density, Posterior, Target
from amagold.target._reported import sampled

# how often a settled reference may be called unsettled: the price is another, longer run
UNSETTLED_RATE = 1e-2
# a sampler is called biased only if a reference this many times as long, going on from the first,
# says so too
AGAIN = 4
STUCK = 0.7  # correlation of start and end above which the sampler has hardly moved
SURELY = 1.645  # a bias this many standard errors above the threshold is seen with probability 0.95
EXAMPLES_AT_ONCE = 2**20  # positions x examples whose energies are computed together
BALANCE = "balance of the ratio"


class Quantity(NamedTuple):
    """One comparison. Deviations are in units of their threshold, the others in posterior standard
    deviations.
    """

    name: str
    deviation: float  # sampler against reference
    control_deviation: float  # the reference against itself, earlier against later
    difference: float
    standard_error: float


class Report(NamedTuple):
    """What `check` found."""

    is_exact_looking: bool | None  # None: undecided, and the sentence says why
    # in units of the threshold: above 1 means that the sampler moved the posterior
    largest_deviation: float
    # the same for the reference alone: above 1 means that it has not settled
    largest_control_deviation: float
    # a bias of a mean that would be seen with probability 0.95, in posterior standard deviations
    smallest_visible_bias: float
    acceptance_rate: float
    start_end_correlation: float  # of the coordinate that the sampler moved least
    quantities: tuple[Quantity, ...]
    sentence: str

    def __str__(self) -> str:
        worst = sorted(self.quantities, key=lambda quantity: -quantity.deviation)[:8]
        width = max(len(quantity.name) for quantity in worst)
        lines = [
            self.sentence,
            "",
            f"{'quantity':<{width}}  {'shift (sd)':>10}  {'error (sd)':>10}  "
            f"{'of limit':>8}  {'control':>7}",
        ]
        for quantity in worst:
            lines.append(
                f"{quantity.name:<{width}}  {quantity.difference:>10.4f}  "
                f"{quantity.standard_error:>10.4f}  "
                f"{quantity.deviation:>8.2f}  {quantity.control_deviation:>7.2f}"
            )
        hidden = len(self.quantities) - len(worst)
        return "\n".join(
            lines + ([f"... and {hidden} more, all with smaller deviations"] if hidden else [])
        )


class CheckedRun(NamedTuple):
    """Averages over the checked sampler's transitions, chain by chain."""

    values: np.ndarray  # (chain, quantity)
    balance: np.ndarray | None  # (chain,)
    last: jax.Array  # (chain, coordinate)
    acceptance_rate: float
    num_not_finite: int


def check(
    target: Target,
    sampler: Sampler,
    *,
    position: trees.PyTree = None,
    num_chains: int = 512,
    num_transitions: int = 200,
    num_reference: int = 200,
    false_alarm_rate: float = 1e-4,
    seed: int = 0,
) -> Report:
    """Start the sampler from trusted draws of the posterior and see whether it moves them.

    The trusted draws come from full-batch Hamiltonian Monte Carlo, one start from each of many
    chains, in code that shares only the target with the samplers. An exact sampler leaves the
    distribution as it found it; so the averages, over the sampler's transitions, of each
    coordinate, of its square and of the energy must agree with the reference's, up to an error that
    the independent chains reveal. A sampler with the exact test must also balance: log a is as
    often won as lost.

    Sees: no test or a wrong one, batches in an order that is not reversible, a proposal whose
    density is wrong, gradients that the correction does not know of, a target that differs between
    the sampler and `target`. The report states the smallest bias that it would have seen.

    Does not see: modes that no chain found, from this `position`; correlations that leave all
    coordinates and the energy alone; what reference and sampler share, above all a wrong model. It
    is a test: a pass bounds the bias, and does not prove that it is zero. If the reference has not
    settled, the report is undecided, and says so; and a sampler that fails is tried once more, from
    a reference that has run on for four times as long.

    Args:
      target: the posterior to be left alone.
      sampler: any sampler of this library, of batches that it draws itself.
      position: where the reference starts, on the scale of `amagold.sample`'s draws; None is
        `target.init`. The report is about the positions that are sampled.
      num_chains: independent chains. Errors fall as one over the square root.
      num_transitions: transitions of the checked sampler. More show smaller biases, and biases that
        build up slowly.
      num_reference: transitions of the reference to burn in, and again to measure.
      false_alarm_rate: the chance that an exact sampler with a settled reference is said to be
        biased.
      seed: of all randomness.
    """
    if not isinstance(target, (Posterior, Density)):
        raise ValueError(
            "target must be an amagold.Posterior or amagold.Density, got "
            f"{type(target).__name__}; the sampler comes second"
        )
    if not isinstance(sampler, Kernel):
        raise ValueError(
            f"sampler must be a sampler of this library, got {type(sampler).__name__}; build one "
            "with amagold.amagold(target, ...)"
        )
    position = _start(target, position)
    _check_arguments(sampler, num_chains, num_transitions, num_reference, false_alarm_rate)
    target.check(position)

    def attempt(
        starts: jax.Array, num_reference: int, key: jax.Array
    ) -> tuple[ReferenceDraws, Report]:
        reference_key, start_key, run_key = jax.random.split(key, 3)
        reference = run_reference(target, position, starts, num_reference, reference_key)
        run = _run_sampler(
            target, sampler, position, reference, num_transitions, start_key, run_key
        )
        return reference, _judge(reference, run, names(position), false_alarm_rate)

    first_key, second_key = jax.random.split(jax.random.key(seed))
    reference, report = attempt(all_at(position, num_chains), num_reference, first_key)
    if report.is_exact_looking is False:
        # a drift of the reference that its own halves do not show would shrink now; a bias of the
        # sampler stays
        _, report = attempt(reference.positions, AGAIN * num_reference, second_key)
    return report


def _start(target: Target, position: trees.PyTree) -> trees.PyTree:
    position = target.init if position is None else sampled(target, position, "position")
    if position is None:
        raise ValueError(
            "position must be given for a target without init: where should the chains start? "
            "Pass position=..., or init=..."
        )
    return trees.as_position(position)


def _check_arguments(
    sampler: Sampler,
    num_chains: int,
    num_transitions: int,
    num_reference: int,
    false_alarm_rate: float,
) -> None:
    checks.whole_number(
        "num_chains",
        num_chains,
        at_least=20,
        remedy="errors are judged from independent chains; 500 is a good number",
    )
    checks.whole_number(
        "num_transitions",
        num_transitions,
        at_least=1,
        remedy="give the transitions of the checked sampler",
    )
    checks.whole_number(
        "num_reference",
        num_reference,
        at_least=10,
        remedy="give the transitions of the reference; 200 is a good number",
    )
    checks.number(
        "false_alarm_rate", false_alarm_rate, above=0.0, remedy="give a probability such as 1e-4"
    )
    if false_alarm_rate >= 1.0:
        raise ValueError(
            f"false_alarm_rate must be below 1, got {false_alarm_rate:g}; give a probability such "
            "as 1e-4"
        )
    if sampler.is_external:
        raise ValueError(
            "sampler must draw its own batches to be checked, got plan='external'; check it with "
            "plan='iid' or 'epoch'"
        )


def _run_sampler(
    target: Target,
    sampler: Sampler,
    like: trees.PyTree,
    reference: ReferenceDraws,
    num_transitions: int,
    start_key: jax.Array,
    run_key: jax.Array,
) -> CheckedRun:
    starts = trees.unflatten_like(reference.positions, like)
    states = start_chains(sampler, starts, start_key)
    num_chains = reference.positions.shape[0]
    has_ratio = isinstance(getattr(sampler, "acceptance", None), FullTest)

    total, balance, accepted, not_finite = 0.0, np.zeros(num_chains), 0.0, 0
    for latest, kept in run_chunks(sampler, run_key, states, num_transitions):
        states = latest
        values, bad = _sum_up(target, like, reference.standardisation, kept.position)
        total = total + np.asarray(values, np.float64)
        not_finite += int(bad)
        accepted += float(jnp.sum(kept.info.acceptance_rate))
        balance += _balance(np.asarray(kept.info.log_ratio, np.float64)).sum(axis=0)
    last = jax.vmap(trees.flatten)(states.position)
    rate = accepted / (num_chains * num_transitions)
    return CheckedRun(
        np.asarray(total) / num_transitions,
        balance / num_transitions if has_ratio else None,
        last,
        rate,
        not_finite,
    )


@jax.jit
def _sum_up(
    target: Target, like: trees.PyTree, standardisation: Standardisation, positions: trees.PyTree
) -> tuple[jax.Array, jax.Array]:
    """Every quantity summed over draws, for positions with axes (draw, chain, ...); and how many
    numbers are not finite.
    """
    num_draws, num_chains = jax.tree.leaves(positions)[0].shape[:2]
    flat = jnp.concatenate(
        [leaf.reshape(num_draws * num_chains, -1) for leaf in jax.tree.leaves(positions)], axis=1
    )
    at_once = max(1, EXAMPLES_AT_ONCE // max(1, target.num_examples))
    values = jax.lax.map(
        lambda one: measure(target, standardisation, one, remember_total(target, like, one)),
        flat,
        batch_size=min(at_once, len(flat)),
    )
    return values.reshape(num_draws, num_chains, -1).sum(axis=0), jnp.sum(~jnp.isfinite(flat))


def _balance(log_ratio: np.ndarray) -> np.ndarray:
    """min(1, a) tanh(log a): of mean zero at stationarity, and bounded.

    The reversed paths give p(Delta) e^Delta = p(-Delta) for the law of Delta = log a, so for every
    odd f the accepted gains E[f(Delta); Delta > 0] are the accepted losses E[e^Delta f(-Delta);
    Delta < 0].
    """
    usable = np.where(np.isfinite(log_ratio), log_ratio, -np.inf)
    return np.exp(np.minimum(usable, 0.0)) * np.tanh(usable)


def _judge(
    reference: ReferenceDraws, run: CheckedRun, labels: list[str], false_alarm_rate: float
) -> Report:
    from scipy.special import stdtrit  # late, because it is slow to load

    trusted = 0.5 * (reference.early + reference.late)
    differences = run.values - trusted
    # two ways to see a drift: by averages, which is sharp when draws are independent, and by the
    # ends, when they are not
    controls = [
        np.abs(_scores(reference.late - reference.early)[2]),
        np.abs(_scores(reference.drift)[2]),
    ]
    control_score = np.maximum(*controls)
    if run.balance is not None:
        differences = np.column_stack([differences, run.balance])
        control_score = np.append(control_score, 0.0)
        labels = [*labels, BALANCE]
    num_chains, num_quantities = differences.shape
    limit = -float(stdtrit(num_chains - 1, false_alarm_rate / num_quantities / 2.0))
    control_limit = -float(stdtrit(num_chains - 1, UNSETTLED_RATE / num_quantities / 4.0))
    shift, error, score = _scores(differences)
    quantities = tuple(
        Quantity(
            name,
            float(abs(score[i]) / limit),
            float(control_score[i] / control_limit),
            float(shift[i]),
            float(error[i]),
        )
        for i, name in enumerate(labels)
    )
    num_coordinates = reference.positions.shape[1]
    visible = float((limit + SURELY) * error[:num_coordinates].max())
    correlation = _correlation(reference, run)
    largest = max(quantities, key=lambda quantity: quantity.deviation)
    control = max(quantities, key=lambda quantity: quantity.control_deviation)
    verdict, sentence = _decide(largest, control, run, correlation, visible)
    deviation = math.inf if run.num_not_finite else largest.deviation
    return Report(
        verdict,
        deviation,
        control.control_deviation,
        visible,
        run.acceptance_rate,
        correlation,
        quantities,
        sentence,
    )


def _scores(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard error and their ratio, over independent chains."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return mean, error, np.where(mean == 0.0, 0.0, mean / np.maximum(error, 1e-12))


def _correlation(reference: ReferenceDraws, run: CheckedRun) -> float:
    """Of start and end over chains, for the coordinate with the largest: 1 - E(z' - z)^2 / 2 in
    units of the posterior.
    """
    moved = np.asarray(
        (run.last - reference.positions) / reference.standardisation.scale, np.float64
    )
    return float(np.max(1.0 - 0.5 * np.nan_to_num(moved**2, nan=2.0, posinf=2.0).mean(axis=0)))


def _decide(
    largest: Quantity, control: Quantity, run: CheckedRun, correlation: float, visible: float
) -> tuple[bool | None, str]:
    if run.num_not_finite:
        return (
            False,
            f"Not exact: {run.num_not_finite} numbers of the draws were not finite; lower the "
            "step size.",
        )
    if control.control_deviation > 1.0:
        return None, (
            f"Undecided: the reference has not settled ({control.name} drifts, "
            f"{control.control_deviation:.1f} times the limit); "
            "raise num_reference, or start nearer the posterior."
        )
    if largest.deviation > 1.0 and largest.name == BALANCE:
        return False, (
            f"Not exact: log a is not as often won as lost, {largest.deviation:.1f} times what "
            "chance allows; the correction does not "
            "match the proposal, the order of the batches or the target."
        )
    if largest.deviation > 1.0:
        return False, (
            f"Not exact: the sampler moved the posterior; {largest.name} shifted by "
            f"{largest.difference:.3f} standard deviations, "
            f"{largest.deviation:.1f} times what chance allows."
        )
    if correlation > STUCK:
        return None, (
            "Undecided: the sampler has hardly moved (start and end correlate by "
            f"{correlation:.2f}, acceptance "
            f"{run.acceptance_rate:.2f}), so a bias could not have shown; raise num_transitions, "
            "or tune the sampler."
        )
    return (
        True,
        f"Looks exact: nothing moved beyond chance; a bias of {visible:.3f} posterior standard "
        "deviations would have been seen.",
    )
