"""Positions, types and numbers that users have and developers forget."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import amagold
from amagold.sampling._columns import constants_of

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


def log_density(position):
    return -0.5 * sum(jnp.sum(leaf.astype(jnp.float32) ** 2) for leaf in jax.tree.leaves(position))


def sampled(init, tmp_path=None, **options):
    sampler = amagold.hmc(amagold.Density(log_density), step_size=0.5, num_steps=2)
    store = None if tmp_path is None else tmp_path / "run.zarr"
    return amagold.sample(sampler, 20, 5, 2, init=init, progress=False, store=store, **options)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("init", "names"),
    [
        ({"x": np.zeros(2), "x_dim_0": np.zeros(2)}, ["x", "x_dim_0_"]),
        pytest.param(
            {"chain": 0.0, "draw": 0.0, "a/b": 0.0, "ä": 0.0},
            ["a_b", "chain_", "draw_", "ä"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {".": 0.0, "..": 0.0, "zarr.json": 0.0},
            [".._", "._", "zarr.json_"],
            marks=pytest.mark.slow,
        ),
        pytest.param({"a": {"b": 0.0}, "a.b": 0.0}, ["a.b", "a.b_"], marks=pytest.mark.slow),
        (
            {"a\\b": 0.0, "\x1b[31mc": 0.0, "d\0": 0.0, "e.partial": 0.0, "$f^$": 0.0},
            ["$f^$", "_[31mc", "a_b", "d_", "e.partial"],
        ),
        ({"a": np.zeros(0), "b": np.zeros(2)}, ["a", "b"]),
    ],
)
def test_every_array_of_the_position_is_kept(tmp_path, init, names):
    for place in (None, tmp_path):
        run = sampled(init, place)
        assert sorted(run.posterior.data_vars) == names
        assert all(
            np.isfinite(values).all() and (values.size == 0 or values.values.std() > 0)
            for values in run.posterior.data_vars.values()
        )
    xarray.testing.assert_equal(amagold.load(tmp_path / "run.zarr").posterior.load(), run.posterior)
    with xarray.open_datatree(tmp_path / "run.zarr", engine="zarr") as tree:
        xarray.testing.assert_equal(tree["posterior"].to_dataset().load(), run.posterior.load())


def test_half_precision_positions_are_stored_and_refused_for_planning(tmp_path):
    init = {"x": jnp.zeros(3, jnp.bfloat16)}
    assert sampled(init, tmp_path).posterior["x"].dtype == np.float32
    with pytest.raises(
        ValueError, match="init must be float32 or float64 to search for the mode, got bfloat16"
    ):
        amagold.sample(amagold.Density(log_density, init=init), progress=False)


DOUBLE = """
import sys, jax
jax.config.update("jax_enable_x64", True)
import numpy as np, amagold
target = amagold.Density(lambda at: -0.5 * at @ at, init=np.zeros(3))
warmup = amagold.Warmup(mass=sys.argv[1])
options = dict(num_samples=200, num_warmup=100, num_chains=2, progress=False, warmup=warmup)
whole = amagold.sample(target, **options)
assert whole.posterior["theta"].dtype == np.float64
run = amagold.sample(target, **options, store=sys.argv[2], max_time=1e-9)
run = amagold.resume(sys.argv[2], target, progress=False)
np.testing.assert_array_equal(run.posterior["theta"], whole.posterior["theta"])
sampler = amagold.amagold(target, step_size=0.01, gradient=amagold.gradients.noisy(0.1))
warmup = amagold.Warmup(0.8, "diagonal")
amagold.sample(sampler, 200, 100, 2, init=np.zeros(3), progress=False, warmup=warmup)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mass", ["diagonal", "dense"])
def test_double_precision(tmp_path, mass):
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DOUBLE, mass, str(tmp_path / "run.zarr")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_numpy_numbers_are_numbers(tmp_path):
    sampler = amagold.hmc(amagold.Density(log_density), step_size=0.5, num_steps=2)
    warmup = amagold.Warmup(target_acceptance=np.float32(0.75), keep=np.bool_(True))
    run = amagold.sample(
        sampler,
        np.int64(20),
        np.int32(40),
        np.int64(2),
        np.int32(3),
        init=np.zeros(2),
        store=tmp_path / "a",
        progress=False,
        warmup=warmup,
    )
    assert run.attributes["settings"]["warmup"]["target_acceptance"] == 0.75


def test_netcdf_of_a_stored_run(tmp_path):
    run = sampled({"x": np.zeros(2)}, tmp_path)
    amagold.load(tmp_path / "run.zarr").to_netcdf(tmp_path / "run.nc")
    with xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["x"], run.posterior["x"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.nc", "run.zarr"]


@pytest.mark.parametrize("name", ["no/run.nc", "", "a\0b.nc", "."])
def test_a_netcdf_file_needs_a_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    run = sampled({"x": np.zeros(2)})
    with pytest.raises(
        ValueError, match=r"path must be a file (in a folder that exists|to write), got"
    ):
        run.to_netcdf(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_warmup", [1, 8])
def test_a_short_warm_up_keeps_the_planned_step_size(num_warmup):
    table = amagold.datasets.heart()
    run = amagold.sample(
        amagold.models.logistic(table.X, table.y, prior_scale=1.0), 200, num_warmup, progress=False
    )
    assert float(run.sample_stats["acceptance_rate"].mean()) > 0.7
    assert any(
        f"num_warmup = {num_warmup} is too few to adapt anything" in sentence
        for sentence in run.warnings
    )


def test_a_time_budget_ends_within_a_draw(monkeypatch):
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 1_000)
    sampler = amagold.hmc(amagold.Density(log_density), step_size=0.5, num_steps=2)
    amagold.sample(sampler, 1, 0, 2, init=np.zeros(2), thin=2_000, progress=False)  # compiled now
    run = amagold.sample(
        sampler, 3, 0, 2, init=np.zeros(2), thin=10**8, progress=False, max_time=0.5
    )
    assert run.is_partial
    assert run.posterior.sizes["draw"] == 0
    with pytest.raises(ValueError, match="the run must have draws to be summarised"):
        run.summary()


def test_counts_do_not_overflow():
    target = amagold.Posterior(
        lambda at, row: -0.5 * (at - row) ** 2, lambda at: -0.5 * at**2, np.zeros(10_000), init=0.0
    )
    sampler = amagold.l2mc(target, step_size=0.01, num_steps=100)
    stats = constants_of(sampler, jnp.float32(0.0), thin=2_200)
    assert stats["num_gradient_examples"] == 2_200 * 100 * 10_000
    assert stats["num_energy_examples"] == 2_200 * 10_000


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": 2**32}, "seed must be below 2\\^32"),
        (
            {"num_samples": 2**20, "thin": 2**13},
            "num_warmup \\+ num_samples \\* thin must be below 2\\^32 transitions",
        ),
        ({"warmup": "diagonal"}, "warmup must be an amagold.Warmup, got str"),
        ({"max_time": "5"}, "max_time must be one number, got '5'"),
        ({"init": {}}, "init must hold at least one number, got none"),
        ({"init": np.zeros(3)}, "init must be like the target's own init"),
    ],
)
def test_more_bad_arguments_are_named(options, sentence):
    sampler = amagold.hmc(amagold.models.double_well(), step_size=0.5, num_steps=2)
    with pytest.raises(ValueError, match=sentence):
        amagold.sample(sampler, progress=False, **options)


def test_batches_from_outside_cannot_be_sampled():
    table = amagold.datasets.heart()
    gradient = amagold.gradients.minibatch(30, plan="external")
    sampler = amagold.amagold(
        amagold.models.logistic(table.X, table.y, prior_scale=1.0),
        step_size=0.01,
        gradient=gradient,
    )
    with pytest.raises(
        ValueError, match="plan='external' needs batches from outside, which sample cannot give"
    ):
        amagold.sample(sampler, progress=False)


def test_a_mass_that_is_a_matrix_is_refused_by_warmup():
    with pytest.raises(ValueError, match="mass must be 'diagonal', 'dense' or None in Warmup"):
        amagold.Warmup(mass=np.eye(2))
