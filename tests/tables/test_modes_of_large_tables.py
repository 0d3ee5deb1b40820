"""Large real tables: with priors so wide that they say nothing, modes are the estimates of glum,
statsmodels and scipy, for every family.
"""

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

from large_tables import BIRTHS, FLIGHTS, STONES, dummies, flat, real_table, with_errors
from table_modes import TOLERANCE, mode_of, terms_of

LARGE = 3 * TOLERANCE  # 10^5 rows are added up in float32
# the formula, the table, and glum's name for the family
BY_GLUM = {
    "logistic": (f"late ~ {FLIGHTS}", "nycflights13/flights", "binomial"),
    "linear": (f"dep_delay ~ {FLIGHTS}", "nycflights13/flights", "normal"),
    "gamma": (f"price ~ {STONES}", "ggplot2/diamonds", "gamma"),
    "poisson": (f"births ~ {BIRTHS}", "mosaicData/Birthdays", "poisson"),
}


@pytest.mark.slow
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("family", BY_GLUM)
def test_modes_are_the_estimates_of_glum(family, is_weighted):
    formula, name, theirs = BY_GLUM[family]
    frame = real_table(name)
    estimates, errors = with_errors(formula, frame, theirs, is_weighted)
    assert len(frame) > 50_000
    assert len(estimates) > 18
    of_rows = {"weights": "times", "offset": "shift"} if is_weighted else {}
    mode = flat(formula, mode_of(formula, frame, family, **of_rows))
    worst = np.abs((mode - estimates) / errors).max()
    print(f"{family}: {len(frame):,} rows, {len(mode)} coefficients, {worst:.2g} standard errors")
    assert worst < LARGE
    if is_weighted:
        forgotten = flat(formula, mode_of(formula, frame, family, offset="shift"))
        assert np.abs((forgotten - estimates) / errors).max() > 10 * LARGE


@pytest.mark.slow
def test_probits_and_scattered_counts_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    flights = real_table("nycflights13/flights", every=10)
    formula = f"late ~ {FLIGHTS}"
    link = api.families.Binomial(api.families.links.Probit())
    rows = {"freq_weights": flights.times, "offset": flights["shift"]}
    theirs = api.GLM(flights.late, dummies(formula, flights), family=link, **rows).fit(tol=1e-12)
    mode = flat(formula, mode_of(formula, flights, "probit", weights="times", offset="shift"))
    worst = np.abs((mode - theirs.params.to_numpy()) / theirs.bse.to_numpy()).max()
    assert worst < TOLERANCE

    births, formula = real_table("mosaicData/Birthdays", every=10), "births ~ C(month) + wday"
    X, offset = dummies(formula, births), births["shift"].to_numpy()
    start = api.GLM(births.births, X, family=api.families.Poisson(), offset=offset).fit()
    theirs = api.NegativeBinomial(births.births, X, offset=offset).fit(
        [*start.params, 1.0], method="newton", disp=False, maxiter=100
    )
    mode = mode_of(formula, births, "negative_binomial", offset="shift")
    ours = np.array([*flat(formula, mode), 1.0 / mode["alpha"][0]])
    scattered = np.abs((ours - theirs.params.to_numpy()) / theirs.bse.to_numpy()).max()
    print(f"probit {worst:.2g}, negative binomial {scattered:.2g} standard errors")
    assert scattered < 5 * TOLERANCE  # the prior of the shape is not so wide


@pytest.mark.slow
def test_classes_are_those_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    ordered = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    stones, formula = real_table("ggplot2/diamonds"), "cut ~ carat + depth + color"
    theirs = api.MNLogit(stones.cut.astype("category").cat.codes, dummies(formula, stones))
    theirs = theirs.fit(method="newton", maxiter=100, disp=False)
    mode = mode_of(formula, stones, "softmax")
    ours = np.concatenate([mode[term].reshape(-1, 5) for term in terms_of(formula)])
    apart = (ours[:, 1:] - ours[:, :1] - theirs.params.to_numpy()) / theirs.bse.to_numpy()
    assert np.abs(apart).max() < 10 * TOLERANCE  # the usual prior is not so wide

    marks = real_table("lme4/InstEval", every=4)
    formula = "y ~ C(studage) + C(lectage) + service + C(dept)"
    X = dummies(formula, marks)[:, 1:]
    model = ordered.OrderedModel(marks.y.to_numpy(), X, distr="logit")
    theirs = model.fit(method="bfgs", disp=False, maxiter=500, gtol=1e-6)
    cutpoints = model.transform_threshold_params(theirs.params)[1:-1]
    mode = mode_of(formula, marks, "ordinal")
    slopes = flat(formula, {**mode, "Intercept": np.array([])})
    differences = (slopes - theirs.params[: X.shape[1]]) / theirs.bse[: X.shape[1]]
    assert len(differences) > 20
    print(f"softmax {np.abs(apart).max():.2g}, ordinal {np.abs(differences).max():.2g}")
    assert np.abs(differences).max() < 5 * TOLERANCE
    np.testing.assert_allclose(mode["threshold"], cutpoints, atol=5e-3)


def by_scipy(X, y, weights, offset, num_degrees=4.0):
    """Coefficients and the log of the scale of Student-t noise, most likely."""
    from scipy import optimize

    def energy(at):
        t = (y - offset - X @ at[:-1]) / np.exp(at[-1])
        value = np.sum(weights * (0.5 * (num_degrees + 1) * np.log1p(t**2 / num_degrees) + at[-1]))
        slope = weights * (num_degrees + 1) * t / (num_degrees + t**2)
        gradient = [*(-(X.T @ slope) / np.exp(at[-1])), np.sum(weights - slope * t)]
        return value / len(y), np.array(gradient) / len(y)

    start = [*np.linalg.lstsq(X, y - offset, rcond=None)[0], np.log(np.std(y))]
    return optimize.minimize(energy, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.slow
def test_robust_modes_are_those_of_scipy():
    """Delays have heavy tails: the mean lies far from the middle."""
    frame = real_table("nycflights13/flights")
    formula = "dep_delay ~ distance + C(month) + origin"
    rows = frame.times.to_numpy(), frame["shift"].to_numpy()
    X, y = dummies(formula, frame), frame.dep_delay.to_numpy()
    theirs = by_scipy(X, y, *rows)
    mode = mode_of(formula, frame, "robust", weights="times", offset="shift")
    ours = np.array([*flat(formula, mode), np.log(mode["sigma"][0])])
    scale = np.exp(theirs[-1]) * np.sqrt(np.diag(np.linalg.inv(X.T @ (X * rows[0][:, None]))))
    worst = np.abs((ours - theirs)[:-1] / scale).max()
    print(f"robust: {worst:.2g} standard errors")
    assert worst < 5 * TOLERANCE
    assert abs(ours[-1] - theirs[-1]) < 1e-3
    by_means = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.abs((by_means - theirs[:-1]) / scale).max() > 100.0
