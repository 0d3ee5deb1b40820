"""More rows, same chains: exact for the posterior of all rows, and old rows are not read again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from false_alarms import PLANTED, worst

import amagold
from amagold import models
from amagold.core import trees
from amagold.data import InMemory, Joined
from amagold.models._more_rows import more_rows

OLD, NEW = 6_000, 2_000
GENERATOR = np.random.default_rng(21)
X = GENERATOR.normal(size=(OLD + NEW, 2)) * [1.0, 3.0] + [0.0, 1.0]
Z = X @ [0.8, -0.3] + 0.4
Y = (GENERATOR.random(OLD + NEW) < 1.0 / (1.0 + np.exp(-Z))).astype(np.float32)
PRIOR = {"prior_scale": 2.0}
visited: list[int] = []

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


@trees.record()
class Watched(InMemory):
    """Examples in memory that tell when a walk over them is made."""

    def fold(self, visit, carry, chunk_size):
        jax.debug.callback(lambda: visited.append(1))
        return InMemory.fold(self, visit, carry, chunk_size)


def first_run(**arguments):
    target = models.logistic(X[:OLD], Y[:OLD], **PRIOR)
    return amagold.sample(target, 500, 200, progress=False, **arguments)


@pytest.fixture(scope="module")
def run():
    return first_run()


@pytest.fixture(scope="module")
def wide_run():
    return first_run(num_chains=32)


def means(draws):
    """Of every chain: the mean, and the mean square about a fixed place."""
    theta = draws.posterior["theta"].to_numpy()
    center = np.array([0.4, 0.8, -0.3])
    return np.concatenate([theta, 100.0 * (theta - center) ** 2], axis=-1).mean(axis=1)


@pytest.fixture(scope="module")
def of_all():
    """A long run on all rows from the start."""
    target = models.logistic(X, Y, **PRIOR)
    return means(amagold.sample(target, 4_000, 200, num_chains=32, seed=5, progress=False))


@pytest.mark.slow
def test_draws_are_those_of_all_rows(of_all, wide_run):
    run = wide_run
    updated = amagold.update(run, (X[OLD:], Y[OLD:]), 4_000, progress=False)
    assert updated.label == "exact"
    assert updated.sampler.target.num_examples == OLD + NEW
    assert updated.plan.num_examples == OLD + NEW
    assert updated.attributes["num_examples"] == OLD + NEW
    np.testing.assert_array_equal(
        updated.sampler.acceptance.reference.position, run.sampler.acceptance.reference.position
    )
    # two sets of independent chains: the difference of pairs
    assert worst(means(updated) - of_all) < 1.0
    assert worst(means(run) - of_all) > PLANTED, "the new rows must tell something"


@pytest.mark.slow
def test_new_rows_that_are_left_out_are_seen(of_all, wide_run, monkeypatch):
    monkeypatch.setattr("amagold.sampling._update._sum", lambda known, added: known)
    updated = amagold.update(wide_run, (X[OLD:], Y[OLD:]), 4_000, progress=False)
    assert worst(means(updated) - of_all) > PLANTED


@pytest.mark.slow
def test_old_rows_are_not_walked_over(run):
    sampler = run.sampler
    watched = dataclasses.replace(sampler.target, data=Watched(sampler.target.data))
    copy = amagold.Run(
        run._groups,
        run.attributes,
        run.plan,
        run.warnings,
        None,
        dataclasses.replace(sampler, target=watched),
        run.positions,
    )
    visited.clear()
    new = type(sampler.target.data)(*(leaf[:50] for leaf in sampler.target.data))
    updated = amagold.update(copy, new, 200, progress=False)
    jax.effects_barrier()
    assert not visited
    assert updated.sampler.target.num_examples == OLD + 50
    assert updated.sampler.acceptance.table.num_rows == OLD + 50


@pytest.mark.few(1)
def test_the_table_is_that_of_all_rows(run):
    updated = amagold.update(run, (X[OLD:], Y[OLD:]), 100, progress=False)
    test, before = updated.sampler.acceptance, run.sampler.acceptance
    whole = jax.vmap(before.table.bound)(models.logistic(X, Y, **PRIOR).data)
    np.testing.assert_allclose(test.table.weights[: OLD + NEW], whole[0], rtol=1e-5)
    np.testing.assert_allclose(test.table.total, np.asarray(whole[0], np.float64).sum(), rtol=1e-5)
    np.testing.assert_allclose(test.largest, whole[1].max(), rtol=1e-6)


@pytest.mark.slow
def test_it_can_be_repeated(run):
    once = amagold.update(run, (X[OLD : OLD + 500], Y[OLD : OLD + 500]), 100, progress=False)
    twice = amagold.update(once, (X[OLD + 500 :], Y[OLD + 500 :]), 100, progress=False)
    assert twice.sampler.target.num_examples == OLD + NEW
    assert twice.attributes["seed"] == run.attributes["seed"] + 2


def test_where_the_mode_has_moved_it_is_planned_again(run, capsys):
    updated = amagold.update(run, (X[OLD:], 1.0 - Y[OLD:]), 200)
    sentence = "Planned again for all 8,000 rows: the mode has moved too far from the reference."
    assert sentence in capsys.readouterr().out
    assert updated.attributes["update"] == sentence
    assert updated.sampler.target.num_examples == OLD + NEW
    assert not np.array_equal(
        updated.sampler.acceptance.reference.position, run.sampler.acceptance.reference.position
    )


@pytest.mark.slow
def test_data_on_disk_grow(run, tmp_path):
    in_memory_run = run

    def table(rows, name):
        pq.write_table(pa.table({"a": X[rows, 0], "b": X[rows, 1], "y": Y[rows]}), tmp_path / name)
        return amagold.data.open(tmp_path / name)

    old, new = table(slice(0, OLD), "old.parquet"), table(slice(OLD, None), "new.parquet")
    run = amagold.sample(models.logistic(old, outcome="y", **PRIOR), 500, 200, progress=False)
    updated = amagold.update(run, new, 200, progress=False)
    in_memory = amagold.update(in_memory_run, (X[OLD:], Y[OLD:]), 200, progress=False)
    np.testing.assert_allclose(
        updated.posterior["theta"], in_memory.posterior["theta"], rtol=1e-3, atol=1e-4
    )
    pq.write_table(pa.table({"a": [1.0], "y": [1.0]}), tmp_path / "narrow.parquet")
    with pytest.raises(ValueError, match=r"^new_rows must have the columns of the run's table"):
        amagold.update(run, amagold.data.open(tmp_path / "narrow.parquet"), progress=False)
    bad = pa.table({"a": [1.0], "b": [2.0], "y": [3.0]})
    pq.write_table(bad, tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"^outcome must hold 0 and 1"):
        amagold.update(run, amagold.data.open(tmp_path / "bad.parquet"), progress=False)


def test_what_is_refused(run, tmp_path):
    loaded = amagold.Run(run._groups, run.attributes, run.plan, [], None)
    with pytest.raises(ValueError, match=r"^run must come from amagold.sample"):
        amagold.update(loaded, (X, Y))
    for columns in (1, 3):
        wide = X[:, :1].repeat(columns, axis=1)
        with pytest.raises(ValueError, match=r"^new_rows must be \(X, y\) with the 2 columns"):
            amagold.update(run, (wide, Y))
    with pytest.raises(ValueError, match=r"^X must be finite"):
        amagold.update(run, (np.full((3, 2), np.nan), [0, 1, 1]))
    with pytest.raises(ValueError, match=r"^new_rows must be like the target's own"):
        amagold.update(run, {"x": X})
    with pytest.raises(ValueError, match=r"^y must hold 0 and 1"):
        amagold.update(run, (X[:3], [0, 1, 2]))
    density = amagold.sample(models.double_well(), 200, 200, progress=False)
    with pytest.raises(ValueError, match=r"^run must be of a target with data"):
        amagold.update(density, (X, Y))


@pytest.mark.parametrize(
    ("family", "options", "y"),
    [
        ("poisson", {}, GENERATOR.poisson(np.exp(0.2 * Z))),
        ("softmax", {"num_classes": 3}, GENERATOR.integers(0, 3, OLD + NEW)),
        ("linear", {"noise_scale": 2.0}, 50.0 + Z + 2.0 * GENERATOR.normal(size=OLD + NEW)),
        ("robust", {"intercept": False}, Z + GENERATOR.standard_t(4, size=OLD + NEW)),
    ],
)
def test_rows_become_examples_as_they_did(family, options, y):
    """Of every kind of outcome: those that the model itself would make of all rows, standardised
    as the first ones are.
    """
    build = getattr(models, family)
    target = build(X[:OLD], y[:OLD], standardize=True, **options)
    found = more_rows(target, (X[:OLD], y[:OLD]))
    for new, own in zip(found.arrays, target.data, strict=True):
        np.testing.assert_array_equal(new, own)


def test_texts_are_refused(tmp_path):
    table = {"port": ["a", "b"] * 300, "y": [0.0, 1.0] * 300}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    opened = amagold.data.open(tmp_path / "t.parquet")
    target = amagold.Posterior(
        lambda at, row: -((at - row["y"]) ** 2), lambda at: -(at**2), opened, init=0.0
    )
    with pytest.raises(ValueError, match=r"^new_rows must hold numbers, but column 'port'"):
        more_rows(target, opened)


def test_joined_places_are_one():
    whole = InMemory({"x": jnp.arange(10.0), "y": jnp.arange(20).reshape(10, 2)})
    first, second = (
        InMemory(jax.tree.map(lambda leaf, cut=cut: leaf[cut], whole.arrays))
        for cut in (slice(0, 4), slice(4, None))
    )
    joined = Joined(first, second)
    numbers = np.array([[9, 0], [3, 4]])
    for chunk_size in (1, 3, 100):
        jax.tree.map(np.testing.assert_array_equal, joined.rows(numbers), whole.rows(numbers))
        written = joined.fold(
            lambda found, chunk: chunk.write(found, chunk.rows["x"]), jnp.zeros(10), chunk_size
        )
        np.testing.assert_array_equal(written, whole.arrays["x"])
        total = joined.scan_if(
            jnp.asarray(True),
            lambda carry, chunk, held: carry + held * chunk.only_new(chunk.rows["x"]).sum(),
            0.0,
            2.0,
            chunk_size,
        )
        assert float(total) == 90.0
    assert joined.some(5).num_examples == 5
    assert joined.fingerprint() != Joined(second, first).fingerprint()
