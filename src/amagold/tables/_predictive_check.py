"""Whether new outcomes of a model look like the observed ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from amagold.core.optional_packages import required
from amagold.models._regression import Outcome
from amagold.sampling._next_steps import PredictiveCheck
from amagold.tables._coefficient_draws import CoefficientDraws, coefficient_draws
from amagold.tables._observed_rows import ObservedRows, some_observed_rows
from amagold.tables._table_model import needs_model

BINS = 10  # of equal counts
INTERVAL = (0.05, 0.95)
CHUNK_ROWS = 2**11  # whose outcomes are replicated together


def _share_of_zeros(outcomes: np.ndarray, axis: int) -> np.ndarray:
    return (outcomes == 0).mean(axis=axis)


# of outcomes that are 0 or 1 the mean says it all
STATISTICS: dict[str, Callable[..., np.ndarray]] = {
    "mean": np.mean,
    "standard deviation": np.std,
    "smallest": np.min,
    "largest": np.max,
    "share of zeros": _share_of_zeros,
}


def predictive_check(
    run: Any, table: Any, num_rows: int, num_draws: int, seed: int
) -> PredictiveCheck:
    """As `Run.predictive_check` says."""
    pandas = required("pandas", "tables")
    model = needs_model(run, "predictive_check")
    rows = some_observed_rows(model, table, num_rows, seed)
    draws = coefficient_draws(run, model, num_draws)
    predicted, replicated = _replicated(rows, draws, seed)
    if predicted.ndim == 2:
        return _of_classes(predicted, rows, replicated)
    is_binary = bool(np.isin(rows.outcomes, (0.0, 1.0)).all())
    chosen = {"mean": np.mean} if is_binary else dict(STATISTICS)
    if not (rows.outcomes == 0).any():
        chosen.pop("share of zeros", None)
    return PredictiveCheck(
        pandas.DataFrame(_calibration(predicted, rows.outcomes, replicated)),
        pandas.DataFrame(
            [
                {"statistic": name, **_compared(function, rows.outcomes, replicated)}
                for name, function in chosen.items()
            ]
        ),
    )


def _of_classes(
    predicted: np.ndarray, rows: ObservedRows, replicated: np.ndarray
) -> PredictiveCheck:
    """Probabilities of all classes against whether each was observed, and the share of each."""
    pandas = required("pandas", "tables")
    places = range(predicted.shape[1])
    observed = np.concatenate([rows.outcomes == place for place in places]).astype(float)
    drawn = np.concatenate([replicated == place for place in places], axis=1)
    shares = [
        {
            "statistic": f"share of {label!r}",
            **_compared(np.mean, rows.outcomes == place, replicated == place),
        }
        for place, label in enumerate(rows.model.classes)
    ]
    calibration = _calibration(predicted.T.reshape(-1), observed, drawn)
    return PredictiveCheck(pandas.DataFrame(calibration), pandas.DataFrame(shares))


def _replicated(
    rows: ObservedRows, draws: CoefficientDraws, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The predicted mean of every row, of classes that of each, and outcomes with axes (draws,
    rows).
    """
    key, means, outcomes = jax.random.key(seed), [], []
    for number, start in enumerate(range(0, len(rows), CHUNK_ROWS)):
        stop = min(len(rows), start + CHUNK_ROWS)
        z = rows.z(draws, slice(start, stop))
        mean, drawn = _drawn(jax.random.fold_in(key, number), z, law=rows.model.law)
        means.append(np.asarray(mean, np.float64))
        outcomes.append(np.asarray(drawn))
    return np.concatenate(means), np.concatenate(outcomes).T


@partial(jax.jit, static_argnames="law")
def _drawn(key: jax.Array, z: jax.Array, *, law: Outcome) -> tuple[jax.Array, jax.Array]:
    return law.mean(z).mean(axis=1), law.draw(key, z)


def _calibration(
    predicted: np.ndarray, observed: np.ndarray, replicated: np.ndarray
) -> dict[str, np.ndarray]:
    """Bins of rows by their predicted mean, of equal counts; equal predictions stay together."""
    edges = np.unique(np.quantile(predicted, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, predicted, side="left")
    found, bins = np.unique(bins, return_inverse=True)
    counts = np.bincount(bins)
    columns = {
        "predicted": np.bincount(bins, predicted) / counts,
        "observed": np.bincount(bins, observed) / counts,
    }
    order = np.argsort(bins, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sums = np.add.reduceat(replicated[:, order], starts, axis=1, dtype=np.float64)
    lower, upper = np.quantile(sums / counts, INTERVAL, axis=0)
    assert len(found) == len(counts)
    return columns | {"lower": lower, "upper": upper, "count": counts}


def _compared(
    function: Callable[..., np.ndarray], observed: np.ndarray, replicated: np.ndarray
) -> dict[str, float]:
    """A statistic of the observed outcomes among those of the replicated ones."""
    ours = float(function(observed, axis=0))
    theirs = np.asarray(function(replicated.astype(np.float64), axis=1))
    lower, upper = np.quantile(theirs, INTERVAL)
    # ties count half, as for outcomes of few values
    above = float((theirs > ours).mean() + 0.5 * (theirs == ours).mean())
    return {
        "observed": ours,
        "mean": float(theirs.mean()),
        "lower": float(lower),
        "upper": float(upper),
        "share_above": above,
    }
