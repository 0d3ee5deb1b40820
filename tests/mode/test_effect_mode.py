"""Where mixed models are expanded: the place is found in any units, however far out effects are."""

import numpy as np
import pytest

from amagold import models
from amagold.mode import _effect_mode
from amagold.mode._effect_mode import find_reference

LEVELS, ROWS = 60, 360
USUAL = 10  # passes


def columns(seed=0):
    generator = np.random.default_rng(seed)
    group, x = np.arange(ROWS) % LEVELS, generator.normal(size=ROWS)
    return group, x, generator.normal(size=LEVELS), generator


def scale_at(target, monkeypatch, most):
    """The effects' scale there, as it is reported, within so many passes."""
    passes, sums_at = [], _effect_mode.sums_at
    monkeypatch.setattr(_effect_mode, "sums_at", lambda *given: passes.append(1) or sums_at(*given))
    found = find_reference(target)
    assert found is not None
    assert len(passes) <= most
    return float(target.transform(found.position)["g_sigma"])


@pytest.mark.parametrize("ratio", [0.5, 2.0, 20.0, 200.0])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 10.0, 1e4])
def test_numbers_in_any_unit(unit, ratio, monkeypatch):
    group, x, effects, generator = columns()
    y = unit * (x + ratio * effects[group] + generator.normal(size=ROWS))
    found = scale_at(models.mixed(x[:, None], y, {"g": group}, "linear"), monkeypatch, USUAL)
    np.testing.assert_allclose(found, unit * ratio * effects.std(), rtol=0.25)


@pytest.mark.parametrize("spread", [0.5, 2.0, 5.0])
def test_counts_of_many_sizes(spread, monkeypatch):
    group, x, effects, generator = columns()
    y = generator.poisson(np.exp(3.0 + 0.3 * x + spread * effects[group]))
    found = scale_at(models.mixed(x[:, None], y, {"g": group}, "poisson"), monkeypatch, 25)
    np.testing.assert_allclose(found, spread * effects.std(), rtol=0.25)


def test_one_level_far_out_holds_up_no_other(monkeypatch):
    group, x, _, generator = columns()
    y = np.where(group == 3, 200_000, generator.poisson(1.0, ROWS))
    found = scale_at(models.mixed(x[:, None], y, {"g": group}, "poisson"), monkeypatch, 15)
    assert 0.8 < found < 2.5
