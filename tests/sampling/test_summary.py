"""The summary of a run is ArviZ's, in bounded memory: some parameters at a time, and of very many
draws every so many.
"""

import tracemalloc

import arviz_stats
import numpy as np
import pandas
import pytest
import xarray

from amagold.sampling import _summary as summary
from amagold.sampling._run import Run
from amagold.store._names import Variable
from amagold.store._zarr_store import ZarrStore


def run_of(posterior):
    attributes = {"label": "exact", "is_complete": True}
    return Run({"posterior": posterior}, attributes, None, [], None)


@pytest.fixture(scope="module")
def posterior():
    generator = np.random.default_rng(0)
    arrays = {
        "x": generator.normal(size=(4, 300, 3, 5)).astype(np.float32),
        "y": generator.normal(2.0, size=(4, 300)),
    }
    dims = {"x": ("chain", "draw", "x_dim_0", "x_dim_1"), "y": ("chain", "draw")}
    dataset = xarray.Dataset({name: (dims[name], values) for name, values in arrays.items()})
    return dataset.assign_coords({name: np.arange(size) for name, size in dataset.sizes.items()})


OPTIONS = (
    {},
    {"round_to": "none"},
    {"kind": "stats"},
    {"fmt": "long"},
    {"var_names": ["y"]},
    {"var_names": "x", "filter_vars": "like"},
    {"coords": {"x_dim_0": [1, 2]}},
    {"kind": "all_median", "ci_prob": 0.5},
    {"skipna": True},
)


@pytest.mark.parametrize("most_values", [10**7, 8_000, 1_000])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_summary_is_that_of_arviz(posterior, options, most_values, monkeypatch):
    monkeypatch.setattr(summary, "MOST_VALUES", most_values)
    whole = arviz_stats.summary(xarray.DataTree.from_dict({"posterior": posterior}), **options)
    found = run_of(posterior).summary(**options)
    assert found.attrs["every"] == 1
    found.attrs = {}
    pandas.testing.assert_frame_equal(found, whole)


def test_of_very_many_draws_every_so_many_are_looked_at_but_for_mean_and_sd(posterior, monkeypatch):
    monkeypatch.setattr(summary, "MOST_DRAWS", 400)
    monkeypatch.setattr(summary, "MOST_VALUES", 1_000)
    found = run_of(posterior).summary(round_to="none")
    assert found.attrs["every"] == 3
    whole = arviz_stats.summary(posterior, round_to="none")
    thinned = arviz_stats.summary(posterior.isel(draw=slice(None, None, 3)), round_to="none")
    np.testing.assert_allclose(
        found[["mean", "sd"]].astype(float), whole[["mean", "sd"]].astype(float), rtol=2e-5
    )
    others = [column for column in whole if column not in ("mean", "sd")]
    np.testing.assert_array_equal(found[others].astype(float), thinned[others].astype(float))
    with_gaps = posterior.where(posterior["draw"] != 7)
    found = run_of(with_gaps).summary(round_to="none", skipna=True, kind="stats")
    whole = arviz_stats.summary(with_gaps, round_to="none", skipna=True, kind="stats")
    np.testing.assert_allclose(
        found[["mean", "sd"]].astype(float), whole[["mean", "sd"]].astype(float), rtol=2e-5
    )


def test_a_summary_of_many_draws_takes_little_memory(tmp_path, monkeypatch):
    """2 x 10^6 draws, 8 MB on disk: ArviZ alone takes 67 bytes for each."""
    monkeypatch.setattr(summary, "MOST_DRAWS", 10**5)
    monkeypatch.setattr(summary, "MOST_VALUES", 10**5)
    num_chains, num_draws = 100, 20_000
    store = ZarrStore.create(
        tmp_path / "run",
        {"posterior": {"x": Variable((), "float32")}},
        {"posterior": num_draws},
        num_chains,
        {},
    )
    values = np.random.default_rng(0).normal(size=(num_chains, num_draws)).astype(np.float32)
    store.write("posterior", 0, {"x": values})
    store.commit({"posterior": num_draws}, {})
    from amagold.sampling._load import open_groups

    run = run_of(open_groups(store)["posterior"])
    run_of(
        run.posterior.isel(draw=slice(100))
    ).summary()  # what is imported and compiled does not count
    tracemalloc.start()
    found = run.summary(round_to="none")
    assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    tracemalloc.stop()
    np.testing.assert_allclose(
        float(found["mean"].iloc[0]), values.mean(dtype=np.float64), rtol=1e-9
    )
    np.testing.assert_allclose(float(found["sd"].iloc[0]), values.std(dtype=np.float64), rtol=1e-9)
