"""Rows of a table that count several times, and those that are alike and become one."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold.cli import main  # noqa: E402
from amagold.mode._derivatives import derivatives_at  # noqa: E402
from amagold.mode._row_bounds import slopes, squared_norm  # noqa: E402
from amagold.models import _merged_rows as merging  # noqa: E402
from amagold.models._coded_rows import CodedTable  # noqa: E402
from amagold.models._row_terms import RowTerms  # noqa: E402
from amagold.tables import _fit  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402
from amagold.target._linear_bounds import SparsePredictor  # noqa: E402

NUM_ROWS = 600
OUTCOMES = {
    "logistic": "late",
    "probit": "late",
    "poisson": "visits",
    "negative_binomial": "visits",
    "gamma": "cost",
    "robust": "cost",
    "ordinal": "grade",
}
RIGHT = "C(month) + dose + dose:C(month)"


def table():
    generator = np.random.default_rng(8)
    month = generator.integers(1, 4, NUM_ROWS)
    return pandas.DataFrame(
        {
            "month": month,
            "dose": generator.integers(0, 2, NUM_ROWS) * 10.0 + 40.0,
            "late": (generator.random(NUM_ROWS) < 0.2 * month).astype(int),
            "visits": generator.poisson(month),
            "cost": 1.0 + generator.poisson(month),
            "times": generator.integers(0, 3, NUM_ROWS),
            "log_time": np.log(1.0 + generator.integers(0, 2, NUM_ROWS)),
            "grade": generator.integers(0, 3, NUM_ROWS) + month // 3,
        }
    )


def model(family, **options):
    formula = f"{OUTCOMES[family]} ~ {RIGHT}"
    return model_of(formula, read_table(table()), family, None, False, None, **options).target


def log_density_of(target):
    flat, form = jax.flatten_util.ravel_pytree(jax.tree.map(jnp.asarray, target.init))

    def log_density(at):
        position = form(at)
        return target.log_likelihoods(position, target.data).sum() + target.log_prior(position)

    return log_density, [jnp.full(flat.shape, 0.1 * step) for step in range(3)]


def densities(target):
    """At three positions, but for one constant."""
    log_density, places = log_density_of(target)
    values = np.array([float(log_density(at)) for at in places])
    return values[1:] - values[0]


def derivatives(target):
    log_density, places = log_density_of(target)
    return [np.asarray(of(log_density)(places[1])) for of in (jax.grad, jax.hessian)]


def of_all_rows(family, monkeypatch, **options):
    """The same without merging."""
    monkeypatch.setattr(
        _fit, "merged_rows", lambda *given: merging.MergedRows(*given[:3], len(given[0]))
    )
    return model(family, **options)


@pytest.mark.parametrize(
    "options",
    [pytest.param({}, marks=pytest.mark.slow), {"weights": "times", "offset": "log_time"}],
)
@pytest.mark.parametrize(
    "family",
    [pytest.param(each, marks=[] if each == "logistic" else pytest.mark.slow) for each in OUTCOMES],
)
def test_merged_rows_have_the_posterior_of_all(family, options, monkeypatch):
    merged = model(family, **options)
    whole = of_all_rows(family, monkeypatch, **options)
    assert merged.num_examples < 0.3 * whole.num_examples
    assert any("rows are merged into" in note for note in merged.notes)
    assert not any("merged" in note for note in whole.notes)
    np.testing.assert_allclose(densities(merged), densities(whole), rtol=1e-4, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("family", OUTCOMES)
def test_merged_rows_have_the_derivatives_of_all(family, monkeypatch):
    options = {"weights": "times", "offset": "log_time"}
    merged = model(family, **options)
    whole = of_all_rows(family, monkeypatch, **options)
    for ours, theirs in zip(derivatives(merged), derivatives(whole), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())


def test_a_lost_row_would_be_seen():
    rows = table()
    some = densities(model("poisson", weights=rows.times.to_numpy()))
    fewer = rows.times.to_numpy().copy()
    fewer[np.argmax(fewer)] -= 1
    assert np.abs(densities(model("poisson", weights=fewer)) - some).max() > 1e-2


def coded(numbers, codes):
    size = (int(codes.max()) + 1,)
    return CodedTable(
        numbers, codes, np.zeros((len(codes), 0), np.float32), ("x", "a", "b"), size, (None,)
    )


def test_rows_that_differ_are_left_alone():
    numbers = np.random.default_rng(0).normal(size=(50_000, 1))
    given = coded(numbers, np.zeros((50_000, 1), np.int32))
    outcomes = np.zeros(50_000)
    found = merging.merged_rows(given, outcomes, RowTerms(), "poisson")
    assert found.table is given
    assert not found.is_merged


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_groups_are_those_of_numpy(monkeypatch, block):
    monkeypatch.setattr(merging, "BLOCK", block)
    bits = np.random.default_rng(1).integers(0, 40, 100).astype(np.uint64) << np.uint64(60)
    bits += np.arange(100, dtype=np.uint64) % np.uint64(2)
    found, first, group = np.unique(bits, return_index=True, return_inverse=True)
    assert 1 < len(found) < 100
    ours = merging._sorted_groups(bits)
    np.testing.assert_array_equal(ours[0], first)
    np.testing.assert_array_equal(ours[1], group)


@pytest.mark.parametrize("block", [3, 1000])
def test_blocks_of_rows_do_not_show(monkeypatch, block):
    generator = np.random.default_rng(2)
    columns = [generator.integers(-1, 3, 200).astype(np.int8), generator.integers(0, 2, 200) / 3.0]
    whole = merging._groups(columns, 200, 200)
    monkeypatch.setattr(merging, "BLOCK", block)
    parts = merging._groups(columns, 200, 200)
    assert whole is not None
    assert parts is not None
    assert len(whole.first) == 8
    assert merging._groups(columns, 200, 7) is None
    for ours, theirs in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # rows that only a fingerprint calls equal are not merged, wherever they are
    other = columns[1].copy()
    other[-1] += 1.0
    assert not merging._are_alike(other, columns[1][whole.first], whole.group)
    assert merging._are_alike(columns[1], columns[1][whole.first], whole.group)


def test_minus_zero_is_zero_and_outcomes_are_kept_apart():
    numbers = np.array([[0.0], [-0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [1.0]])
    given, outcomes = (
        coded(numbers, np.zeros((8, 1), np.int32)),
        np.array([1.0, 1, 1, 2, 0, 0, 0, 0]),
    )
    found = merging.merged_rows(given, outcomes, RowTerms(), "poisson")
    pairs = sorted(zip(found.table.numbers[:, 0], found.outcomes, found.rows.weights, strict=True))
    assert pairs == [(0.0, 1.0, 3.0), (0.0, 2.0, 1.0), (1.0, 0.0, 4.0)]
    as_trials = merging.merged_rows(
        given, np.array([1.0, 0, 1, 0, 0, 0, 0, 0]), RowTerms(), "probit"
    )
    assert sorted(zip(as_trials.outcomes, as_trials.rows.trials, strict=True)) == [
        (0.0, 4.0),
        (2.0, 4.0),
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_the_shape_has_a_name():
    run = amagold.fit(
        "cost ~ C(month)",
        table(),
        "gamma",
        weights="times",
        num_samples=20,
        num_warmup=20,
        progress=False,
    )
    assert set(run.posterior.data_vars) == {"Intercept", "C(month)", "alpha"}
    assert (run.posterior["alpha"] > 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "tims"}, "'tims'"),
        ({"weights": np.ones(3)}, "weights must name a column or have one number"),
        ({"trials": "times", "family": "poisson"}, "trials must not be given for poisson"),
        ({"offset": "name"}, "offset must be a column of numbers"),
        ({"weights": -np.ones(NUM_ROWS)}, "weights must not be negative"),
    ],
)
def test_rows_of_tables_that_cannot_be_used(options, words):
    rows = table().assign(name="a")
    settings = {"family": "logistic", **options}
    with pytest.raises(ValueError, match=words):
        amagold.fit("late ~ dose", rows, **settings)


def test_the_command_line_takes_columns(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    table().to_csv(path, index=False)
    assert main(["fit", str(path), "late ~ dose", "--weights", "nothing"]) == 2
    assert "'nothing'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("family", ["negative_binomial", "gamma", "robust", "ordinal"])
def test_codes_beside_shared_numbers_have_the_derivatives_of_all(family):
    """Second derivatives that add up levels, and lengths of rows, are those of differentiation."""
    target = model(family, weights="times", offset="log_time")
    assert isinstance(target.bounds.predictor, SparsePredictor)
    at = jax.tree.map(lambda leaf: jnp.full(np.shape(leaf), 0.1), target.init)
    log_density, places = log_density_of(target)
    form = jax.flatten_util.ravel_pytree(at)[1]
    wanted = jax.jit(jax.hessian(lambda flat: log_density(flat) - target.log_prior(form(flat))))(
        places[1]
    )
    found = derivatives_at(target, at, 2).hessian
    np.testing.assert_allclose(found, -wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
    matrix = jnp.asarray(np.random.default_rng(1).normal(size=found.shape), jnp.float32)
    row = jax.tree.map(lambda leaf: leaf[3], target.data)
    across = slopes(target.bounds, at, row) @ matrix.T
    np.testing.assert_allclose(
        squared_norm(target.bounds, at, row, matrix),
        np.linalg.norm(across, 2) ** 2,
        rtol=1e-4,
    )
