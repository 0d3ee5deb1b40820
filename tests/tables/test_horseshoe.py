"""Horseshoe priors of terms: notation, names, and what follows a run."""

import jax
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
nw = pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold import priors  # noqa: E402
from amagold.priors._prior_text import parsed_prior, parsed_priors  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402

NUM_ROWS = 80


def table():
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(2, NUM_ROWS))
    return pandas.DataFrame(
        {
            "a": a,
            "b": b,
            "wide": generator.normal(10.0, 200.0, NUM_ROWS),
            "month": generator.integers(1, 4, NUM_ROWS),
            "y": a + generator.normal(size=NUM_ROWS) > 0.2,
            "n": 3.0 + a + generator.normal(size=NUM_ROWS),
            "g": np.arange(NUM_ROWS) % 8,
        }
    )


def model(formula, chosen, family="logistic"):
    return model_of(formula, nw.from_native(table()), family, None, False, None, chosen)


@pytest.mark.parametrize(
    ("chosen", "taus", "shrunk"),
    [
        ({"a": "horseshoe(1)"}, ["a_tau"], 1),
        ({("a", "b"): priors.horseshoe(0.1)}, ["horseshoe_tau"], 2),
        ({"a, b": priors.horseshoe(0.1)}, ["horseshoe_tau"], 2),
        ({"*": "horseshoe(0.1)"}, ["horseshoe_tau"], 4),
        ({"a": "normal(0, 1)", "*": "horseshoe(1)"}, ["horseshoe_tau"], 3),
        ({"C(month)": "horseshoe(1, slab=2)"}, ["C(month)_tau"], 2),
        (
            {("a", "b"): "horseshoe(1)", "C(month)": "horseshoe(2)"},
            ["horseshoe_tau", "C(month)_tau"],
            4,
        ),
    ],
)
@pytest.mark.parametrize("groups", ["", " + (1 | g)"])
def test_one_scale_for_one_term_or_several(groups, chosen, taus, shrunk):
    target = model(f"y ~ a + b + C(month){groups}", chosen).target
    reported = target.transform(target.init)
    assert [name for name in reported if name.endswith("_tau")] == taus
    prior = target.log_prior.shrunk if groups else target.log_prior
    assert prior.horseshoe.places.shape == (shrunk,)
    assert np.isfinite(float(target.log_prior(target.init)))


def test_other_kinds_may_speak_of_several_terms_too():
    notes = model("y ~ a + b", {"*": "normal(0, 2)"}).target.notes
    assert "a ~ normal(0, 2), b ~ normal(0, 2)" in notes[-1]


@pytest.mark.parametrize("family", ["logistic", "linear", "poisson", "softmax"])
def test_the_prior_is_on_the_reported_scale(family):
    """Differences of the log prior against the density of what is reported."""
    formula = "n ~ a + wide" if family == "linear" else "month ~ a + wide"
    formula = "y ~ a + wide" if family == "logistic" else formula
    target = model(formula, {("a", "wide"): priors.horseshoe(0.2)}, family).target
    prior, generator = target.log_prior, np.random.default_rng(0)
    found, wanted = [], []
    for _ in range(3):
        at = jax.tree.map(
            lambda leaf: generator.normal(0, 0.3, leaf.shape).astype("f4"), target.init
        )
        reported = target.transform(at)
        beta = np.concatenate([np.ravel(reported[name]) for name in ("a", "wide")])
        log_tau = np.log(reported["horseshoe_tau"])
        found.append(float(prior(at)) - float(prior.others(at)))
        wanted.append(float(np.sum(prior.horseshoe.of_groups(beta, np.array([log_tau], "f4")))))
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), atol=2e-3)
    assert np.abs(np.diff(wanted)).max() > 0.1


@pytest.mark.parametrize("groups", ["", " + (1 | g)"])
def test_starts_come_back(groups):
    target = model(f"n ~ a + C(month){groups}", {"*": "horseshoe(1)"}, "linear").target
    at = jax.tree.map(lambda leaf: np.full(leaf.shape, 0.3, np.float32), target.init)
    again = target.transform.inverse(target.transform(at))
    jax.tree.map(
        lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=1e-5), at, again
    )


def test_texts_are_horseshoes():
    for prior in (priors.horseshoe(), priors.horseshoe(0.1), priors.horseshoe(0.25, slab=3)):
        assert parsed_prior(str(prior)) == prior
    assert str(priors.horseshoe(0.25, slab=3)) == "horseshoe(0.25, slab=3)"
    assert parsed_priors(["x1, x2=horseshoe(0.1)", "*=normal(0, 1)"]) == {
        "x1, x2": priors.horseshoe(0.1),
        "*": priors.normal(0, 1),
    }


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"Intercept": "horseshoe(1)"}, "must not give a horseshoe to 'Intercept'"),
        ({"sigma": "horseshoe(1)"}, "must not give a horseshoe"),
        ({"a, b": "normal(0, 1)", "a": "horseshoe(1)"}, "each term once, got 'a' twice"),
        ({("a", "speed"): "horseshoe(1)"}, "priors must speak of the terms .* got 'speed'"),
        ({("a", 2): "horseshoe(1)"}, "by tuples of names"),
        ({"a": "normal(0, 1)", "b": "normal(0, 1)", "*": "horseshoe(1)"}, "must leave terms for"),
        ({"a": "horseshoe(-1)"}, "scale must be a finite number above 0"),
        ({"a": "horseshoe(1, slab=0)"}, "slab must be a finite number above 0"),
    ],
)
def test_what_cannot_be_is_said(chosen, words):
    with pytest.raises(ValueError, match=words):
        model("n ~ a + b", chosen, "linear")


@pytest.mark.parametrize("groups", ["", " + (1 | g)"])
def test_one_scale_for_unlike_columns_is_a_doubt(groups):
    unlike = model(f"y ~ a + wide{groups}", {"*": "horseshoe(1)"})
    assert "standardise them" in unlike.terms.doubts[-1]
    assert not model(f"y ~ a + b{groups}", {"*": "horseshoe(1)"}).terms.doubts


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_run_beside_random_effects(tmp_path):
    """Its draws by name, stored and loaded again."""
    found = amagold.fit(
        "n ~ a + b + (1 | g)",
        table(),
        "linear",
        priors={"*": priors.horseshoe(0.3)},
        num_samples=60,
        num_warmup=40,
        num_chains=2,
        store=tmp_path / "run.zarr",
        progress=False,
    )
    assert found.label == "exact"
    names = {"Intercept", "a", "b", "1|g", "1|g_sigma", "sigma", "horseshoe_tau"}
    assert names == set(found.posterior)
    told = str(found.plan)
    assert "horseshoe" in told
    loaded = amagold.load(tmp_path / "run.zarr")
    np.testing.assert_array_equal(
        loaded.posterior["horseshoe_tau"], found.posterior["horseshoe_tau"]
    )
    assert (found.posterior["horseshoe_tau"] > 0.0).all()
    assert len(loaded.predict(table())) == NUM_ROWS


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.zarr"
    chosen = {("a", "b"): priors.horseshoe(0.3), "C(month)": "horseshoe(1, slab=2)"}
    return amagold.fit(
        "y ~ a + b + C(month)",
        table(),
        priors=chosen,
        num_samples=200,
        num_warmup=100,
        store=path,
        progress=False,
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_follows_a_run(run, tmp_path):
    assert run.label == "exact"
    assert set(run.posterior) == {
        *("Intercept", "a", "b", "C(month)"),
        *("horseshoe_tau", "C(month)_tau"),
    }
    assert float(run.posterior["horseshoe_tau"].min()) > 0.0
    assert "a, b ~ horseshoe(0.3) with the scale horseshoe_tau" in run.attributes["notes"][-1]
    assert any("horseshoe" in sentence for sentence in run.plan.sentences())
    assert len(run.predict(table().head(3))) == 3
    assert {"a", "b"} <= set(np.ravel(run.effects().reset_index().astype(str).to_numpy()))
    assert run.laplace_gap()["mean_shift"].isna().all()
    page = run.report(tmp_path / "page.html").read_text()
    assert "horseshoe_tau" in page
    assert "horseshoe(0.3)" in page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_runs_without_gradients_go_on_too(run, tmp_path):
    assert run.plan.gradient == "full"
    many = pandas.concat([table()] * 8).assign(b=np.random.default_rng(1).normal(size=8 * NUM_ROWS))
    options = {
        "num_samples": 30,
        "num_warmup": 30,
        "progress": False,
        "priors": {"*": "horseshoe(1)"},
    }
    whole = amagold.fit("y ~ a + b", many, **options)
    assert whole.plan.gradient == "expansion"
    assert whole.cost().num_gradients == 0
    path = tmp_path / "stopped.zarr"
    amagold.fit("y ~ a + b", many, store=path, max_time=1e-9, **options)
    gone_on = amagold.resume(path, whole.model.target, progress=False)
    for name in whole.posterior:
        np.testing.assert_array_equal(gone_on.posterior[name], whole.posterior[name])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_stored_runs_go_on_to_the_bit(run, tmp_path):
    options = {"num_samples": 200, "num_warmup": 100, "progress": False}
    chosen = run.model.arguments["priors"]
    path = tmp_path / "stopped.zarr"
    amagold.fit(
        "y ~ a + b + C(month)", table(), priors=chosen, store=path, max_time=1e-9, **options
    )
    loaded = amagold.load(path)
    assert loaded.posterior.sizes["draw"] == 0
    # from what the folder kept alone
    gone_on = amagold.resume(path, loaded.model.known_target(), progress=False)
    for name in run.posterior:
        np.testing.assert_array_equal(gone_on.posterior[name], run.posterior[name])
    assert len(amagold.load(path).predict(table().head(2))) == 2
