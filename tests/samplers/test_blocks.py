"""Samplers put together, each on its part of a position given the others."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_samplers import two_blocks
from exact_target import target

import amagold
from amagold import gradients
from amagold.samplers import State

ROWS = np.random.default_rng(3).normal(size=(30, 2)).astype(np.float32)


def log_likelihood(position, row):
    scale = jnp.exp(position["log_scale"])
    return -0.5 * jnp.sum((row - position["mean"]) ** 2) / scale**2 - 2.0 * jnp.log(scale)


def log_prior(position):
    return -0.5 * jnp.sum(position["mean"] ** 2) - 0.5 * position["log_scale"] ** 2


def named_target(**settings):
    init = {"log_scale": np.float32(0.1), "mean": np.zeros(2, np.float32)}
    return amagold.Posterior(log_likelihood, log_prior, ROWS, init=init, **settings)


def hmc(on):
    return amagold.hmc(on, step_size=0.1, num_steps=2)


def with_batches(on):
    return amagold.amagold(on, step_size=0.05, num_steps=2, batch_size=5, resample_momentum=False)


def test_it_is_one_sampler_after_the_other():
    """By hand, with the same randomness and conditional targets that are written out."""
    whole = two_blocks()
    state = whole.init(np.array([0.2, 0.5], np.float32), jax.random.key(0))
    randomness = whole.draw(jax.random.key(1), state.position)
    after, info = whole.advance(state, randomness)
    position, full_target = np.asarray(state.position), target()

    def on_part(number, rest):
        def put(part):
            return jnp.stack([part, rest] if number == 0 else [rest, part])

        return amagold.Posterior(
            lambda part, row: full_target.log_likelihood(put(part), row),
            lambda part: full_target.log_prior(put(part)),
            full_target.data,
        )

    first = amagold.amagold(
        on_part(0, position[1]), step_size=0.2, num_steps=3, batch_size=2, resample_momentum=False
    )
    start = first.init(position[0])._replace(momentum=state.momentum["0"])
    first_state, first_info = first.advance(start, randomness["0"])
    second = amagold.hmc(on_part(1, first_state.position), step_size=0.5, num_steps=2)
    second_state, second_info = second.advance(second.init(position[1]), randomness["1"])
    np.testing.assert_allclose(
        after.position, [first_state.position, second_state.position], rtol=1e-5
    )
    np.testing.assert_allclose(after.momentum["0"], first_state.momentum, rtol=1e-5)
    for name, wanted in (("0", first_info), ("1", second_info)):
        np.testing.assert_allclose(info.blocks[name].log_ratio, wanted.log_ratio, atol=1e-5)
    total = first_info.num_gradient_examples + second_info.num_gradient_examples
    assert int(info.num_gradient_examples) == int(total)
    np.testing.assert_allclose(
        whole.energy(after), whole.energy(whole.init(after.position)), rtol=1e-6
    )


class Named(NamedTuple):
    log_scale: Any
    mean: Any


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["mapping", "several at once", "NamedTuple"])
def test_positions_of_any_form(form):
    on, places = named_target(), {"log_scale": hmc, "mean": with_batches}
    if form == "several at once":
        places = {("mean", "log_scale"): hmc}
    if form == "NamedTuple":
        on = amagold.Posterior(
            lambda at, row: log_likelihood(at._asdict(), row),
            lambda at: log_prior(at._asdict()),
            ROWS,
            init=Named(np.float32(0.1), np.zeros(2, np.float32)),
        )
    sampler = amagold.blocks(on, places)
    state = sampler.init(on.init, jax.random.key(0))
    after, info = sampler.step(jax.random.key(1), state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert info.label == sampler.label == "exact"
    assert tuple(info.blocks) == sampler.names


def test_labels_follow_from_the_blocks():
    sgld = lambda on: amagold.sgld(on, step_size=0.01)  # noqa: E731
    biased = amagold.blocks(named_target(), {"log_scale": hmc, "mean": sgld})
    assert biased.label == "biased"
    state, info = biased.step(jax.random.key(0), biased.init(named_target().init))
    assert info.label == "biased"
    assert isinstance(state, State)
    assert amagold.blocks(named_target(), {"log_scale": hmc, "mean": hmc}).label == "exact"


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_run_tunes_every_block(tmp_path):
    on = named_target(transform=None)
    sampler = amagold.blocks(on, {"log_scale": hmc, "mean": with_batches})
    run = amagold.sample(
        sampler,
        400,
        300,
        2,
        init=on.init,
        progress=False,
        store=tmp_path / "run.zarr",
        warmup=amagold.Warmup(target_acceptance=0.7),
    )
    assert run.label == "exact"
    assert set(run.posterior.data_vars) == {"log_scale", "mean"}
    steps = run.sampler.settings["step_size"]
    assert float(jnp.max(steps) / jnp.min(steps)) > 1.5, "blocks have step sizes of their own"
    for name in sampler.names:
        assert abs(float(run.sample_stats[f"acceptance_rate_{name}"].mean()) - 0.7) < 0.15
    rows = run.sample_stats["num_gradient_examples_mean"].to_numpy()
    assert (rows == 10).all()
    assert "Block mean (exact)" in str(run.plan)


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ({"mean": hmc}, "samplers must name every part of the position once, but it leaves out"),
        ({"mean": hmc, "log_scale": hmc, "other": hmc}, "but it names 'other'"),
        ({"mean": hmc, ("mean", "log_scale"): hmc}, "but it names twice 'mean'"),
        ([hmc, hmc], "samplers must map places of the position"),
        ({"mean": hmc, "log_scale": lambda on: on}, "must return a sampler of this library"),
        (
            {
                "mean": lambda on: amagold.amagold(
                    on, step_size=0.1, gradient=gradients.control_variate(5)
                ),
                "log_scale": hmc,
            },
            "must know nothing of all data beforehand, got FullTest and ControlVariate",
        ),
        (
            {
                "mean": lambda on: amagold.amagold(
                    on, step_size=0.1, gradient=gradients.minibatch(5, plan="external")
                ),
                "log_scale": hmc,
            },
            "must draw its own batches",
        ),
    ],
)
def test_what_is_refused(places, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.blocks(named_target(), places)


def test_positions_must_have_parts():
    on = amagold.Density(lambda at: -0.5 * at**2, init=np.float32(0.0))
    with pytest.raises(ValueError, match="target must have positions of several parts"):
        amagold.blocks(on, {"x": hmc})
    with pytest.raises(ValueError, match="init must be given"):
        amagold.blocks(amagold.Density(lambda at: -0.5 * jnp.sum(at**2)), {0: hmc})


@pytest.mark.slow
def test_the_check_of_exactness_knows_blocks():
    on = named_target()
    good = amagold.blocks(on, {"log_scale": hmc, "mean": with_batches})
    biased = amagold.blocks(
        on, {"log_scale": hmc, "mean": lambda on: amagold.sgld(on, step_size=0.2, batch_size=3)}
    )
    asked = {"num_transitions": 100, "num_reference": 2000}
    assert amagold.check(on, good, **asked).is_exact_looking
    assert amagold.check(on, biased, **asked).is_exact_looking is False
