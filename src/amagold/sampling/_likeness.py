"""Whether a target is the one that a run began with, whatever the run's test remembers of it.

Every checkpoint keeps the target's values at the saved positions and at places around them.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.data import InMemory
from amagold.energy._remembered_energy import ExampleMemory, remember
from amagold.energy._wide_sums import add_to, zero
from amagold.target import Posterior, Target

Arrays = dict[str, np.ndarray]

MOST_CHAINS = 4
MOST_PROBES, MOST_NUMBERS = 256, 2**18  # probes, and numbers in all of them together
MOST_WORK = 10**8  # parameters x examples x probes: some tenths of a second
MOST_EXAMPLES, MOST_KEPT = 2**16, 64  # that are summed; of these, kept one by one
SCALES = (0.01, 0.1, 1.0, 10.0)  # of 1 + |theta|: how far around a saved position probes lie
GOLDEN = 0.6180339887498949  # its multiples fill the unit interval evenly, on every machine

ROUNDINGS = 64.0  # machine epsilons of a value
NUDGE = 4.0  # machine epsilons of a position
NUDGES = 16.0  # times what a value changes by when the position does

PREFIX = "likeness."
WORDS = {
    "inside": "domain",
    "prior": "log prior",
    "density": "log density",
    "examples": "log likelihood",
    "total": "log likelihood",
}


def likeness_of(target: Target, positions: trees.PyTree) -> Arrays:
    """The values at positions stacked on a chain axis and around them, for a checkpoint."""
    return {PREFIX + name: array for name, array in _values_at(target, positions, 0.0).items()}


def unlike_parts(
    arrays: Arrays, target: Target, positions: trees.PyTree
) -> dict[str, float] | None:
    """The parts of a target that are not as they were, such as "log prior", and by how much.

    A part is NaN where nothing finite is left to compare. The answer is None for a checkpoint of an
    earlier version, which has no values.

    `positions` are those of the checkpoint, so that one program makes both sides, and the same
    target differs by rounding at most: by some machine epsilons of the value, or by what it changes
    by when the position is moved by some.
    """
    names = [name for name in arrays if name.startswith(PREFIX)]
    before = {name.removeprefix(PREFIX): arrays[name] for name in names}
    if not before:
        return None
    now, moved = (_values_at(target, positions, nudge) for nudge in (0.0, NUDGE))
    rounding = {name: _rounding(now[name], moved[name]) for name in now if name != "inside"}
    if "total" in now:
        # at worst the roundings of all examples have one sign
        rounding["total"] = len(_rows(target, positions)) * rounding["examples"].mean(axis=1)
    found: dict[str, float] = {}
    for name in sorted(before.keys() | now.keys()):
        difference = float("inf")
        if name in before and name in now and before[name].shape == now[name].shape:
            difference = _difference(before[name], now[name], rounding.get(name))
        if difference != 0.0:
            word = WORDS.get(name, name)
            found[word] = float(np.fmax(found.get(word, np.nan), difference))
    return found


def _difference(before: np.ndarray, now: np.ndarray, allowed: Any) -> float:
    """The largest difference beyond rounding; 0 for none, NaN when nothing finite is compared."""
    if now.dtype == bool:
        return float(np.any(before != now))
    is_comparable = np.isfinite(before) & np.isfinite(now)
    if not is_comparable.any():
        return float("nan")
    with np.errstate(invalid="ignore"):
        by = np.abs(before - now)
    # where one side is not finite the other has to be the same
    is_equal = (before == now) | (np.isnan(before) & np.isnan(now))
    is_other = ~np.where(is_comparable, by <= allowed, is_equal)
    if not is_other.any():
        return 0.0
    return float(np.max(by[is_other & is_comparable], initial=0.0)) or float("inf")


def _rounding(values: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """What values may differ by on another processor."""
    with np.errstate(invalid="ignore"):
        change = np.abs(moved - values)
    change = np.where(np.isfinite(change), change, 0.0)
    # the largest of all examples, because one can be small by chance
    largest = change if values.ndim == 1 else change.max(axis=1, keepdims=True)
    return ROUNDINGS * np.finfo(values.dtype).eps * (1.0 + np.abs(values)) + NUDGES * largest


def _probes(positions: trees.PyTree) -> trees.PyTree:
    """Positions of the first chains, then round after round places about them."""
    leaves = [np.asarray(leaf)[:MOST_CHAINS] for leaf in jax.tree.leaves(positions)]
    most = min(MOST_PROBES // len(leaves[0]), MOST_NUMBERS // sum(leaf.size for leaf in leaves))
    num_rounds = max(1, most)
    scales = [0.0, *(SCALES[number % len(SCALES)] for number in range(num_rounds - 1))]
    probes, first = [], 1
    for leaf in leaves:
        numbers = first + np.arange(num_rounds * leaf.size).reshape(num_rounds, *leaf.shape)
        first += numbers.size
        away = 2.0 * ((numbers * GOLDEN) % 1.0) - 1.0
        away *= np.reshape(scales, (num_rounds, *[1] * leaf.ndim))
        wide = leaf.astype(np.float64)
        around = wide + away * (1.0 + np.abs(wide))
        probes.append(around.astype(leaf.dtype).reshape(num_rounds * len(leaf), *leaf.shape[1:]))
    return jax.tree.unflatten(jax.tree.structure(positions), probes)


def _nudged(probes: trees.PyTree, epsilons: float) -> trees.PyTree:
    """Some of all numbers a little larger, the others a little smaller."""

    def nudge(leaf: np.ndarray) -> np.ndarray:
        signs = np.where((np.arange(leaf.size) * GOLDEN) % 1.0 < 0.5, 1.0, -1.0).reshape(leaf.shape)
        by = 1.0 + epsilons * float(jnp.finfo(leaf.dtype).eps) * signs
        return (leaf.astype(np.float64) * by).astype(leaf.dtype)

    return jax.tree.map(nudge, probes)


def _rows(target: Target, positions: trees.PyTree) -> np.ndarray:
    """The examples looked at: all, or as many as the work allows, from the first to the last."""
    size = trees.size(positions) // jax.tree.leaves(positions)[0].shape[0]
    allowed = MOST_WORK // (size * (MOST_CHAINS + len(SCALES)))
    most = min(max(MOST_KEPT, min(MOST_EXAMPLES, allowed)), target.num_examples)
    return np.linspace(0, max(0, target.num_examples - 1), most).astype(np.int32)


def _values_at(target: Target, positions: trees.PyTree, nudge: float) -> Arrays:
    probes = _nudged(_probes(positions), nudge)
    num_chains = min(MOST_CHAINS, jax.tree.leaves(positions)[0].shape[0])
    num_probes = jax.tree.leaves(probes)[0].shape[0]
    # examples cost more: looked at from the saved positions, and from one place of each scale
    chosen = [*range(num_chains), *range(num_chains, num_probes, num_chains)[: len(SCALES)]]
    few = jax.tree.map(lambda leaf: leaf[chosen], probes)
    values = jax.tree.map(np.asarray, _values(target, probes, few, _rows(target, positions)))
    if isinstance(target, Posterior):
        high, low = values["total"]
        values["total"] = high.astype(np.float64) + low
    return values


@jit(ONCE)
def _values(target: Target, probes: trees.PyTree, few: trees.PyTree, rows: Any) -> dict[str, Any]:
    inside = jax.vmap(target.is_inside)(probes)
    if not isinstance(target, Posterior):
        return {"inside": inside, "density": _float(jax.vmap(target.log_prior)(probes))}
    part = dataclasses.replace(target, data=InMemory(target.examples.rows(rows)))
    kept = np.linspace(0, len(rows) - 1, min(MOST_KEPT, len(rows))).astype(np.int32)

    def examples_at(position: trees.PyTree) -> tuple[jax.Array, Any]:
        memory = remember(part, position, keep="examples")
        assert isinstance(memory, ExampleMemory)
        return _float(memory.log_likelihoods[kept]), add_to(zero(), memory.log_likelihoods)

    prior = _float(jax.vmap(target.log_prior)(probes))
    examples, total = jax.lax.map(examples_at, few)
    return {"inside": inside, "prior": prior, "examples": examples, "total": total}


def _float(values: jax.Array) -> jax.Array:
    """In a type that a checkpoint can hold."""
    return values if values.dtype == jnp.float64 else values.astype(jnp.float32)
