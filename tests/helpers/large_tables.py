"""Large real tables as this library takes them, as matrices, and as glum fits them."""

import arviz_stats
import numpy as np
import pandas
import pytest
from false_alarms import threshold
from packaged_tables import packaged
from scipy import stats
from table_modes import terms_of, with_counts

FLIGHTS = "distance + C(month) + C(hour) + origin + carrier"
STONES = "carat + cut + color + clarity"
BIRTHS = "state + C(year) + C(month) + wday"
SLACK = 0.1  # posterior standard deviations, beside Monte Carlo error and skew


def real_table(name, every=1):
    frame = packaged(name)
    if "dep_delay" in frame:
        frame = frame.dropna(subset=["dep_delay"])
        frame = frame.assign(late=(frame.dep_delay > 15).astype(int), distance=frame.distance / 1e3)
    return with_counts(frame.iloc[::every].reset_index(drop=True))


def flat(formula, mode):
    return np.concatenate([mode[term] for term in terms_of(formula)])


def predictors(formula, frame):
    """The columns of a formula for other libraries: factors as categories, in our order."""
    found = {}
    for term in terms_of(formula)[1:]:
        column = frame[term.removeprefix("C(").removesuffix(")")]
        is_factor = term.startswith("C(") or not pandas.api.types.is_numeric_dtype(column)
        found[term] = column.astype("category") if is_factor else column.astype(float)
    return pandas.DataFrame(found)


def dummies(formula, frame):
    """The same as one matrix, with the intercept first."""
    found = predictors(formula, frame)
    # one by one: together they would not stay in order
    columns = [pandas.get_dummies(found[[name]], drop_first=True, dtype=float) for name in found]
    return np.column_stack([np.ones(len(frame)), *(each.to_numpy() for each in columns)])


def by_glum(formula, frame, family, is_weighted=False, prior_width=None):
    """Estimates, the intercept first: with a normal prior of levels, if its width is given."""
    model = _fitted(formula, frame, family, is_weighted, prior_width)[0]
    return np.array([model.intercept_, *model.coef_])


def with_errors(formula, frame, family, is_weighted):
    """Estimates and their standard errors."""
    model, X, y, rows = _fitted(formula, frame, family, is_weighted, None)
    errors = model.std_errors(X=X, y=y, robust=False, **rows)
    return np.array([model.intercept_, *model.coef_]), np.asarray(errors)


def _fitted(formula, frame, family, is_weighted, prior_width):
    glum = pytest.importorskip("glum")
    X = predictors(formula, frame)
    y = frame[formula.split("~")[0].strip()].to_numpy(np.float64)
    rows = {"sample_weight": frame.times, "offset": frame["shift"]} if is_weighted else {}
    is_factor = [X[name].dtype == "category" for name in X]
    # glum's energy is that of one row: -log p / N + alpha / 2 sum w^2
    alpha = 0.0 if prior_width is None else 1.0 / (len(X) * prior_width**2)
    model = glum.GeneralizedLinearRegressor(
        alpha=alpha,
        P2=np.array(is_factor, float) if alpha else "identity",
        family=family,
        link="log" if family == "gamma" else "auto",
        drop_first=True,
        gradient_tol=1e-10,
        max_iter=500,
    )
    return model.fit(X, y, **rows), X, y, rows


def worst_mean(draws, estimates):
    """The largest distance of a mean from a mode, as a share of what is allowed: Monte Carlo error,
    and skewness / 2 standard deviations between mean and mode, which levels of a few rows have.
    """
    spread = draws.std(axis=(0, 1))
    ess = np.array(
        [float(arviz_stats.ess(column, method="mean")) for column in draws.T.swapaxes(1, 2)]
    )
    between = 0.5 * np.abs(stats.skew(draws, axis=(0, 1)))
    allowed = spread * (SLACK + between + threshold(len(spread)) / np.sqrt(ess))
    return float(np.max(np.abs(draws.mean(axis=(0, 1)) - estimates) / allowed))
