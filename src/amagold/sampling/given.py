"""The plan of a run whose sampler was given: its settings are kept, but for what warm-up was asked to adapt."""

from dataclasses import asdict, dataclass
from typing import Any

from amagold.samplers import Sampler
from amagold.warmup.knobs import has_knob, knob
from amagold.warmup.settings import Warmup


@dataclass(frozen=True)
class Given:
    """The sampler as it was given."""

    proposal: str
    gradient: str
    label: str
    num_steps: int
    step_size: float | None
    target_acceptance: float | None
    mass: str | None

    @classmethod
    def from_sampler(cls, sampler: Sampler, warmup: Warmup) -> "Given":
        step_size = float(knob(sampler, "step_size")) if has_knob(sampler, "step_size") else None
        proposal = getattr(sampler.proposal, "proposal", sampler.proposal)
        names = type(proposal).__name__, type(sampler.gradient).__name__
        return cls(*names, sampler.label, sampler.num_steps, step_size, warmup.target_acceptance, warmup.mass)

    def sentences(self) -> list[str]:
        """The plan in plain words."""
        size = "" if self.step_size is None else f" of step size {self.step_size:.4g}"
        lines = [
            f"The sampler as given ({self.label}): {self.num_steps} {self.proposal} steps{size} per transition, {self.gradient} gradients."
        ]
        adapted = []
        if self.target_acceptance is not None:
            adapted.append(f"the step size, to an acceptance of {self.target_acceptance:g}")
        if self.mass is not None:
            adapted.append(f"a {self.mass} mass, from the draws")
        lines.append(f"Warm-up adapts {' and '.join(adapted)}, then freezes it." if adapted else "Warm-up adapts nothing.")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Given":
        return cls(**stored)
