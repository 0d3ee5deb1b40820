"""Crossed random effects of three million flights, from the file to the report: means are the
estimates of glum at the scales that were found.
"""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

from false_alarms import PLANTED  # noqa: E402
from large_tables import worst_mean  # noqa: E402
from packaged_tables import packaged, three_million_flights  # noqa: E402
from reml import reml  # noqa: E402

import amagold  # noqa: E402
from amagold.cli import main  # noqa: E402

FORMULA = "late ~ distance + hour + (1 | origin) + (1 | destination)"
GROUPS = ("origin", "destination")


def flat(posterior):
    """(chain, draw, number): coefficients, then the effects of both groups."""
    parts = [posterior[name].values for name in ("Intercept", "distance", "hour", "1|origin")]
    parts.append(posterior["1|destination"].values)
    return np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)


def estimates_at(frame, scales):
    """The mode given the groups' standard deviations, in the order of `flat`."""
    glum = pytest.importorskip("glum")
    columns = frame[["distance", "hour", *GROUPS]].astype(dict.fromkeys(GROUPS, "category"))
    model = glum.GeneralizedLinearRegressor(
        alpha=1.0 / len(frame),  # the energy is that of one row
        P2=np.array([0.0, 0.0, *(1.0 / scale**2 for scale in scales)]),
        family="binomial",
        gradient_tol=1e-8,  # of one row; below it three million of them round
        max_iter=500,
    ).fit(columns, frame.late.to_numpy(np.float64))
    return np.array([model.intercept_, *model.coef_])


@pytest.mark.slow
def test_crossed_students_lecturers_and_departments_are_near_their_estimates():
    """All 73,421 rows of InstEval, by restricted maximum likelihood: means of well-known numbers,
    and of the few departments' scale, whose density is skewed, within its bulk.
    """
    rows, groups = packaged("lme4/InstEval"), ("s", "d", "dept")
    run = amagold.fit(
        "y ~ service + (1 | s) + (1 | d) + (1 | dept)", rows, "linear", progress=False
    )
    codes = [rows[name].astype("category").cat.codes.to_numpy() for name in groups]
    X = np.column_stack([np.ones(len(rows)), rows.service])
    theirs = reml(rows.y.to_numpy(float), X, codes)
    wanted = dict(zip(("Intercept", "service"), theirs.coefficients, strict=True))
    wanted |= {f"1|{name}_sigma": theirs.scales[at] for at, name in enumerate(groups)}
    wanted["sigma"] = theirs.noise
    for name, estimate in wanted.items():
        draws = run.posterior[name].to_numpy()
        tolerance = 1.0 if name == "1|dept_sigma" else 0.3
        assert abs(draws.mean() - estimate) < tolerance * draws.std(), name
    assert run.summary(var_names=list(wanted)).r_hat.max() < 1.02
    assert not run.sample_stats["num_energy_examples"].any(), "sums by level are all it needs"


@pytest.mark.slow
def test_three_million_flights_by_the_command(tmp_path, capsys):
    file = three_million_flights(tmp_path)
    frame = pandas.read_parquet(file)
    frame = frame.assign(late=(frame.delay > 15).astype(int), distance=frame.distance / 1e3)
    frame = frame.assign(hour=frame.date.dt.hour.astype(float) / 10.0)
    frame.to_parquet(file)
    store, page = tmp_path / "run.zarr", tmp_path / "late.html"
    assert main(["fit", str(file), FORMULA, "--store", str(store), "--report", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    assert page.stat().st_size > 50_000
    run = amagold.load(store)
    draws, summary = flat(run.posterior), run.summary()
    scales = [float(run.posterior[f"1|{group}_sigma"].mean()) for group in GROUPS]
    estimates = estimates_at(frame, scales)
    worst = worst_mean(draws, estimates)
    rows = float(run.sample_stats["num_energy_examples"].mean())
    print(
        f"{len(frame):,} rows, {len(estimates)} numbers: {worst:.2f}, R-hat "
        f"{summary.r_hat.max():.3f}, ESS {summary.ess_bulk.min():.0f}, {rows:,.0f} rows a sweep"
    )
    assert len(estimates) > 400
    assert summary.r_hat.max() < 1.02
    assert worst < 1.0
    assert worst_mean(draws + 0.5 * draws.std(axis=(0, 1)), estimates) > PLANTED
