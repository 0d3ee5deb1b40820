"""A network of the paper's size: what the leapfrog steps and the test cost beyond their gradients
and a pass over the data.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.core import trees
from amagold.models._network import network
from amagold.samplers import Sampler, amagold
from amagold.target import Posterior, Target
from amagold_lab.bench.measure import Measurement, in_turns, seconds_of

LAYERS = (784, 500, 256, 10)
BATCH_SIZE, NUM_STEPS = 2_000, 10
FEW_EXAMPLES, ALL_EXAMPLES = 20_000, 60_000


def network_and_data(num_examples: int) -> Posterior:
    """A posterior on random images and labels."""
    generator = np.random.default_rng(0)
    pixels = generator.random((num_examples, LAYERS[0]), np.float32)
    digits = generator.integers(0, LAYERS[-1], num_examples)
    return network(pixels, digits, LAYERS[1:-1], num_classes=LAYERS[-1])


@trees.record()
class NoTest(Acceptance):
    """Accepts without looking at the data, but keeps the work, so that XLA cannot leave it out."""

    label = "biased"
    uses_work = True

    def draw(self, key: jax.Array) -> tuple[()]:
        return ()

    def remember(self, target: Target, position: Any) -> tuple[()]:
        return ()

    def decide(
        self, target: Target, draws: tuple[()], memory: tuple[()], proposed: Any, work: jax.Array
    ) -> Decision:
        return Decision(jnp.bool_(True), work, jnp.bool_(False), ())

    def num_examples(self, target: Target) -> int:
        return 0


@jax.jit
def bare_gradient(target: Posterior, position: Any, rows: Any) -> tuple[jax.Array, Any]:
    """The minibatch energy and its gradient, with nothing around it."""
    scale = target.num_examples / BATCH_SIZE
    return jax.value_and_grad(
        lambda at: -target.log_prior(at) - scale * target.log_likelihoods(at, rows).sum()
    )(position)


@jax.jit
def bare_pass(target: Posterior, position: Any) -> jax.Array:
    """The log likelihood of all examples at once, with nothing around it."""
    return target.log_likelihoods(position, target.data).sum()


def measure(seconds: float) -> Measurement:
    """Leapfrog steps alone."""
    target = network_and_data(FEW_EXAMPLES)
    sampler = amagold(
        target, step_size=1e-4, num_steps=NUM_STEPS, batch_size=BATCH_SIZE, acceptance=NoTest()
    )
    return _compare(sampler, _gradients(sampler), seconds)


def measure_with_test(seconds: float) -> Measurement:
    """A whole transition of the paper's network, the test over its 60,000 examples included."""
    target = network_and_data(ALL_EXAMPLES)
    sampler = amagold(target, step_size=1e-4, num_steps=NUM_STEPS, batch_size=BATCH_SIZE)
    gradients = _gradients(sampler)
    return _compare(
        sampler,
        lambda: [*gradients(), jax.block_until_ready(bare_pass(target, target.init))],
        seconds,
    )


def _gradients(sampler: Sampler) -> Callable[[], list[Any]]:
    """Bare gradients of a trajectory's batches, one after the other as it needs them; left to
    overlap, they would share the cores.
    """
    target = sampler.target
    assert isinstance(target, Posterior)
    batches = [_rows(target.data, start) for start in range(0, NUM_STEPS * BATCH_SIZE, BATCH_SIZE)]
    return lambda: [
        jax.block_until_ready(bare_gradient(target, target.init, rows)) for rows in batches
    ]


def _compare(sampler: Sampler, bare: Callable[[], Any], seconds: float) -> Measurement:
    """Time of a transition over that of its bare parts."""
    state, key = sampler.init(sampler.target.init), jax.random.key(0)

    def ours() -> float:
        return seconds_of(lambda: jax.block_until_ready(sampler.step(key, state)))

    def theirs() -> float:
        return seconds_of(bare)

    first = ours()
    theirs()
    pairs = np.array(in_turns(ours, theirs, seconds))
    # few and long, so neighbours in time are compared rather than the best of each
    ratio = np.median(pairs[:, 0] / pairs[:, 1])
    return Measurement(float(ratio), max(0.0, first - float(np.median(pairs[:, 0]))))


def _rows(data: Any, start: int) -> Any:
    return jax.tree.map(lambda leaf: jnp.array(leaf[start : start + BATCH_SIZE]), data)
