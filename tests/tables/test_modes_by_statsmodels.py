"""With priors so wide that they say nothing, modes are the estimates of statsmodels, on real tables
and with weights and offsets.
"""

from pathlib import Path

import jax
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
api = pytest.importorskip("statsmodels.api")
formulas = pytest.importorskip("statsmodels.formula.api")

from amagold.mode._mode_search import find_mode  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402

pytestmark = pytest.mark.slow

WIDE = {"linear": 1e7}  # standard deviations of the priors, in units of the coefficients
USUAL = 1e4
TOLERANCE = 0.01  # of a standard error: three decimals, where the estimate has none
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
    frame = pandas.read_csv(Path(__file__).parent / f"{name}.csv.gz")
    places = np.arange(len(frame))
    return frame.assign(times=1 + places % 3, shift=0.2 * np.sin(places))


def mode_of(formula, frame, family, **of_rows):
    """The mode on the scale of the table, term by term in the order of the formula."""
    wide = WIDE.get(family, USUAL)
    target = model_of(formula, read_table(frame), family, None, False, wide, **of_rows).target
    found = find_mode(target, target.init)
    assert found.is_converged
    named = target.transform(jax.tree.map(np.asarray, found.position))
    return {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in named.items()}


def apart(formula, mode, theirs):
    """The largest difference of a coefficient, in standard errors."""
    terms = ["Intercept", *(term.strip() for term in formula.split("~")[1].split("+"))]
    ours, differences = [], []
    for term in terms:
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
