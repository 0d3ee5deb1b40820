"""Parts of a report that need the model, and some of them its data: average effects, predictive
checks, and what a Gaussian at the mode would have said.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from amagold.core.freed_memory import end_of_stage
from amagold.report._calibration_chart import (
    CalibrationChart,
    StatisticRow,
    calibration_chart,
    statistic_rows,
)
from amagold.report._coefficient_groups import MOST_ROWS, Grouping, per
from amagold.report._formula_words import term_words
from amagold.report._interval_chart import Estimate, IntervalChart, interval_chart
from amagold.report._rounded_numbers import decimals_of, percent, rounded, short

HOW_TO = "the table is not kept with the run; give it with --table TABLE, or run.report(table=...)"
NUM_DRAWS = 1000  # that effects are averaged over
MOST_GAPS = 12  # parameters of the comparison that are shown
CENTRAL = 0.05  # of a tail that Laplace's interval leaves out


class EffectsPart(NamedTuple):
    charts: tuple[IntervalChart, ...]
    missing: str  # why there is nothing; empty where there is


class FitPart(NamedTuple):
    calibration: CalibrationChart | None
    statistics: tuple[StatisticRow, ...]
    missing: str


class GapRow(NamedTuple):
    name: str
    shift: str
    ratio: str
    below: str
    above: str


class LaplacePart(NamedTuple):
    verdict: str
    rows: tuple[GapRow, ...]
    num_left_out: int


def effects_part(run: Any, table: Any, effect: str, how: Grouping, formula: str) -> EffectsPart:
    """Average marginal effects, in the order of the formula."""
    found, missing = _asked(run.effects, table)
    if found is None:
        return EffectsPart((), missing)
    effect = "probability of a class" if "class" in found else effect
    is_share = "probability" in effect
    times = 100.0 if is_share else 1.0
    axis = f"Average difference in the {effect}" + (", percentage points" if is_share else "")
    by_term: dict[str, list[Estimate]] = {}
    numbers: list[Estimate] = []
    for row in sorted(found.to_dict("records"), key=lambda row: formula.find(str(row["term"]))):
        term = str(row["term"])
        level = row["level"] if isinstance(row["level"], str) else None
        of_class = f" ({row['class']})" if "class" in row else ""
        if level is None:
            spread = how.spreads.get(term, 1.0)
            detail = per(spread)
            numbers.append(_effect(row, f"{term}{of_class}", detail, times * spread))
        else:
            by_term.setdefault(term, []).append(_effect(row, f"{level}{of_class}", "", times))
    charts = [interval_chart("Numeric predictors", axis, numbers)] if numbers else []
    for term, many in by_term.items():
        reference = how.references.get(term)
        title = term_words(term) + (f", compared with {reference}" if reference else "")
        charts.append(interval_chart(title, axis, _clearest(many)))
    return EffectsPart(tuple(charts), "")


def fit_part(run: Any, table: Any, each: str) -> FitPart:
    """Calibration, and statistics of replicated tables, of rows or what else is counted."""
    found, missing = _asked(run.predictive_check, table)
    if found is None:
        return FitPart(None, (), missing)
    chart = calibration_chart(found.calibration, each)
    return FitPart(chart, statistic_rows(found.statistics), "")


def laplace_part(run: Any, table: Any) -> LaplacePart | None:
    """The parameters about which a Gaussian at the mode would have been wrong most."""
    model = None if table is None else run.model
    try:
        gaps = run.laplace_gap(None if model is None else model.known_target(table))
    except ValueError:  # of a loaded run that did not keep its target, or of too many parameters
        return None
    known = gaps[gaps["mean_shift"].notna()]
    records = known.reset_index(names="parameter").to_dict("records")
    records.sort(key=lambda row: -_wrong(row))
    rows = [
        GapRow(
            str(row["parameter"]),
            rounded(row["mean_shift"], decimals_of(row["error"], 1.0)),
            short(row["sd_ratio"]),
            percent(row["below"]),
            percent(row["above"]),
        )
        for row in records[:MOST_GAPS]
    ]
    return LaplacePart(str(gaps.attrs.get("verdict", "")), tuple(rows), len(records) - len(rows))


def _asked(ask: Callable[..., Any], table: Any) -> tuple[Any, str]:
    """What a run says of its table, or why it cannot."""
    try:
        return (ask() if table is None else ask(table=table)), ""
    except ValueError as reason:
        is_asked_for = str(reason).startswith("table must be given")
        return None, HOW_TO if is_asked_for else str(reason)
    finally:
        end_of_stage()  # of each part, so that they do not add up


def _effect(row: dict[str, Any], label: str, detail: str, times: float) -> Estimate:
    mean, sd, lower, upper = (times * float(row[name]) for name in ("mean", "sd", "lower", "upper"))
    decimals = decimals_of(sd / math.sqrt(NUM_DRAWS), sd)
    return Estimate(label, detail, mean, lower, mean, mean, upper, decimals)


def _clearest(many: Sequence[Estimate]) -> list[Estimate]:
    if len(many) <= MOST_ROWS:
        return list(many)
    chosen = sorted(many, key=lambda each: -max(each.lower, -each.upper))[:MOST_ROWS]
    return sorted(chosen, key=lambda each: -each.mean)


def _wrong(row: dict[str, Any]) -> float:
    """How far off: by its mean, its width, or the weight of a tail."""
    ratio = float(row["sd_ratio"])
    sizes = [abs(float(row["mean_shift"])), abs(math.log(ratio)) if ratio > 0.0 else math.inf]
    sizes += [abs(float(row[side]) - CENTRAL) / CENTRAL for side in ("below", "above")]
    return max((size for size in sizes if math.isfinite(size)), default=math.inf)
