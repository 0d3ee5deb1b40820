"""Runs of one table by what they expect of rows that were left out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.tables._difference_estimate import row_sum
from amagold.tables._loo import LeftOut, left_out, rows_to_leave
from amagold.tables._observed_rows import ObservedRows
from amagold.tables._table_model import TableModel, needs_model

if TYPE_CHECKING:
    import pandas


def compare(
    runs: Sequence[Any] | Mapping[str, Any],
    names: Sequence[str] | None = None,
    *,
    tables: Any = None,
    num_rows: int = 1000,
    num_draws: int = 1000,
    seed: int = 0,
    leave_out: str = "row",
) -> "pandas.DataFrame":
    """Runs of one outcome by their expected log predictive density, the best first.

    The columns are those of arviz-stats' `compare`: rank, elpd, p, elpd_diff (from the best),
    weight (by pseudo-BMA), se, dse (the standard error of elpd_diff), warning, and subsampling_dse
    where some rows stand for all. Rows count as often as their weights say.

    Args:
      runs: of `amagold.fit`, with the same rows, weights and trials; a list, or a dict by name.
      names: of the runs in a list; None takes their formulas, or numbers where these are equal.
      tables: the table that was fitted, for loaded runs that did not keep it.
      num_rows, num_draws, seed, leave_out: as for `Run.loo`.
    """
    pandas = required("pandas", "tables")
    if isinstance(runs, Mapping):
        if names is not None:
            raise ValueError("names must not be given with runs that are a dict by name")
        names, runs = list(runs), list(runs.values())
    runs = list(runs)
    if len(runs) < 2:
        raise ValueError(f"runs must be two at least, got {len(runs)}; give a list of them")
    other = next((run for run in runs if not hasattr(run, "model")), None)
    if other is not None:
        raise ValueError(
            f"runs must be runs of amagold.fit, got {other!r}; open a stored one with amagold.load"
        )
    models = [needs_model(run, "compare") for run in runs]
    names = _names(names, models)
    rows = [rows_to_leave(model, tables, leave_out) for model in models]
    for name, others in zip(names[1:], rows[1:], strict=True):
        _check_same(name, others, names[0], rows[0])
    found = {
        name: left_out(run, some, num_rows, num_draws, seed)
        for name, run, some in zip(names, runs, rows, strict=True)
    }
    order = sorted(names, key=lambda name: -found[name].told.elpd)
    best = found[order[0]]
    likely = np.exp([found[name].told.elpd - best.told.elpd for name in order])
    table = [_row(found[name], best) for name in order]
    told = pandas.DataFrame(table, index=order)
    told.insert(0, "rank", np.arange(len(order)))
    # stacking needs every row of every run, of which some are looked at
    told.insert(4, "weight", likely / likely.sum())
    return told


def _row(found: LeftOut, best: LeftOut) -> dict[str, Any]:
    """A run beside the best: differences row by row, of the same rows."""
    told = found.told
    behind = row_sum(best.exact - found.exact, best.approximate - found.approximate, found.rows)
    some = {} if found.rows.are_all else {"subsampling_dse": behind.drawing_error}
    return {
        "elpd": told.elpd,
        "p": told.p,
        "elpd_diff": behind.value,
        "se": told.se,
        "dse": behind.error,
        "warning": bool(told.warning),
        **some,
    }


def _names(names: Sequence[str] | None, models: Sequence[TableModel]) -> list[str]:
    if names is None:
        formulas = [f"{model.terms.formula} ({model.family})" for model in models]
        is_clear = len(set(formulas)) == len(models)
        return formulas if is_clear else [f"run {number}" for number in range(len(models))]
    if len(set(names)) != len(models) or len(names) != len(models):
        raise ValueError(f"names must be one for each run, got {list(names)!r}")
    return list(names)


def _check_same(name: str, rows: ObservedRows, first: str, of_first: ObservedRows) -> None:
    """Raise unless both are of the same outcomes, which count as often."""
    if not np.array_equal(rows.outcomes, of_first.outcomes):
        raise ValueError(
            f"runs must have the same rows and outcomes, but those of {name!r} are not those of "
            f"{first!r}; fit them to one table"
        )
    ones = np.ones(len(rows))
    for what in ("weights", "trials"):
        ours, theirs = getattr(rows, what), getattr(of_first, what)
        if not np.array_equal(ones if ours is None else ours, ones if theirs is None else theirs):
            raise ValueError(
                f"runs must have the same {what}, but those of {name!r} are not those of "
                f"{first!r}; fit both with one column of {what}"
            )
