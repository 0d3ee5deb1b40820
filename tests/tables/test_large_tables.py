"""Large real tables from the file to draws: means are the estimates of glum, as they must be where
the data say much more than the priors.
"""

import pickle

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

from false_alarms import PLANTED  # noqa: E402
from large_tables import BIRTHS, FLIGHTS, STONES, by_glum, real_table, worst_mean  # noqa: E402
from packaged_tables import packaged, read_pickle, three_million_flights  # noqa: E402
from table_modes import terms_of  # noqa: E402

import amagold  # noqa: E402
from amagold.cli import main  # noqa: E402

WIDE = 1e3  # of priors: even N(0, 2^2) moves the levels of an hour, of which the first is rare


class Hostile:
    def __reduce__(self):
        return (print, ("run",))


def test_hostile_pickles_are_refused(capsys):
    import lzma

    for harmful in (Hostile(), {"table": [Hostile()]}):
        with pytest.raises(pickle.UnpicklingError, match=r"builtins.print is no part of a data"):
            read_pickle(lzma.compress(pickle.dumps(harmful)))
    assert not capsys.readouterr().out


def test_a_table_of_a_package_is_read():
    stones = packaged("ggplot2/diamonds")
    assert stones.shape == (53_940, 11)
    assert sorted(stones.cut.unique()) == ["Fair", "Good", "Ideal", "Premium", "Very Good"]


def draws_of(formula, posterior):
    """(chain, draw, coefficient), in the order of the formula."""
    found = [posterior[term].values for term in terms_of(formula)]
    return np.concatenate([each.reshape(*each.shape[:2], -1) for each in found], axis=-1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_part_of_the_diamonds():
    formula, frame = "price ~ carat + cut", real_table("ggplot2/diamonds", every=20)
    estimates = by_glum(formula, frame, "normal", True)
    run = amagold.fit(
        formula,
        frame,
        "linear",
        weights="times",
        offset="shift",
        num_samples=500,
        num_warmup=300,
        progress=False,
    )
    draws = draws_of(formula, run.posterior)
    assert worst_mean(draws, estimates) < 1.0
    forgotten = by_glum(formula, frame, "normal", False)
    assert worst_mean(draws, forgotten) > PLANTED


LARGE = {
    "logistic": (f"late ~ {FLIGHTS}", "nycflights13/flights", "binomial"),
    "linear": ("dep_delay ~ distance + C(month) + origin", "nycflights13/flights", "normal"),
    "gamma": (f"price ~ {STONES}", "ggplot2/diamonds", "gamma"),
    "poisson": (f"births ~ {BIRTHS}", "mosaicData/Birthdays", "poisson"),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", LARGE)
def test_means_are_the_estimates_of_glum(family):
    formula, name, theirs = LARGE[family]
    frame = real_table(name)
    estimates = by_glum(formula, frame, theirs, True)
    run = amagold.fit(
        formula,
        frame,
        family,
        prior_scale=WIDE,
        weights="times",
        offset="shift",
        num_samples=1000,
        progress=False,
    )
    draws = draws_of(formula, run.posterior)
    summary = run.summary()
    print(
        f"{family}: {len(frame):,} rows, {draws.shape[-1]} coefficients, "
        f"{worst_mean(draws, estimates):.2f} of what is allowed, R-hat {summary.r_hat.max():.3f}, "
        f"ESS {summary.ess_bulk.min():.0f}"
    )
    assert summary.r_hat.max() < 1.02
    assert worst_mean(draws, estimates) < 1.0
    assert worst_mean(draws + 0.5 * draws.std(axis=(0, 1)), estimates) > PLANTED


@pytest.mark.slow
# some airports have one class alone, and the fit says so
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_three_million_flights_by_the_command(tmp_path, capsys):
    """From the Parquet file to the report, as in docs/tables.md. Some airports have a few flights,
    of one class alone: glum has the same prior of levels, N(0, 2^2).
    """
    pytest.importorskip("glum")
    file = three_million_flights(tmp_path)
    frame = pandas.read_parquet(file)
    when = frame.date.dt
    frame = frame.assign(late=(frame.delay > 15).astype(int), distance=frame.distance / 1e3)
    frame = frame.assign(month=when.month, weekday=when.day_of_week, hour=when.hour)
    frame.to_parquet(file)
    formula = "late ~ distance + C(hour) + C(weekday) + C(month) + origin + destination"
    store, page = tmp_path / "run.zarr", tmp_path / "late.html"
    arguments = [str(file), formula, "--store", str(store), "--report", str(page)]
    assert main(["fit", *arguments]) == 0
    assert str(page) in capsys.readouterr().out
    assert page.stat().st_size > 50_000
    run = amagold.load(store)
    draws, r_hat = draws_of(formula, run.posterior), float(run.summary()["r_hat"].max())
    estimates = by_glum(formula, frame, "binomial", prior_width=2.0)
    spread, worst = draws.std(axis=(0, 1)), worst_mean(draws, estimates)
    print(f"{len(frame):,} rows, {len(estimates)} coefficients: {worst:.2f}, R-hat {r_hat:.3f}")
    assert len(frame) == 3_000_000
    assert len(estimates) > 400
    assert worst < 1.0
    assert r_hat < 1.02
    assert worst_mean(draws + 0.5 * spread, estimates) > PLANTED
