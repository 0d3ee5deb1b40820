"""What is kept of every draw, by ArviZ's names, with axes (chain, draw, ...)."""

from typing import Any

import jax
import numpy as np

from amagold.adaptation._mass_settings import number
from amagold.adaptation._window_adaptation import Trace
from amagold.core import trees
from amagold.runner._block import Kept
from amagold.samplers import Sampler, State
from amagold.samplers._info import BLOCK_COLUMNS, MOVE_COLUMNS, block_column
from amagold.store._names import Variable, describe, name_leaves
from amagold.target._reported import reported, reported_form

# a column of one value is given as that value, not as an array
CONSTANT = {"step_size", "n_steps", "num_gradient_examples", "num_energy_examples"}
STATISTICS = {
    "acceptance_rate": "float32",
    "accepted": "bool",
    "diverging": "bool",
    "energy": "float32",
    "energy_error": "float32",
    "step_size": "float32",
    "n_steps": "int64",
    "num_gradient_examples": "int64",
    "num_energy_examples": "int64",
}
WARMUP_STATISTICS = {
    "acceptance_rate": "float32",
    "diverging": "bool",
    "step_size": "float32",
    "n_steps": "int32",
    "mass_scale": "float32",
}


def layout(
    sampler: Sampler, position: trees.PyTree, keeps_warmup: bool
) -> dict[str, dict[str, Variable]]:
    """The groups of a run and their variables, for one position without chain axis."""
    left_out = set() if number(sampler, "step_size") is not None else {"step_size"}
    if not sampler.uses_work:
        left_out |= {"energy_error"}
    if not jax.tree.leaves(
        jax.eval_shape(
            lambda at: sampler.energy(State(at, (), sampler.remember(at))),
            position,
        )
    ):
        left_out |= {"energy"}
    constant = CONSTANT if counts_alike(sampler) else CONSTANT - {"num_energy_examples"}
    groups = {
        "posterior": describe(reported_form(sampler.target, position)),
        "sample_stats": {
            name: Variable((), kind, name in constant)
            for name, kind in STATISTICS.items()
            if name not in left_out
        }
        | {
            name: Variable((), kind)
            for name, kind in (
                block_statistics(getattr(sampler, "names", ()))
                | move_statistics(_move_names(sampler))
            ).items()
        },
        "warmup_sample_stats": {
            name: Variable((), kind)
            for name, kind in WARMUP_STATISTICS.items()
            if name not in left_out
        },
    }
    if keeps_warmup:
        groups["warmup_posterior"] = describe(reported_form(sampler.target, position))
    return groups


def block_statistics(blocks: tuple[str, ...]) -> dict[str, str]:
    """What is kept of each block of a sampler that has some."""
    return {
        block_column(name, block): STATISTICS[name] for block in blocks for name in BLOCK_COLUMNS
    }


def move_statistics(moves: tuple[str, ...]) -> dict[str, str]:
    """What is kept of each move of a sweep."""
    return {block_column(name, move): STATISTICS[name] for move in moves for name in MOVE_COLUMNS}


def _move_names(sampler: Any) -> tuple[str, ...]:
    """Of a sampler whose test moves the chain itself; others, and blocks, have none."""
    return getattr(getattr(sampler, "acceptance", None), "move_names", ())


def counts_alike(sampler: Sampler) -> bool:
    """Whether every test looks at the same number of examples."""
    return sampler.is_count_fixed


def constants_of(sampler: Sampler, position: trees.PyTree, thin: int) -> dict[str, Any]:
    """The columns that have one value for all draws, from one position without chain axis."""
    constants: dict[str, Any] = {
        "n_steps": sampler.num_steps * thin,
        # counted here, because sums over many transitions outgrow the device's 32 bits
        "num_gradient_examples": thin * sampler.num_gradient_examples(position),
    }
    if counts_alike(sampler):
        constants["num_energy_examples"] = thin * sampler.num_energy_examples
    step_size = number(sampler, "step_size")
    return constants if step_size is None else constants | {"step_size": step_size}


def columns_of(
    kept: Kept, sampler: Sampler, constants: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """A chunk of kept draws as columns."""
    stats = kept.info.columns() | constants
    if not sampler.uses_work:
        del stats["energy_error"]
    if jax.tree.leaves(kept.energy):
        stats["energy"] = kept.energy
    return {
        "posterior": _by_chain(name_leaves(reported(sampler.target, kept.position, 2))),
        "sample_stats": _by_chain(stats),
    }


def warmup_columns_of(trace: Trace, sampler: Sampler) -> dict[str, dict[str, Any]]:
    """A block of warm-up as columns."""
    shape = trace.acceptance_rate.shape
    stats: dict[str, Any] = {
        "acceptance_rate": trace.acceptance_rate,
        "diverging": trace.is_divergent,
        "n_steps": np.broadcast_to(trace.num_steps[:, None], shape),
        "mass_scale": np.broadcast_to(trace.mass_scale[:, None], shape),
    }
    if number(sampler, "step_size") is not None:
        stats["step_size"] = np.broadcast_to(trace.step_size[:, None], shape)
    columns = {"warmup_sample_stats": _by_chain(stats)}
    leaves = name_leaves(reported(sampler.target, trace.position, 2))
    return columns | {"warmup_posterior": _by_chain(leaves)} if leaves else columns


def _by_chain(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        name: values if np.ndim(values) == 0 else np.moveaxis(np.asarray(values), 0, 1)
        for name, values in columns.items()
    }
