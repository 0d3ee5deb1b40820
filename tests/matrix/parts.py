"""How to build every part of the library at a tiny size; the lists of parts are the
library's own.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import amagold
from amagold import acceptance, batches, gradients, samplers, trajectory
from amagold.trajectory._arrow_mass import arrow_mass
from amagold.trajectory._mass_matrix import as_mass

STEPS = {"step_size": 0.3, "num_steps": 2}
BATCH_SIZE = 4


@cache
def target():
    """20 examples, 2 parameters; it knows its bounds, so that every test fits."""
    generator = np.random.default_rng(7)
    X = generator.normal(size=(20, 1))
    return amagold.models.logistic(X, (generator.random(20) < 0.5).astype(int))


def arrow():
    """A mass of one block and a border of one."""
    block, border = np.full((1, 1, 1), 2.0), np.full((1, 1, 1), 0.5)
    return arrow_mass((("blocks", 1), ("border", 1)), block, border, np.eye(1), np.zeros(0))


@cache
def dataless():
    return amagold.Density(_standard_normal, init=np.zeros(2, np.float32))


def _standard_normal(position):
    return -0.5 * (position**2).sum()


class Part(NamedTuple):
    build: Callable[..., Any]
    label: str = ""  # of the draws, for a test, or a sampler without a choice of one


def _amortized(proposal: Callable[[], Any]) -> Part:
    def build(on, **parts):
        return samplers.amortized(on, proposal(), STEPS["num_steps"], **parts)

    return Part(build)


SAMPLERS = {
    "amagold": Part(lambda on, **parts: samplers.amagold(on, **STEPS, **parts)),
    "from_sgd": Part(
        lambda on, **parts: samplers.amagold(
            on, num_steps=2, **samplers.from_sgd(0.09, 0.1), **parts
        )
    ),
    "hmc": Part(lambda on, **parts: samplers.hmc(on, **STEPS, **parts)),
    "l2mc": Part(lambda on, **parts: samplers.l2mc(on, **STEPS, **parts)),
    "l2mc arrow": Part(lambda on, **parts: samplers.l2mc(on, **STEPS, mass=arrow(), **parts)),
    "sghmc": Part(lambda on, **parts: samplers.sghmc(on, **STEPS, **parts)),
    "sgld": Part(lambda on, **parts: samplers.sgld(on, **STEPS, **parts)),
    "ggmc": Part(lambda on, **parts: samplers.ggmc(on, **STEPS, **parts)),
    "sms_ubu": Part(lambda on, **parts: samplers.sms_ubu(on, **STEPS, **parts)),
    "sgnht": Part(lambda on, **parts: samplers.sgnht(on, **STEPS, **parts)),
    "psgld": Part(
        lambda on, **parts: samplers.psgld(
            on, **STEPS, preconditioner=np.full(2, 0.5, np.float32), **parts
        )
    ),
    "psgld running": Part(lambda on, **parts: samplers.psgld(on, **STEPS, **parts)),
    "blocks": Part(
        lambda on: samplers.blocks(
            on,
            {
                0: lambda part: samplers.amagold(
                    part, **STEPS, batch_size=BATCH_SIZE, resample_momentum=False
                ),
                1: lambda part: samplers.hmc(part, **STEPS, acceptance=acceptance.full("total")),
            },
        ),
        "exact",
    ),
    "cyclical": Part(
        lambda on, **parts: samplers.cyclical(samplers.amagold(on, **STEPS, **parts), 3)
    ),
    "amortized RandomWalk": _amortized(lambda: trajectory.RandomWalk(0.3)),
    "amortized Rotation": _amortized(
        lambda: trajectory.Rotation(
            0.4, as_mass(np.ones(2, np.float32)), np.zeros(2, np.float32), 0.5
        )
    ),
}
# what is built by another entry: a name of the library -> the entry that runs it
RUN_BY = {
    "amortized": "amortized RandomWalk",
    "Euler": "sghmc",
    "Langevin": "sgld",
    "Leapfrog": "amagold",
    "NoseHoover": "sgnht",
    "Obabo": "ggmc",
    "Preconditioned": "psgld",
    "RandomWalk": "amortized RandomWalk",
    "Rotation": "amortized Rotation",
    "RunningPreconditioner": "psgld running",
    "Ubu": "sms_ubu",
}
OTHER_WORDS = {"from_sgd", "cyclical"}
# other steps in the driver that amagold runs with every test and gradient: with some of them
FAMILY = {"l2mc arrow", "ggmc", "sms_ubu", "sgnht", "psgld", "psgld running"}
FAMILY_TESTS = {"full", "never_reject", "tuna"}
FAMILY_GRADIENTS = {("control_variate", "iid"), ("full", ""), ("minibatch", "palindrome")}
# names that are no sampler, no proposal, no test, no gradient and no plan
OTHERS = {
    samplers: {"BlockSampler", "Info", "Kernel", "Randomness", "Sampler", "State"},
    trajectory: {"Phase", "Proposal", "Thermostatted", "from_densities"},
    acceptance: {"Acceptance", "Decision", "UnboundTest", "predicted_acceptance"},
    gradients: {"GradientEstimator"},
    batches: {"BatchPlan", "plan_by_name"},
}

TESTS = {
    "austerity": Part(lambda: acceptance.austerity(batch_size=BATCH_SIZE), "approximate"),
    "barker": Part(lambda: acceptance.barker(batch_size=BATCH_SIZE), "approximate"),
    "confidence": Part(lambda: acceptance.confidence(batch_size=BATCH_SIZE), "approximate"),
    "delayed": Part(lambda: acceptance.delayed(), "exact"),
    "firefly": Part(lambda: acceptance.firefly(block_size=8), "exact"),
    "full": Part(lambda: acceptance.full(), "exact"),
    "never_reject": Part(lambda: acceptance.never_reject(), "biased"),
    "tuna": Part(lambda: acceptance.tuna(block_size=8), "exact"),
}
# with the batch plan as their argument, where they have one
GRADIENTS = {
    "control_variate": Part(lambda plan: gradients.control_variate(BATCH_SIZE, plan=plan)),
    "expansion": Part(lambda: gradients.expansion()),
    "full": Part(lambda: gradients.full()),
    "minibatch": Part(lambda plan: gradients.minibatch(BATCH_SIZE, plan=plan)),
    "noisy": Part(lambda: gradients.noisy(0.5)),
}
PLANS = {plan.lower() for plan in ("Iid", "Epoch", "Palindrome", "External")}


def names_of(room) -> list[str]:
    """The parts that a room offers, by its own list."""
    return sorted(set(room.__all__) - OTHERS[room])


def factories_of(room) -> list[str]:
    """The functions that make a room's parts; its classes are what they return."""
    return [name for name in names_of(room) if inspect.isfunction(getattr(room, name))]


def untaught(found: dict[str, list[str]] | None = None) -> list[str]:
    """A sentence for every part of the library that the matrix cannot build, and for every one that
    is gone.
    """
    found = library_parts() if found is None else found
    taught = {
        "sampler": {name.split(" ")[0] for name in SAMPLERS},
        "proposal": {name for name, entry in RUN_BY.items() if entry in SAMPLERS},
        "test": set(TESTS),
        "gradient": set(GRADIENTS),
        "batch plan": PLANS,
    }
    sentences = []
    for kind, names in found.items():
        for name in sorted(set(names) - taught[kind]):
            sentences.append(
                f"teach the matrix to build the {kind} {name!r}: add it to tests/matrix/parts.py"
            )
        gone = taught[kind] - set(names) - ({"amortized"} if kind == "proposal" else set())
        sentences += [
            f"the matrix builds the {kind} {name!r}, which the library no longer has"
            for name in sorted(gone)
        ]
    return sentences


def library_parts() -> dict[str, list[str]]:
    return {
        "sampler": factories_of(samplers),
        "proposal": names_of(trajectory),
        "test": factories_of(acceptance),
        "gradient": factories_of(gradients),
        "batch plan": sorted(name.lower() for name in names_of(batches)),
    }


@cache
def settings_of(sampler: str) -> set[str]:
    """What of a sampler's proposal warm-up may set."""
    return set(SAMPLERS[sampler].build(target()).settings)


def has_plan(gradient: str) -> bool:
    return "plan" in inspect.signature(GRADIENTS[gradient].build).parameters


def accepts(sampler: str, word: str) -> bool:
    """Whether a sampler takes this keyword; the library's own signature says so."""
    name = "amagold" if sampler in OTHER_WORDS else sampler.split(" ")[0]
    entry = getattr(samplers, name)
    return word in inspect.signature(entry).parameters
