"""Every sampler that claims to be exact, in every variant, on the exact target."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from exact_target import target, upper_half

import amagold
from amagold import acceptance, gradients
from amagold.trajectory import Phase, RandomWalk, Rotation
from amagold.trajectory._arrow_mass import arrow_mass
from amagold.trajectory._mass_matrix import as_mass

DENSE = np.array([[9.0, 4.0], [4.0, 14.0]], np.float32)
DIAGONAL = np.array([8.0, 12.0], np.float32)
# the same matrix, the first parameter for its one block and the second for its border
ARROW = arrow_mass(
    (("blocks", 1), ("border", 1)),
    *(DENSE[:1, :1, None], DENSE[:1, 1:, None], DENSE[1:, 1:], np.zeros(0)),
)
CENTER = np.array([-0.3, 0.9], np.float32)  # near the mode, and not at it


FROZEN = np.array([0.05, 0.08], np.float32)


def by_place(position):
    """A preconditioner that depends on the position."""
    return 0.05 + 0.1 * jax.nn.sigmoid(4.0 * position)


class Jump(NamedTuple):
    """A proposal as a user would write it, with a momentum: a damped walk with a drift that depends
    on the minibatch.
    """

    scale: float

    def draw(self, key, position, shape=()):
        return amagold.normal_like(key, position, shape)

    def draw_momentum(self, key, position, shape=()):
        return amagold.normal_like(key, position, shape)

    def log_momentum(self, momentum):
        return -0.5 * jnp.sum(momentum**2)

    def reverse(self, phase):
        return Phase(phase.position, -phase.momentum)

    # a half drift, a new momentum around a mean that the gradient pushes, a half drift
    def propose(self, phase, noise, gradient):
        middle = phase.position + 0.5 * self.scale * phase.momentum
        momentum = 0.6 * phase.momentum - self.scale * gradient(middle) + 0.8 * noise
        return Phase(middle + 0.5 * self.scale * momentum, momentum)

    def log_density(self, origin, destination, gradient):
        middle = origin.position + 0.5 * self.scale * origin.momentum
        mean = 0.6 * origin.momentum - self.scale * gradient(middle)
        return -0.5 * jnp.sum(((destination.momentum - mean) / 0.8) ** 2)


def loader_batches(num_steps, batch_size):
    """What an unshuffled outside loader gives: always the first rows, in the same order."""
    data = target().data
    return jax.tree.map(
        lambda leaf: leaf[: num_steps * batch_size].reshape(num_steps, batch_size, *leaf.shape[1:]),
        data,
    )


class WithLoader(NamedTuple):
    """A sampler fed by the unshuffled loader, with the protocol of the others."""

    sampler: amagold.Sampler

    def init(self, position, key):
        return self.sampler.init(position, key)

    def step(self, key, state):
        return self.sampler.step(
            key, state, loader_batches(self.sampler.num_steps, self.sampler.gradient.batch_size)
        )


class OfSomeSteps(NamedTuple):
    """A sampler that makes one to all of its steps, by a number that is drawn apart from the state,
    with the protocol of the others.
    """

    sampler: amagold.Sampler

    def init(self, position, key):
        return self.sampler.init(position, key)

    def num_steps(self, key, state):
        return jax.random.randint(jax.random.fold_in(key, 1), (), 1, self.sampler.num_steps + 1)

    def step(self, key, state):
        return replace(self.sampler, first_steps=self.num_steps(key, state)).step(key, state)


def amagold_with(plan, resample_momentum, num_steps=4, batch_size=2, **settings):
    return amagold.amagold(
        target(),
        **{"step_size": 0.1, "friction": 0.7, **settings},
        num_steps=num_steps,
        gradient=gradients.minibatch(batch_size, plan=plan),
        resample_momentum=resample_momentum,
    )


def rotation(resample_momentum, scale=1.0, kind=Rotation, mass=DENSE, **settings):
    """Half a quarter turn in steps that minibatches kick."""
    proposal = kind(0.25 * scale, as_mass(mass), jnp.asarray(CENTER), friction=0.5)
    return amagold.amortized(
        target(),
        proposal,
        3,
        gradients.minibatch(4),
        resample_momentum=resample_momentum,
        **settings,
    )


def two_blocks(scale=1.0, kind=None, second_test=None):
    """One parameter after the other: minibatches with a kept momentum, and HMC."""
    sampler = amagold.blocks(
        target(),
        {
            0: lambda on: amagold.amagold(
                on, step_size=0.2 * scale, num_steps=3, batch_size=2, resample_momentum=False
            ),
            1: lambda on: amagold.hmc(
                on, step_size=0.5 * scale, num_steps=2, acceptance=second_test
            ),
        },
        init=CENTER,
    )
    return sampler if kind is None else kind(**vars(sampler))


def exact_samplers(scale=1.0):
    """Name -> sampler, with all step sizes multiplied by `scale`."""
    samplers = {}
    for kind, resample in (("reversible", True), ("irreversible", False)):
        for plan in ("iid", "epoch", "palindrome"):
            samplers[f"amagold {kind} {plan}"] = amagold_with(plan, resample, step_size=0.1 * scale)
        samplers[f"amagold {kind} loader"] = WithLoader(
            amagold_with("external", resample, num_steps=3, step_size=0.1 * scale)
        )
        samplers[f"amagold {kind} diagonal mass"] = amagold_with(
            "iid", resample, mass=DIAGONAL, step_size=0.3 * scale
        )
        samplers[f"amagold {kind} dense mass"] = amagold_with(
            "iid", resample, mass=DENSE, step_size=0.3 * scale
        )
        samplers[f"amagold {kind} arrow mass"] = amagold_with(
            "iid", resample, mass=ARROW, step_size=0.3 * scale
        )
        samplers[f"l2mc {kind}"] = amagold.l2mc(
            target(), step_size=0.28 * scale, friction=0.5, num_steps=3, resample_momentum=resample
        )
        samplers[f"amagold {kind} total memory"] = amagold.amagold(
            target(),
            step_size=0.1 * scale,
            num_steps=4,
            batch_size=2,
            acceptance=acceptance.full("total", 3),
            resample_momentum=resample,
        )
        samplers[f"amagold {kind} jitter"] = replace(
            amagold_with("iid", resample, step_size=0.1 * scale), jitter=0.5
        )
        samplers[f"amagold {kind} some steps"] = OfSomeSteps(
            amagold_with("iid", resample, num_steps=6, step_size=0.1 * scale)
        )
        samplers[f"rotation {kind}"] = rotation(resample, scale)
        samplers[f"rotation {kind} arrow mass"] = rotation(resample, scale, mass=ARROW)
        settings = dict(friction=0.7, batch_size=2, resample_momentum=resample)
        samplers[f"ggmc {kind}"] = amagold.ggmc(
            target(), step_size=0.14 * scale, num_steps=3, **settings
        )
        settings["acceptance"] = acceptance.full()
        samplers[f"sms_ubu corrected {kind}"] = amagold.sms_ubu(
            target(), step_size=0.1 * scale, **settings
        )
        samplers[f"sgnht corrected {kind}"] = amagold.sgnht(
            target(), step_size=0.1 * scale, num_steps=4, **settings
        )
        samplers[f"cyclical {kind}"] = amagold.cyclical(
            amagold_with("iid", resample, step_size=0.14 * scale), 3
        )
        samplers[f"user's skew proposal {kind}"] = amagold.amortized(
            target(), Jump(0.1 * scale), 3, gradients.minibatch(2), resample_momentum=resample
        )
    samplers["amagold overdamped"] = amagold_with(
        "iid", True, friction=9.0 / scale, step_size=0.1 * scale
    )
    samplers["hmc"] = amagold.hmc(target(), step_size=0.28 * scale, num_steps=3)
    samplers["rotation, full gradient"] = amagold.amortized(
        target(), Rotation(1.2 * scale, as_mass(DENSE), jnp.asarray(CENTER)), 1
    )
    samplers["sgld corrected"] = amagold.sgld(
        target(), step_size=0.15 * scale, num_steps=3, batch_size=2, acceptance=acceptance.full()
    )
    for name, preconditioner in (("frozen", FROZEN), ("by place", by_place)):
        samplers[f"psgld corrected, {name}"] = amagold.psgld(
            target(),
            step_size=0.5 * scale,
            num_steps=3,
            preconditioner=preconditioner,
            batch_size=2,
            acceptance=acceptance.full(),
        )
    samplers["blocks"] = two_blocks(scale)
    # which remember different things, so that either makes its own anew
    samplers["blocks of two tests"] = two_blocks(scale, second_test=acceptance.full("total", 3))
    samplers["random walk"] = amagold.amortized(target(), RandomWalk(0.15 * scale), 3)
    return samplers


def domain_samplers():
    """Samplers on a target that ends at a wall."""
    settings = dict(step_size=0.12, friction=0.5, num_steps=3, batch_size=2)
    return {
        "amagold reversible domain": amagold.amagold(target(upper_half), **settings),
        "amagold irreversible domain": amagold.amagold(
            target(upper_half), **settings, resample_momentum=False
        ),
    }
