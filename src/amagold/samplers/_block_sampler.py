"""Samplers put together, each on its part of a position given the others: Gibbs sampling, with a
test of its own for every block.

Each block's transition leaves the conditional distribution of its part alone, and so the whole one:
pi(part | rest) pi(rest) = pi. What a test remembers is of the whole position, and is made anew when
a block of another kind has moved it.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.samplers._amortized import Sampler, State
from amagold.samplers._info import Info
from amagold.samplers._kernel import Kernel
from amagold.target import Target
from amagold.target._conditional_target import Place, conditional, part_at, with_part


@trees.record(static=("places", "num_steps"))
class BlockSampler(Kernel):
    """One transition moves every block once, in order. A block's sampler is kept without a target:
    it is given its own when it moves.
    """

    target: Target
    samplers: dict[str, Sampler]
    places: tuple[tuple[str, Place], ...]  # of the blocks, by name, in order
    num_steps: int  # of all blocks together

    @property
    def label(self) -> str:
        """Exact where all blocks are; biased where one is."""
        return max((self.samplers[name].label for name in self.names), key=_doubt)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.places)

    @property
    def tunable(self) -> tuple[str, ...]:
        """The blocks whose step size warm-up may set."""
        return tuple(
            name
            for name in self.names
            if self.samplers[name].uses_work and "step_size" in self.samplers[name].settings
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The step sizes of these blocks, in one array."""
        steps = [self.samplers[name].settings["step_size"] for name in self.tunable]
        if not steps or any(jnp.ndim(step) for step in steps):
            return {}
        return {"step_size": jnp.stack([jnp.asarray(step, jnp.float32) for step in steps])}

    def with_settings(self, **settings: Any) -> "BlockSampler":
        steps = settings.get("step_size")
        if steps is None:
            return self
        changed = {
            name: self.samplers[name].with_settings(step_size=steps[number])
            for number, name in enumerate(self.tunable)
        }
        return dataclasses.replace(self, samplers={**self.samplers, **changed})

    @property
    def tuned(self) -> dict[str, Any]:
        return {name: sampler.tuned for name, sampler in self.samplers.items()}

    def with_tuned(self, tuned: dict[str, Any]) -> "BlockSampler":
        changed = {name: self.samplers[name].with_tuned(tuned[name]) for name in self.names}
        return dataclasses.replace(self, samplers=changed)

    def check(self, position: trees.PyTree) -> None:
        self.target.check(position)
        for name, place in self.places:
            self.samplers[name].proposal.check(part_at(position, place))

    def init(self, position: trees.PyTree, key: jax.Array | None = None) -> State:
        """The state at a position; kept momenta start as those of a sampler do."""
        position = trees.as_position(position)
        self.check(position)
        count = len(self.places)
        keys = [None] * count if key is None else list(jax.random.split(key, count))
        parts = {
            name: self.samplers[name].rest(part_at(position, place), own)
            for (name, place), own in zip(self.places, keys, strict=True)
        }
        return State(
            position,
            {name: part.momentum for name, part in parts.items()},
            self.remember(position),
            {name: part.number for name, part in parts.items()},
        )

    def step(self, key: jax.Array, state: State) -> tuple[State, Info]:
        """One transition."""
        return _step_blocks(self, key, state)

    def draw(self, key: jax.Array, position: trees.PyTree, late: bool = False) -> dict[str, Any]:
        keys = jax.random.split(key, len(self.places))
        return {
            name: self._at_rest(name).draw(own, part_at(position, place), late)
            for (name, place), own in zip(self.places, keys, strict=True)
        }

    @property
    def chain_axes(self) -> dict[str, Any]:
        return {name: self.samplers[name].chain_axes for name in self.names}

    def draws_late(self, position: trees.PyTree, num_chains: int = 1) -> bool:
        return any(
            self._at_rest(name).draws_late(part_at(position, place), num_chains)
            for name, place in self.places
        )

    def gather(self, randomness: dict[str, Any], batches: trees.PyTree = None) -> dict[str, Any]:
        return {name: self._at_rest(name).gather(randomness[name]) for name in self.names}

    @property
    def can_go_ahead(self) -> bool:
        return False  # a block's rows are asked for when it moves

    def advance(
        self, state: State, randomness: dict[str, Any], rows: Any = None
    ) -> tuple[State, Info]:
        """Every block once, each given where the others are by then."""
        position, memory, infos = state.position, state.memory, {}
        momentum, number = dict(state.momentum), dict(state.number)
        before = self.names[-1]
        for name, place in self.places:
            block = self.given(name, place, position)
            part = part_at(position, place)
            memory = self.memory_for(block, part, before, memory)
            moved, info = block.advance(
                State(part, momentum[name], memory, number[name]),
                randomness[name],
                None if rows is None else rows[name],
            )
            position = with_part(position, place, moved.position)
            memory, momentum[name], number[name] = moved.memory, moved.momentum, moved.number
            infos[name], before = info, name
        return State(position, momentum, memory, number), self._told(infos)

    def given(self, name: str, place: Place, position: trees.PyTree) -> Sampler:
        """A block's sampler on its part, given the rest of a position."""
        return dataclasses.replace(
            self.samplers[name], target=conditional(self.target, place, position)
        )

    def memory_for(self, block: Sampler, part: trees.PyTree, before: str, memory: Any) -> Any:
        """What a block's test remembers of where the one before has come to: the same, where the
        tests are.
        """
        if _alike(self.samplers[before].acceptance, block.acceptance):
            return memory
        return block.remember(part)

    def remember(self, position: trees.PyTree) -> Any:
        """What the last block's test remembers of it, which the first begins with."""
        name, place = self.places[-1]
        return self.given(name, place, position).remember(part_at(position, place))

    def energy(self, state: State) -> Any:
        return self.samplers[self.names[-1]].acceptance.energy(state.memory)

    @property
    def uses_work(self) -> bool:
        return any(sampler.uses_work for sampler in self.samplers.values())

    @property
    def is_count_fixed(self) -> bool:
        return all(sampler.is_count_fixed for sampler in self.samplers.values())

    @property
    def is_external(self) -> bool:
        return False

    def num_gradients(self, position: trees.PyTree) -> int:
        return sum(
            self._at_rest(name).num_gradients(part_at(position, place))
            for name, place in self.places
        )

    def num_gradient_examples(self, position: trees.PyTree) -> int:
        return sum(
            self._at_rest(name).num_gradient_examples(part_at(position, place))
            for name, place in self.places
        )

    @property
    def num_energy_examples(self) -> int:
        return sum(self._at_rest(name).num_energy_examples for name in self.names)

    def _at_rest(self, name: str) -> Sampler:
        """A block's sampler that knows the data alone: for what does not depend on the rest."""
        return dataclasses.replace(self.samplers[name], target=self.target)

    def _told(self, infos: dict[str, Info]) -> Info:
        """Diagnostics of all blocks together, and of each."""
        blocks = [infos[name] for name in self.names]
        tested = [infos[name] for name in self.names if self.samplers[name].uses_work] or blocks

        def total(field: str) -> jax.Array:
            return sum(getattr(info, field) for info in blocks)  # type: ignore[return-value]

        return Info(
            is_accepted=jnp.stack([info.is_accepted for info in blocks]).any(),
            acceptance_rate=jnp.stack([info.acceptance_rate for info in tested]).mean(),
            log_ratio=total("log_ratio"),
            is_divergent=jnp.stack([info.is_divergent for info in blocks]).any(),
            num_gradient_examples=total("num_gradient_examples"),
            num_energy_examples=total("num_energy_examples"),
            broken_bound=(),
            label=self.label,
            blocks=infos,
        )


def _doubt(label: str) -> int:
    return ("exact", "approximate", "biased").index(label.split(" ")[0])


def _alike(one: Any, other: Any) -> bool:
    """Whether two tests remember the same of a position: they hold nothing but settings, which are
    equal.
    """
    return jax.tree.structure(one) == jax.tree.structure(other)


@jax.jit
def _step_blocks(sampler: BlockSampler, key: jax.Array, state: State) -> tuple[State, Info]:
    late = sampler.draws_late(state.position)
    return sampler.advance(state, sampler.draw(key, state.position, late))
