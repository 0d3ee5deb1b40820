"""A network of the paper's size: what the leapfrog steps cost beyond their gradients."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold import trees
from amagold.acceptance.base import Decision
from amagold.bench.measure import Measurement, in_turns, seconds_of
from amagold.samplers import amagold
from amagold.target import Posterior, Target

LAYERS = (784, 500, 256, 10)
NUM_EXAMPLES, BATCH_SIZE, NUM_STEPS = 20_000, 2_000, 10


def log_likelihood(layers: Any, example: dict[str, jax.Array]) -> jax.Array:
    hidden = example["pixels"]
    for weights, biases in layers[:-1]:
        hidden = jax.nn.relu(hidden @ weights + biases)
    weights, biases = layers[-1]
    return jax.nn.log_softmax(hidden @ weights + biases)[example["digit"]]


def log_prior(layers: Any) -> jax.Array:
    return -0.5 * trees.dot(layers, layers)


def network_and_data() -> tuple[Posterior, list[tuple[np.ndarray, np.ndarray]]]:
    """A posterior on random images and labels, and random weights."""
    generator = np.random.default_rng(0)
    pixels = generator.random((NUM_EXAMPLES, LAYERS[0]), np.float32)
    digits = generator.integers(0, LAYERS[-1], NUM_EXAMPLES)
    layers = []
    for width, next_width in pairwise(LAYERS):
        weights = generator.normal(0.0, width**-0.5, (width, next_width)).astype(np.float32)
        layers.append((weights, np.zeros(next_width, np.float32)))
    return Posterior(log_likelihood, log_prior, {"pixels": pixels, "digit": digits}), layers


@trees.record()
class NoTest:
    """Accepts without looking at the data, but keeps the work, so that XLA cannot leave it out."""

    label = "biased"
    uses_work = True

    def draw(self, key: jax.Array) -> tuple[()]:
        return ()

    def remember(self, target: Target, position: Any) -> tuple[()]:
        return ()

    def energy(self, memory: tuple[()]) -> tuple[()]:
        return ()

    def decide(self, target: Target, draws: tuple[()], memory: tuple[()], proposed: Any, work: jax.Array) -> Decision:
        return Decision(jnp.bool_(True), work, jnp.bool_(False), ())

    def num_examples(self, target: Target) -> int:
        return 0


@jax.jit
def bare_gradient(target: Posterior, position: Any, rows: Any) -> tuple[jax.Array, Any]:
    """The minibatch energy and its gradient, with nothing around it."""
    scale = target.num_examples / BATCH_SIZE
    return jax.value_and_grad(lambda at: -target.log_prior(at) - scale * target.log_likelihoods(at, rows).sum())(position)


def measure(seconds: float) -> Measurement:
    target, layers = network_and_data()
    sampler = amagold(target, step_size=1e-4, num_steps=NUM_STEPS, batch_size=BATCH_SIZE, acceptance=NoTest())
    state = sampler.init(layers)
    key = jax.random.key(0)
    batches = [_rows(target.data, start) for start in range(0, NUM_STEPS * BATCH_SIZE, BATCH_SIZE)]

    def ours() -> float:
        return seconds_of(lambda: jax.block_until_ready(sampler.step(key, state)))

    def bare() -> float:
        # one after the other, as a trajectory needs them; calls left to overlap would share the cores in another way
        return seconds_of(lambda: [jax.block_until_ready(bare_gradient(target, state.position, rows)) for rows in batches])

    first = ours()
    bare()
    pairs = np.array(in_turns(ours, bare, seconds))
    # few and long, so neighbours in time are compared rather than the best of each
    ratio = np.median(pairs[:, 0] / pairs[:, 1])
    return Measurement(float(ratio), max(0.0, first - float(np.median(pairs[:, 0]))))


def _rows(data: Any, start: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.array(leaf[start : start + BATCH_SIZE]), data)
