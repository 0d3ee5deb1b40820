"""Coefficients as a reader wants them: numbers side by side per standard deviation, a picture for
each factor, and tables with everything.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amagold.models._noise_names import THRESHOLD
from amagold.report._formula_words import term_words
from amagold.report._interval_chart import Estimate, IntervalChart, interval_chart
from amagold.report._parameters import Parameter
from amagold.report._rounded_numbers import decimals_of, percent, plain, rounded, short, whole

MOST_ROWS = 14  # of a picture of one factor
MOST_NUMBERS = 24  # of a picture of numbers
MOST_IN_TABLE = 1_000
INTERCEPT = "Intercept"
ALIKE = 20.0  # times as large, and on one scale no more


class CoefficientRow(NamedTuple):
    """A row of a table, as texts."""

    name: str
    mean: str
    sd: str
    ends: str
    ratio: str  # with its interval; empty where there is none
    share_above: str
    ess: str
    r_hat: str


class CoefficientGroup(NamedTuple):
    """A picture and a table of some coefficients."""

    title: str
    note: str
    chart: IntervalChart | None
    rows: tuple[CoefficientRow, ...]
    num_left_out: int  # of the picture
    num_not_in_table: int
    of_levels: bool


class Grouping(NamedTuple):
    """What the pictures need to know beside the draws."""

    scale: str  # what coefficients are differences of
    ratio: str  # what their exponentials are; empty where they are nothing
    spreads: Mapping[str, float]  # standard deviations of numbers, by term
    references: Mapping[str, str]  # the levels that the others of a factor are compared with
    is_regression: bool
    noise: str | None = None  # what the family calls the parameter beside the coefficients


def groups_of(found: Mapping[str, Sequence[Parameter]], how: Grouping) -> list[CoefficientGroup]:
    """All coefficients, and at the end a table of what is no effect of anything."""
    effects = {term: many for term, many in found.items() if not is_apart(term, how)}
    singles = [each for many in effects.values() for each in many if each.level is None]
    groups = _of_numbers(singles, how)
    groups += [
        _of_factor(term, many, how) for term, many in effects.items() if many[0].level is not None
    ]
    rest = [term for term in found if is_apart(term, how)]
    if rest:
        without = how._replace(ratio="")
        rows = [
            coefficient_row(each, without)._replace(name=each.name)
            for term in rest
            for each in found[term]
        ]
        groups.append(CoefficientGroup(" and ".join(rest), "", None, tuple(rows), 0, 0, False))
    return groups


def is_apart(term: str, how: Grouping) -> bool:
    """Whether it is no effect of anything: the intercept, cutpoints, the scale of the noise."""
    return how.is_regression and term in (INTERCEPT, how.noise)


def _is_scale(term: str, how: Grouping) -> bool:
    """Whether it is never below zero."""
    return how.is_regression and term == how.noise != THRESHOLD


def as_ratio(estimate: Estimate) -> Estimate:
    """exp of a coefficient and of its ends; digits as many as an error on the log scale leaves."""
    values = [math.exp(min(700.0, max(-700.0, value))) for value in estimate[2:7]]
    # an error of e in the coefficient is the share e of the ratio
    decimals = min(4, estimate.decimals)
    return Estimate(estimate.label, estimate.detail, *values, decimals=decimals, is_ratio=True)


def estimate_of(parameter: Parameter, label: str, detail: str = "", times: float = 1.0) -> Estimate:
    values = (
        parameter.mean,
        parameter.lower,
        parameter.inner_lower,
        parameter.inner_upper,
        parameter.upper,
    )
    decimals = decimals_of(times * parameter.error, times * parameter.sd)
    return Estimate(label, detail, *(times * value for value in values), decimals=decimals)


def _of_numbers(singles: list[Parameter], how: Grouping) -> list[CoefficientGroup]:
    groups = []
    for many, is_scaled in _on_one_scale(singles, how):
        shown = _clearest(many, MOST_NUMBERS)
        estimates = [_per_deviation(each, how) if is_scaled else _plain(each) for each in shown]
        note = (
            "For a difference of one standard deviation of the predictor (of zeros and ones: of 1 "
            "from 0), so that units do not matter; the table is per unit."
            if is_scaled
            else ""
        )
        title = "Numeric predictors" if how.is_regression else "Single parameters"
        groups.append(_group(title, note, estimates, many, len(shown), how))
    return groups


def _on_one_scale(singles: list[Parameter], how: Grouping) -> list[tuple[list[Parameter], bool]]:
    """Parameters that can share a picture: those whose predictors' spread is known, and others of
    one size.
    """
    known = [each for each in singles if each.term in how.spreads]
    found: list[tuple[list[Parameter], bool]] = [(known, True)] if known else []
    others = [each for each in singles if each.term not in how.spreads]
    of_one_size: list[list[Parameter]] = []
    for each in sorted(others, key=_size):
        if of_one_size and _size(each) <= ALIKE * _size(of_one_size[-1][0]):
            of_one_size[-1].append(each)
        else:
            of_one_size.append([each])
    order = {each: at for at, each in enumerate(singles)}
    return found + [(sorted(some, key=order.__getitem__), False) for some in of_one_size]


def _size(parameter: Parameter) -> float:
    size = max(abs(parameter.lower), abs(parameter.upper))
    return size if math.isfinite(size) else math.inf


def _per_deviation(parameter: Parameter, how: Grouping) -> Estimate:
    spread = how.spreads[parameter.term]
    return estimate_of(parameter, parameter.term, per(spread), spread)


def per(spread: float) -> str:
    """What a difference is for; zeros and ones have no unit."""
    return "" if spread == 1.0 else f"per {plain(spread)}"


def _plain(parameter: Parameter) -> Estimate:
    return estimate_of(parameter, parameter.term)


def _of_factor(term: str, parameters: Sequence[Parameter], how: Grouping) -> CoefficientGroup:
    shown = _clearest(parameters, MOST_ROWS)
    estimates = [estimate_of(each, each.level or "") for each in shown]
    reference = how.references.get(term)
    title = term_words(term) if how.is_regression else term
    if reference is not None:
        title = f"{title}, compared with {reference}"
    note = ""
    if len(shown) < len(parameters):
        note = (
            f"The {len(shown)} of {whole(len(parameters))} whose intervals stay furthest from no "
            "difference, by size; the table has the others."
        )
    return _group(title, note, estimates, parameters, len(shown), how)


def _clearest(parameters: Sequence[Parameter], most: int) -> list[Parameter]:
    """All where they are few; else those that are surely largest, in order of their means."""
    if len(parameters) <= most:
        return list(parameters)
    chosen = sorted(parameters, key=lambda each: -_clear(each))[:most]
    return sorted(chosen, key=lambda each: -each.mean)


def _clear(parameter: Parameter) -> float:
    return parameter.clearance if math.isfinite(parameter.clearance) else -math.inf


def _group(
    title: str,
    note: str,
    estimates: list[Estimate],
    parameters: Sequence[Parameter],
    num_shown: int,
    how: Grouping,
) -> CoefficientGroup:
    is_ratio = bool(how.ratio)
    shown = [as_ratio(each) for each in estimates] if is_ratio else estimates
    axis = how.ratio.capitalize() if how.ratio else f"Difference in {how.scale}"
    line = (1.0 if is_ratio else 0.0) if how.is_regression else None
    if not how.is_regression:
        axis = "Value"
    finite = [each for each in shown if all(map(math.isfinite, each[2:7]))]
    chart = interval_chart(title, axis, finite, none=line, is_ratio=is_ratio) if finite else None
    rows = tuple(coefficient_row(each, how) for each in parameters[:MOST_IN_TABLE])
    count, of_levels = len(parameters), parameters[0].level is not None
    return CoefficientGroup(
        title, note, chart, rows, count - num_shown, count - len(rows), of_levels
    )


def coefficient_row(parameter: Parameter, how: Grouping) -> CoefficientRow:
    """What a table says of one parameter."""
    estimate = estimate_of(parameter, parameter.name)
    return CoefficientRow(
        parameter.term if parameter.level is None else parameter.level,
        rounded(parameter.mean, estimate.decimals),
        short(parameter.sd, 2),
        estimate.ends(),
        as_ratio(estimate).words() if how.ratio else "",
        "" if _is_scale(parameter.term, how) else percent(parameter.share_above),
        whole(min(parameter.ess_bulk, parameter.ess_tail)),
        rounded(parameter.r_hat, 3),
    )
