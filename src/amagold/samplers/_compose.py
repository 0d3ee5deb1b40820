"""`amagold.blocks`: a sampler of samplers, one for each part of a position."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax

from amagold.core import trees
from amagold.samplers._amortized import Sampler
from amagold.samplers._block_sampler import BlockSampler
from amagold.target import Density, Posterior, Target
from amagold.target._conditional_target import Place, conditional, places_of


def blocks(
    target: Target,
    samplers: Mapping[Any, Callable[[Any], Sampler]],
    init: trees.PyTree = None,
) -> BlockSampler:
    """Move the parts of a position in turn, each by a sampler of its own given the others. Exact
    where all samplers are; biased where one is.

        amagold.blocks(target, {
            "scale": lambda on: amagold.hmc(on, step_size=0.3),
            "effects": lambda on: amagold.amagold(on, step_size=0.1, batch_size=50),
        })

    Diagnostics of each block are in `info.blocks`, and in `sample_stats` by the blocks' names.
    `Warmup(target_acceptance=...)` tunes the step size of each block that has a test; masses stay.

    Args:
      target: what to sample from.
      samplers: for each block a function that makes its sampler from the target of that part given
        the rest. A block is named by its place: a name of a position that is a mapping or a
        NamedTuple, a number along the first axis of one that is an array, or a tuple of several.
        Every place belongs to one block; they move in the order given.
      init: a position to build the samplers at; None is the target's own.
    """
    if not isinstance(target, (Posterior, Density)):
        raise ValueError(
            "target must be an amagold.Posterior or amagold.Density, got "
            f"{type(target).__name__}; the samplers come second"
        )
    position = target.init if init is None else trees.as_position(init, "init")
    if position is None:
        raise ValueError(
            "init must be given, because the target does not say what its positions look like; "
            "pass init=..., or build the target with init=..."
        )
    _check_places(samplers, places_of(position))
    places = tuple((_name(place), place) for place in samplers)
    built = {
        name: _without_target(name, samplers[place](conditional(target, place, position)))
        for name, place in places
    }
    return BlockSampler(target, built, places, sum(one.num_steps for one in built.values()))


def _name(place: Place) -> str:
    return "_".join(map(str, place)) if isinstance(place, tuple) else str(place)


def _check_places(samplers: Any, wanted: set[Any]) -> None:
    """Raise unless every place belongs to exactly one block."""
    if not isinstance(samplers, Mapping) or not samplers:
        raise ValueError(
            "samplers must map places of the position to functions that make samplers, got "
            f"{type(samplers).__name__}; give for example {{'scale': lambda on: amagold.hmc(on, "
            "step_size=0.1), ...}"
        )
    given = [one for place in samplers for one in (place if isinstance(place, tuple) else (place,))]
    unknown = [place for place in given if place not in wanted]
    missing = [place for place in wanted if place not in given]
    twice = [place for place in given if given.count(place) > 1]
    for what, places in (("names", unknown), ("leaves out", missing), ("names twice", twice)):
        if places:
            raise ValueError(
                f"samplers must name every part of the position once, but it {what} "
                f"{places[0]!r}; the parts are {', '.join(sorted(map(repr, wanted)))}"
            )


def _without_target(name: str, sampler: Any) -> Sampler:
    """The block's sampler, if what it knows holds whatever the rest is."""
    if not isinstance(sampler, Sampler):
        raise ValueError(
            f"samplers[{name!r}] must return a sampler of this library, got "
            f"{type(sampler).__name__}; return for example amagold.hmc(on, step_size=0.1)"
        )
    if sampler.is_external:
        raise ValueError(
            f"samplers[{name!r}] must draw its own batches, got plan='external'; use another plan"
        )
    if jax.tree.leaves(sampler.acceptance) or sampler.gradient.known_reference() is not None:
        raise ValueError(
            f"samplers[{name!r}] must know nothing of all data beforehand, got "
            f"{type(sampler.acceptance).__name__} and {type(sampler.gradient).__name__}: the sums "
            "that one of them keeps would be those of other values of the rest; use "
            "acceptance.full() and gradients.full() or minibatch(...)"
        )
    nothing: Any = None
    return dataclasses.replace(sampler, target=nothing)
