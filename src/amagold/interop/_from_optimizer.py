"""What an optimiser of optax learnt, as settings of a sampler: its step and its momentum, and a
diagonal mass of Adam's second moments.
"""

import math
from typing import Any

import jax
import numpy as np

from amagold.core import checks, trees
from amagold.interop._module_form import path_of
from amagold.samplers import from_sgd
from amagold.target import Posterior

SMALLEST = 1e-2  # of the root mean square: what hardly had a gradient is no lighter than this
NESTED = ("inner_state", "inner_states", "inner_opt_state", "opt_state")


def from_optimizer(
    target: Posterior,
    state: Any,
    learning_rate: float,
    momentum: float = 0.9,
    *,
    second_decay: float = 0.999,
) -> dict[str, Any]:
    """Keyword arguments `step_size`, `friction` and `mass` for `amagold.amagold` or
    `amagold.sghmc`, whose first steps are then as long as the optimiser's last ones.

    SGD with momentum moves by v' = mu v - a g, and AMAGOLD by v' = ((1 - b) v - h g) / (1 + b): b =
    (1 - mu) / (1 + mu), and h = a (1 + b) / N, because the energy is the sum over N examples whose
    mean the optimiser sees. Adam's a is the learning rate times (1 - mu) / sqrt(nu), which differs
    by weight: the mass is sqrt(nu). Its momentum itself is left behind: at the temperature of a
    posterior a random one is much larger, and the chain draws its own.

    Args:
      target: an `amagold.from_module` of what was trained, or another target with data whose
        positions are like the trained weights.
      state: the optimiser's state: optax's, or `optimizer.opt_state` of Flax.
      learning_rate: the last one, for the mean loss per example.
      momentum: mu; Adam's b1.
      second_decay: Adam's b2.
    """
    checks.number(
        "learning_rate", learning_rate, above=0.0, remedy="give the last one of the optimiser"
    )
    if not 0.0 <= momentum < 1.0:
        raise ValueError(
            f"momentum must be from 0 to below 1, got {momentum!r}; give the optimiser's"
        )
    adam, plain = _found(state, "nu"), _found(state, "trace")
    decay = (1.0 - momentum) / (1.0 + momentum)  # b
    step = learning_rate * (1.0 + decay) / target.num_examples  # h
    if adam is None:
        if plain is None and momentum:
            raise ValueError(
                "state must hold Adam's second moments or the momentum of SGD, got "
                f"{type(state).__name__} with neither; give momentum=0 for plain SGD, or the "
                "settings themselves by amagold.from_sgd"
            )
        return from_sgd(step, decay)
    mass = _second_moments(adam, target.init, second_decay)
    # the mass has mean one, so that the step size is that of a typical weight
    numbers = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(mass)])
    middle = float(numbers.mean())
    settings = from_sgd(step * (1.0 - momentum) / middle, decay)
    return settings | {"mass": jax.tree.map(lambda leaf: leaf / np.float32(middle), mass)}


def _second_moments(adam: Any, like: trees.PyTree, second_decay: float) -> trees.PyTree:
    """sqrt(nu / (1 - b2^t)) for each weight of the position, from below by a share of its root mean
    square. What the optimiser did not see (a noise scale) is as heavy as the heaviest.
    """
    count = float(np.max([np.asarray(leaf) for leaf in jax.tree.leaves(adam.count)]))
    unbiased = 1.0 - second_decay ** max(count, 1.0)
    seen = {
        _path(keys): np.sqrt(np.asarray(leaf, np.float32) / unbiased)
        for keys, leaf in jax.tree_util.tree_leaves_with_path(adam.nu)
    }
    paths, form = jax.tree_util.tree_flatten_with_path(like)
    named = {_path(keys): leaf for keys, leaf in paths}
    known = {
        path: seen[path]
        for path, leaf in named.items()
        if path in seen and seen[path].shape == leaf.shape
    }
    if not known:
        raise ValueError(
            f"state must be of the target's weights ({', '.join(named)}), but holds second moments "
            f"of {', '.join(seen)}; give the state of what was trained"
        )
    typical = math.sqrt(
        sum(float(np.sum(found**2)) for found in known.values())
        / sum(found.size for found in known.values())
    )
    if not typical > 0.0:
        raise ValueError("state must be that of a trained network: its second moments are all zero")
    heaviest = max(float(found.max()) for found in known.values())
    masses = [
        np.maximum(known[path], np.float32(SMALLEST * typical))
        if path in known
        else np.full(leaf.shape, heaviest, np.float32)
        for path, leaf in named.items()
    ]
    return jax.tree.unflatten(form, masses)


def _path(keys: tuple[Any, ...]) -> str:
    """The path of an array; Flax's variables hold theirs as `value`."""
    path = path_of(keys)
    return path.removesuffix(".value")


def _found(state: Any, word: str) -> Any:
    """The first part of an optimiser's state that has such a field."""
    if hasattr(state, word):
        return state
    parts = [getattr(state, name) for name in NESTED if hasattr(state, name)]
    if isinstance(state, dict):
        parts += list(state.values())
    elif isinstance(state, (tuple, list)):
        parts += list(state)
    found = (_found(part, word) for part in parts)
    return next((part for part in found if part is not None), None)
