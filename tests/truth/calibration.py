"""Whether the errors of a run are as large as it claims: z = (estimate - truth) / claimed Monte
Carlo standard error.

The claim is the user's own computation: the standard deviation of the draws over the root of their
effective number. Of a calibrated run z is about N(0, 1), so over S seeds the sum of z^2 is about
chi-square with S degrees of freedom.
"""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from false_alarms import NUM_CHECKS, SUITE_FALSE_ALARM_RATE
from record import Draws, Row, functionals
from scipy.stats import chi2

FALSE_ALARM_RATE = SUITE_FALSE_ALARM_RATE / NUM_CHECKS
DOUBT_RATE = 1e-3  # a row this unlikely is run with more seeds before it is judged
MORE_SEEDS = 4  # times as many
LARGEST_Z = 99.0  # more says nothing more
GOOD_RUNS_THAT_MAY_WARN = 1 / 20


class Outcome(NamedTuple):
    """What one seed gave."""

    z: dict[str, float]  # by functional
    warnings: list[str]
    plan: str
    seconds: float
    failure: str = ""  # the error that ended it

    @property
    def has_warned(self) -> bool:
        return bool(self.warnings)


def z_score(series: np.ndarray, value: float, error: float = 0.0, spread: float = 0.0) -> float:
    """The estimate's distance from the truth in claimed standard errors; a claim is never below
    that of as many independent draws.
    """
    from arviz_stats.base import array_stats

    series = np.asarray(series, np.float64)
    if not np.isfinite(series).all():
        return LARGEST_Z
    effective = (
        float(array_stats.ess(series, chain_axis=0, draw_axis=1, method="mean"))
        if np.ptp(series) > 0
        else math.nan
    )
    claimed = series.std(ddof=1) / math.sqrt(effective) if effective > 0 else 0.0
    if claimed == 0.0:  # draws that never differ claim nothing: what independent ones would
        claimed = spread / math.sqrt(series.size)
    whole = math.hypot(claimed, error)
    apart = series.mean() - value
    if whole == 0.0:
        return 0.0 if apart == 0.0 else math.copysign(LARGEST_Z, apart)
    return float(np.clip(apart / whole, -LARGEST_Z, LARGEST_Z))


def z_scores(row: Row, draws: Draws) -> dict[str, float]:
    found = {}
    for truth in row.truths():
        for functional in functionals(truth):
            found[functional.name] = z_score(
                functional.of(draws), functional.value, functional.error, functional.spread
            )
    if not found:
        raise AssertionError(
            f"{row.name} must have at least one known number, got none; give it a Truth"
        )
    return found


def rms(values: Any) -> float:
    values = np.asarray(list(values), np.float64)
    return float(np.sqrt(np.mean(values**2))) if values.size else math.nan


def row_limit(num_seeds: int, num_functionals: int, rate: float = FALSE_ALARM_RATE) -> float:
    """The largest rms over seeds that any of a row's functionals may have."""
    return math.sqrt(chi2.isf(rate / num_functionals, num_seeds) / num_seeds)


def worst_of(outcomes: list[Outcome]) -> tuple[str, float]:
    """The functional whose z have the largest rms over seeds."""
    outcomes = [outcome for outcome in outcomes if not outcome.failure]
    if not outcomes:
        return "whole row", math.nan
    by_functional = {name: rms(outcome.z[name] for outcome in outcomes) for name in outcomes[0].z}
    return max(by_functional.items(), key=lambda item: item[1])


def is_calibrated(outcomes: list[Outcome], rate: float = FALSE_ALARM_RATE) -> bool:
    """Whether no functional is further off, over the seeds, than its claimed error lets it be."""
    if not outcomes:
        raise AssertionError("outcomes must hold at least one run, got none; run a seed")
    if any(outcome.failure for outcome in outcomes):
        return False
    return worst_of(outcomes)[1] <= row_limit(len(outcomes), len(outcomes[0].z), rate)


def is_doubtful(outcomes: list[Outcome]) -> bool:
    """Neither clearly right nor clearly wrong: more seeds would tell."""
    silent = [outcome for outcome in outcomes if not outcome.has_warned and not outcome.failure]
    return bool(silent) and is_calibrated(silent) and not is_calibrated(silent, DOUBT_RATE)


def is_wrong_in_silence(outcomes: list[Outcome]) -> bool:
    """The one thing that must never be: wrong, and no warning."""
    silent = [outcome for outcome in outcomes if not outcome.has_warned and not outcome.failure]
    return bool(silent) and not is_calibrated(silent)


def verdict(outcomes: list[Outcome]) -> str:
    if any(outcome.failure for outcome in outcomes):
        return "FAILED"
    if is_wrong_in_silence(outcomes):
        return "WRONG, no warning"
    if is_calibrated(outcomes):
        return "good, but warned" if any(outcome.has_warned for outcome in outcomes) else "good"
    return "wrong, warned"


def faults(results: dict[str, list[Outcome]], hard: Collection[str] = ()) -> list[str]:
    """What is wrong with the whole suite, in sentences; empty when nothing is.

    Rows named as hard may warn, because a warning is right there; they must not be wrong in silence
    either.
    """
    if not results:
        return ["the suite must hold at least one posterior, got none"]
    found = []
    for name, outcomes in results.items():
        found += [
            f"{name} could not be run: {failure}"
            for failure in sorted({outcome.failure for outcome in outcomes} - {""})
        ]
        if is_wrong_in_silence(outcomes):
            functional, size = worst_of(
                [outcome for outcome in outcomes if not outcome.has_warned and not outcome.failure]
            )
            found.append(
                f"{name} is wrong without a warning: rms z of {size:.1f} for the {functional}"
            )
    good = {
        name: outcomes
        for name, outcomes in results.items()
        if name not in hard and is_calibrated(outcomes)
    }
    runs = [outcome for outcomes in good.values() for outcome in outcomes]
    warned = sum(outcome.has_warned for outcome in runs)
    if warned > max(1, len(runs) * GOOD_RUNS_THAT_MAY_WARN):
        names = ", ".join(
            name
            for name, outcomes in good.items()
            if any(outcome.has_warned for outcome in outcomes)
        )
        found.append(f"{warned} of {len(runs)} good runs warned, more than one in twenty: {names}")
    # over the good rows: a claim that is a little too large everywhere shows in none of them alone
    squares = [rms(outcome.z.values()) ** 2 for outcome in runs]
    # a mean over functionals of one run varies no more than one z^2
    limit = chi2.isf(FALSE_ALARM_RATE, len(squares)) / len(squares) if squares else math.inf
    if squares and np.mean(squares) > limit:
        found.append(
            f"over all good rows the rms z is {math.sqrt(np.mean(squares)):.2f}, above "
            f"{math.sqrt(limit):.2f}"
        )
    return found
