"""Every sampler of the library, on a target of any form, for the tests that none may escape."""

import jax
import jax.numpy as jnp
import numpy as np

import amagold
from amagold import acceptance, gradients
from amagold.trajectory import RandomWalk


def wider_outside(position):
    """A preconditioner that depends on the position."""
    return jax.tree.map(lambda leaf: 1.0 + jnp.tanh(leaf) ** 2, position)


SAMPLERS = {
    "amagold": lambda target, step_size: amagold.amagold(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "amagold irreversible": lambda target, step_size: amagold.amagold(
        target,
        step_size=step_size,
        num_steps=3,
        gradient=gradients.minibatch(4, plan="epoch"),
        resample_momentum=False,
    ),
    "amagold noisy": lambda target, step_size: amagold.amagold(
        target, step_size=step_size, num_steps=3, gradient=gradients.noisy(0.5)
    ),
    "amagold total memory": lambda target, step_size: amagold.amagold(
        target,
        step_size=step_size,
        num_steps=3,
        batch_size=4,
        acceptance=acceptance.full("total", chunk_size=5),
    ),
    "l2mc": lambda target, step_size: amagold.l2mc(
        target, step_size=step_size, num_steps=3, resample_momentum=False
    ),
    "hmc": lambda target, step_size: amagold.hmc(target, step_size=step_size, num_steps=3),
    "sghmc": lambda target, step_size: amagold.sghmc(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "sghmc kept": lambda target, step_size: amagold.sghmc(
        target,
        step_size=step_size,
        num_steps=3,
        batch_size=4,
        resample_momentum=False,
        noise_estimate=0.1,
    ),
    "sgld": lambda target, step_size: amagold.sgld(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "sgld corrected": lambda target, step_size: amagold.sgld(
        target,
        step_size=step_size,
        num_steps=3,
        gradient=gradients.minibatch(4, plan="palindrome"),
        acceptance=acceptance.full(),
    ),
    "ggmc": lambda target, step_size: amagold.ggmc(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "sms_ubu": lambda target, step_size: amagold.sms_ubu(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "sms_ubu corrected": lambda target, step_size: amagold.sms_ubu(
        target, step_size=step_size, num_steps=3, batch_size=4, acceptance=acceptance.full()
    ),
    "sgnht": lambda target, step_size: amagold.sgnht(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "sgnht corrected": lambda target, step_size: amagold.sgnht(
        target, step_size=step_size, num_steps=3, batch_size=4, acceptance=acceptance.full()
    ),
    "psgld": lambda target, step_size: amagold.psgld(
        target, step_size=step_size, num_steps=3, batch_size=4
    ),
    "psgld corrected": lambda target, step_size: amagold.psgld(
        target,
        step_size=step_size,
        num_steps=3,
        preconditioner=wider_outside,
        batch_size=4,
        acceptance=acceptance.full(),
    ),
    "cyclical": lambda target, step_size: amagold.cyclical(
        amagold.amagold(target, step_size=step_size, num_steps=3, batch_size=4), 5
    ),
    "random walk": lambda target, step_size: amagold.amortized(target, RandomWalk(step_size), 3),
}
BIASED = {"sghmc", "sghmc kept", "sgld", "sms_ubu", "sgnht", "psgld"}
ALL_DATA = {"amagold noisy", "l2mc", "hmc"}  # whose gradients see all examples, not four
# where it is not one: a density with a gradient in it needs one at either end
GRADIENTS_PER_STEP = {"sgld corrected": 2, "psgld corrected": 2, "ggmc": 2, "random walk": 0}
NUM_EXAMPLES = 12


def _data():
    generator = np.random.default_rng(11)
    return {
        "x": generator.normal(size=(NUM_EXAMPLES, 3)).astype(np.float32),
        "y": generator.normal(size=NUM_EXAMPLES).astype(np.float32),
    }


def _total(leaves):
    return sum(jnp.sum(leaf) for leaf in leaves)


def vector_likelihood(position, example):
    return -0.5 * (example["y"] - jnp.dot(example["x"], position)) ** 2


def vector_prior(position):
    return -0.5 * jnp.sum(position**2)


def scalar_likelihood(position, example):
    return -0.5 * (example["y"] - position) ** 2


def scalar_prior(position):
    return -0.5 * position**2


def nested_likelihood(position, example):
    inner = position["layer"]["weights"] @ example["x"] + position["layer"]["bias"]
    mean = jnp.dot(position["out"][0], jnp.tanh(inner)) + position["out"][1]
    return -0.5 * (example["y"] - mean) ** 2


def nested_prior(position):
    layer, (weights, bias) = position["layer"], position["out"]
    return -0.5 * _total([layer["weights"] ** 2, layer["bias"] ** 2, weights**2, bias**2])


TARGETS = {
    "vector": (
        amagold.Posterior(vector_likelihood, vector_prior, _data()),
        np.zeros(3, np.float32),
    ),
    "scalar": (amagold.Posterior(scalar_likelihood, scalar_prior, _data()), 0.0),
    "nested": (
        amagold.Posterior(nested_likelihood, nested_prior, _data()),
        {
            "layer": {"weights": np.full((2, 3), 0.1, np.float32), "bias": np.zeros(2, np.float32)},
            "out": (np.ones(2, np.float32), 0.0),
        },
    ),
}
