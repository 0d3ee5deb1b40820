"""Families of several classes, by the terms of a formula."""

import jax
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402

NUM_ROWS = 400


def table():
    generator = np.random.default_rng(4)
    dose, month = generator.normal(size=NUM_ROWS), generator.integers(1, 4, NUM_ROWS)
    noise = generator.logistic(size=NUM_ROWS)
    pain = np.digitize(1.5 * dose + noise, [-1.0, 0.5, 2.0])
    words = pandas.Categorical.from_codes(pain, ["none", "little", "some", "much"])
    return pandas.DataFrame({"dose": dose, "month": month, "pain": words, "grade": 10 * pain})


@pytest.mark.parametrize("family", ["softmax", "ordinal"])
def test_names_of_classes_there_and_back(family):
    model = model_of("pain ~ dose + C(month)", read_table(table()), family, None, False, None)
    target = model.target
    position = jax.tree.map(
        lambda leaf: np.random.default_rng(1).normal(size=(2, *np.shape(leaf))), target.init
    )
    named = target.transform(position)
    wanted = {"Intercept": (2, 4), "dose": (2, 4), "C(month)": (2, 2, 4)}
    if family == "ordinal":
        wanted = {"dose": (2,), "C(month)": (2, 2), "threshold": (2, 3)}
    assert {name: values.shape for name, values in named.items()} == wanted
    back = target.transform.inverse(named)
    for ours, theirs in zip(*map(jax.tree.leaves, (back, position)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert model.classes == ("none", "little", "some", "much")


def test_ordered_classes_need_an_intercept():
    with pytest.raises(ValueError, match="must have an intercept for ordinal"):
        model_of("pain ~ 0 + dose", read_table(table()), "ordinal", None, False, None)


def test_numbers_are_classes_in_their_order():
    model = model_of("grade ~ dose", read_table(table()), "ordinal", None, False, None)
    assert model.classes == ("0", "10", "20", "30")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_draws_of_ordered_classes_are_near_the_truth():
    settings = {"num_samples": 400, "num_warmup": 400, "progress": False}
    posterior = amagold.fit("pain ~ dose", table(), "ordinal", **settings).posterior
    for name, truth in (("dose", 1.5), ("threshold", [-1.0, 0.5, 2.0])):
        draws = posterior[name]
        apart = (draws.mean(("chain", "draw")) - truth) / draws.std(("chain", "draw"))
        assert np.abs(apart).max() < 4.0
        assert np.all(draws.std(("chain", "draw")) < 0.3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_draws_of_classes_have_their_names():
    settings = {"num_samples": 50, "num_warmup": 100, "progress": False}
    run = amagold.fit("pain ~ dose", table(), "softmax", **settings)
    assert list(run.posterior["pain_dim"].values) == ["none", "little", "some", "much"]
    means = run.posterior["dose"].mean(("chain", "draw"))
    assert float(means[-1] - means[0]) > 1.0
    predicted = run.predict(table())
    chances = predicted[[name for name in predicted.columns if name.startswith("mean")]]
    assert chances.shape[1] == 4
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-4)
