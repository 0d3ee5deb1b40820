"""Whether new outcomes of a model look like the observed ones."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.core.optional_packages import required
from amagold.models._binomial import Binomial
from amagold.models._regression import Outcome
from amagold.sampling._next_steps import PredictiveCheck
from amagold.tables._coefficient_draws import CoefficientDraws, coefficient_draws
from amagold.tables._observed_rows import ObservedRows, observed_rows
from amagold.tables._table_model import needs_model

BINS = 10  # of equal counts
INTERVAL = (0.05, 0.95)
CHUNK_ROWS = 2**11  # whose outcomes are replicated together


class Replicated(NamedTuple):
    """Outcomes, the first axis those of replications, and what each counts; None is once."""

    values: np.ndarray
    weights: np.ndarray | None

    def mean(self) -> np.ndarray:
        return np.average(self.values, axis=1, weights=self.weights)

    def deviation(self) -> np.ndarray:
        away = self.values - self.mean()[:, None]
        return np.sqrt(np.average(away**2, axis=1, weights=self.weights))

    def smallest(self) -> np.ndarray:
        return self.values.min(axis=1)

    def largest(self) -> np.ndarray:
        return self.values.max(axis=1)

    def share_of_zeros(self) -> np.ndarray:
        return np.average(self.values == 0, axis=1, weights=self.weights)


Statistics = dict[str, Callable[[Replicated], np.ndarray]]
STATISTICS: Statistics = {
    "mean": Replicated.mean,
    "standard deviation": Replicated.deviation,
    "smallest": Replicated.smallest,
    "largest": Replicated.largest,
    "share of zeros": Replicated.share_of_zeros,
}
# of the share of each row's trials, which counts as often as it was tried
OF_TRIALS: Statistics = {
    "share of successes": Replicated.mean,
    "standard deviation of rows' shares": Replicated.deviation,
    "smallest share of a row": Replicated.smallest,
    "largest share of a row": Replicated.largest,
}


def predictive_check(
    run: Any, table: Any, num_rows: int, num_draws: int, seed: int
) -> PredictiveCheck:
    """As `Run.predictive_check` says."""
    pandas = required("pandas", "tables")
    model = needs_model(run, "predictive_check")
    rows = observed_rows(model, table, are_few=True).units(num_rows, seed)
    draws = coefficient_draws(run, model, num_draws)
    predicted, replicated = _replicated(rows, draws, seed)
    if predicted.ndim == 2:
        return _of_classes(predicted, rows, replicated)
    observed = rows.outcomes
    if rows.trials is not None:
        observed, replicated = observed / rows.trials, replicated / rows.trials
    weights = rows.counts
    return PredictiveCheck(
        pandas.DataFrame(_calibration(predicted, observed, replicated, weights)),
        pandas.DataFrame(
            [
                {"statistic": name, **_compared(function, observed, replicated, weights)}
                for name, function in _chosen(rows).items()
            ]
        ),
    )


def _chosen(rows: ObservedRows) -> Statistics:
    """What the mean does not say already, as it does of outcomes that are 0 or 1."""
    is_one_trial = rows.trials is not None and bool((rows.trials == 1).all())
    chosen = STATISTICS if rows.trials is None or is_one_trial else OF_TRIALS
    if is_one_trial or (rows.trials is None and np.isin(rows.outcomes, (0.0, 1.0)).all()):
        return {"mean": Replicated.mean}
    has_zeros = bool((rows.outcomes == 0).any())
    return {name: of for name, of in chosen.items() if has_zeros or name != "share of zeros"}


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
            **_compared(Replicated.mean, rows.outcomes == place, replicated == place, rows.counts),
        }
        for place, label in enumerate(rows.model.classes)
    ]
    weights = None if rows.counts is None else np.tile(rows.counts, len(places))
    calibration = _calibration(predicted.T.reshape(-1), observed, drawn, weights)
    return PredictiveCheck(pandas.DataFrame(calibration), pandas.DataFrame(shares))


def _replicated(
    rows: ObservedRows, draws: CoefficientDraws, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The predicted mean of every row, of classes that of each, and outcomes with axes (draws,
    rows).
    """
    key, means = jax.random.key(seed), []
    origin = rows.origin
    kind = np.float64 if origin else np.float32
    outcomes = np.empty((draws.num_draws, len(rows)), kind)  # filled in, not joined
    for number, start in enumerate(range(0, len(rows), CHUNK_ROWS)):
        stop = min(len(rows), start + CHUNK_ROWS)
        z = rows.z(draws, slice(start, stop), origin)
        trials = None if rows.trials is None else rows.trials[start:stop, None]
        mean, drawn = _drawn(jax.random.fold_in(key, number), z, trials, law=rows.model.law)
        means.append(np.asarray(mean, np.float64) + origin)
        outcomes[:, start:stop] = np.asarray(drawn).T
        outcomes[:, start:stop] += origin
    return np.concatenate(means), outcomes


@partial(jax.jit, static_argnames="law")
def _drawn(
    key: jax.Array, z: jax.Array, trials: Any, *, law: Outcome | Binomial
) -> tuple[jax.Array, jax.Array]:
    if trials is None:
        return law.mean(z).mean(axis=1), law.draw(key, z)
    assert isinstance(law, Binomial)
    return law.mean(z).mean(axis=1), law.draw(key, z, trials)


def _calibration(
    predicted: np.ndarray,
    observed: np.ndarray,
    replicated: np.ndarray,
    weights: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """Bins of rows by their predicted mean, of equal counts; equal predictions stay together."""
    each = np.ones(len(predicted)) if weights is None else weights
    order = np.argsort(predicted, kind="stable")
    up_to = np.cumsum(each[order])
    ends = np.searchsorted(up_to, np.arange(1, BINS) * up_to[-1] / BINS)
    edges = np.unique(predicted[order][ends])
    bins = np.searchsorted(edges, predicted, side="left")
    found, bins = np.unique(bins, return_inverse=True)
    counts = np.bincount(bins, each)
    columns = {
        "predicted": np.bincount(bins, each * predicted) / counts,
        "observed": np.bincount(bins, each * observed) / counts,
    }
    # one replication at a time: all of them in float64 would be the most memory of a report
    sums = np.stack([np.bincount(bins, each * one) for one in replicated])
    lower, upper = np.quantile(sums / counts, INTERVAL, axis=0)
    assert len(found) == len(counts)
    is_whole = bool((counts == np.round(counts)).all())
    counts = counts.astype(np.int64) if is_whole else counts
    return columns | {"lower": lower, "upper": upper, "count": counts}


def _compared(
    statistic: Callable[[Replicated], np.ndarray],
    observed: np.ndarray,
    replicated: np.ndarray,
    weights: np.ndarray | None,
) -> dict[str, float]:
    """A statistic of the observed outcomes among those of the replicated ones."""
    ours = float(statistic(Replicated(observed.astype(np.float64)[None], weights))[0])
    each = (Replicated(one.astype(np.float64)[None], weights) for one in replicated)
    theirs = np.concatenate([statistic(one) for one in each])
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
