"""The test over all data: exact."""

import dataclasses

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.core import checks, trees
from amagold.core.shapes import Position, RandomKey, Scalar
from amagold.energy._float64 import needs_double
from amagold.energy._remembered_energy import Memory, energy_of, log_density_difference, remember
from amagold.mode._reference import Reference
from amagold.target import Target

HOPELESS = -1000.0  # a log ratio below this is reported as a divergence


@trees.record(static=("keep", "chunk_size"))
class FullTest(Acceptance):
    """Line 17 of Algorithm 2: a = exp(U(theta) - U(theta*) + rho), accept with probability min(1,
    a).
    """

    keep: str = "auto"
    chunk_size: int | None = None

    label = "exact"
    uses_work = True

    def bind(self, target: Target, reference: Reference | None = None) -> "FullTest":
        """The test itself, or the one in float64 where so many large log likelihoods would round
        the ratio.
        """
        at = target.init if reference is None else reference.position
        is_measured = self.keep in ("auto", "total")
        return (
            dataclasses.replace(self, keep="double")
            if is_measured and needs_double(target, at)
            else self
        )

    def draw(self, key: RandomKey) -> Scalar:
        # log of a uniform number, without the zero that a uniform draw can return
        return -jax.random.exponential(key)

    def remember(self, target: Target, position: Position) -> Memory:
        return remember(target, position, self.keep, self.chunk_size)

    def energy(self, memory: Memory) -> Scalar:
        return energy_of(memory)

    def decide(
        self,
        target: Target,
        draws: Scalar,
        memory: Memory,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        proposed_memory = self.remember(target, proposed)
        # log a = U(theta) - U(theta*) + rho
        log_ratio = log_density_difference(target, proposed_memory, memory) + work
        is_inside = target.is_inside(proposed)
        is_divergent = is_inside & ~(jnp.isfinite(log_ratio) & (log_ratio > HOPELESS))
        # "as long as theta* is in Theta"; a NaN or infinite ratio rejects as well
        is_accepted = is_inside & jnp.isfinite(log_ratio) & (draws < log_ratio)
        return Decision(
            is_accepted, jnp.where(is_inside, log_ratio, -jnp.inf), is_divergent, proposed_memory
        )

    def num_examples(self, target: Target) -> int:
        return target.num_examples


def full(keep: str = "auto", chunk_size: int | None = None) -> FullTest:
    """The exact test over all data.

    Args:
      keep: what is remembered of the current state: "examples" (a log likelihood per example, 4N
        bytes a chain), "total" (one number accumulated in float64), "double" (the same, its terms
        evaluated in float64 too), or "auto": per example up to 256 MiB a chain. "auto" and "total"
        become "double" where 2^18 examples or more are measured to round the log ratio by more
        than 1e-3.
      chunk_size: examples evaluated at once; None derives it from a byte budget.
    """
    if keep not in ("auto", "examples", "total", "double"):
        raise ValueError(f"keep must be 'auto', 'examples', 'total' or 'double', got {keep!r}")
    if chunk_size is not None:
        checks.whole_number(
            "chunk_size",
            chunk_size,
            at_least=1,
            remedy="give the number of examples evaluated at once, or None",
        )
    return FullTest(keep, chunk_size)
