"""What a warm-up should do."""

from dataclasses import dataclass

from amagold.core import checks

MASSES = ("diagonal", "dense")


@dataclass(frozen=True)
class SgdBurnIn:
    """Stochastic gradient descent with momentum before anything else, as the paper does for its
    networks.

    Args:
      num_epochs: passes over the data.
      learning_rate: for the energy per example, U / N, as in deep learning.
      momentum: what is kept of the last step.
      batch_size: examples per step.
    """

    num_epochs: int = 3
    learning_rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 128

    def __post_init__(self) -> None:
        checks.whole_number(
            "num_epochs", self.num_epochs, at_least=1, remedy="give the passes over the data"
        )
        checks.whole_number(
            "batch_size", self.batch_size, at_least=1, remedy="give the examples per step"
        )
        checks.number(
            "learning_rate", self.learning_rate, above=0.0, remedy="give a positive learning rate"
        )
        checks.number(
            "momentum", self.momentum, at_least=0.0, remedy="give a momentum between 0 and 1"
        )
        if self.momentum >= 1.0:
            raise ValueError(f"momentum must be below 1, got {self.momentum:g}; 0.9 is usual")
        for name, kind in (
            ("num_epochs", int),
            ("batch_size", int),
            ("learning_rate", float),
            ("momentum", float),
        ):
            object.__setattr__(self, name, kind(getattr(self, name)))


@dataclass(frozen=True)
class Warmup:
    """What `amagold.sample` adapts before the first kept draw; everything is frozen then.

    Args:
      target_acceptance: adapt the step size until this share of proposals is accepted (the paper
        uses 0.85). None keeps the step size of a sampler, and leaves the choice to the plan for a
        target.
      mass: "diagonal" or "dense": estimate the mass from warm-up draws. None keeps a sampler's
        mass, and leaves the choice to the plan for a target.
      sgd: descend with `SgdBurnIn` first.
      keep: keep the warm-up draws too, as `warmup_posterior`.
    """

    target_acceptance: float | None = None
    mass: str | None = None
    sgd: SgdBurnIn | None = None
    keep: bool = False

    def __post_init__(self) -> None:
        if self.target_acceptance is not None:
            checks.number(
                "target_acceptance",
                self.target_acceptance,
                above=0.0,
                remedy="0.65 to 0.9 are usual",
            )
            if self.target_acceptance >= 1.0:
                raise ValueError(
                    f"target_acceptance must be below 1, got {self.target_acceptance:g}; 0.65 to "
                    "0.9 are usual"
                )
            object.__setattr__(self, "target_acceptance", float(self.target_acceptance))
        object.__setattr__(self, "keep", bool(self.keep))
        if self.mass is not None and (not isinstance(self.mass, str) or self.mass not in MASSES):
            raise ValueError(
                f"mass must be 'diagonal', 'dense' or None in Warmup, got {self.mass!r}; a fixed "
                "mass, 'arrow' among them, belongs to the sampler"
            )
        if self.sgd is not None and not isinstance(self.sgd, SgdBurnIn):
            raise ValueError(f"sgd must be an amagold.SgdBurnIn, got {type(self.sgd).__name__}")
