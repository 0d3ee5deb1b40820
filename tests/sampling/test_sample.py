"""`amagold.sample`: what it promises about its draws, its results and its words."""

import os
import signal
import subprocess
import sys
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from doubles import some_of
from false_alarms import worst

import amagold
import amagold.sampling._engine
from amagold.models._double_well import double_well_moments
from amagold.sampling import _engine as engine

HEART = amagold.datasets.heart()
LOGISTIC = amagold.models.logistic(HEART.X, HEART.y, prior_scale=1.0)
few_draws = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


def double_well_sampler(**options):
    settings = {"step_size": 0.25, "gradient": amagold.gradients.noisy(1.0), **options}
    return amagold.amagold(amagold.models.double_well(), **settings)


@pytest.fixture(scope="module")
def planned():
    """A run of a target and nothing else."""
    return amagold.sample(LOGISTIC, progress=False)


def test_one_call_gives_good_draws(planned):
    """No argument but the target, no warning, and the moments of a long run of another sampler."""
    assert planned.warnings == []
    assert planned.label == "exact"
    assert not planned.is_partial
    assert dict(planned.posterior.sizes) == {"chain": 4, "draw": 1000, "theta_dim_0": 14}
    reference = amagold.sample(
        amagold.l2mc(LOGISTIC, step_size=0.04, friction=1.0, num_steps=20),
        1_000,
        500,
        64,
        seed=1,
        init=np.zeros(14),
        progress=False,
    )
    for power in (1, 2):
        ours = (planned.posterior["theta"].values ** power).reshape(4 * 1000, 14)
        chains = (reference.posterior["theta"].values ** power).mean(axis=1)
        # each half effective draw counts as one: a plan that mixes worse than it says fails here
        # too
        errors = np.hypot(ours.std(axis=0) / np.sqrt(1_000), chains.std(axis=0) / 8)
        assert np.max(np.abs(ours.mean(axis=0) - chains.mean(axis=0)) / errors) < 4.5


def test_the_plan_is_said_kept_and_true(planned, capsys):
    amagold.sample(LOGISTIC, 500, 200, progress=True)
    said = capsys.readouterr().out
    assert said.strip() == "\n".join([str(planned.plan), *LOGISTIC.notes]).strip()
    assert "Priors as given: each coefficient ~ N(0, 1^2)" in said
    assert "270 examples" in said
    acceptance = float(planned.sample_stats["acceptance_rate"].mean())
    assert acceptance == pytest.approx(planned.plan.predicted_acceptance, abs=0.05)
    assert planned.plan.target_acceptance <= planned.plan.predicted_acceptance


@few_draws
def test_chains_start_dispersed():
    """Starts are wider than the posterior, and differ."""
    sampler = amagold.hmc(LOGISTIC, step_size=1e-6, num_steps=1)
    starts = amagold.sample(sampler, 4, 0, 64, progress=False).posterior["theta"].values[:, 0]
    assert len(np.unique(starts[:, 0])) == 64
    assert np.all(starts.std(axis=0) > 0.2)


@few_draws
def test_the_same_seed_gives_the_same_bits(tmp_path, monkeypatch):
    """Whatever the chunks, the display and the store; another seed gives others."""
    draw = lambda **options: amagold.sample(  # noqa: E731
        LOGISTIC, 300, 100, 4, seed=options.pop("seed", 3), **{"progress": False, **options}
    )
    first = draw()
    np.testing.assert_array_equal(draw(progress=True).posterior["theta"], first.posterior["theta"])
    stored = draw(store=tmp_path / "run.zarr")
    xarray.testing.assert_equal(stored.posterior.load(), first.posterior)
    xarray.testing.assert_equal(stored.sample_stats.load(), first.sample_stats)
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 17)
    np.testing.assert_array_equal(draw().posterior["theta"], first.posterior["theta"])
    other = draw(seed=4).posterior["theta"].values
    assert not np.any(other[:, 0] == first.posterior["theta"].values[:, 0])
    chains = first.posterior["theta"].values[:, :, 0]
    assert len(np.unique(chains[:, -1])) == 4, "chains must differ"


ONE_DEVICE = """
import sys, numpy, amagold
table = amagold.datasets.heart()
target = amagold.models.logistic(table.X, table.y, prior_scale=1.0)
sampler = amagold.l2mc(target, step_size=0.1, num_steps=3)
run = amagold.sample(sampler, 20, 0, 4, init=numpy.zeros(14), progress=False)
assert run.attributes["versions"]["platform"] == "cpu x " + sys.argv[2], run.attributes["versions"]
numpy.save(sys.argv[1], run.posterior["theta"].values)
"""


@pytest.mark.slow
def test_one_and_two_devices_use_the_same_random_numbers(tmp_path):
    found = []
    for count in ("1", "2"):
        environment = {**os.environ, "JAX_NUM_CPU_DEVICES": count, "PYTHONWARNINGS": "ignore"}
        file = tmp_path / f"{count}.npy"
        subprocess.run(
            [sys.executable, "-c", ONE_DEVICE, str(file), count], env=environment, check=True
        )
        found.append(np.load(file))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4)


def test_all_cores_are_used_by_default():
    code = (
        "import os, amagold, jax; amagold.models.double_well(); assert len(jax.devices()) == "
        "os.cpu_count(), jax.devices()"
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")
    }
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@few_draws
def test_statistics_have_arviz_names():
    run = amagold.sample(
        amagold.l2mc(LOGISTIC, step_size=0.1, num_steps=3), 200, 50, 2, progress=False, thin=2
    )
    stats = run.sample_stats
    assert {
        "acceptance_rate",
        "step_size",
        "energy",
        "energy_error",
        "diverging",
        "n_steps",
    } <= set(stats.data_vars)
    np.testing.assert_array_equal(stats["n_steps"], 6)
    np.testing.assert_array_equal(stats["num_gradient_examples"], 2 * 3 * 270)
    np.testing.assert_array_equal(stats["num_energy_examples"], 2 * 270)
    for chain, draw in ((0, 0), (1, 120)):
        theta, first = (
            run.posterior["theta"].values[chain, draw],
            run.posterior["theta"].values[0, 0],
        )
        difference = float(stats["energy"][chain, draw] - stats["energy"][0, 0])
        assert difference == pytest.approx(
            amagold.energy_difference(LOGISTIC, theta, first), abs=1e-3
        )


@few_draws
def test_any_pytree_has_named_variables():
    def log_density(theta):
        return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(theta))

    init = {"w": np.zeros((2, 3)), "layers": [np.zeros(2), (np.float32(0.0),)]}
    run = amagold.sample(amagold.Density(log_density, init=init), 50, 20, 2, progress=False)
    assert set(run.posterior.data_vars) == {"w", "layers.0", "layers.1.0"}
    assert run.posterior["w"].dims == ("chain", "draw", "w_dim_0", "w_dim_1")
    assert run.posterior["layers.1.0"].dims == ("chain", "draw")


@few_draws
def test_a_biased_sampler_is_labelled():
    run = amagold.sample(
        amagold.sghmc(amagold.models.double_well(), step_size=0.2),
        100,
        20,
        2,
        init=0.0,
        progress=False,
    )
    assert run.label == "biased"
    assert "biased" in repr(run)
    assert run.summary().attrs["label"] == "biased"
    assert "energy" not in run.sample_stats


@few_draws
@pytest.mark.slow
def test_draws_follow_the_double_well():
    """Means over independent chains that start from one point; the planted twin keeps the warm-up's
    first draws.
    """
    moments = double_well_moments()
    run = amagold.sample(double_well_sampler(), 500, 300, 1024, init=-3.0, progress=False)
    theta = run.posterior["theta"].values
    assert (
        worst(
            np.stack([theta.mean(axis=1), (theta**2).mean(axis=1)], axis=1),
            [moments.mean, moments.variance + moments.mean**2],
        )
        < 1.0
    )
    early = (
        amagold.sample(double_well_sampler(), 20, 0, 1024, init=-3.0, progress=False)
        .posterior["theta"]
        .values
    )
    assert worst(early.mean(axis=1), moments.mean) > 1.5


def test_summary_agrees_with_arviz_on_the_stored_draws(tmp_path):
    import arviz_stats

    run = amagold.sample(LOGISTIC, 1_000, 300, store=tmp_path / "run.zarr", progress=False)
    table = run.summary(round_to="none")
    assert {"mean", "sd", "ess_bulk", "ess_tail", "r_hat", "mcse_mean"} <= set(table.columns)
    with xarray.open_datatree(tmp_path / "run.zarr", engine="zarr") as tree:
        posterior = tree["posterior"].to_dataset().load()
        np.testing.assert_array_equal(table["ess_bulk"], arviz_stats.ess(posterior)["theta"])
        np.testing.assert_array_equal(table["r_hat"], arviz_stats.rhat(posterior)["theta"])
        stored = arviz_stats.summary(tree, round_to="none")
    np.testing.assert_array_equal(stored.to_numpy(), table.to_numpy())
    cost = run.cost()
    assert cost.minimum_ess == pytest.approx(table["ess_bulk"].min())
    assert cost.num_gradients == 4 * 1_000 * int(run.sample_stats["n_steps"][0, 0])
    assert cost.ess_per_data_pass == pytest.approx(
        cost.minimum_ess / (4 * 1_000 * (run.sampler.num_steps + 1))
    )


@pytest.mark.slow
@few_draws
def test_arviz_plots_open_the_result(tmp_path):
    import arviz_plots
    import matplotlib as mpl

    mpl.use("Agg")
    run = amagold.sample(LOGISTIC, 200, 100, store=tmp_path / "run.zarr", progress=False)
    for tree in (run.to_datatree(), amagold.load(tmp_path / "run.zarr").to_datatree()):
        for plot in (
            arviz_plots.plot_trace,
            arviz_plots.plot_forest,
            arviz_plots.plot_rank,
            arviz_plots.plot_energy,
        ):
            drawn = plot(
                tree,
                **({} if plot is arviz_plots.plot_energy else {"coords": {"theta_dim_0": [0, 1]}}),
            )
            drawn.savefig(tmp_path / "plot.png")
            assert (tmp_path / "plot.png").stat().st_size > 5_000
            mpl.pyplot.close("all")


@few_draws
def test_netcdf_round_trip(tmp_path):
    run = amagold.sample(double_well_sampler(), 100, 50, 2, init=0.0, progress=False)
    run.to_netcdf(tmp_path / "run.nc")
    with xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"], run.posterior["theta"])
        assert tree.attrs["label"] == "exact"


@few_draws
def test_a_time_budget_returns_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 1_000)
    whole = amagold.sample(double_well_sampler(), 20_000, 20, 2, init=0.0, progress=False)
    path = tmp_path / "run.zarr"
    partial = amagold.sample(
        double_well_sampler(), 20_000, 20, 2, init=0.0, progress=False, store=path, max_time=0.2
    )
    assert partial.is_partial
    assert "PARTIAL" in repr(partial)
    assert partial.attributes["stopped"] == "out of time"
    kept = partial.posterior.sizes["draw"]
    assert kept < 20_000
    np.testing.assert_array_equal(partial.posterior["theta"], whole.posterior["theta"][:, :kept])
    ended = amagold.resume(path, double_well_sampler(), progress=False)
    np.testing.assert_array_equal(ended.posterior["theta"], whole.posterior["theta"])
    assert not ended.is_partial


def test_no_time_at_all_says_so():
    with pytest.warns(
        amagold.SamplingWarning, match="no draws were kept: the run stopped before the first one"
    ):
        run = amagold.sample(
            double_well_sampler(), 100, 100, 2, init=0.0, progress=False, max_time=1e-6
        )
    assert run.is_partial
    assert run.posterior.sizes["draw"] == 0
    for ask in (run.summary, run.cost):
        with pytest.raises(
            ValueError,
            match=r"the run must have draws to .* stopped before the first; go on with "
            r"amagold.resume",
        ):
            ask()


@few_draws
def test_ctrl_c_returns_what_there_is(monkeypatch):
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 1_000)
    double_well = double_well_sampler()
    amagold.sample(double_well, 2_000, 20, 2, init=0.0, progress=False)  # compiled now
    handler = signal.getsignal(signal.SIGINT)

    def interrupted(*arguments, **options):
        for number, chunk in enumerate(run_chunks(*arguments, **options)):
            yield chunk
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)

    run_chunks = engine.run_chunks
    monkeypatch.setattr("amagold.sampling._engine.run_chunks", interrupted)
    run = amagold.sample(double_well, 10**8, 20, 2, init=0.0, progress=False)
    assert run.is_partial
    assert run.attributes["stopped"] == "interrupted"
    assert 0 < run.posterior.sizes["draw"] < 10**8
    assert signal.getsignal(signal.SIGINT) is handler


def test_progress_shows_on_a_terminal_only(monkeypatch, capsys):
    run = lambda: amagold.sample(double_well_sampler(), 500, 100, 4, init=0.0)  # noqa: E731
    with pytest.warns(amagold.SamplingWarning):
        run()
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with pytest.warns(amagold.SamplingWarning):
        run()
    shown = capsys.readouterr().err
    for word in ("warm-up", "sampling", "acceptance", "step", "500/500"):
        assert word in shown


def warnings_of(sampler, *numbers, **options):
    with pytest.warns(amagold.SamplingWarning) as caught:
        amagold.sample(sampler, *numbers, progress=False, **options)
    assert {warning.filename for warning in caught} == {__file__}, (
        "warnings point at the user's own line"
    )
    return "\n".join(str(warning.message) for warning in caught)


def test_warnings_say_what_to_do():
    said = warnings_of(double_well_sampler(step_size=500.0), 50, 0, 2, init=0.0)
    assert "zero acceptance: no chain moved" in said
    assert "lower step_size" in said
    wells = np.array([-3.0, 2.0, -3.0], np.float32)
    said = warnings_of(double_well_sampler(step_size=0.01), 50, 0, 3, init_per_chain=wells)
    assert "R-hat: " in said
    assert "above 1.01" in said
    assert "small ESS: " in said
    assert "num_samples" in said


def test_frozen_chains_and_divergences_are_named():
    def log_density(theta):
        # a well that is far too narrow for the step, far away from a wide one
        return jnp.logaddexp(-0.5 * theta**2, -0.5 * ((theta - 1000.0) / 1e-4) ** 2)

    sampler = amagold.hmc(amagold.Density(log_density), step_size=1.0, num_steps=3)
    starts = np.array([0.0, 1000.0, 0.5], np.float32)
    said = warnings_of(sampler, 300, 0, 3, init_per_chain=starts)
    assert "frozen chains: 1 of 3 (number 1)" in said
    assert "init_per_chain" in said
    assert "divergences: " in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_samples": 0}, "num_samples must be a whole number of at least 1, got 0"),
        ({"num_warmup": -1}, "num_warmup must be a whole number of at least 0, got -1"),
        ({"num_chains": 0}, "num_chains must be a whole number of at least 1, got 0"),
        ({"seed": 1.5}, "seed must be a whole number of at least 0, got 1.5"),
        ({"thin": 0}, "thin must be a whole number of at least 1, got 0"),
        ({"max_time": 0.0}, "max_time must be a finite number above 0, got 0"),
        (
            {"init": 0.0, "init_per_chain": np.zeros(4)},
            "init and init_per_chain must not both be given",
        ),
        (
            {"init_per_chain": np.zeros(3)},
            "init_per_chain must have a leading axis of num_chains = 4 in every array, got 3",
        ),
        ({"init": np.nan}, "must be finite"),
        ({"store": "no/such/folder/run.zarr"}, "store must lie in a folder that exists"),
        ({"store": 3.5}, "store must be the path of a folder to make"),
    ],
)
def test_bad_arguments_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.sample(double_well_sampler(), progress=False, **options)


def test_a_target_that_does_not_know_its_positions_asks_for_one():
    with pytest.raises(
        ValueError,
        match=r"init must be given, because the target does not say what its positions look like; "
        r"pass init=",
    ):
        amagold.sample(amagold.Density(lambda theta: -(theta**2)), progress=False)
    with pytest.raises(
        ValueError, match=r"target_or_sampler must be an amagold\.Posterior.*got int"
    ):
        amagold.sample(3)


def test_bad_input_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="must be finite"):
        amagold.sample(
            double_well_sampler(), init=np.inf, store=tmp_path / "run.zarr", progress=False
        )
    assert list(tmp_path.iterdir()) == []


@few_draws
def test_data_are_hashed_for_a_store_alone(tmp_path, monkeypatch):
    draw = lambda **options: amagold.sample(  # noqa: E731
        amagold.l2mc(LOGISTIC, step_size=0.1, num_steps=3),
        4,
        0,
        2,
        init=np.zeros(14),
        progress=False,
        **options,
    )
    assert len(draw(store=tmp_path / "run.zarr").attributes["data_fingerprint"]) == 64

    def refuse(target):
        raise AssertionError("the data were hashed")

    monkeypatch.setattr("amagold.sampling._sample.fingerprint", refuse)
    assert draw().attributes["data_fingerprint"] is None


def test_a_second_call_compiles_nothing():
    from amagold.runner._placed_chains import _run_chunk

    with pytest.warns(amagold.SamplingWarning):
        amagold.sample(double_well_sampler(), 60, 20, 2, init=0.0, progress=False)
    before = _run_chunk.compiled()._cache_size()
    with pytest.warns(amagold.SamplingWarning):
        amagold.sample(
            double_well_sampler(step_size=0.1), 60, 20, 2, init=0.0, seed=9, progress=False
        )
    assert _run_chunk.compiled()._cache_size() == before


def test_time_is_told_apart():
    with pytest.warns(amagold.SamplingWarning):
        run = amagold.sample(double_well_sampler(num_steps=7), 60, 20, 3, init=0.0, progress=False)
    assert run.compile_seconds > run.sampling_seconds > 0.0
    assert run.warmup_seconds > 0.0


@few_draws
def test_only_what_compiles_alone_is_taken_off_the_time_of_sampling(monkeypatch):
    """By a clock that this test moves: each chunk takes 2 s, and a program is compiled before the
    first and beside the second.
    """
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 20)
    draw = lambda: amagold.sample(double_well_sampler(), 60, 0, 2, init=0.0, progress=False)  # noqa: E731
    draw()  # nothing is left to compile
    seconds = [100.0]
    clock = types.SimpleNamespace(monotonic=lambda: seconds[0])
    for module in ("engine", "compile_time"):
        monkeypatch.setattr(f"amagold.sampling._{module}.time", clock)

    def compiles(duration):
        seconds[0] += duration
        jax.monitoring.record_event_duration_secs(
            "/jax/core/compile/backend_compile_duration", duration
        )

    def slowly(*arguments, **options):
        for number, chunk in enumerate(run_chunks(*arguments, **options)):
            compiles((4.0, 1.5, 0.0)[number])
            seconds[0] += (2.0, 0.5, 2.0)[number]
            yield chunk

    run_chunks = engine.run_chunks
    monkeypatch.setattr("amagold.sampling._engine.run_chunks", slowly)
    run = draw()
    assert run.sampling_seconds == pytest.approx(6.0, abs=0.3)  # real traces are heard too
    assert run.compile_seconds == pytest.approx(4.0, abs=0.3)


def test_nested_compilation_counts_once():
    from amagold.sampling import _compile_time as compile_time

    with compile_time.watch_compilation() as found:
        for seconds in (0.5, 0.25):
            time.sleep(0.001)
            found.hear(seconds)
        inner = found.seconds
        found.hear(1.0)
    assert inner == pytest.approx(0.5, abs=0.1)
    assert found.seconds == pytest.approx(1.0, abs=0.1)


@few_draws
def test_the_parts_of_the_time_make_up_the_whole():
    """A sampler and a start that are given leave nothing else to do."""
    began = time.monotonic()
    run = amagold.sample(double_well_sampler(num_steps=6), 2_007, 40, 2, init=0.0, progress=False)
    wall = time.monotonic() - began
    parts = run.sampling_seconds + run.warmup_seconds + run.compile_seconds
    assert 0.3 * wall < parts <= wall


@few_draws
@pytest.mark.parametrize(
    "kind",
    some_of(["planned", "biased", "stopped in warm-up", "not finite"], "biased", "not finite"),
)
def test_every_run_has_a_picture(kind, tmp_path):
    target = amagold.models.double_well()
    runs = {
        "planned": lambda: amagold.sample(target, 100, 40, 2, progress=False),
        "biased": lambda: amagold.sample(
            amagold.sghmc(target, step_size=0.1), 100, 0, 2, progress=False
        ),
        "stopped in warm-up": lambda: amagold.sample(
            target, 100, 40, 2, progress=False, max_time=1e-9
        ),
        "not finite": lambda: amagold.sample(
            amagold.sghmc(target, step_size=50.0), 100, 0, 2, progress=False
        ),
    }
    runs[kind]().plot().savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


STRICT = """
import numpy, amagold, sys
target = amagold.models.double_well()
sampler = amagold.amagold(target, step_size=0.2)
def check(wanted):
    if not wanted:
        sys.exit("failed")
def draw(**options):
    run = amagold.sample(sampler, 20, 0, 2, init=0.0, progress=False, **options)
    check(run.posterior.sizes["draw"] == 20 and len(run.warnings) == 2 and len(run.summary()) == 1)
draw()
try:
    draw(store=sys.argv[1])
    resumed = __debug__ and amagold.resume(sys.argv[1], sampler, progress=False)
    check(resumed and resumed.posterior.sizes["draw"] == 20)
except ValueError as error:
    check(not __debug__ and "store cannot be used under python -O or -OO" in str(error))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ("-W", "error", "-OO"),
        ("-W", "error"),
        ("-OO",),
    ],
)
def test_a_finished_run_is_returned_under_every_flag_of_python(tmp_path, flags):
    """Warnings that are errors are read on standard error; ArviZ without its docstrings works."""
    command = [sys.executable, *flags, "-c", STRICT, str(tmp_path / "run.zarr")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "R-hat: " in ended.stderr
    assert "small ESS: " in ended.stderr


def test_draws_stay_when_they_cannot_be_checked(monkeypatch):
    def fail(*arguments):
        raise RuntimeError("no such thing")

    monkeypatch.setattr("amagold.sampling._sample.advice_on", fail)
    with pytest.warns(
        amagold.SamplingWarning, match=r"could not be checked \(RuntimeError: no such thing\)"
    ):
        run = amagold.sample(double_well_sampler(), 20, 0, 2, init=0.0, progress=False)
    assert run.posterior.sizes["draw"] == 20


@pytest.mark.slow
@few_draws
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_numpy_dtype_promotion", "strict"),
        pytest.param("jax_transfer_guard", "disallow", marks=pytest.mark.slow),
        pytest.param("jax_check_tracer_leaks", True, marks=pytest.mark.slow),
        pytest.param("jax_disable_jit", True, marks=pytest.mark.slow),
    ],
)
def test_guards_for_debugging_do_not_show(name, value):
    """The same draws, planned and all."""
    target = amagold.models.double_well()
    draw = lambda: amagold.sample(target, 20, 20, 2, progress=False).posterior["theta"].values  # noqa: E731
    usual, earlier = draw(), getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        found = draw()
    finally:
        jax.config.update(name, earlier)
    np.testing.assert_array_equal(found, usual)


def small_regression():
    generator = np.random.default_rng(2)
    x = generator.normal(size=(200, 2)).astype(np.float32)
    return amagold.models.logistic(x, generator.random(200) < 0.4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_mesh_of_jax_is_taken_as_it_comes():
    settings = {"num_samples": 20, "num_warmup": 20, "num_chains": 2, "progress": False}
    given = jax.make_mesh((1, 2), ("chain", "data"))
    split = amagold.sample(small_regression(), mesh=given, **settings)
    whole = amagold.sample(small_regression(), **settings)
    for name, draws in split.posterior.data_vars.items():
        np.testing.assert_allclose(draws, whole.posterior[name], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ("two", "mesh must be a jax.sharding.Mesh with an axis 'chain'"),
        (((2,), ("data",)), "mesh must be a jax.sharding.Mesh with an axis 'chain'"),
        (((2,), ("chain",)), "mesh must have as many devices along 'chain' as divide num_chains"),
    ],
)
def test_other_meshes_are_refused(mesh, message):
    given = mesh if isinstance(mesh, str) else jax.make_mesh(*mesh)
    with pytest.raises(ValueError, match=message):
        amagold.sample(small_regression(), num_chains=3, mesh=given, progress=False)
