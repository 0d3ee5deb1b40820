"""The plan of a run whose sampler was given: its settings are kept, but for what warm-up was asked
to adapt.
"""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from amagold.adaptation._mass_settings import number
from amagold.adaptation._warmup import Warmup
from amagold.samplers import BlockSampler
from amagold.trajectory._arrow_mass import ArrowMass
from amagold.trajectory._named_mass import ARROW


@dataclass(frozen=True)
class Given:
    """The sampler as it was given."""

    proposal: str
    gradient: str
    acceptance: str
    label: str
    num_steps: int
    resample_momentum: bool
    step_size: float | None
    friction: float | None
    batch_size: int | None
    batch_plan: str | None
    numbers: str  # a checksum of all traced settings, the mass among them
    target_acceptance: float | None
    mass: str | None
    cycle: int = 0  # transitions in which the step size falls; 0: it stays

    blocks: dict[str, Any] | None = None  # of samplers that are put together, each as given
    given_mass: str = ""  # "arrow" where it has that shape; nothing is said of others

    @classmethod
    def from_sampler(cls, sampler: Any, warmup: Warmup) -> "Given":
        if isinstance(sampler, BlockSampler):
            return cls._from_blocks(sampler, warmup)
        proposal = getattr(sampler.proposal, "proposal", sampler.proposal)
        batch_size, plan = sampler.gradient.batching() or (None, None)
        return cls(
            proposal=type(proposal).__name__,
            gradient=type(sampler.gradient).__name__,
            acceptance=type(sampler.acceptance).__name__,
            label=sampler.label,
            num_steps=sampler.num_steps,
            resample_momentum=sampler.resample_momentum,
            step_size=number(sampler, "step_size"),
            friction=number(sampler, "friction"),
            batch_size=batch_size,
            batch_plan=None if plan is None else type(plan).__name__,
            numbers=_checksum((sampler.proposal, sampler.gradient, sampler.acceptance)),
            target_acceptance=warmup.target_acceptance,
            mass=warmup.mass,
            cycle=sampler.cycle,
            given_mass=ARROW if isinstance(sampler.settings.get("mass"), ArrowMass) else "",
        )

    @classmethod
    def _from_blocks(cls, sampler: BlockSampler, warmup: Warmup) -> "Given":
        """What all blocks have in common, and each as it was given."""
        each = {name: cls.from_sampler(sampler.samplers[name], warmup) for name in sampler.names}
        return cls(
            proposal="Blocks",
            gradient="",
            acceptance="",
            label=sampler.label,
            num_steps=sampler.num_steps,
            resample_momentum=all(one.resample_momentum for one in each.values()),
            step_size=None,
            friction=None,
            batch_size=None,
            batch_plan=None,
            numbers=_checksum(sampler.samplers),
            target_acceptance=warmup.target_acceptance,
            mass=warmup.mass,
            blocks={name: one.to_json() for name, one in each.items()},
        )

    def sentences(self) -> list[str]:
        """The plan in plain words."""
        if self.blocks:
            each = {name: Given.from_json(one) for name, one in self.blocks.items()}
            lines = [f"Blocks as given ({self.label}), each given the others."]
            lines += [f"Block {name} ({one.label}): {one._kind()}." for name, one in each.items()]
            return [*lines, self._adapted()]
        lines = [f"The sampler as given ({self.label}): {self._kind()}."]
        if self.cycle:
            lines.append(f"The step size falls to nearly zero in every {self.cycle} transitions.")
        return [*lines, self._adapted()]

    def _kind(self) -> str:
        size = "" if self.step_size is None else f" of step size {self.step_size:.4g}"
        batch = "" if self.batch_size is None else f" of {self.batch_size} examples"
        units = f" in units of an {self.given_mass} mass" if self.given_mass else ""
        return (
            f"{self.num_steps} {self.proposal} steps{size}{units} per transition, "
            f"{self.gradient.lower()} gradients{batch}"
        )

    def _adapted(self) -> str:
        adapted = []
        if self.target_acceptance is not None:
            adapted.append(f"the step size, to an acceptance of {self.target_acceptance:g}")
        if self.mass is not None:
            adapted.append(f"a {self.mass} mass, from the draws")
        return (
            f"Warm-up adapts {' and '.join(adapted)}, then freezes it."
            if adapted
            else "Warm-up adapts nothing."
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Given":
        return cls(**stored)


def _checksum(tree: Any) -> str:
    seal = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        seal.update(np.asarray(leaf, np.float64).tobytes())
    return seal.hexdigest()[:16]
