"""A broken twin: the reference of the gradient follows the chain."""

import dataclasses

from amagold.core import trees
from amagold.mode._derivatives import derivatives_at
from amagold.mode._reference import Reference
from amagold.samplers import Sampler


@trees.record(static=("num_steps", "resample_momentum", "jitter"))
class FollowingGradient(Sampler):
    """The gradient's reference is where the trajectory starts, with all sums over the data
    as they are there.
    """

    def advance(self, state, randomness, rows=None):
        found = derivatives_at(self.target, state.position, 2)
        reference = Reference(state.position, found.gradient, found.hessian)
        gradient = dataclasses.replace(self.gradient, reference=reference)
        moving = Sampler(
            self.target,
            self.proposal,
            gradient,
            self.acceptance,
            self.num_steps,
            self.resample_momentum,
        )
        return moving.advance(state, randomness, rows)
