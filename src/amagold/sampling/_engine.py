"""The run itself: warm-up, then draws, chunk by chunk, with everything that is needed to go on
after each.
"""

import dataclasses
import time
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.adaptation import _block_adaptation, _search_adaptation, _window_adaptation
from amagold.adaptation._mass_settings import number
from amagold.adaptation._window_adaptation import Progress, Rules, Trace
from amagold.core import trees
from amagold.data import changed_file
from amagold.mode._class_shifts import class_shifts
from amagold.mode._reference import Reference
from amagold.mode._row_bounds import Norm
from amagold.runner._block import Kept
from amagold.runner._broken_bounds import check_bounds
from amagold.runner._chunked_run import run_chunks
from amagold.samplers import Sampler, State
from amagold.sampling._columns import columns_of, constants_of, warmup_columns_of
from amagold.sampling._compile_time import watch_compilation
from amagold.sampling._display import Display
from amagold.sampling._interruption import Stopper
from amagold.sampling._likeness import likeness_of
from amagold.sampling._recorder import Recorder
from amagold.sampling._settings import Settings
from amagold.store._checkpoint import Checkpoint, pack, unpack
from amagold.target import Target

SHORT_RUN = 50  # blocks of the warm-up
# of a chunk, as the warm-up went, so that a run can be stopped; a run has only so many such parts
CHUNK_SECONDS, MOST_PARTS = 2.0, 20
# of draws on a device at a time: several copies are alive while one is written and the next is made
DRAWS_BYTES = 4 * 2**20


class Reached(NamedTuple):
    """How far a run is. During sampling `warmup` holds the frozen sampler and the latest states."""

    warmup: Progress
    num_drawn: int = 0
    warmup_seconds: float = 0.0
    sampling_seconds: float = 0.0
    compile_seconds: float = 0.0
    stopped: str | None = None  # why it ended early

    @property
    def sampler(self) -> Sampler:
        return self.warmup.sampler


def checkpoint_of(reached: Reached, num_warmup: int) -> Checkpoint:
    """Everything that the rest of the run depends on, beside the seed and the target, and what to
    know that one again by.
    """
    at = reached.warmup
    reference, norm = at.sampler.known_reference(), at.sampler.known_norm()
    arrays = (
        pack("states", at.states)
        | pack("proposal", at.sampler.tuned)
        | pack("step", at.step)
        | pack("moments", at.moments)
    )
    # what the gradient and the test know of all data, so that both go on about the same place to
    # the bit
    arrays |= pack("reference", reference) | pack("norm", norm)
    arrays |= likeness_of(at.sampler.target, at.states.position)
    notes = {
        "warmup_done": at.done,
        "num_steps": at.sampler.num_steps,
        "reference_order": 0 if reference is None else reference.order,
        "has_norm": norm is not None,
        "warmup_seconds": reached.warmup_seconds,
        "sampling_seconds": reached.sampling_seconds,
        "compile_seconds": reached.compile_seconds,
    }
    is_sampling = at.done >= num_warmup
    return Checkpoint(
        "sampling" if is_sampling else "warmup",
        reached.num_drawn if is_sampling else at.done,
        arrays,
        notes,
    )


def restore(checkpoint: Checkpoint, like: Progress) -> Reached:
    """Back to where the checkpoint was made, in the form of a warm-up that has not begun."""
    notes, arrays = checkpoint.notes, checkpoint.arrays
    as_arrays = lambda name, tree: jax.tree.map(jnp.asarray, unpack(name, arrays, tree))  # noqa: E731
    tuned = as_arrays("proposal", jax.tree.map(jnp.asarray, like.sampler.tuned))
    sampler = like.sampler.with_tuned(tuned)
    if isinstance(sampler, Sampler):  # of blocks the numbers of steps stay
        sampler = dataclasses.replace(sampler, num_steps=int(notes["num_steps"]))
    at = Progress(
        int(notes["warmup_done"]),
        sampler,
        as_arrays("states", like.states),
        as_arrays("step", like.step),
        as_arrays("moments", like.moments),
    )
    num_drawn = checkpoint.done if checkpoint.phase == "sampling" else 0
    return Reached(
        at, num_drawn, notes["warmup_seconds"], notes["sampling_seconds"], notes["compile_seconds"]
    )


def restore_reference(
    checkpoint: Checkpoint, target: Target, position: trees.PyTree
) -> Reference | None:
    """The reference that control variates are taken about, or that the test has."""
    order = int(checkpoint.notes["reference_order"])
    if not order:
        return None
    form = Reference.form(position, order, class_shifts(target, position) is not None)
    return jax.tree.map(jnp.asarray, unpack("reference", checkpoint.arrays, form))


def restore_norm(checkpoint: Checkpoint, position: trees.PyTree) -> Norm | None:
    """The norm that the test's bounds are in."""
    if not checkpoint.notes.get("has_norm"):
        return None
    square = jnp.zeros((trees.size(position),) * 2, jnp.float32)
    return jax.tree.map(jnp.asarray, unpack("norm", checkpoint.arrays, Norm(square, square)))


def run(
    reached: Reached,
    key: jax.Array,
    rules: Rules,
    settings: Settings,
    recorder: Recorder,
    display: Display,
    stopper: Stopper,
) -> Reached:
    """Go on until the run is complete or has to stop. What is returned is saved."""
    reached = _warm_up(reached, key, rules, settings, recorder, display, stopper)
    if reached.warmup.done >= settings.num_warmup and not reached.stopped:
        reached = _draw(reached, key, rules, settings, recorder, display, stopper)
    _save(reached, settings, recorder, at_once=True)
    return reached


def _save(
    reached: Reached, settings: Settings, recorder: Recorder, *, at_once: bool = False
) -> None:
    """Make everything so far safe, now or when it is due."""
    recorder.note(
        is_complete=reached.num_drawn == settings.num_samples,
        stopped=reached.stopped,
        warmup_time=reached.warmup_seconds,
        sampling_time=reached.sampling_seconds,
        compile_time=reached.compile_seconds,
    )
    recorder.save(lambda: checkpoint_of(reached, settings.num_warmup), at_once=at_once)


def _warm_up(
    reached: Reached,
    key: jax.Array,
    rules: Rules,
    settings: Settings,
    recorder: Recorder,
    display: Display,
    stopper: Stopper,
) -> Reached:
    display.begin("warm-up", reached.warmup.done)
    while reached.warmup.done < settings.num_warmup and not stopper.reason:
        began = time.monotonic()
        with watch_compilation() as compiling:
            at, trace = _next_block(reached.warmup, key, rules)
        _check_files(at.sampler)
        recorder.add(warmup_columns_of(trace, at.sampler))
        seconds = max(0.0, time.monotonic() - began - compiling.seconds)
        reached = reached._replace(
            warmup=at,
            warmup_seconds=reached.warmup_seconds + seconds,
            compile_seconds=reached.compile_seconds + compiling.seconds,
        )
        step = (
            float(np.mean(trace.step_size[-1]))
            if rules.target_acceptance is not None
            else number(at.sampler, "step_size")
        )
        display.update("warm-up", at.done, trace.acceptance_rate, trace.is_divergent, step)
        _save(reached, settings, recorder, at_once=at.done == settings.num_warmup)
    return reached._replace(
        stopped=stopper.reason if reached.warmup.done < settings.num_warmup else None
    )


def _next_block(at: Progress, key: jax.Array, rules: Rules) -> tuple[Progress, Trace]:
    if rules.by_block:
        return _block_adaptation.next_block(at, key, rules)
    adaptation = _search_adaptation if rules.searches else _window_adaptation
    return adaptation.next_block(at, key, rules)


def _draw(
    reached: Reached,
    key: jax.Array,
    rules: Rules,
    settings: Settings,
    recorder: Recorder,
    display: Display,
    stopper: Stopper,
) -> Reached:
    sampler = reached.sampler
    step = number(sampler, "step_size")
    # a short run goes on with the program of the warm-up: larger chunks would take longer to
    # compile than they save
    of_warmup = _block_adaptation.block_transitions(settings.num_warmup)
    at_once = (
        of_warmup
        if rules.by_block and settings.num_warmup and settings.num_samples <= SHORT_RUN * of_warmup
        else None
    )
    chunks = run_chunks(
        sampler,
        key,
        reached.warmup.states,
        settings.num_samples - reached.num_drawn,
        thin=settings.thin,
        first=settings.num_warmup + reached.num_drawn * settings.thin,
        chunk_bytes=DRAWS_BYTES,
        keep_energy=True,
        at_once=at_once,
        most_draws=_most_draws(reached, settings),
        should_stop=lambda: stopper.reason is not None,
    )
    one = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype),
        reached.warmup.states.position,
    )
    constants = constants_of(sampler, one, settings.thin)
    display.begin("sampling", reached.num_drawn)
    began = time.monotonic()
    before = reached
    with watch_compilation() as compiling:
        # before anything runs: what is compiled later goes on beside the draws, and is not taken
        # off their time
        first = next(chunks, None)
    for states, kept in _one_ahead(first, chunks):
        kept = jax.tree.map(np.asarray, kept)
        check_bounds(kept.info)
        _check_files(sampler)
        recorder.add(columns_of(kept, sampler, constants))
        reached = reached._replace(
            warmup=reached.warmup._replace(states=states),
            num_drawn=reached.num_drawn + kept.info.is_accepted.shape[0],
            sampling_seconds=before.sampling_seconds
            + max(1e-9, time.monotonic() - began - compiling.seconds),
            compile_seconds=before.compile_seconds + compiling.seconds,
        )
        display.update(
            "sampling", reached.num_drawn, kept.info.acceptance_rate, kept.info.is_divergent, step
        )
        _save(reached, settings, recorder)
        if stopper.reason:
            break
    return reached._replace(
        stopped=stopper.reason if reached.num_drawn < settings.num_samples else None
    )


def _most_draws(reached: Reached, settings: Settings) -> int | None:
    """Of a chunk; None as many as there is room for. Several processes go on together, whatever
    their clocks say.
    """
    if not settings.num_warmup or jax.process_count() > 1:
        return None
    of_draw = settings.thin * reached.warmup_seconds / settings.num_warmup
    in_time = int(CHUNK_SECONDS / max(of_draw, 1e-9))
    return max(1, in_time, settings.num_samples // MOST_PARTS)


def _check_files(sampler: Sampler) -> None:
    """Before draws are kept: they must be of the data that were opened."""
    changed = changed_file(sampler.target.examples)
    if changed is not None:
        raise ValueError(
            f"data must stay as they are while draws are made from them, but {str(changed)!r} has "
            "been written to or removed since it was opened; open the data again, and sample anew, "
            "or put the file back and resume the run"
        )


def _one_ahead(
    earlier: tuple[State, Kept] | None, chunks: Iterator[tuple[State, Kept]]
) -> Iterator[tuple[State, Kept]]:
    """The first chunk and the rest, with the next one already under way on the devices while the
    host takes care of this one.
    """
    while earlier is not None:
        later = next(chunks, None)
        yield earlier
        earlier = later
