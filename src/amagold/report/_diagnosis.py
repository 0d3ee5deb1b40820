"""Whether the draws can be trusted, figure by figure, in plain words."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from amagold.report._parameters import Parameter
from amagold.report._rounded_numbers import percent, rounded, whole

GOOD, DOUBTFUL, UNKNOWN = "good", "doubtful", "unknown"


class Finding(NamedTuple):
    """One figure, and what it says."""

    question: str
    figure: str
    standing: str  # GOOD, DOUBTFUL or UNKNOWN
    words: str


class Diagnosis(NamedTuple):
    """All figures, the sentences that need attention, and the verdict."""

    findings: tuple[Finding, ...]
    warnings: tuple[tuple[str, str], ...]  # what it is about, and what to do
    standing: str
    verdict: str


def diagnose(run: Any, parameters: Iterable[Parameter]) -> Diagnosis:
    """The figures of a run with draws."""
    many = list(parameters)
    findings = (
        _agreement(many),
        _effective(many, "ess_bulk", "Are there enough draws for the means?"),
        _effective(many, "ess_tail", "And for the ends of the intervals?"),
        _divergences(run),
        _acceptance(run),
        _label(run),
    )
    warnings = tuple(parted(sentence) for sentence in run.warnings)
    doubtful = sum(finding.standing == DOUBTFUL for finding in findings)
    if not warnings and not doubtful and not run.is_partial:
        return Diagnosis(findings, warnings, GOOD, "Nothing speaks against these draws.")
    count = len(warnings) or doubtful
    if run.is_partial and not warnings and not doubtful:
        verdict = "The run was stopped early; nothing else speaks against these draws."
    else:
        verdict = f"{_number(count)} before you rely on these draws."
    return Diagnosis(findings, warnings, DOUBTFUL, verdict)


def _number(count: int) -> str:
    return "One thing needs attention" if count == 1 else f"{count} things need attention"


def parted(sentence: str) -> tuple[str, str]:
    """`small ESS: 12 effective draws ...` by its first words and the rest."""
    about, sign, rest = sentence.partition(": ")
    return (about, rest) if sign and len(about) < 40 else ("", sentence)


def _agreement(many: list[Parameter]) -> Finding:
    from amagold.sampling._advice import LARGEST_R_HAT

    question = "Do the chains agree?"
    worst = max(many, key=lambda each: _or(each.r_hat, math.inf))
    if not math.isfinite(worst.r_hat):
        return Finding(question, "no R-hat", UNKNOWN, f"{worst.name} never moves, or is not finite")
    figure = f"R-hat at most {rounded(worst.r_hat, 3)}"
    if worst.r_hat <= LARGEST_R_HAT:
        words = f"yes: below {LARGEST_R_HAT}, all chains tell the same of every parameter"
        return Finding(question, figure, GOOD, words)
    words = (
        f"no: above {LARGEST_R_HAT} for {worst.name}; run longer (num_samples, num_warmup), or "
        "look for several modes"
    )
    return Finding(question, figure, DOUBTFUL, words)


def _effective(many: list[Parameter], field: str, question: str) -> Finding:
    from amagold.sampling._advice import SMALLEST_ESS

    worst = min(many, key=lambda each: _or(getattr(each, field), -math.inf))
    size = getattr(worst, field)
    if not math.isfinite(size):
        return Finding(question, "no ESS", UNKNOWN, f"{worst.name} never moves, or is not finite")
    figure = f"at least {whole(size)} effective draws"
    if size >= SMALLEST_ESS:
        return Finding(question, figure, GOOD, f"yes: more than {SMALLEST_ESS:.0f}")
    words = f"no: below {SMALLEST_ESS:.0f} for {worst.name}; draw more with num_samples"
    return Finding(question, figure, DOUBTFUL, words)


def _divergences(run: Any) -> Finding:
    from amagold.sampling._advice import TOLERATED_DIVERGENCES

    diverging = run.sample_stats["diverging"]
    count, total = int(diverging.sum()), diverging.size
    question, figure = "Did any transition diverge?", f"{whole(count)} of {whole(total)}"
    if count <= TOLERATED_DIVERGENCES * total:
        words = "none did" if count == 0 else "so few that they are mere rejections"
        return Finding(question, figure, GOOD, words)
    words = (
        "part of the posterior may be out of reach: take smaller steps with "
        "warmup=amagold.Warmup(target_acceptance=0.95)"
    )
    return Finding(question, figure, DOUBTFUL, words)


def _acceptance(run: Any) -> Finding:
    from amagold.sampling._advice import FROZEN

    rates = np.asarray(run.sample_stats["acceptance_rate"].mean("draw"), np.float64)
    question, figure = "Are proposals accepted?", percent(float(rates.mean()))
    if (rates < FROZEN).any():
        stuck = int((rates < FROZEN).sum())
        words = f"{stuck} of {len(rates)} chains hardly move; start them elsewhere, or warm up more"
        return Finding(question, figure, DOUBTFUL, words)
    expected = getattr(run.plan, "predicted_acceptance", None)
    words = f"between {percent(rates.min())} and {percent(rates.max())} from chain to chain"
    if expected is not None:
        words += f"; the plan expected {expected:.0%}"
    return Finding(question, figure, GOOD, words)


def _label(run: Any) -> Finding:
    question = "Is the method exact?"
    if run.label == "exact":
        words = "yes: in the limit of many draws there is no error but that of Monte Carlo"
        return Finding(question, "exact", GOOD, words)
    return Finding(question, run.label, DOUBTFUL, "the draws have an error that stays")


def _or(value: float, otherwise: float) -> float:
    return value if math.isfinite(value) else otherwise
