"""A run that is killed, stopped or damaged loses nothing: real processes, real signals,
real files.
"""

import dataclasses
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import long_run
import numpy as np
import pytest
import xarray
from doubles import some_of

import amagold
from amagold.store._checkpoint import CheckpointFolder
from amagold.store._zarr_store import PRIVATE, ZarrStore

SCRIPT = Path(__file__).parent.parent / "helpers" / "long_run.py"
DOUBLE_WELL = amagold.models.double_well()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Compiled programs are kept between the processes, so that they live long enough to be killed
    at work.
    """
    folder = tmp_path_factory.mktemp("compiled")
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return {
        **os.environ,
        **settings,
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture(scope="module")
def uninterrupted():
    """The same run in this process, in memory, in chunks of another size."""
    return long_run.begin(None)


def start(command, path, environment):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), command, str(path)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_same_so_far(path, uninterrupted):
    """The store opens with xarray, and holds the first draws of the uninterrupted run, each group
    as far as it is.
    """
    with xarray.open_datatree(path, engine="zarr") as tree:
        for group in ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"):
            whole = getattr(uninterrupted, group)
            for name, found in tree[group].data_vars.items():
                np.testing.assert_array_equal(
                    found.values,
                    whole[name].values[:, : found.sizes["draw"]],
                    err_msg=f"{group}/{name}",
                )
        return tree["warmup_sample_stats"].sizes["draw"] + tree["posterior"].sizes["draw"]


def run_with_kills(path, environment, uninterrupted, moments):
    """Kill the run at each of the moments (seconds after a start) and go on; the number of kills
    that hit a living process.
    """
    kills = 0
    for moment in [*moments, None]:
        process = start("resume" if path.exists() else "begin", path, environment)
        try:
            errors = process.communicate(timeout=moment)[1]
            assert process.returncode == 0, errors
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
        if path.exists():
            assert_same_so_far(path, uninterrupted)
    total = assert_same_so_far(path, uninterrupted)
    assert total == long_run.NUM_WARMUP + long_run.NUM_SAMPLES
    assert not amagold.load(path).is_partial
    return kills


@pytest.mark.slow
def test_killed_runs_end_as_if_nothing_had_happened(tmp_path, cache, uninterrupted):
    moments = random.Random(0)
    # fills the cache, and is a whole run itself
    first = start("begin", tmp_path / "first.zarr", cache)
    errors = first.communicate()[1]
    assert first.returncode == 0, errors
    assert_same_so_far(tmp_path / "first.zarr", uninterrupted)
    kills = run_with_kills(
        tmp_path / "run.zarr", cache, uninterrupted, [moments.uniform(2.5, 5.0) for _ in range(2)]
    )
    assert kills >= 1


@pytest.mark.slow
def test_fifty_kills(tmp_path, cache, uninterrupted):
    moments, kills, runs = random.Random(1), 0, 0
    while kills < 50:
        path = tmp_path / f"run-{runs}.zarr"
        # on a busy machine no run would end between kills without end
        most = min(25, 50 - kills)
        kills += run_with_kills(
            path, cache, uninterrupted, [moments.uniform(0.5, 5.0) for _ in range(most)]
        )
        shutil.rmtree(path)
        runs += 1
    assert runs >= 2


def test_a_second_process_is_refused(tmp_path, cache):
    path = tmp_path / "run.zarr"
    process = start("begin", path, cache)
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.01)
    try:
        with pytest.raises(
            amagold.StoreInUseError,
            match=rf"in use by another process \(number {process.pid}\); wait",
        ):
            amagold.resume(path, long_run.sampler(), progress=False)
        with pytest.raises(
            ValueError, match=r"store must be a new path.*exists already; go on with amagold.resume"
        ):
            amagold.sample(long_run.sampler(), store=path, progress=False)
    finally:
        process.kill()
        process.communicate()


def short_run(path, num_samples=3_000, num_chains=2):
    """A stored run of the double well, and its sampler."""
    sampler = amagold.amagold(DOUBLE_WELL, step_size=0.2, gradient=amagold.gradients.noisy(1.0))
    return sampler, amagold.sample(
        sampler, num_samples, 20, num_chains, seed=1, store=path, progress=False, init=0.0
    )


@pytest.fixture
def many_chunks(monkeypatch):
    """Short chunks, each with a checkpoint of its own, and small files."""
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 100)
    monkeypatch.setattr("amagold.sampling._recorder.LONGEST_WAIT", 0.0)
    monkeypatch.setattr("amagold.sampling._recorder.CHECKPOINT_SHARE", 1e9)
    monkeypatch.setattr("amagold.store._zarr_store.ZARR_CHUNK_BYTES", 2_000)


def flip_a_byte(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def truncate(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def checkpoints(path):
    return CheckpointFolder(path / PRIVATE).files()


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_flipped_byte_in_the_checkpoint_is_found_and_the_one_before_is_used(
    tmp_path, many_chunks
):
    path = tmp_path / "run.zarr"
    sampler, whole = short_run(path)
    flip_a_byte(checkpoints(path)[-1])
    mark_incomplete(path)
    with pytest.warns(
        amagold.SamplingWarning,
        match=r"checkpoint .* is damaged: its checksum does not match; an earlier one is used",
    ):
        again = amagold.resume(path, sampler, progress=False)
    np.testing.assert_array_equal(again.posterior["theta"], whole.posterior["theta"])


def mark_incomplete(path):
    """As if the process had been killed before it could say that it was done."""
    store = ZarrStore(path)
    store.commit({}, {"is_complete": False})


@pytest.mark.few(1)
@pytest.mark.parametrize("harm", [flip_a_byte, truncate, Path.unlink])
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_damaged_chunk_is_found_and_its_draws_are_made_again(tmp_path, many_chunks, harm):
    path = tmp_path / "run.zarr"
    sampler, run = short_run(path)
    whole = run.posterior["theta"].values
    files = sorted((path / "posterior/theta/c/0").iterdir(), key=lambda file: int(file.name))
    assert len(files) > 5
    per_file = 2_000 // (2 * 4)
    harm(files[4])
    with pytest.warns(
        amagold.SamplingWarning,
        match=f"damaged draws: posterior/theta.*the first {4 * per_file} of 3000 are readable",
    ):
        readable = amagold.load(path)
    np.testing.assert_array_equal(readable.posterior["theta"], whole[:, : 4 * per_file])
    with pytest.warns(
        amagold.SamplingWarning, match="damaged draws: posterior/theta.*; they are made again"
    ):
        again = amagold.resume(path, sampler, progress=False)
    np.testing.assert_array_equal(again.posterior["theta"], whole)
    assert not again.is_partial


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_damaged_record_of_the_warm_up_costs_no_draws(tmp_path, many_chunks):
    path = tmp_path / "run.zarr"
    sampler, whole = short_run(path)
    flip_a_byte(path / "warmup_sample_stats/acceptance_rate/c/0/0")
    mark_incomplete(path)
    before = [file.name for file in checkpoints(path)]
    with pytest.warns(
        amagold.SamplingWarning, match="damaged draws: warmup_sample_stats/acceptance_rate"
    ):
        again = amagold.resume(path, sampler, progress=False)
    np.testing.assert_array_equal(again.posterior["theta"], whole.posterior["theta"])
    assert before[0] in [file.name for file in checkpoints(path)], "the first checkpoint stays"


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_no_good_checkpoint_left(tmp_path, many_chunks):
    path = tmp_path / "run.zarr"
    sampler, _ = short_run(path)
    for file in checkpoints(path):
        truncate(file)
    mark_incomplete(path)
    with pytest.raises(
        ValueError, match=r"path must hold a good checkpoint.*amagold.load: begin the run again"
    ):
        amagold.resume(path, sampler, progress=False)
    assert amagold.load(path).posterior.sizes["draw"] == 3_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_disk_that_takes_no_more(tmp_path, many_chunks, monkeypatch):
    """A limit on the size of files stands for a full disk: the operating system refuses the
    write.
    """
    path = tmp_path / "run.zarr"
    monkeypatch.setattr("amagold.store._zarr_store.ZARR_CHUNK_BYTES", 2**20)
    # first, so that nothing is left to compile and to keep on the disk
    sampler, whole = short_run(tmp_path / "other.zarr", num_chains=8)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))
    try:
        with pytest.raises(
            amagold.StoreFailedError,
            match=r"could not be written.*first \d+ draws are safe: make room on the disk",
        ):
            short_run(path, num_chains=8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    safe = amagold.load(path)
    assert 0 < safe.posterior.sizes["draw"] < 3_000
    assert safe.is_partial
    assert not list(path.rglob("*.partial"))
    np.testing.assert_array_equal(
        safe.posterior["theta"], whole.posterior["theta"][:, : safe.posterior.sizes["draw"]]
    )
    np.testing.assert_array_equal(
        amagold.resume(path, sampler, progress=False).posterior["theta"], whole.posterior["theta"]
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_another_sampler_or_other_data_are_noticed(tmp_path):
    path = tmp_path / "run.zarr"
    table = amagold.datasets.heart()

    def make(rows, **options):
        return amagold.l2mc(
            amagold.models.logistic(
                table.X[:rows], table.y[:rows], **{"prior_scale": 1.0, **options}
            ),
            step_size=0.05,
            num_steps=2,
        )

    amagold.sample(make(270), 200, 20, 2, store=path, progress=False)
    mark_incomplete(path)
    with pytest.raises(
        ValueError, match="its num_steps is 3 where the run has 2; pass the same one"
    ):
        amagold.resume(
            path, amagold.l2mc(make(270).target, step_size=0.05, num_steps=3), progress=False
        )
    heavier = amagold.l2mc(make(270).target, step_size=0.05, num_steps=2, mass=np.full(14, 2.0))
    with pytest.raises(ValueError, match="but its numbers are others: the mass, or"):
        amagold.resume(path, heavier, progress=False)
    with pytest.raises(
        ValueError, match="must be the sampler that began this run, got a target alone"
    ):
        amagold.resume(path, make(270).target, progress=False)
    with pytest.raises(
        ValueError, match=r"its states has shape \(2, 200\) of float32 where the run has \(2, 270\)"
    ):
        amagold.resume(path, make(200), progress=False)
    with pytest.warns(
        amagold.SamplingWarning, match="another target: its log prior around the saved positions"
    ):
        spoilt = amagold.resume(path, make(270, prior_scale=0.1), progress=False)
    assert spoilt.label == amagold.load(path).label == "mixed: resumed with another target"
    assert any(
        "spoilt draws: another target" in sentence for sentence in amagold.load(path).warnings
    )
    with pytest.raises(ValueError, match=r"whose positions are \(14,\), got positions \(\)"):
        amagold.resume(
            path,
            amagold.l2mc(amagold.models.double_well(), step_size=0.05, num_steps=2),
            progress=False,
        )
    mark_incomplete(path)
    shuffled = amagold.models.logistic(table.X[::-1], table.y[::-1], prior_scale=1.0)
    with pytest.warns(amagold.SamplingWarning, match="the data fingerprint changed"):
        amagold.resume(path, amagold.l2mc(shuffled, step_size=0.05, num_steps=2), progress=False)


FEW = np.random.default_rng(0).normal(size=(600, 2)).astype(np.float32)
OUTCOMES = (FEW[:, 0] + FEW[:, 1] > 0.3 * np.random.default_rng(1).normal(size=600)).astype(
    np.float32
)
SMALL = amagold.models.logistic(FEW, OUTCOMES)
TESTS = {
    "full": amagold.acceptance.full,
    "delayed": amagold.acceptance.delayed,
    "tuna": amagold.acceptance.tuna,
    "firefly": amagold.acceptance.firefly,
    "barker": amagold.acceptance.barker,
    "austerity": amagold.acceptance.austerity,
    "confidence": amagold.acceptance.confidence,
    "none": amagold.acceptance.never_reject,
}
KNOWS_THE_MODE = set(TESTS) - {"full", "none"}
OTHERS = {
    "log prior": amagold.models.logistic(FEW, OUTCOMES, prior_scale=1.01),
    "log likelihood": dataclasses.replace(
        SMALL,
        log_likelihood=lambda position, example: 1.0001 * SMALL.log_likelihood(position, example),
    ),
    "domain": dataclasses.replace(SMALL, domain=lambda position: position[0] < 4.0),
}


def stopped_run(path, target, test):
    """A stored run that was stopped before its first transition."""

    def make(target):
        chosen = {"batch_size": 16, "acceptance": TESTS[test]()}
        return amagold.amagold(target, step_size=0.05, num_steps=1, **chosen)

    amagold.sample(
        make(target),
        4,
        20,
        2,
        init=np.full(3, 0.5, np.float32),
        store=path,
        progress=False,
        max_time=1e-9,
    )
    return make


def said_on_resuming(path, target_or_sampler):
    with pytest.warns(amagold.SamplingWarning) as caught:
        run = amagold.resume(path, target_or_sampler, progress=False, max_time=1e-9)
    return run, [
        str(warning.message)
        for warning in caught
        if "no draws were kept" not in str(warning.message)
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("test", some_of(TESTS, "full", "barker"))
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_another_target_is_noticed_whatever_the_test_remembers(tmp_path, test):
    """Each part for itself, in the same words for every test; the same target raises no alarm."""
    path = tmp_path / "run.zarr"
    make = stopped_run(path, SMALL, test)
    run, said = said_on_resuming(path, make(amagold.models.logistic(FEW, OUTCOMES)))
    assert said == []
    assert run.label == make(SMALL).label
    for part, target in OTHERS.items():
        copy = tmp_path / f"{part}.zarr"
        shutil.copytree(path, copy)
        if test in KNOWS_THE_MODE and part != "domain":
            with pytest.raises(
                ValueError, match=r"numbers are others: .* which another prior or other data change"
            ):
                amagold.resume(copy, make(target), progress=False)
            continue
        run, said = said_on_resuming(copy, make(target))
        of_target = [sentence for sentence in said if sentence.startswith("another target: ")]
        assert len(of_target) == 1, said
        assert of_target[0].startswith(f"another target: its {part} ")
        assert run.label == amagold.load(copy).label == "mixed: resumed with another target"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_another_prior_is_noticed_among_many_examples(tmp_path):
    """The whole energy differs by a few of its many thousand nats, and a planned test remembers
    none of it.
    """
    many = np.random.default_rng(2).normal(size=(20_000, 3)).astype(np.float32)
    outcomes = (many[:, 0] > np.random.default_rng(3).normal(size=20_000)).astype(np.float32)
    path = tmp_path / "run.zarr"
    target = amagold.models.logistic(many, outcomes)
    amagold.sample(target, 4, 20, 2, store=path, progress=False, max_time=1e-9)
    run, said = said_on_resuming(path, target)
    assert said == []
    assert "energy" not in run.sample_stats
    run, said = said_on_resuming(path, amagold.models.logistic(many, outcomes, prior_scale=0.5))
    assert [sentence.split(" around")[0] for sentence in said] == [
        "another target: its log prior",
        "spoilt draws: another target: its log prior",
    ]
    assert run.label.startswith("mixed")


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_another_density_is_noticed(tmp_path):
    path = tmp_path / "run.zarr"

    def make(scale):
        density = amagold.Density(lambda theta: -0.5 * jnp.sum((theta / scale) ** 2))
        return amagold.sghmc(density, step_size=0.1)

    amagold.sample(
        make(1.0), 4, 20, 2, init=np.ones(2, np.float32), store=path, progress=False, max_time=1e-9
    )
    assert said_on_resuming(path, make(1.0))[1] == []
    assert said_on_resuming(path, make(1.001))[1][0].startswith("another target: its log density ")


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_target_that_cannot_be_compared_is_not_called_the_same(tmp_path):
    path = tmp_path / "run.zarr"
    sampler = amagold.sghmc(amagold.Density(lambda theta: jnp.nan * jnp.sum(theta)), step_size=0.1)
    amagold.sample(
        sampler, 4, 20, 2, init=np.ones(2, np.float32), store=path, progress=False, max_time=1e-9
    )
    run, said = said_on_resuming(path, sampler)
    assert len(said) == 1
    assert said[0].startswith("the target's log density could not be compared")
    assert run.label == "biased"


@pytest.mark.parametrize(
    ("test", "found"),
    [("full", "compared .* by its energy alone"), ("tuna", "could not be compared")],
)
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_run_of_an_earlier_version_goes_on_and_says_so(tmp_path, monkeypatch, test, found):
    path = tmp_path / "run.zarr"
    monkeypatch.setattr("amagold.sampling._engine.likeness_of", lambda target, positions: {})
    make = stopped_run(path, SMALL, test)
    store = ZarrStore(path)
    del store.attributes["jax_settings"]
    store.commit({}, {})
    run, said = said_on_resuming(path, make(SMALL))
    assert len(said) == 1
    assert re.search(found, said[0])
    assert run.label == "exact"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("jax_enable_x64", True),
        ("jax_default_prng_impl", "rbg"),
        ("jax_threefry_partitionable", False),
    ],
)
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_other_settings_of_jax_are_refused(tmp_path, name, other):
    path = tmp_path / "run.zarr"
    make = stopped_run(path, SMALL, "full")
    earlier = getattr(jax.config, name)
    jax.config.update(name, other)
    try:
        with pytest.raises(
            ValueError,
            match=rf"but {name} is {other!r} where the run has {earlier!r}; call "
            rf"jax.config.update\({name!r}, {earlier!r}\)",
        ):
            amagold.resume(path, make(SMALL), progress=False)
    finally:
        jax.config.update(name, earlier)
    assert said_on_resuming(path, make(SMALL))[1] == []


def test_a_run_from_a_stranger_is_safe_to_open(tmp_path, monkeypatch):
    """Nothing in a run is executed: unpickling anything would raise here."""
    import pickle

    def refuse(*arguments, **options):
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    with pytest.warns(amagold.SamplingWarning):
        sampler, whole = short_run(tmp_path / "run.zarr", num_samples=50)
    with pytest.warns(amagold.SamplingWarning):
        opened = amagold.load(tmp_path / "run.zarr")
    np.testing.assert_array_equal(opened.posterior["theta"], whole.posterior["theta"])
    mark_incomplete(tmp_path / "run.zarr")
    with pytest.warns(amagold.SamplingWarning):
        amagold.resume(tmp_path / "run.zarr", sampler, progress=False)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_what_a_killed_process_was_building_is_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    abandoned, busy = (
        tmp_path / f".run.zarr.{number}-0123abcd.partial" for number in (dead.pid, os.getpid())
    )
    for folder in (abandoned, busy):
        (folder / "posterior").mkdir(parents=True)
    short_run(tmp_path / "run.zarr", num_samples=50)
    assert sorted(path.name for path in tmp_path.iterdir()) == [busy.name, "run.zarr"]


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="path must be the folder of a stored run"):
        amagold.load(tmp_path)
    (tmp_path / "zarr.json").write_text("{}")
    with pytest.raises(ValueError, match="stored by amagold"):
        amagold.load(tmp_path)


KINDS = {
    "irreversible": lambda: (
        amagold.amagold(HEART, step_size=0.02, batch_size=32, resample_momentum=False),
        {},
    ),
    "thinned": lambda: (amagold.l2mc(HEART, step_size=0.05, num_steps=2), {"thin": 3}),
    "one total": lambda: (
        amagold.l2mc(
            HEART, step_size=0.05, num_steps=2, acceptance=amagold.acceptance.full(keep="total")
        ),
        {},
    ),
    "biased": lambda: (amagold.sghmc(HEART, step_size=0.02, batch_size=32), {}),
    "corrected Langevin": lambda: (
        amagold.sgld(HEART, step_size=0.02, num_steps=2, acceptance=amagold.acceptance.full()),
        {},
    ),
    "planned": lambda: (HEART, {}),
    "planned, diagonal": lambda: (HEART, {"warmup": amagold.Warmup(mass="diagonal")}),
    "planned, no warm-up": lambda: (HEART, {"num_warmup": 0}),
    "searched": lambda: (amagold.Density(ridge), {"init": np.zeros(3)}),
}


def ridge(position):
    """Bent, so that no Gaussian describes it, and warm-up looks for everything."""
    along, across, other = position
    bent = across + along**2
    return -0.5 * (along**2 + 9.0 * bent**2 + other**2)


HEART = amagold.models.logistic(
    amagold.datasets.heart().X, amagold.datasets.heart().y, prior_scale=1.0
)


QUICK = ("irreversible", "planned", "searched")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in KINDS]
)
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_every_kind_of_run_goes_on_where_it_stopped(tmp_path, many_chunks, monkeypatch, kind):
    """Stopped after every few chunks, in warm-up and after it."""
    target_or_sampler, options = KINDS[kind]()
    options = {
        "num_samples": 250,
        "num_warmup": 40,
        "num_chains": 2,
        "progress": False,
        "init": np.zeros(14),
        **options,
    }
    whole = amagold.sample(target_or_sampler, **options)
    path = tmp_path / "run.zarr"
    run = amagold.sample(target_or_sampler, **options, store=path, max_time=1e-9)
    seen = {sizes(run)}
    while run.is_partial:
        monkeypatch.setattr("amagold.sampling._interruption.Stopper.reason", property(after(3)))
        run = amagold.resume(path, target_or_sampler, progress=False)
        seen.add(sizes(run))
    assert len(seen) >= 2
    for group in ("posterior", "sample_stats", "warmup_sample_stats"):
        xarray.testing.assert_equal(getattr(run, group).load(), getattr(whole, group))


def sizes(run):
    return run.warmup_sample_stats.sizes["draw"], run.posterior.sizes["draw"]


def after(count):
    """A reason to stop that appears when it has been asked for `count` times."""
    asked = []

    def reason(stopper):
        asked.append(None)
        return "out of time" if len(asked) > count else None

    return reason


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_run_knows_what_it_was_begun_with(tmp_path):
    """Where the model is one of the library's and its data are kept; others are asked for."""
    given = {"num_samples": 30, "num_warmup": 10, "num_chains": 2, "progress": False}
    whole = amagold.sample(DOUBLE_WELL, **given)
    amagold.sample(DOUBLE_WELL, **given, store=tmp_path / "run.zarr", max_time=1e-9)
    resumed = amagold.resume(tmp_path / "run.zarr", progress=False)
    assert not resumed.is_partial
    xarray.testing.assert_equal(resumed.posterior.load(), whole.posterior)
    own = amagold.hmc(amagold.Density(lambda x: -0.5 * x**2), step_size=0.5, num_steps=2)
    amagold.sample(own, **given, init=0.0, store=tmp_path / "own.zarr", max_time=1e-9)
    with pytest.raises(ValueError, match="target_or_sampler must be given for a run of a target"):
        amagold.resume(tmp_path / "own.zarr", progress=False)
