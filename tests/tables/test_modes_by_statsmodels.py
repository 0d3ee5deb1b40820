"""With priors so wide that they say nothing, modes are the estimates of statsmodels, on real tables
and with weights and offsets.
"""

from pathlib import Path

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
api = pytest.importorskip("statsmodels.api")
formulas = pytest.importorskip("statsmodels.formula.api")

from table_modes import TOLERANCE, mode_of, terms_of, with_counts  # noqa: E402

pytestmark = pytest.mark.slow

STONES = "price ~ carat + C(cut) + C(color) + C(clarity)"
DAYS = "days ~ C(eth) + C(sex) + C(learner) + C(age)"
LOG_GAMMA = api.families.Gamma(api.families.links.Log())
CASES = {
    "logistic": ("wells", "switch ~ distance + arsenic + C(education)", api.families.Binomial()),
    "probit": (
        "wells",
        "switch ~ distance + arsenic + C(education)",
        api.families.Binomial(api.families.links.Probit()),
    ),
    "poisson": ("quine", DAYS, api.families.Poisson()),
    "linear": ("diamonds", STONES, api.families.Gaussian()),
    "gamma": ("diamonds", STONES, LOG_GAMMA),
}


def real_table(name):
    return with_counts(pandas.read_csv(Path(__file__).parent / f"{name}.csv.gz"))


def apart(formula, mode, theirs):
    """The largest difference of a coefficient, in standard errors."""
    ours, differences = [], []
    for term in terms_of(formula):
        names = [name for name in theirs.params.index if name.split("[")[0] == term]
        assert len(names) == len(mode[term])
        ours += list(zip(names, mode[term], strict=True))
    for name, value in ours:
        differences.append(abs(value - theirs.params[name]) / theirs.bse[name])
    assert len(differences) >= 5
    return max(differences)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("family", CASES)
def test_modes_are_the_estimates_of_statsmodels(family, is_weighted):
    name, formula, kind = CASES[family]
    frame = real_table(name)
    given = {"freq_weights": frame.times, "offset": frame["shift"]} if is_weighted else {}
    theirs = formulas.glm(formula, frame, family=kind, **given).fit(tol=1e-12)
    of_rows = {"weights": "times", "offset": "shift"} if is_weighted else {}
    mode = mode_of(formula, frame, family, **of_rows)
    assert apart(formula, mode, theirs) < TOLERANCE
    if is_weighted:
        forgotten = mode_of(formula, frame, family, offset="shift")
        assert apart(formula, forgotten, theirs) > 10 * TOLERANCE


def test_counts_that_scatter_are_those_of_statsmodels():
    frame = real_table("quine")
    theirs = formulas.negativebinomial(DAYS, frame).fit(disp=False, gtol=1e-8, maxiter=500)
    mode = mode_of(DAYS, frame, "negative_binomial")
    assert apart(DAYS, mode, theirs) < 5 * TOLERANCE  # the prior of the shape is not so wide
    assert abs(np.log(mode["alpha"][0] * theirs.params["alpha"])) < 0.05
