"""The clearest coefficients in sentences, for readers of the first paragraph only."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amagold.report._coefficient_groups import Grouping, as_ratio, estimate_of, is_apart, per
from amagold.report._formula_words import term_words
from amagold.report._parameters import Parameter

MOST = 5


class RunFinding(NamedTuple):
    subject: str
    words: str
    figures: str


def findings_of(
    found: Mapping[str, Sequence[Parameter]], how: Grouping, asks: str
) -> list[RunFinding]:
    """Coefficients whose intervals leave out zero, the largest first, one of each term."""
    best = []
    for term, many in found.items():
        # where a coefficient's size depends on units that are not known, there is no order
        is_known = term in how.spreads or many[0].level is not None
        if is_apart(term, how) or not is_known or ":" in term or "(" in term_words(term):
            continue
        clear = [each for each in many if each.clearance > 0.0 and math.isfinite(each.sd)]
        if clear:
            best.append(max(clear, key=lambda each: _size(each, how)))
    best.sort(key=lambda each: -_size(each, how))
    return [_told(each, how, asks) for each in best[:MOST]]


def _size(parameter: Parameter, how: Grouping) -> float:
    """The nearer end of the interval, for a standard deviation of the predictor or a level."""
    return parameter.clearance * how.spreads.get(parameter.term, 1.0)


def _told(parameter: Parameter, how: Grouping, asks: str) -> RunFinding:
    direction = "higher" if parameter.mean > 0.0 else "lower"
    noun = asks.removeprefix("the ")
    spread = how.spreads.get(parameter.term) if parameter.level is None else None
    estimate = estimate_of(parameter, "", "", spread or 1.0)
    if how.ratio:
        figures = f"{how.ratio} {as_ratio(estimate).words()}"
    else:
        figures = f"difference {estimate.words()}"
    subject = term_words(parameter.term)
    if parameter.level is None:
        subject = f"{subject} 1 rather than 0" if spread == 1.0 else f"higher {subject}"
        figures += f" {per(spread)}" if spread else ""
    else:
        reference = how.references.get(parameter.term)
        subject = f"{subject} {parameter.level}"
        subject += f" rather than {reference}" if reference else ""
    return RunFinding(subject, f"goes with {direction} {noun}", figures)
