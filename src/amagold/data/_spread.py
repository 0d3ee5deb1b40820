"""Examples split over devices, of one machine or of several: each device has a part, in order, and
what is asked of all of them is an exchange.

Outside a program of chains every device asks for the same, and all get the same answer. Inside one
(`jax.shard_map`) each device asks for its own chains: the questions are gathered, every device
answers them from its part, and the answers go back to who asked.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as Spec
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._example_chunk import Chunk
from amagold.data._fields import ColumnMoments
from amagold.data._in_memory import InMemory, numbers_of_some
from amagold.data._on_host import OnHost
from amagold.data._packed_words import packed
from amagold.data._sums import no_sum, sum_of

CHAIN, DATA = "chain", "data"  # the axes of a mesh
MOST_ROWS = 2**31 - 1
NAN_BITS = 0x7FC00000  # of a float32 that is no number

Carry = TypeVar("Carry")
Held = TypeVar("Held")
Tree = TypeVar("Tree")


@trees.record(static=("counts", "mesh", "axes", "seal", "moments_bytes"))
class Spread:
    """`spread_over` makes it. A walk goes over the first rows of every part, as many as the
    smallest has, and then over what the others have more.
    """

    first: trees.PyTree  # of every part, as many rows as the smallest has
    scattered: trees.PyTree  # the same, for single rows
    last: trees.PyTree  # of every part, as many as it takes to have all; some are among the first
    counts: tuple[int, ...]  # rows of each device
    mesh: Mesh
    axes: tuple[str, ...]  # of the mesh, that the parts are split over
    seal: str  # of all rows, whatever the parts
    moments_bytes: bytes  # `ColumnMoments` of all words; empty where they are not known

    @property
    def num_examples(self) -> int:
        return sum(self.counts)

    @property
    def example(self) -> trees.PyTree:
        return InMemory(self.first).example

    @property
    def is_concrete(self) -> bool:
        return trees.is_concrete(self.first)

    @property
    def moments(self) -> ColumnMoments | None:
        return ColumnMoments.from_bytes(self.num_examples, self.moments_bytes)

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        if not self._is_inside():
            return _rows_for_all(self, jnp.asarray(numbers))
        asked = jnp.asarray(numbers)
        of_all = jax.lax.all_gather(asked, self.axes)
        words, unpack = packed((self._own_rows(of_all), self._own_mark(of_all)), of_all.ndim)
        # who has a row sends it, and the others zeros. Not by a reduce-scatter: that of gloo has
        # lost rows in three of four runs of some hundred thousand exchanges
        sent = jax.lax.all_to_all(words, self.axes, 0, 0).sum(axis=0, dtype=words.dtype)
        rows, marks = unpack(sent, asked.ndim)
        # a row that is not the one that was asked for must not look like one
        return jax.tree.map(partial(_spoilt_unless, marks == asked + 1), rows)

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        # what the visits have from outside, such as a chain's position, goes with the question
        made, held = self._with_held(visit, carry, chunk_size)
        return self.scan_if(jnp.bool_(True), made, carry, held, chunk_size)

    def scan_if(
        self,
        flag: jax.Array,
        visit: Callable[[Carry, Chunk, Held], Carry],
        carry: Carry,
        held: Held,
        chunk_size: int,
    ) -> Carry:
        nothing = no_sum(carry)
        if not self._is_inside():

            def walk(own: "Spread", flag: jax.Array, held: Held) -> Any:
                words, unpack = packed(own._walk(flag, visit, nothing, held, chunk_size), 0)
                return unpack(jax.lax.all_gather(words, self.axes), 1)

            parts = self._asked_by_all(walk, flag, held)
        else:
            words, unpack = packed((flag, held), 0)
            flags, each = unpack(jax.lax.all_gather(words, self.axes), 1)

            def answer(held: Held) -> Any:
                return self._walk(flags.any(), visit, nothing, held, chunk_size)

            words, unpack = packed(jax.vmap(answer)(each), 1)
            parts = unpack(jax.lax.all_to_all(words, self.axes, 0, 0), 1)
        found = carry
        # in the order of the rows, so that every device comes to the same sum
        for place in range(len(self.counts)):
            found = sum_of(found, jax.tree.map(lambda leaf, place=place: leaf[place], parts))
        return trees.where(flag, found, carry)

    def some(self, count: int) -> InMemory:
        numbers = numbers_of_some(self.num_examples, count)
        return InMemory(self.rows(np.arange(self.num_examples) if numbers is None else numbers))

    def fingerprint(self) -> str:
        return self.seal

    def anyone(self, flag: jax.Array) -> jax.Array:
        """Whether any device says so."""
        return jax.lax.pmax(flag.astype(jnp.int32), self.axes) > 0 if self._is_inside() else flag

    def _is_inside(self) -> bool:
        """Whether this is part of a program in which each device has chains of its own."""
        return set(self.axes) <= set(jax.sharding.get_abstract_mesh().manual_axes)

    def _asked_by_all(self, answer: Callable[..., Tree], *asked: Any) -> Tree:
        """What the devices find together, each with its own part, where all ask the same."""
        together = jax.shard_map(
            answer,
            mesh=self.mesh,
            in_specs=(Spec(self.axes), *[Spec()] * len(asked)),
            out_specs=Spec(),
            check_vma=False,
        )
        return together(self, *asked)

    def _summed(self, rows: trees.PyTree) -> trees.PyTree:
        """Rows of which one device has each, on all of them."""
        words, unpack = packed(rows, 0)
        return unpack(jax.lax.psum(words, self.axes), 0)

    def _own_rows(self, numbers: jax.Array) -> trees.PyTree:
        """The rows of these numbers that this device has, and zeros for others."""
        begin, count = self._place()
        length, num_last = _length(self.first), _length(self.last)
        here = numbers - begin
        is_own = (here >= 0) & (here < count)
        found = InMemory(self.scattered).rows(jnp.where(is_own & (here < length), here, 0))
        if num_last:
            is_late = is_own & (here >= length)
            late = InMemory(self.last).rows(jnp.where(is_late, here - (count - num_last), 0))
            found = jax.tree.map(lambda a, b: jnp.where(_as_wide(is_late, a), b, a), found, late)
        return jax.tree.map(lambda leaf: jnp.where(_as_wide(is_own, leaf), leaf, 0), found)

    def _own_mark(self, numbers: jax.Array) -> jax.Array:
        """What comes with a row to know it by; zero for the rows of others."""
        begin, count = self._place()
        return jnp.where((numbers >= begin) & (numbers < begin + count), numbers + 1, 0)

    def _walk(self, flag: jax.Array, visit: Any, carry: Any, held: Any, chunk_size: int) -> Any:
        """Over this device's rows."""
        begin, count = self._place()
        length, num_last = _length(self.first), _length(self.last)

        def early(carry: Any, chunk: Chunk, held: Any) -> Any:
            return visit(carry, chunk.moved(begin, True), held)

        def late(carry: Any, chunk: Chunk, held: Any) -> Any:
            places = count - num_last + chunk.start + jnp.arange(_length(chunk.rows))
            return visit(carry, chunk.moved(begin + count - num_last, places >= length), held)

        carry = InMemory(self.first).scan_if(flag, early, carry, held, chunk_size)
        if num_last:
            carry = InMemory(self.last).scan_if(flag, late, carry, held, chunk_size)
        return carry

    def _place(self) -> tuple[jax.Array, jax.Array]:
        """The number of this device's first row, and how many it has."""
        counts = np.asarray(self.counts, np.int32)
        begins = np.cumsum(counts) - counts
        index = jax.lax.axis_index(self.axes)
        return jnp.asarray(begins)[index], jnp.asarray(counts)[index]

    def _with_held(self, visit: Any, carry: Any, chunk_size: int) -> tuple[Any, Any]:
        """The visits with all that they have from outside as an argument: programs for the two
        lengths of chunks that there are.
        """
        made = {}
        share = len(self.counts) if not self._is_inside() else 1
        for rows in (self.first, self.last):
            length = min(_length(rows) // share, chunk_size)
            if length and length not in made:
                like = jax.tree.map(
                    lambda leaf, length=length: jnp.zeros((length, *leaf.shape[1:]), leaf.dtype),
                    rows,
                )
                chunk = Chunk(like, jnp.int32(0), jnp.ones(length, bool))
                made[length] = jax.closure_convert(visit, carry, chunk)

        def visit_with(carry: Any, chunk: Chunk, held: Any) -> Any:
            length = _length(chunk.rows)
            return made[length][0](carry, chunk, *held[length])

        return visit_with, {length: each[1] for length, each in made.items()}


def spread_over(
    mesh: Mesh,
    axes: tuple[str, ...],
    own: Sequence[tuple[trees.PyTree, trees.PyTree]],
    counts: Sequence[int],
    seal: str,
    moments: ColumnMoments | None,
) -> Spread:
    """Parts as one: `own` are those of this process's devices, as NumPy arrays, once to be read in
    order and once here and there; `counts` are the rows of all devices.
    """
    if sum(counts) > MOST_ROWS:
        raise ValueError(
            f"data must have at most {MOST_ROWS:,} rows in all, because their numbers are of 32 "
            f"bits, got {sum(counts):,}"
        )
    length = min(counts)
    num_last = max(counts) - length

    def joined(pieces: list[trees.PyTree]) -> trees.PyTree:
        return jax.tree.map(lambda *leaves: _as_one(mesh, axes, leaves), *pieces)

    rest = [jax.tree.map(lambda leaf: leaf[len(leaf) - num_last :], part) for part, _ in own]
    return Spread(
        joined([jax.tree.map(lambda leaf: leaf[:length], part) for part, _ in own]),
        joined([jax.tree.map(lambda leaf: leaf[:length], part) for _, part in own]),
        joined(rest),
        tuple(counts),
        mesh,
        axes,
        seal,
        b"" if moments is None else moments.as_bytes(),
    )


def _as_one(mesh: Mesh, axes: tuple[str, ...], pieces: Sequence[np.ndarray]) -> jax.Array:
    """One array whose pieces on this process's devices are these; memory is taken as it is."""
    sizes = [mesh.shape[name] for name in axes]
    along = [mesh.axis_names.index(name) for name in axes]
    # the part of each device of this process, by its place on the axes that parts are split over
    part_of = {
        device: int(np.ravel_multi_index([place[axis] for axis in along], sizes))
        for place, device in np.ndenumerate(mesh.devices)
        if device.process_index == jax.process_index()
    }
    by_part = dict(zip(sorted(set(part_of.values())), pieces, strict=True))
    put = [jax.device_put(by_part[part], device) for device, part in part_of.items()]
    shape = (int(np.prod(sizes)) * len(pieces[0]), *pieces[0].shape[1:])
    return jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, Spec(axes)), put)


def spread_in(tree: Any) -> Spread | None:
    """The spread data of a target, or of anything that has one, where it has."""
    found = elsewhere_in(tree)
    return found if isinstance(found, Spread) else None


def elsewhere_in(tree: Any) -> Spread | OnHost | None:
    """Data whose rows are worth asking for together, because each question takes its time."""
    found = [
        node
        for node in jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, (Spread, OnHost)))
        if isinstance(node, (Spread, OnHost))
    ]
    return found[0] if found else None


@jax.jit
def _rows_for_all(spread: Spread, numbers: jax.Array) -> trees.PyTree:
    """One program, whoever asks."""
    return spread._asked_by_all(lambda own, numbers: own._summed(own._own_rows(numbers)), numbers)


def on_mesh(tree: Tree, mesh: Mesh) -> Tree:
    """Spread data as parts of a mesh of the same devices, in the same order."""

    def move(node: Any) -> Any:
        return dataclasses.replace(node, mesh=mesh) if isinstance(node, Spread) else node

    return jax.tree.map(move, tree, is_leaf=lambda node: isinstance(node, Spread))


def while_any(
    data: Any, goes_on: Callable[[Carry], jax.Array], body: Callable[[Carry], Carry], carry: Carry
) -> Carry:
    """`jax.lax.while_loop` of a body that asks for rows. Where these are an exchange, the chains of
    all devices go together, and those that are done keep what they have.
    """
    spread = spread_in(data)
    if spread is None:
        return jax.lax.while_loop(goes_on, body, carry)

    def again(at: tuple[jax.Array, Carry]) -> tuple[jax.Array, Carry]:
        carry = trees.where(goes_on(at[1]), body(at[1]), at[1])
        return spread.anyone(goes_on(carry)), carry

    begin = (spread.anyone(goes_on(carry)), carry)
    return jax.lax.while_loop(lambda at: at[0], again, begin)[1]


def _spoilt_unless(is_right: jax.Array, leaf: jax.Array) -> jax.Array:
    is_right = _as_wide(is_right, leaf)
    if leaf.dtype == jnp.int32:  # the words of a row store, some of which may be floats
        return jnp.where(is_right, leaf, NAN_BITS)
    if not jnp.issubdtype(leaf.dtype, jnp.floating):
        return leaf
    return jnp.where(is_right, leaf, jnp.nan)


def _length(rows: trees.PyTree) -> int:
    return jax.tree.leaves(rows)[0].shape[0]


def _as_wide(flags: jax.Array, leaf: jax.Array) -> jax.Array:
    """Flags of rows, for the rows' own values."""
    return flags.reshape(*flags.shape, *[1] * (leaf.ndim - flags.ndim))
