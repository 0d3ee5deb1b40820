"""Priors of single terms are those of the coefficients as they are reported."""

import jax
import numpy as np
import pytest
from scipy import stats

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
nw = pytest.importorskip("narwhals")

from amagold import priors  # noqa: E402
from amagold.priors._prior_text import parsed_prior, parsed_priors  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402

NUM_ROWS = 60
GIVEN = {
    "Intercept": priors.student_t(3, 1.0, 2.0),
    "x": priors.laplace(0.1, 0.02),
    "C(month)": priors.normal(0.5, 0.7),
    "sigma": priors.student_t(4, 0.0, 1.0),
}
TRUTH = {
    "Intercept": stats.t(3, 1.0, 2.0),
    "x": stats.laplace(0.1, 0.02),
    "C(month)": stats.norm(0.5, 0.7),
    "sigma": stats.t(4, 0.0, 1.0),
}


def table():
    generator = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "y": generator.normal(40.0, 6.0, NUM_ROWS),
            "x": generator.normal(100.0, 5.0, NUM_ROWS),
            "age": generator.normal(3.0, 1.0, NUM_ROWS),
            "month": generator.integers(1, 4, NUM_ROWS),
            "grade": np.arange(NUM_ROWS) % 4,
        }
    )


def target(chosen, formula="y ~ x + age + C(month)", family="linear"):
    frame = nw.from_native(table())
    return model_of(formula, frame, family, None, False, None, chosen).target


def positions(like):
    generator = np.random.default_rng(0)
    return [
        jax.tree.map(lambda leaf: generator.normal(0.0, 0.3, leaf.shape).astype("f4"), like)
        for _ in range(3)
    ]


def log_density_of_given(reported, chosen):
    """By scipy, on the user's scale; the Jacobian of sigma is that of its logarithm."""
    found = sum(np.sum(TRUTH[name].logpdf(reported[name])) for name in chosen)
    return found + (np.log(reported["sigma"]) if "sigma" in chosen else 0.0)


@pytest.mark.parametrize("names", [*GIVEN, tuple(GIVEN)])
def test_given_priors_are_exact(names):
    """Differences of the log prior between positions, against scipy's: the default of the terms
    that are given is gone, and that of the others is there.
    """
    names = (names,) if isinstance(names, str) else names
    chosen = {name: GIVEN[name] for name in names}
    mine, usual = target(chosen), target(None)
    places = {term.name: np.array(term.places) for term in usual.transform.terms}
    found, wanted = [], []
    for position in positions(usual.init):
        found.append(float(mine.log_prior(position)))
        coefficients, prior = position["coefficients"], usual.log_prior.coefficients
        away = ((coefficients - prior.center) / prior.scale) ** 2
        gone = np.concatenate([places.get(name, np.zeros(0, int)) for name in chosen])
        others = np.setdiff1d(np.arange(len(coefficients)), gone)
        rest = -0.5 * float(np.sum(np.asarray(away)[others]))
        if "sigma" not in chosen:
            rest += float(usual.log_prior(position) - prior(coefficients))
        wanted.append(rest + log_density_of_given(usual.transform(position), chosen))
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=2e-3, atol=2e-3)
    assert np.abs(np.diff(wanted)).max() > 0.1  # a prior left out would be seen


def test_a_forgotten_jacobian_would_be_seen():
    mine, (first, second, _) = target({"sigma": GIVEN["sigma"]}), positions(target(None).init)
    sigmas = [mine.transform(position)["sigma"] for position in (first, second)]
    assert abs(np.log(sigmas[0] / sigmas[1])) > 0.05


@pytest.mark.parametrize("names", [("x",), ("threshold",), ("x", "threshold")])
def test_given_priors_of_ordered_classes(names):
    """The same with thresholds, whose Jacobian is that of automatic differentiation."""
    truth = {"x": TRUTH["x"], "threshold": stats.norm(1.0, 3.0)}
    chosen = {"x": GIVEN["x"], "threshold": priors.normal(1.0, 3.0)}
    formula = "grade ~ x + age + C(month)"
    mine = target({name: chosen[name] for name in names}, formula, "ordinal")
    usual = target(None, formula, "ordinal")
    prior = usual.log_prior
    gone = [1] * ("x" in names) + [0] * ("threshold" in names)
    found, wanted, stretches = [], [], []
    for position in positions(usual.init):
        coefficients, gaps = position["coefficients"], position["gaps"]

        def thresholds(first, gaps, coefficients=coefficients):
            whole = jax.numpy.asarray(coefficients).at[0].set(first)
            return usual.transform({"coefficients": whole, "gaps": gaps})["threshold"]

        reported = usual.transform(position)
        of_first, of_gaps = jax.jit(jax.jacobian(thresholds, (0, 1)))(coefficients[0], gaps)
        stretch = np.linalg.slogdet(np.column_stack([of_first, of_gaps]))[1]
        inner = prior.coefficients
        offset = 0.0 if inner.offsets is None else float(inner.offsets @ coefficients[1:])
        moved = np.concatenate([[coefficients[0] + offset], coefficients[1:]])
        away = ((moved - inner.center) / inner.scale) ** 2
        rest = -0.5 * np.sum(np.delete(np.asarray(away), gone))
        if "threshold" in names:
            rest += stretch
        else:
            rest += float(prior(position) - inner(coefficients))
        given = sum(np.sum(truth[name].logpdf(reported[name])) for name in names)
        found.append(float(mine.log_prior(position)))
        wanted.append(rest + given)
        stretches.append(stretch)
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=2e-3, atol=2e-3)
    assert np.abs(np.diff(stretches)).max() > 0.05  # one left out would be seen


def test_modes_see_no_kinks_and_draws_do():
    mine = target({"x": priors.laplace(0.0, 0.02)})
    given, smooth = mine.log_prior.given[0], mine.smooth_log_prior.given[0]
    assert float(given(np.float32(0.0))) == float(smooth(np.float32(0.0))) == 0.0
    assert float(jax.grad(jax.grad(smooth))(0.0)) == pytest.approx(-1 / 0.02**2)
    assert float(jax.grad(given)(1.0)) == pytest.approx(float(jax.grad(smooth)(1.0)), rel=1e-3)
    assert mine.log_prior.given[0].kind == "laplace"


def test_priors_are_said():
    notes = target({"x": priors.laplace(0.1, 0.02), "sigma": "normal(0, 5)"}).notes
    assert "scaled by the data" in notes[0]
    assert "x ~ laplace(0.1, 0.02), sigma ~ the positive half of normal(0, 5)" in notes[1]
    notes = target({**GIVEN, "age": "normal(0, 1)"}).notes
    assert sum(note.startswith("Priors") for note in notes) == 1


def test_texts_are_priors():
    for prior in (*GIVEN.values(), priors.normal(1 / 3, 1e-300)):
        assert parsed_prior(str(prior)) == prior
    given = ["C(month, levels=[1, 2])=normal(0, scale=2)", "x = student_t(3, 0.5, 1e-3)"]
    assert parsed_priors(given) == {
        "C(month, levels=[1, 2])": priors.normal(0, 2),
        "x": priors.student_t(3, 0.5, 1e-3),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "prior must be TERM=KIND"),
        ("x=cauchy(0, 1)", "must be one of normal, student_t, laplace, horseshoe"),
        ("x=normal(0, -1)", "scale must be a finite number above 0"),
        ("x=normal(0, __import__('os').getpid())", "must be one of"),
        ("x=normal(*[0, 1])", "must be one of"),
        ("x=normal(0, 1, 2, 3)", "must be one of"),
        ("x=student_t(-1)", "degrees_of_freedom must be"),
        ("x=horseshoe(0, 1, 2)", "must be one of"),
        ("=normal(0, 1)", "prior must be TERM=KIND"),
    ],
)
def test_what_is_no_prior_is_said(text, words):
    with pytest.raises(ValueError, match=words):
        parsed_priors([text])


def test_priors_of_strangers_are_refused():
    with pytest.raises(ValueError, match="priors must speak of the terms 'Intercept', 'x'"):
        target({"speed": priors.normal()})
    with pytest.raises(ValueError, match="priors must hold priors such as"):
        target({"x": 2.0})
