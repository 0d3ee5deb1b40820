"""A section for each group of a formula with random effects: how much its levels differ, whose the
variance is, and which levels are furthest out.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from amagold.report._caterpillar_chart import CaterpillarChart, caterpillar_chart
from amagold.report._coefficient_groups import (
    CoefficientGroup,
    Grouping,
    as_ratio,
    coefficient_row,
    estimate_of,
)
from amagold.report._interval_chart import Estimate, IntervalChart, interval_chart
from amagold.report._parameters import INTERVAL, Parameter
from amagold.report._rounded_numbers import decimals_of, percent, rounded, short, whole

MOST_EXTREMES = 8  # levels at either end
MOST_IN_TABLE = 400
INTERCEPT_EFFECT = "1"


class LevelEffect(NamedTuple):
    """A row of a table, as texts."""

    name: str
    mean: str
    ends: str
    ratio: str  # with its interval; empty where there is none
    rows: str
    shrinkage: str


class EffectSection(NamedTuple):
    """One effect of all levels."""

    title: str
    axis: str
    chart: CaterpillarChart | None
    extremes: IntervalChart | None
    rows: tuple[LevelEffect, ...]
    num_not_in_table: int


class GroupSection(NamedTuple):
    group: str
    words: tuple[str, ...]
    scales: CoefficientGroup
    effects: tuple[EffectSection, ...]


def group_sections(
    run: Any,
    parameters: Mapping[str, Sequence[Parameter]],
    how: Grouping,
    called: Mapping[str, str],
) -> list[GroupSection]:
    """Of every group of the formula; `called` says what its variables are called in the draws."""
    groups = run.model.terms.groups if run.model is not None else ()
    if not groups:
        return []
    partition = run.variance_partition()
    shares = {row["source"]: row for row in partition.to_dict("records")}
    found = []
    for group in dict.fromkeys(term.group for term in groups):
        terms = [term for term in groups if term.group == group]
        table = run.group_effects(group, interval=INTERVAL)
        words = [*_spreads(terms, parameters, how, called)]
        around = partition.attrs["around"][group]
        words += _share(group, around, shares[group], shares["residual"], len(shares) > 2)
        words.append(_shrinkage(table))
        names = [called[name] for term in terms for name in (*term.scales, *term.correlations)]
        rows = [coefficient_row(parameters[name][0], how._replace(ratio="")) for name in names]
        rows = [row._replace(share_above="") for row in rows]
        scales = CoefficientGroup(f"Levels of {group}", "", None, tuple(rows), 0, 0, False)
        effects = [
            _effect(effect, group, table[table["effect"] == effect], how)
            for term in terms
            for effect in term.effects
        ]
        found.append(GroupSection(group, tuple(words), scales, tuple(effects)))
    return found


def _spreads(
    terms: Sequence[Any],
    parameters: Mapping[str, Sequence[Parameter]],
    how: Grouping,
    called: Mapping[str, str],
) -> list[str]:
    """How much levels differ, effect by effect."""
    said = []
    for term in terms:
        for effect, name in zip(term.effects, term.scales, strict=True):
            estimate = estimate_of(parameters[called[name]][0], "")
            if effect == INTERCEPT_EFFECT:
                told = (
                    f"{whole(term.num_levels)} levels of {term.group} differ by a standard "
                    f"deviation of {estimate.words()} in {how.scale}"
                )
                if how.ratio:
                    told += f", {_article(how.ratio)} of {as_ratio(estimate).words()}"
            else:
                told = (
                    f"The coefficient of {effect} varies by {term.group} with a standard deviation "
                    f"of {estimate.words()}"
                )
            said.append(f"{told}.")
        for name, (first, second) in term.correlations.items():
            found = parameters[called[name]][0]
            which = [
                "the intercept" if effect == INTERCEPT_EFFECT else f"the coefficient of {effect}"
                for effect in (term.effects[first], term.effects[second])
            ]
            direction = "higher" if found.mean > 0.0 else "lower"
            unsure = "" if found.clearance > 0.0 else ", though the interval includes none"
            said.append(
                f"Where {which[0]} is higher, {which[1]} tends to be {direction}: their "
                f"correlation is {estimate_of(found, '').words()}{unsure}."
            )
    return said


def _article(ratio: str) -> str:
    return f"an {ratio}" if ratio[0] in "aeiou" else f"a {ratio}"


def _share(
    group: str,
    around: Sequence[str],
    share: Mapping[str, Any],
    residual: Mapping[str, Any],
    has_more: bool,
) -> list[str]:
    told = (
        f"{percent(share['share'])} ({percent(share['lower'])} to {percent(share['upper'])}) of "
        f"the variance that the fixed terms leave lies between levels of {group}"
    )
    others = f"; {percent(residual['share'])} is left within all groups" if has_more else ""
    if not around:
        return [f"{told}: the intraclass correlation{others}."]
    return [
        f"{told}{others}.",
        f"With that of {', '.join(around)}, which it lies within, the intraclass correlation of "
        f"rows of one level of {group} is {percent(share['intraclass'])}.",
    ]


def _shrinkage(table: Any) -> str:
    """How far rows speak for themselves."""
    rows = np.asarray(table["rows"], np.float64)
    middle = float(np.median(table["shrinkage"]))
    few, many = whole(rows.min()), whole(rows.max())
    decided = f"{percent(1.0 - middle)} of its effect and all other levels the rest"
    if few == many:
        return f"Each level has {few} rows, which in the middle decide {decided}."
    return (
        f"A level has between {few} and {many} rows, {whole(float(np.median(rows)))} in the "
        f"middle, where its own rows decide {decided}."
    )


def _effect(effect: str, group: str, table: Any, how: Grouping) -> EffectSection:
    is_intercept = effect == INTERCEPT_EFFECT
    # ratios of slopes depend on units
    ratio = how.ratio if is_intercept else ""
    axis = ratio.capitalize() if ratio else f"Difference in {how.scale}"
    if not is_intercept:
        axis = f"Difference in the coefficient of {effect}"
    mean, lower, upper = (
        np.asarray(table[name], np.float64) for name in ("mean", "lower", "upper")
    )
    chart = caterpillar_chart(mean, lower, upper, ratio=bool(ratio))
    order = table.sort_values("mean", ascending=False, kind="stable")
    records = order.to_dict("records")
    is_few = len(records) <= 2 * MOST_EXTREMES
    shown = records if is_few else records[:MOST_EXTREMES] + records[-MOST_EXTREMES:]
    which = "Levels" if is_few else "The largest and the smallest levels"
    title = f"{which} of {group}" + ("" if is_intercept else f", by their {effect}")
    estimates = [_estimate(row) for row in shown]
    estimates = [each for each in estimates if all(map(math.isfinite, each[2:7]))]
    estimates = [as_ratio(each) for each in estimates] if ratio else estimates
    extremes = interval_chart(
        title, axis, estimates, none=1.0 if ratio else 0.0, is_ratio=bool(ratio)
    )
    cut = MOST_IN_TABLE // 2
    kept = records if len(records) <= MOST_IN_TABLE else records[:cut] + records[-cut:]
    return EffectSection(
        f"{group}" if is_intercept else f"{effect} by {group}",
        axis,
        chart,
        extremes if estimates else None,
        tuple(_row(row, bool(ratio)) for row in kept),
        len(records) - len(kept),
    )


def _estimate(row: Mapping[str, Any]) -> Estimate:
    mean, sd, lower, upper = (float(row[name]) for name in ("mean", "sd", "lower", "upper"))
    rows = int(row["rows"])
    detail = "1 row" if rows == 1 else f"{whole(rows)} rows"
    return Estimate(
        str(row["level"]), detail, mean, lower, mean, mean, upper, decimals_of(0.05 * sd, sd)
    )


def _row(row: Mapping[str, Any], is_ratio: bool) -> LevelEffect:
    estimate = _estimate(row)
    return LevelEffect(
        estimate.label,
        rounded(estimate.mean, estimate.decimals),
        estimate.ends(),
        as_ratio(estimate).words() if is_ratio else "",
        whole(row["rows"]),
        short(float(row["shrinkage"]), 2),
    )
