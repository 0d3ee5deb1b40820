"""How many programs a run compiles: each takes from hundredths of a second to seconds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.runner._placed_chains import _run_chunk

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
START = {"num_warmup": 0, "num_chains": 2, "init": np.zeros(3, np.float32), "progress": False}
COMPILE = "/jax/core/compile/backend_compile_duration"
_heard: list[str] = []


def _hear(event, seconds, **details):
    if event == COMPILE:
        _heard.append(details.get("fun_name", "?"))


jax.monitoring.register_event_duration_secs_listener(_hear)


def programs_of(call):
    """The names of the programs that a call compiles, as in a new process."""
    jax.clear_caches()
    _heard.clear()
    call()
    return list(_heard)


def regression(num_examples, num_columns):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(num_examples, num_columns)).astype(np.float32)
    y = (generator.random(num_examples) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(np.float32)
    return amagold.models.logistic(X, y)


def density():
    return amagold.Density(lambda t: -0.5 * jnp.sum(t**2) - 0.1 * jnp.sum(t**4), init=np.zeros(3))


@pytest.mark.parametrize(
    ("make", "of_chunks", "most"),
    [
        (lambda: regression(200, 3), 1, 18),
        pytest.param(lambda: regression(5_000, 10), 1, 22, marks=pytest.mark.slow),
        # adaptation has its own, and another once it has found how long a trajectory should be
        pytest.param(density, 3, 20, marks=pytest.mark.slow),
    ],
)
def test_a_run_compiles_few_programs(make, of_chunks, most):
    target = make()
    found = programs_of(lambda: amagold.sample(target, progress=False))
    assert found.count("jit(_run_chunk)") == of_chunks, found
    assert len(found) <= most, found


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"num_samples": 61}, {"num_samples": 7, "thin": 3}])
def test_a_short_last_chunk_is_no_program_of_its_own(monkeypatch, options):
    """Chunks of up to 20 transitions do not fit evenly, and the draws are those of one chunk."""
    sampler = amagold.hmc(density(), step_size=0.3, num_steps=2)
    draw = lambda: amagold.sample(sampler, **START, **options)  # noqa: E731
    whole = draw()
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 20)
    before = _run_chunk.compiled()._cache_size()
    cut = draw()
    assert _run_chunk.compiled()._cache_size() == before + 1
    np.testing.assert_array_equal(cut.posterior["theta"], whole.posterior["theta"])
    assert cut.posterior.sizes["draw"] == options["num_samples"]


@pytest.mark.slow
def test_chunks_of_a_sweep_share_one_program_with_its_warm_up(monkeypatch):
    """Its states have arrays without elements, which a program returns as whole on every device."""
    generator = np.random.default_rng(0)
    target = amagold.models.mixed(None, generator.random(600) < 0.5, {"1|g": np.arange(600) % 30})
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 20)
    sampled = lambda: amagold.sample(target, 100, 100, progress=False)  # noqa: E731
    found = programs_of(sampled)
    assert found.count("jit(_run_chunk)") == 1, found


def test_fewer_draws_than_a_block_of_the_warm_up_need_no_other_program():
    target = regression(200, 3)
    found = programs_of(lambda: amagold.sample(target, 30, 200, progress=False))
    assert found.count("jit(_run_chunk)") == 1, found
