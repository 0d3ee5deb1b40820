"""What is remembered of the current state, so that a test evaluates the proposal alone."""

from typing import NamedTuple

import jax.numpy as jnp

from amagold.core.shapes import PerExample, Position, Scalar
from amagold.data import Chunk, spread_in
from amagold.energy import _chunks as chunks
from amagold.energy._float64 import in_double, wide_log_likelihoods, widen
from amagold.energy._wide_sums import Wide, add_to, precise_sum, subtract, zero
from amagold.target import Posterior, Target

# per chain; above this one float64 total is remembered instead of a value per example
EXAMPLE_MEMORY_BYTES = 256 * 2**20


class DensityMemory(NamedTuple):
    """The log density of the current position."""

    log_density: Scalar


class ExampleMemory(NamedTuple):
    """The log prior and each example's log likelihood at the current position (4N bytes)."""

    log_prior: Scalar
    log_likelihoods: PerExample


class TotalMemory(NamedTuple):
    """The whole log density of the current position, accumulated in float64."""

    log_density: Wide


Memory = DensityMemory | ExampleMemory | TotalMemory


def remember(
    target: Target, position: Position, keep: str = "auto", chunk_size: int | None = None
) -> Memory:
    """Evaluate the target at a position, keeping a value per example (`"examples"`) or one float64
    total (`"total"`).

    With `"double"` it is a total whose terms are evaluated in float64 too.
    """
    if not isinstance(target, Posterior):
        return DensityMemory(jnp.asarray(target.log_prior(position)))
    if keep == "auto":
        is_little = 4 * target.num_examples <= EXAMPLE_MEMORY_BYTES
        # of data that are split over devices a value per example would have to travel
        keep = "examples" if is_little and spread_in(target) is None else "total"
    if keep == "examples":
        return ExampleMemory(
            target.log_prior(position), chunks.log_likelihoods(target, position, chunk_size)
        )
    return TotalMemory(_total(target, position, chunk_size, keep == "double"))


def log_density_difference(target: Target, proposed: Memory, current: Memory) -> Scalar:
    """U(current) - U(proposed): log pi at the proposal minus log pi at the current position."""
    if isinstance(proposed, DensityMemory) and isinstance(current, DensityMemory):
        return proposed.log_density - current.log_density
    if isinstance(proposed, ExampleMemory) and isinstance(current, ExampleMemory):
        # one pass over per-example differences: the large common part cancels before it is summed
        by_example = precise_sum(proposed.log_likelihoods - current.log_likelihoods)
        return proposed.log_prior - current.log_prior + by_example
    if isinstance(proposed, TotalMemory) and isinstance(current, TotalMemory):
        return subtract(proposed.log_density, current.log_density)
    raise TypeError(f"cannot compare {type(proposed).__name__} with {type(current).__name__}")


def energy_of(memory: Memory) -> Scalar:
    """U of the remembered position, up to a constant."""
    if isinstance(memory, ExampleMemory):
        return -memory.log_prior - precise_sum(memory.log_likelihoods)
    log_density = memory.log_density
    return -(log_density.high + log_density.low) if isinstance(log_density, Wide) else -log_density


def _total(target: Posterior, position: Position, chunk_size: int | None, is_wide: bool) -> Wide:
    def visit(total: Wide, chunk: Chunk) -> Wide:
        with in_double(is_wide):
            evaluate = wide_log_likelihoods if is_wide else Posterior.log_likelihoods
            return add_to(total, chunk.only_new(evaluate(target, position, chunk.rows)))

    total = chunks.fold(target, position, visit, zero(), chunk_size)
    with in_double(is_wide):
        return add_to(total, target.log_prior(widen(position) if is_wide else position)[None])
