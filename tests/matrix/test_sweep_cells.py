"""Sweeps over effects with every number of chains, warm-up, start and mesh, through
`amagold.sample`: they run, say what they are, and go on where they stopped.
"""

from typing import NamedTuple

import jax
import numpy as np
import pytest
import xarray
from cells import CHAINS, WARMUPS, mesh
from test_matrix import NUM_SAMPLES, run_and_count, run_in_two_parts

import amagold
from amagold import models, priors
from amagold.models._mixed import MIXED_FAMILIES
from amagold.planning._effects_plan import EffectsPlan

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

NUM_ROWS = 2_000
SHAPES = {
    "logistic": "one",
    "poisson": "crossed",
    "linear": "slopes",
    "probit": "nested",
    "negative_binomial": "one",
    "binomial": "slopes",
}


class SweepCell(NamedTuple):
    family: str
    num_chains: int
    warmup: str
    start: str
    thin: int
    mesh: str
    prior: str = "normal"  # of the coefficients


CELLS = [
    SweepCell("logistic", 5, "kept", "dispersed", 1, "none"),
    SweepCell("linear", 5, "none", "init", 2, "none"),
    SweepCell("poisson", 2, "kept", "init_per_chain", 1, "chain"),
    SweepCell("probit", 5, "default", "dispersed", 2, "none"),
    SweepCell("binomial", 1, "kept", "init", 1, "none"),
    SweepCell("negative_binomial", 2, "none", "dispersed", 3, "chain"),
    SweepCell("linear", 1, "default", "init_per_chain", 1, "none"),
    SweepCell("logistic", 2, "default", "init", 2, "data"),
    SweepCell("probit", 2, "kept", "init_per_chain", 1, "none", "horseshoe"),
    SweepCell("linear", 5, "default", "dispersed", 2, "none", "horseshoe"),
    SweepCell("poisson", 1, "kept", "init", 1, "none", "horseshoe"),
]


def target_of(family, prior):
    generator = np.random.default_rng(3)
    x = generator.normal(size=NUM_ROWS)
    inner = np.arange(NUM_ROWS) % 8
    groups = {
        "one": {"g": inner},
        "crossed": {"g": inner, "h": np.arange(NUM_ROWS) // 400},
        "nested": {"g": inner // 2, "h": inner},
        "slopes": {"g": models.Group(inner, np.stack([np.ones(NUM_ROWS), x], axis=1))},
    }[SHAPES[family]]
    z = 0.4 * x + 0.6 * generator.normal(size=8)[inner]
    y = {
        "linear": lambda: z + generator.normal(size=NUM_ROWS),
        "poisson": lambda: generator.poisson(np.exp(z)),
        "negative_binomial": lambda: generator.poisson(np.exp(z)),
        "binomial": lambda: generator.binomial(4, 1.0 / (1.0 + np.exp(-z))),
    }.get(family, lambda: generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-z)))()
    options = {
        "negative_binomial": {"dispersion": 3.0},
        "binomial": {"trials": np.full(NUM_ROWS, 4)},
    }.get(family, {})
    shrinkage = priors.horseshoe(0.3) if prior == "horseshoe" else None
    return models.mixed(x[:, None], y, groups, family, shrinkage=shrinkage, **options)


def arguments_of(cell, target):
    warmup = {"num_warmup": 3} if cell.warmup == "default" else WARMUPS[cell.warmup]
    reported = target.transform(target.init)
    several = {
        name: np.stack([value] * cell.num_chains).astype(np.float32)
        for name, value in reported.items()
    }
    starts = {"init": {"init": reported}, "init_per_chain": {"init_per_chain": several}}
    meshes = {
        "chain": {"mesh": mesh((2, 1))},
        "data": {"mesh": mesh((1, len(jax.devices())))},
    }
    return {
        "num_samples": NUM_SAMPLES,
        "num_chains": cell.num_chains,
        "seed": 3,
        "thin": cell.thin,
        "progress": False,
        "max_time": 3600.0,
        **warmup,
        **starts.get(cell.start, {}),
        **meshes.get(cell.mesh, {}),
    }


def test_every_family_and_number_of_chains_has_a_cell():
    assert {cell.family for cell in CELLS} == set(MIXED_FAMILIES) == set(SHAPES)
    assert {cell.num_chains for cell in CELLS} == set(CHAINS)


@pytest.mark.few(1)
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell)))
def test_sweeps_run_and_go_on(cell, tmp_path, monkeypatch):
    # so that there is something to stop between
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 3)
    target = target_of(cell.family, cell.prior)
    arguments = arguments_of(cell, target)
    whole, asked = run_and_count(target, arguments, monkeypatch)
    # rows that are split over devices are for other plans
    assert isinstance(whole.plan, EffectsPlan) == (cell.mesh != "data")
    assert whole.label == "exact"
    for name, draws in whole.posterior.data_vars.items():
        assert draws.shape[:2] == (cell.num_chains, NUM_SAMPLES), name
        assert np.isfinite(draws).all()
    assert np.isfinite(whole.sample_stats["acceptance_rate"]).all()
    resumed = run_in_two_parts(target, arguments, asked, tmp_path, monkeypatch)
    assert not resumed.is_partial
    for group in ("posterior", "sample_stats", "warmup_sample_stats"):
        xarray.testing.assert_equal(getattr(resumed, group).load(), getattr(whole, group))
    other = amagold.sample(target, **{**arguments, "seed": 4})
    assert not other.posterior.equals(whole.posterior)
