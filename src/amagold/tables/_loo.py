"""Leave-one-out cross-validation, on some of the rows where there are many.

What is left out is one row, or one of the w that a row of weight w stands for; or one trial.
arviz-stats smooths the importance weights of the rows that are left out in turn; the sum over all
rows is estimated from them, and from log likelihoods at the posterior's mean for all
(`_difference_estimate.py`).
"""

import dataclasses
import warnings
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray
from scipy.special import gammaln, logsumexp

from amagold.core import checks
from amagold.core.arviz import arviz_stats
from amagold.sampling._advice import SamplingWarning
from amagold.tables._coefficient_draws import CoefficientDraws, coefficient_draws
from amagold.tables._difference_estimate import RowSample, row_sum
from amagold.tables._drawn_rows import some_rows
from amagold.tables._observed_rows import ObservedRows, observed_rows
from amagold.tables._table_model import TableModel, needs_model

ROW, OUTCOME = "row", "y"
CHUNK_ROWS = 2**15  # that log likelihoods at the mean are taken of together
LEFT_OUT = ("row", "trial")


class LeftOut(NamedTuple):
    """log p(y_i | all but one) of rows that were left out in turn."""

    exact: np.ndarray  # of each that was drawn
    approximate: np.ndarray  # of all rows
    rows: RowSample
    told: Any  # arviz-stats' ELPDData


def loo(run: Any, table: Any, num_rows: int, num_draws: int, seed: int, leave_out: str) -> Any:
    """As `Run.loo` says."""
    model = needs_model(run, "loo")
    return left_out(run, rows_to_leave(model, table, leave_out), num_rows, num_draws, seed).told


def rows_to_leave(model: TableModel, table: Any, leave_out: str) -> ObservedRows:
    """The rows of which one after another is left out."""
    if leave_out not in LEFT_OUT:
        raise ValueError(f"leave_out must be 'row' or 'trial', got {leave_out!r}")
    rows = observed_rows(model, table)
    if leave_out == "row":
        return rows
    if rows.trials is None:
        raise ValueError("leave_out must be 'row' for a run without trials, got 'trial'")
    return rows.by_trial()


def left_out(
    run: Any, rows: ObservedRows, num_rows: int, num_draws: int, seed: int, depth: int = 2
) -> LeftOut:
    """What is expected of each row from all others; warnings point so many calls further out."""
    checks.whole_number("num_rows", num_rows, at_least=2, remedy="give how many rows to leave out")
    checks.whole_number("seed", seed, at_least=0, remedy="give a whole number")
    draws = coefficient_draws(run, rows.model, num_draws)
    numbers, likely = some_rows(rows.times, num_rows, np.random.default_rng(seed))
    some = RowSample(rows.times, numbers, likely)
    logs = log_densities(rows, numbers, draws)
    smoothed = _smoothed(run, logs, np.minimum(1.0, rows.times[numbers]), draws)
    weights = np.asarray(smoothed.log_weights).reshape(draws.num_draws, len(numbers)).T
    exact = np.asarray(logsumexp(weights + logs, axis=1))
    approximate = exact if some.are_all else _at_mean(rows, draws)
    # effective parameters: how much better rows are known that were not left out
    inside = np.asarray(logsumexp(logs, axis=1)) - np.log(draws.num_draws)
    told = _told(smoothed, exact, approximate, some)
    found = dataclasses.replace(told, p=float(some.each @ (inside - exact)))
    if found.warning:
        bad = int(np.sum(np.asarray(smoothed.pareto_k) > found.good_k))
        by_trial = "" if rows.trials is None else ", or leave out one trial (leave_out='trial')"
        warnings.warn(
            f"loo: {bad:,} of the rows that were left out say much about the coefficients "
            f"(Pareto k above {found.good_k:.2f}), so the estimate may be off; look at "
            f"loo().pareto_k, or give more num_draws{by_trial}",
            SamplingWarning,
            stacklevel=2 + depth,
        )
    return LeftOut(exact, approximate, some, found)


def log_densities(rows: ObservedRows, numbers: np.ndarray, draws: CoefficientDraws) -> np.ndarray:
    """log p(y | x, theta) of one unit with all constants, with axes (rows, draws)."""
    z, law = rows.z(draws, numbers.tolist(), rows.origin), rows.model.law
    outcomes = rows.outcomes[numbers][:, None] - rows.origin
    if rows.trials is None:
        return np.asarray(law.log_density(jnp.asarray(outcomes, jnp.float32), z), np.float64)
    trials = rows.trials[numbers][:, None]
    won, lost = (
        np.asarray(law.log_density(jnp.full(z.shape, y, jnp.float32), z), np.float64)
        for y in (1.0, 0.0)
    )
    # in float64, which many trials need: log (n over k) + k log p + (n - k) log q
    ways = gammaln(trials + 1.0) - gammaln(outcomes + 1.0) - gammaln(trials - outcomes + 1.0)
    failures = trials - outcomes
    of_won = np.where(outcomes > 0, outcomes * won, 0.0)  # not 0 times -inf
    return ways + of_won + np.where(failures > 0, failures * lost, 0.0)


def _smoothed(run: Any, logs: np.ndarray, parts: np.ndarray, draws: CoefficientDraws) -> Any:
    """Importance weights of the posterior without one unit, p(y | x, theta)^-1; of a row that
    counts less than once without all of it.
    """
    per_chain = draws.num_draws // draws.num_chains
    taken = (parts[:, None] * logs).T.reshape(draws.num_chains, per_chain, -1)
    dims = ("chain", "draw", ROW)
    coords = {"chain": np.arange(draws.num_chains), "draw": np.arange(per_chain)}
    chosen = np.linspace(0, run.posterior.sizes["draw"] - 1, per_chain).round().astype(int)
    tree = xarray.DataTree.from_dict(
        {
            "posterior": run.posterior.isel(draw=chosen).assign_coords(coords),
            "log_likelihood": xarray.Dataset({OUTCOME: (dims, taken)}, coords=coords),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said by us, with what to do
        found = arviz_stats().loo(tree, var_name=OUTCOME, pointwise=True)
    ordered = found.log_weights.transpose(*dims)
    return dataclasses.replace(found, log_weights=ordered)


def _told(smoothed: Any, exact: np.ndarray, approximate: np.ndarray, rows: RowSample) -> Any:
    """arviz-stats' record, whose `elpd_i` adds up to `elpd`: w_i times that of one unit."""
    total = row_sum(exact, approximate, rows)
    length = len(rows.times)
    pointwise, pareto_k = np.full(length, np.nan), np.full(length, np.nan)
    pointwise[rows.numbers] = rows.times[rows.numbers] * exact
    pareto_k[rows.numbers] = np.asarray(smoothed.pareto_k)
    of_some = {}
    if not rows.are_all:
        of_some = {
            "subsampling_se": total.drawing_error,
            "subsample_size": len(rows.numbers),
            "loo_subsample_observations": rows.numbers,
            "elpd_loo_approx": xarray.DataArray(rows.times * approximate, dims=[ROW]),
        }
    return dataclasses.replace(
        smoothed,
        elpd=total.value,
        se=total.error,
        n_data_points=round(float(rows.times.sum())),
        elpd_i=xarray.DataArray(pointwise, dims=[ROW]),
        pareto_k=xarray.DataArray(pareto_k, dims=[ROW]),
        **of_some,
    )


def _at_mean(rows: ObservedRows, draws: CoefficientDraws) -> np.ndarray:
    """log p(y_i | x_i, E[theta]) of all rows, the extras of a draw in their logs."""
    classes = draws.num_classes or 1
    by_class = draws.coefficients.reshape(draws.num_draws, classes, -1)
    extras = None if draws.extras is None else draws.extras.mean(axis=0, keepdims=True)
    groups = tuple(each.mean() for each in draws.groups)
    mean = draws._replace(coefficients=by_class.mean(axis=0), extras=extras, groups=groups)
    starts = range(0, len(rows), CHUNK_ROWS)
    parts = [np.arange(start, min(len(rows), start + CHUNK_ROWS)) for start in starts]
    return np.concatenate([log_densities(rows, part, mean)[:, 0] for part in parts])
