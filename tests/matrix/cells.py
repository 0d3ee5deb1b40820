"""The cells of the matrix: which parts go together, which the library refuses, and a selection that
covers all parts.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax
import numpy as np
import parts
from jax.sharding import Mesh

import amagold

CHAINS = (1, 2, 5)  # one, as many as devices, and more than divide evenly among them
OWN = "own"  # the sampler's own: it takes no other


class Combination(NamedTuple):
    """A sampler and its parts."""

    sampler: str
    momentum: str  # fresh or kept
    test: str
    gradient: str
    plan: str  # of the batches; empty where there are none

    def build(self, on=None):
        on = parts.target() if on is None else on
        chosen: dict[str, Any] = {}
        if self.gradient != OWN:
            chosen["gradient"] = parts.GRADIENTS[self.gradient].build(
                *([self.plan] if self.plan else [])
            )
        if self.test != OWN:
            chosen["acceptance"] = parts.TESTS[self.test].build()
        if self.momentum != OWN:
            chosen["resample_momentum"] = self.momentum == "fresh"
        return parts.SAMPLERS[self.sampler].build(on, **chosen)

    @property
    def label(self) -> str:
        if self.test != OWN:
            return parts.TESTS[self.test].label
        # most samplers without a choice of test have none
        return parts.SAMPLERS[self.sampler].label or "biased"


class Options(NamedTuple):
    """The arguments of `sample`, by name."""

    start: str
    thin: int
    warmup: str
    progress: bool


WARMUPS = {
    "none": {"num_warmup": 0},
    "kept": {"num_warmup": 2, "warmup": amagold.Warmup(keep=True)},
    "adapted": {"num_warmup": 20, "warmup": amagold.Warmup(target_acceptance=0.8, mass="diagonal")},
    "descent": {"num_warmup": 0, "warmup": amagold.Warmup(sgd=amagold.SgdBurnIn(1, batch_size=4))},
}
STARTS = ("init", "init_per_chain", "dispersed")


MESHES = ("none", "data", "chain")  # what a mesh that is given splits


class Cell(NamedTuple):
    combination: Combination
    num_chains: int
    options: Options
    mesh: str = "none"

    def arguments(self) -> dict[str, Any]:
        options = self.options
        starts = {
            "init": {"init": np.full(2, 0.1, np.float32)},
            "init_per_chain": {
                "init_per_chain": np.linspace(
                    -0.5, 0.5, 2 * self.num_chains, dtype=np.float32
                ).reshape(-1, 2)
            },
            "dispersed": {},
        }
        meshes = {
            "none": {},
            "data": {"mesh": mesh((1, len(jax.devices())))},
            "chain": {"mesh": mesh((math.gcd(self.num_chains, len(jax.devices())), 1))},
        }
        return {
            "num_samples": 6,
            "num_chains": self.num_chains,
            "seed": 3,
            "thin": options.thin,
            "progress": options.progress,
            "max_time": 3600.0,
            **WARMUPS[options.warmup],
            **starts[options.start],
            **meshes[self.mesh],
        }

    @property
    def name(self) -> str:
        words = [word for word in self.combination if word and word != OWN]
        return "-".join(
            [
                *words,
                f"{self.num_chains} chains",
                self.options.start,
                f"thin {self.options.thin}",
                self.options.warmup,
                *([] if self.mesh == "none" else [f"mesh of {self.mesh}"]),
            ]
        )


def mesh(shape: tuple[int, int]) -> Mesh:
    return Mesh(np.array(jax.devices()[: math.prod(shape)]).reshape(shape), ("chain", "data"))


def combinations() -> list[Combination]:
    """Every combination that can be written down."""
    found = []
    for sampler in parts.SAMPLERS:
        momenta = ("fresh", "kept") if parts.accepts(sampler, "resample_momentum") else (OWN,)
        tests = sorted(parts.TESTS) if parts.accepts(sampler, "acceptance") else (OWN,)
        if (
            sampler in parts.OTHER_WORDS
        ):  # for arguments of a sampler that has its own rows: once is enough
            momenta, tests = ("fresh",), ("full",)
        estimators = [(OWN, "")]
        if parts.accepts(sampler, "gradient"):
            estimators = [
                (name, plan)
                for name in sorted(parts.GRADIENTS)
                for plan in (sorted(parts.PLANS) if parts.has_plan(name) else ("",))
            ]
        if sampler in parts.FAMILY:
            tests = [name for name in tests if name in parts.FAMILY_TESTS]
            known = parts.FAMILY_GRADIENTS | {(OWN, "")}
            estimators = [each for each in estimators if each in known]
        for momentum, test, (gradient, plan) in itertools.product(momenta, tests, estimators):
            found.append(Combination(sampler, momentum, test, gradient, plan))
    return found


def refusal(found: Combination) -> str | None:
    """How the library's sentence must begin where it refuses the combination; None where it must
    not.
    """
    if found.sampler == "psgld running" and found.test != "never_reject":
        return "preconditioner must be fixed for a test to follow"
    if found.plan == "external":
        if found.gradient == "control_variate":
            return "plan must not be 'external' with control variates"
        if not (found.test == "barker" and found.momentum == "kept"):
            return "plan='external' needs batches from outside, which sample cannot give"
    if found.test == "barker" and found.momentum == "kept":
        return "resample_momentum must be True with acceptance.barker"
    return None


def warmup_refusal(found: Combination, warmup: str) -> str | None:
    """The same for what a warm-up is asked to adapt."""
    if warmup != "adapted":
        return None
    if found.label == "biased":
        return "target_acceptance needs a sampler with a test"
    known = parts.settings_of(found.sampler)
    missing = [name for name in ("step_size", "mass") if name not in known]
    return f"warmup cannot adapt the {missing[0]}" if missing else None


def allowed() -> list[Combination]:
    return [found for found in combinations() if refusal(found) is None]


def refused() -> list[Combination]:
    return [found for found in combinations() if refusal(found) is not None]


def options() -> list[Options]:
    return [
        Options(*chosen) for chosen in itertools.product(STARTS, (1, 2), WARMUPS, (False, True))
    ]


def product() -> list[Cell]:
    """All allowed combinations with all numbers of chains; the other arguments take turns."""
    found = []
    for number, (combination, chains) in enumerate(itertools.product(allowed(), CHAINS)):
        fitting = [
            chosen for chosen in options() if warmup_refusal(combination, chosen.warmup) is None
        ]
        # a step that shares no factor with the number of options meets them all
        chosen = fitting[number * 17 % len(fitting)]
        found.append(Cell(combination, chains, chosen, MESHES[number * 5 // 3 % len(MESHES)]))
    return found


def pairs_of(cell: Cell) -> set[tuple[Any, ...]]:
    """What the selection must cover: every part and every argument with every number of chains."""
    combination, chosen = cell.combination, cell.options
    kinds = [
        *zip(Combination._fields, combination, strict=True),
        *zip(Options._fields, chosen, strict=True),
    ]
    kinds.append(("mesh", cell.mesh))
    return {(kind, value, cell.num_chains) for kind, value in kinds if value not in (OWN, "")}


def also_of(cell: Cell) -> set[tuple[Any, ...]]:
    """What is welcome beside: pairs of two parts, or of a part and an argument."""
    kinds = [
        *zip(Combination._fields, cell.combination, strict=True),
        *zip(Options._fields, cell.options, strict=True),
    ]
    kinds = [kind for kind in kinds if kind[1] not in (OWN, "")]
    return set(itertools.combinations(kinds, 2))


def selection() -> list[Cell]:
    """Few cells that cover every part with every number of chains: the greedy one, the same every
    time.
    """
    cells = product()
    wanted = set().union(*map(pairs_of, cells))
    welcome: set[tuple[Any, ...]] = set()
    covers = [(pairs_of(cell), also_of(cell)) for cell in cells]
    chosen: list[Cell] = []

    def value(at: int) -> tuple[int, ...]:
        # a warm-up is a program more to compile
        is_cheap = cells[at].options.warmup in ("none", "descent")
        return len(covers[at][0] & wanted), is_cheap, len(covers[at][1] - welcome), -at

    while wanted:
        best = max(range(len(cells)), key=value)
        chosen.append(cells[best])
        wanted -= covers[best][0]
        welcome |= covers[best][1]
    return chosen
