"""The paper's burn-in for networks: stochastic gradient descent with momentum."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.adaptation._warmup import SgdBurnIn
from amagold.core import trees
from amagold.gradients import minibatch
from amagold.target import Posterior, Target, with_data


def descend(
    target: Target, positions: trees.PyTree, key: jax.Array, settings: SgdBurnIn
) -> trees.PyTree:
    """Positions of all chains after `num_epochs` passes, each chain with its own shuffles."""
    target = with_data(target, "sgd", "leave it out")
    minibatch(settings.batch_size).check(target, 1)
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    positions = trees.as_position(positions)
    state = jax.vmap(_optimiser(settings).init)(positions)
    for epoch in range(settings.num_epochs):
        keys = jax.random.split(jax.random.fold_in(key, epoch), num_chains)
        positions, state = _epoch(target, positions, state, keys, settings)
    finite = np.asarray(jax.vmap(trees.all_finite)(positions))
    if not finite.all():
        raise ValueError(
            f"sgd must end at finite positions, but {np.sum(~finite)} of {num_chains} chains "
            "diverged; lower learning_rate, "
            f"which is {settings.learning_rate:g}"
        )
    return positions


def _optimiser(settings: SgdBurnIn) -> Any:
    import optax

    return optax.sgd(settings.learning_rate, settings.momentum)


@partial(jax.jit, static_argnames=("settings",))
def _epoch(
    target: Posterior,
    positions: trees.PyTree,
    state: trees.PyTree,
    keys: jax.Array,
    settings: SgdBurnIn,
) -> tuple:
    optimiser = _optimiser(settings)
    estimator = minibatch(settings.batch_size)
    num_batches = target.num_examples // settings.batch_size

    def one_chain(
        position: trees.PyTree, state: trees.PyTree, key: jax.Array
    ) -> tuple[trees.PyTree, trees.PyTree]:
        order = jax.random.permutation(key, target.num_examples)[
            : num_batches * settings.batch_size
        ]

        def step(carry: tuple, rows: jax.Array) -> tuple[tuple, None]:
            position, state = carry
            gradient = estimator.estimate(target, position, estimator.gather(target, rows), ())
            # the energy per example, whose gradients have one size however many examples there are
            gradient = jax.tree.map(lambda leaf: leaf / target.num_examples, gradient)
            updates, state = optimiser.update(gradient, state, position)
            return (jax.tree.map(jnp.add, position, updates), state), None

        return jax.lax.scan(
            step, (position, state), order.reshape(num_batches, settings.batch_size)
        )[0]

    return jax.vmap(one_chain)(positions, state, keys)
