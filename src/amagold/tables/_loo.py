"""Leave-one-out cross-validation on some of the rows, and comparisons of runs by it.

arviz-stats estimates the sum over all rows from few of them, and from log likelihoods at the
posterior's mean for all (Magnusson et al. 2019). Its log likelihoods of all rows under all draws
are an array here that is computed where it is looked at, which is at those few.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing

from amagold.core import checks
from amagold.core.arviz import arviz_stats
from amagold.sampling._advice import SamplingWarning
from amagold.tables._coefficient_draws import CoefficientDraws, coefficient_draws
from amagold.tables._observed_rows import ObservedRows, observed_rows
from amagold.tables._table_model import needs_model

if TYPE_CHECKING:
    import pandas

ROW, OUTCOME = "row", "y"
CHUNK_ROWS = 2**15  # that log likelihoods at the mean are taken of together


class RowLikelihoods(BackendArray):
    """log p(y_i | x_i, theta_k) with axes (chain, draw, row), none of which is kept."""

    def __init__(self, rows: ObservedRows, draws: CoefficientDraws) -> None:
        self.rows, self.draws = rows, draws
        per_chain = draws.num_draws // draws.num_chains
        self.shape = (draws.num_chains, per_chain, len(rows))
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        # a lone number asks for one row, and for an array without that axis
        numbers = np.arange(len(self.rows))[key[2]]
        found = log_densities(self.rows, np.atleast_1d(numbers), self.draws)
        by_chain = found.T.reshape(*self.shape[:2], *np.shape(numbers))
        return by_chain[:, key[1]][key[0]]


def log_densities(rows: ObservedRows, numbers: np.ndarray, draws: CoefficientDraws) -> np.ndarray:
    """log p(y | x, theta) with all constants, with axes (rows, draws)."""
    z = rows.z(draws, numbers.tolist())
    outcomes = jnp.asarray(rows.outcomes[numbers], jnp.float32)[:, None]
    return np.asarray(rows.model.law.log_density(outcomes, z), np.float64)


def loo(run: Any, table: Any, num_rows: int, num_draws: int, seed: int) -> Any:
    """As `Run.loo` says."""
    model = needs_model(run, "loo")
    checks.whole_number("num_rows", num_rows, at_least=2, remedy="give how many rows to leave out")
    rows = observed_rows(model, table)
    draws = coefficient_draws(run, model, num_draws)
    likelihoods = RowLikelihoods(rows, draws)
    data = _tree(run, rows, likelihoods)
    stats = arviz_stats()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if len(rows) <= num_rows:
            found = stats.loo(data, var_name=OUTCOME, pointwise=True)
        else:
            at_mean = xarray.DataArray(_at_mean(rows, draws), dims=[ROW])
            found = stats.loo_subsample(
                data,
                observations=num_rows,
                var_name=OUTCOME,
                pointwise=True,
                method="plpd",
                log_lik_fn=lambda observed, tree: at_mean,
                seed=seed,
            )
    if found.warning:
        bad = int(np.sum(np.asarray(found.pareto_k) > found.good_k))
        warnings.warn(
            f"loo: {bad:,} of the rows that were left out say much about the coefficients "
            f"(Pareto k above {found.good_k:.2f}), so the estimate may be off; look at "
            "loo().pareto_k, or give more num_draws",
            SamplingWarning,
            stacklevel=3,
        )
    del heard
    return found


def compare(
    runs: Sequence[Any],
    names: Sequence[str] | None = None,
    *,
    tables: Any = None,
    num_rows: int = 1000,
    num_draws: int = 1000,
    seed: int = 0,
) -> "pandas.DataFrame":
    """Runs of one outcome by their expected log predictive density, the best first.

    The columns are those of arviz-stats' `compare`: rank, elpd, p, elpd_diff (from the best), dse
    (its standard error), weight (by pseudo-BMA), and others.

    Args:
      runs: of `amagold.fit`, with the same rows.
      names: of the runs; None takes their formulas, or numbers where these are equal.
      tables: the table that was fitted, for loaded runs that did not keep it.
      num_rows, num_draws, seed: as for `Run.loo`.
    """
    runs = list(runs)
    if len(runs) < 2:
        raise ValueError(f"runs must be two at least, got {len(runs)}; give a list of them")
    models = [needs_model(run, "compare") for run in runs]
    if names is None:
        formulas = [f"{model.terms.formula} ({model.family})" for model in models]
        is_clear = len(set(formulas)) == len(runs)
        names = formulas if is_clear else [f"run {number}" for number in range(len(runs))]
    if len(set(names)) != len(runs):
        raise ValueError(f"names must be one for each run, got {list(names)!r}")
    first = observed_rows(models[0], tables).outcomes
    for name, model in zip(names[1:], models[1:], strict=True):
        if not np.array_equal(observed_rows(model, tables).outcomes, first):
            raise ValueError(
                f"runs must have the same rows and outcomes, but those of {name!r} are not those "
                f"of {names[0]!r}; fit them to one table"
            )
    found = {
        name: loo(run, tables, num_rows, num_draws, seed)
        for name, run in zip(names, runs, strict=True)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loo has said what is wrong
        # stacking needs every row of every run, of which some are looked at
        return arviz_stats().compare(found, method="pseudo-BMA")


def _at_mean(rows: ObservedRows, draws: CoefficientDraws) -> np.ndarray:
    """log p(y_i | x_i, E[theta]) of all rows, the extras of a draw in their logs."""
    classes = draws.num_classes or 1
    by_class = draws.coefficients.reshape(draws.num_draws, classes, -1)
    extras = None if draws.extras is None else draws.extras.mean(axis=0, keepdims=True)
    mean = draws._replace(coefficients=by_class.mean(axis=0), extras=extras)
    starts = range(0, len(rows), CHUNK_ROWS)
    parts = [np.arange(start, min(len(rows), start + CHUNK_ROWS)) for start in starts]
    return np.concatenate([log_densities(rows, part, mean)[:, 0] for part in parts])


def _tree(run: Any, rows: ObservedRows, likelihoods: RowLikelihoods) -> xarray.DataTree:
    """What arviz-stats reads: draws, outcomes, and log likelihoods where they are asked for."""
    lazy = indexing.LazilyIndexedArray(likelihoods)
    variable = xarray.Variable(("chain", "draw", ROW), lazy)
    coords = {
        name: np.arange(size)
        for name, size in zip(("chain", "draw"), likelihoods.shape[:2], strict=True)
    }
    chosen = np.linspace(0, run.posterior.sizes["draw"] - 1, likelihoods.shape[1]).round()
    return xarray.DataTree.from_dict(
        {
            "posterior": run.posterior.isel(draw=chosen.astype(int)).assign_coords(coords),
            "log_likelihood": xarray.Dataset({OUTCOME: variable}, coords=coords),
            "observed_data": xarray.Dataset({OUTCOME: ((ROW,), rows.outcomes)}),
        }
    )
