"""Fits with random effects on small real tables, against NumPyro's NUTS, statsmodels' REML, and
themselves: stored, resumed, loaded.
"""

import numpy as np
import pytest
from false_alarms import PLANTED
from grouped_models import CASES, nuts, table
from monte_carlo_errors import apart
from packaged_tables import packaged

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold.cli import main  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::amagold.SamplingWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
LONG = {"num_samples": 2_000, "num_warmup": 1_000, "num_chains": 4, "progress": False}


def fitted(name, **changed):
    case = CASES[name]
    priors = case.priors | changed
    options = {} if case.trials is None else {"trials": case.trials}
    return amagold.fit(case.formula, table(name), case.family, priors=priors, **options, **LONG)


def columns(run, name):
    """Every number of a run under NUTS's names: (chain, draw, numbers) by variable."""
    terms = [term.name for term in run.model.terms.terms]
    parts = [run.posterior[term].to_numpy() for term in terms]
    parts = [part if part.ndim == 3 else part[..., None] for part in parts]
    found = {"beta": np.concatenate(parts, axis=2)}
    for group in CASES[name].groups:
        for variable in (f"1|{':'.join(group)}", f"1|{':'.join(group)}_sigma"):
            found[variable] = run.posterior[variable].to_numpy()
    return found


def worst(ours, theirs):
    """How far means and spreads of all numbers are apart, as a share of the threshold."""
    return apart(*(_flat([found[name] for name in theirs]) for found in (ours, theirs)))


def _flat(variables):
    return np.concatenate([np.reshape(each, (*each.shape[:2], -1)) for each in variables], axis=2)


@pytest.mark.parametrize("name", CASES)
def test_draws_agree_with_nuts(name):
    run = fitted(name)
    assert run.label == "exact"
    assert worst(columns(run, name), nuts(name)) < 1.0


def test_another_prior_of_a_scale_is_noticed():
    run = fitted("cbpp", **{"1|herd_sigma": "student_t(3, 0, 0.2)"})
    assert worst(columns(run, "cbpp"), nuts("cbpp")) > PLANTED


def slopes_by_nuts(days, subject, slow):
    """The default priors of effects that vary together: half-Student-t(3, 1) of the intercept's
    scale at the mean of days and of the slope's in units of their spread, and LKJ(2).
    """
    import jax
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    away = (days - days.mean()) / days.std()
    number = subject.max() + 1

    def model():
        intercept = numpyro.sample("Intercept", dist.Normal(0.0, 5.0))
        slope = numpyro.sample("days", dist.Normal(0.0, 2.0))
        half = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))
        scales = numpyro.sample("scales", half.expand([2]).to_event(1))
        factor = numpyro.sample("factor", dist.LKJCholesky(2, 2.0))
        raw = numpyro.sample("raw", dist.Normal().expand([number, 2]).to_event(2))
        effects = numpyro.deterministic("effects", raw @ (scales[:, None] * factor).T)
        z = intercept + slope * days + effects[subject, 0] + effects[subject, 1] * away
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=slow)

    run = MCMC(
        NUTS(model),
        num_warmup=1_000,
        num_samples=2_000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    run.run(jax.random.PRNGKey(0))
    found = {
        name: np.asarray(values, np.float64)
        for name, values in run.get_samples(group_by_chain=True).items()
    }
    # t' = A t with t = (1, days), and effects of t are A^T those of t'
    back = np.array([[1.0, -days.mean() / days.std()], [0.0, 1.0 / days.std()]])
    root = back @ (found["scales"][..., :, None] * found["factor"])
    covariance = root @ np.swapaxes(root, -1, -2)
    spreads = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    effects = found["effects"] @ back.T
    return {
        "Intercept": found["Intercept"],
        "days": found["days"],
        "1|subject": effects[..., 0],
        "days|subject": effects[..., 1],
        "1|subject_sigma": spreads[..., 0],
        "days|subject_sigma": spreads[..., 1],
        "1, days|subject_correlation": covariance[..., 0, 1] / spreads.prod(axis=-1),
    }


def test_slopes_that_vary_agree_with_nuts_wherever_days_have_their_zero():
    rows = packaged("lme4/sleepstudy")
    subject = rows.groupby("Subject").ngroup().to_numpy()
    slow = (rows.Reaction > 290.0).astype(int)
    days = rows.Days.to_numpy(float)
    theirs = slopes_by_nuts(days, subject, slow.to_numpy())
    frame = pandas.DataFrame({"slow": slow, "days": days, "subject": subject})
    priors = {"Intercept": "normal(0, 5)", "days": "normal(0, 2)"}
    formula = "slow ~ days + (days | subject)"
    run = amagold.fit(formula, frame, "logistic", priors=priors, **LONG)
    ours = {name: run.posterior[name].to_numpy() for name in theirs}
    assert worst(ours, theirs) < 1.0
    # of the columns as they are, the same priors say something else
    same = priors | dict.fromkeys(("1|subject_sigma", "days|subject_sigma"), "student_t(3, 0, 1)")
    other = amagold.fit(formula, frame, "logistic", priors=same, **LONG)
    assert worst({name: other.posterior[name].to_numpy() for name in theirs}, theirs) > PLANTED


def test_slopes_that_vary_are_near_the_estimates_of_statsmodels():
    statsmodels = pytest.importorskip("statsmodels.formula.api")
    rows = packaged("lme4/sleepstudy")
    run = amagold.fit("Reaction ~ Days + (Days | Subject)", rows, "linear", **LONG)
    theirs = statsmodels.mixedlm("Reaction ~ Days", rows, groups="Subject", re_formula="~Days")
    theirs = theirs.fit(reml=True)
    for ours, wanted in (("Intercept", "Intercept"), ("Days", "Days")):
        draws = run.posterior[ours].to_numpy()
        assert abs(draws.mean() - theirs.params[wanted]) < 0.2 * draws.std()
    covariance = np.asarray(theirs.cov_re)
    estimates = {
        "1|Subject_sigma": covariance[0, 0] ** 0.5,
        "Days|Subject_sigma": covariance[1, 1] ** 0.5,
        "1, Days|Subject_correlation": covariance[0, 1] / np.sqrt(np.prod(np.diag(covariance))),
        "sigma": theirs.scale**0.5,
    }
    for name, wanted in estimates.items():  # modes of skewed densities are within their bulk
        draws = run.posterior[name].to_numpy()
        assert abs(draws.mean() - wanted) < draws.std()
    found = run.group_effects("Subject")
    for effect, name in (("1", "Group"), ("Days", "Days")):
        ours = found[found["effect"] == effect]
        wanted = [
            theirs.random_effects[int(level)].iloc[int(name == "Days")] for level in ours.level
        ]
        assert (np.abs(ours["mean"] - wanted) < 0.3 * ours["sd"]).all()


def test_a_stored_run_goes_on_without_code_and_predicts_the_same(tmp_path, capsys):
    case, rows = CASES["cbpp"], table("cbpp")
    short = LONG | {"num_samples": 200, "num_warmup": 200}
    options = {"trials": case.trials, "seed": 3, **short}
    whole = amagold.fit(case.formula, rows, case.family, **options)
    store = tmp_path / "run"
    amagold.fit(case.formula, rows, case.family, store=store, max_time=0.05, **options)
    assert main(["resume", str(store)]) == 0
    assert "1|herd_sigma" in capsys.readouterr().out
    loaded = amagold.load(store)
    assert not loaded.is_partial
    np.testing.assert_array_equal(loaded.posterior["1|herd"], whole.posterior["1|herd"])
    assert list(loaded.posterior["1|herd"].coords["herd__factor_dim"].values[:3]) == ["1", "2", "3"]
    new = rows.head(8).assign(herd=[99] * 4 + rows.herd.tolist()[:4])
    pandas.testing.assert_frame_equal(loaded.predict(new), whole.predict(new))
    new.to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "out.csv"
    arguments = ["predict", str(store), str(tmp_path / "new.csv"), "--output", str(output)]
    assert main([*arguments, "--groups", "none"]) == 0
    wanted = whole.predict(new, groups="none")
    np.testing.assert_allclose(pandas.read_csv(output), wanted, rtol=1e-5)
    assert main(["report", str(store), "--output", str(tmp_path / "page.html")]) == 0
    assert "levels of herd differ" in (tmp_path / "page.html").read_text()
    assert "no Laplace approximation" in loaded.laplace_gap().attrs["verdict"]
