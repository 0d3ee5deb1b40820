"""Mixed models of a table on disk are those of the same table in memory, to the bit."""

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray

import amagold
from amagold import models
from amagold.models import Group
from amagold.planning._effects_plan import EffectsPlan

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

N = 3_000
GENERATOR = np.random.default_rng(12)
X = (GENERATOR.normal(size=(N, 2)) * [1.0, 200.0] + [40.0, 0.0]).astype(np.float32)
INNER = GENERATOR.integers(0, 12, size=N)
OUTER = INNER // 4
Z = 0.8 * (X[:, 0] - 40.0) + 0.5 * GENERATOR.normal(size=12)[INNER]
OUTCOMES = {
    "logistic": (GENERATOR.random(N) < 1.0 / (1.0 + np.exp(-Z))).astype(np.float32),
    "probit": (GENERATOR.normal(size=N) < Z).astype(np.float32),
    "poisson": GENERATOR.poisson(np.exp(0.3 * Z)).astype(np.float32),
    "negative_binomial": GENERATOR.poisson(np.exp(0.3 * Z)).astype(np.float32),
    "linear": (5.0 + Z + GENERATOR.normal(size=N)).astype(np.float32),
}


def on_disk(folder, y):
    table = {"inner": INNER, "first": X[:, 0], "y": y, "outer": OUTER, "second": X[:, 1]}
    pq.write_table(pa.table(table), folder / "table.parquet")
    return amagold.data.open(folder / "table.parquet")


def both(folder, family, is_sloped):
    y = OUTCOMES[family]
    stored, kept = "inner", INNER
    if is_sloped:
        stored = Group("inner", [1, "first"])
        kept = Group(INNER, np.stack([np.ones(N), X[:, 0]], axis=1))
    options = {"dispersion": 2.0} if family == "negative_binomial" else {}
    return (
        models.mixed(
            on_disk(folder, y), None, {"a": stored, "b": "outer"}, family, outcome="y", **options
        ),
        models.mixed(X, y, {"a": kept, "b": OUTER}, family, **options),
    )


@pytest.mark.few(5)
@pytest.mark.parametrize("family", OUTCOMES)
@pytest.mark.parametrize("is_sloped", [True, False])
def test_rows_are_those_in_memory(family, is_sloped, tmp_path):
    of_disk, of_memory = both(tmp_path, family, is_sloped)
    assert of_disk.notes == of_memory.notes
    rows = jax.tree.leaves(of_disk.examples.rows(np.arange(N)))
    for here, there in zip(rows, jax.tree.leaves(of_memory.data), strict=True):
        assert here.dtype == there.dtype
        np.testing.assert_array_equal(here, there)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "is_sloped"),
    [(family, False) for family in OUTCOMES] + [("poisson", True), ("linear", True)],
)
def test_draws_are_those_from_memory(family, is_sloped, tmp_path):
    runs = [
        amagold.sample(target, 30, 20, num_chains=2, seed=2, progress=False)
        for target in both(tmp_path, family, is_sloped)
    ]
    assert [type(run.plan) for run in runs] == [EffectsPlan] * 2
    xarray.testing.assert_identical(*(run.posterior for run in runs))
    assert np.isfinite(amagold.diagnose.maximum_r_hat(runs[0].posterior))


def test_columns_of_text_are_groups(tmp_path):
    names = np.array([f"airport {place}" for place in range(12)])
    table = {"origin": names[INNER], "x": X[:, 0], "late": OUTCOMES["logistic"]}
    pq.write_table(pa.table(table), tmp_path / "flights.parquet")
    data = amagold.data.open(tmp_path / "flights.parquet")
    target = models.mixed(data, None, {"1|origin": "origin"}, outcome="late")
    rows = target.examples.rows(np.arange(N))
    assert target.init["1|origin"].shape == (12,)
    with pytest.raises(ValueError, match="holds texts"):
        models.mixed(data, None, {"a": Group("origin", [1, "origin"])}, outcome="late")
    # every level is one airport
    assert len(set(zip(np.asarray(rows.codes[0]).tolist(), INNER.tolist(), strict=True))) == 12


def test_what_data_on_disk_have_not_is_said(tmp_path):
    data = on_disk(tmp_path, OUTCOMES["logistic"])
    groups = {"a": "inner"}
    with pytest.raises(ValueError, match="outcome must be one of the columns"):
        models.mixed(data, None, groups, outcome=["y"])
    with pytest.raises(ValueError, match="family must not be"):
        models.mixed(data, None, groups, "binomial", outcome="y")
    with pytest.raises(ValueError, match="y must be given"):
        models.mixed(None, None, groups, outcome="y")
    part = amagold.data.open(tmp_path / "table.parquet", part=(0, 2))
    with pytest.raises(ValueError, match="not a part of them"):
        models.mixed(part, None, groups, outcome="y")


@pytest.mark.parametrize("value", [1.0, 3.0])
def test_a_constant_column_keeps_its_units(value, tmp_path):
    """Effects times three are a third as large, on disk and in memory."""
    constant = np.full(N, value, np.float32)
    table = {"g": INNER, "w": constant, "y": OUTCOMES["poisson"]}
    pq.write_table(pa.table(table), tmp_path / "table.parquet")
    data = amagold.data.open(tmp_path / "table.parquet", columns=["g", "w", "y"])
    of_disk = models.mixed(data, None, {"a": Group("g", "w")}, "poisson", outcome="y")
    of_memory = models.mixed(
        constant[:, None], table["y"], {"a": Group(INNER, constant)}, "poisson"
    )
    for target in (of_disk, of_memory):
        effects = np.ones_like(target.init["a"])
        assert effects.ndim == (1 if value == 1.0 else 2)
        np.testing.assert_allclose(target.transform({**target.init, "a": effects})["a"], 1 / value)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ({"a": "inne"}, "must be one of the columns"),
        ({"a": INNER}, "must be one of the columns"),
        ("inner", "groups must map a name"),
        ({"a": "first"}, "whole numbers from 0"),
        ({"a": Group("inner", num_levels=4)}, "from 0 to 3, got up to 11"),
        ({"a": Group("inner", num_levels=12.5)}, "num_levels must be a whole number"),
        ({"a": "y"}, "other than the outcome"),
        ({"a": Group("inner", [1, "y"])}, "other than the outcome"),
        ({"a": Group("inner", [])}, "at least one column"),
        ({"a": Group("inner", X)}, "got ndarray"),
        ({"a": Group("inner", 3.5)}, "got 3.5"),
        ({"a": Group("inner", [1, "third"])}, r"\.columns must be one of the columns"),
        ({"theta": "inner"}, "must not be called"),
    ],
)
def test_wrong_groups_are_told_in_a_sentence(groups, sentence, tmp_path):
    data = on_disk(tmp_path, OUTCOMES["logistic"])
    with pytest.raises(ValueError, match=sentence):
        models.mixed(data, None, groups, outcome="y")
