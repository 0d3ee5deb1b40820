"""`amagold.sample`: one call from a posterior to draws."""

import shutil
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from amagold import planning
from amagold.adaptation._warmup import Warmup
from amagold.adaptation._window_adaptation import FEWEST, begin
from amagold.core import trees
from amagold.core.devices import idle_cores, use_all_cores
from amagold.core.files import name_in_the_making, remove_abandoned
from amagold.core.freed_memory import end_of_stage
from amagold.processes import share, watched
from amagold.runner._chains import start_chains
from amagold.runner._placement import using
from amagold.sampling import _engine as engine
from amagold.sampling._advice import advice_on, warn
from amagold.sampling._columns import layout
from amagold.sampling._compile_time import watch_compilation
from amagold.sampling._display import Display, say
from amagold.sampling._interruption import Stopper
from amagold.sampling._jax_context import usual_jax
from amagold.sampling._kept_files import write_kept
from amagold.sampling._labels import check_label
from amagold.sampling._layout_on_mesh import laid_out, plain
from amagold.sampling._load import open_groups
from amagold.sampling._prepare import Prepared, make_keys, prepare, target_of
from amagold.sampling._provenance import fingerprint, jax_settings, versions
from amagold.sampling._recorder import (
    FollowingRecorder,
    MemoryRecorder,
    Recorder,
    StoreRecorder,
)
from amagold.sampling._run import Run
from amagold.sampling._settings import Settings, check_max_time, check_path
from amagold.sampling._stored_recipe import save_recipe
from amagold.sampling._together import agree_on, agreed, is_first
from amagold.store._checkpoint import CheckpointFolder
from amagold.store._lock import Lock
from amagold.store._names import describe, names_of_leaves
from amagold.store._structure import describe_structure
from amagold.store._zarr_store import PRIVATE, StoreFailedError, ZarrStore
from amagold.target._axis_names import check_labels
from amagold.target._reported import reported_form


def sample(
    target_or_sampler: Any,
    num_samples: int = 1000,
    num_warmup: int = 1000,
    num_chains: int = 4,
    seed: int = 0,
    init: trees.PyTree = None,
    init_per_chain: trees.PyTree = None,
    thin: int = 1,
    store: str | Path | None = None,
    progress: bool = True,
    max_time: float | None = None,
    *,
    warmup: Warmup | None = None,
    mesh: Mesh | None = None,
) -> Run:
    """Draw from a posterior: plan, warm up, sample, check.

    Given a target, the sampler is planned: the gradient, its batches, the number of steps, the
    friction and the acceptance to aim for, from the curvature at the mode and the gradients' noise;
    step size and mass are then adapted. Given a sampler, that one is run, and warm-up adapts only
    what `warmup` asks for. Nothing changes any more once the first draw is kept.

    The same seed gives the same draws, bit for bit, whatever the store, the progress display or an
    interruption; another number of devices uses the same random numbers and may round differently.

    Ctrl-C and `max_time` end the run early and return what there is (`run.is_partial`).

    Args:
      target_or_sampler: an `amagold.Posterior`, an `amagold.Density`, or a sampler such as
        `amagold.amagold(...)`.
      num_samples: draws kept of each chain.
      num_warmup: transitions of each chain before the first kept draw.
      num_chains: chains, run side by side and spread over all host devices.
      seed: of all random numbers.
      init: one position where all chains start, on the scale of the draws. None starts them
        dispersed around the mode, if the target has an `init`.
      init_per_chain: a position for each chain, stacked on a leading axis.
      thin: transitions per kept draw.
      store: a new folder for the draws, which then stream to disk with checkpoints; go on after any
        interruption with `amagold.resume`. None keeps them in memory.
      progress: say the plan, and show progress on a terminal.
      max_time: seconds for the whole call, compilation included; asked between chunks.
      warmup: what to adapt; see `amagold.Warmup`.
      mesh: a `jax.sharding.Mesh` with an axis "chain", over which chains are spread, and perhaps an
        axis "data", over which the data are split. None spreads chains over all devices, and leaves
        the data whole, or in the parts that processes have opened.
    """
    use_all_cores()
    mesh = plain(mesh)
    if mesh is not None:
        target_or_sampler = laid_out(target_or_sampler, mesh, num_chains)
    settings = Settings(
        num_samples, num_warmup, num_chains, seed, thin, Warmup() if warmup is None else warmup
    )
    with watched(), using(mesh):
        agree_on(
            target_or_sampler,
            target_of(target_or_sampler),
            settings,
            *(init, init_per_chain, store),
        )
        return run_prepared(
            lambda: prepare(target_or_sampler, settings, init, init_per_chain),
            settings,
            check_path(store),
            progress,
            max_time,
        )


def run_prepared(
    make: Callable[[], Prepared],
    settings: Settings,
    path: Path | None,
    progress: bool,
    max_time: float | None,
) -> Run:
    """A run from its beginning, of what `make` prepares."""
    check_max_time(max_time)
    # what the results are kept in takes its time to load, which the compiler's hides
    threading.Thread(target=import_module, args=("xarray",), daemon=True).start()
    progress = progress and is_first()
    with Stopper(max_time) as own, usual_jax():
        stopper = agreed(own)
        with watch_compilation() as compiling:
            prepared = make()
            say(prepared.plan, progress, (*prepared.sampler.target.notes, *idle_cores()))
            states_key = make_keys(settings.seed).states
            states = start_chains(prepared.sampler, prepared.positions, states_key)
        end_of_stage()
        reached = engine.Reached(
            begin(prepared.sampler, states, prepared.rules), compile_seconds=compiling.seconds
        )
        recorder = _record(prepared, reached, settings, path)
        return finish(reached, prepared, settings, recorder, progress, stopper, depth=3)


def finish(
    reached: engine.Reached,
    prepared: Prepared,
    settings: Settings,
    recorder: Recorder,
    progress: bool,
    stopper: Stopper,
    depth: int = 2,
) -> Run:
    """Run to the end, or as far as it may go, and gather the results; warnings point to the call
    that is so many further out.
    """
    display = Display(progress and is_first(), settings.num_warmup, settings.num_samples)
    try:
        transitions = make_keys(settings.seed).transitions
        reached = engine.run(
            reached, transitions, prepared.rules, settings, recorder, display, stopper
        )
    finally:
        display.close()
        recorder.close()
    with warnings.catch_warnings():
        # from here on draws can be lost: what other libraries have to say must not become an error
        warnings.simplefilter("ignore")
        if isinstance(recorder, (StoreRecorder, FollowingRecorder)):
            share("written")
            store = ZarrStore(recorder.path)
            groups, attributes, path = open_groups(store), store.attributes, recorder.path
        else:
            assert isinstance(recorder, MemoryRecorder)
            groups, attributes, path = recorder.datasets(), recorder.attributes, None
        sentences = [f"spoilt draws: {sentence}" for sentence in attributes.get("spoilt", [])]
        sentences += prepared.advice
        sentences += _checked(groups, prepared)
    asked = (
        isinstance(prepared.plan, planning.Plan)
        or settings.warmup.target_acceptance is not None
        or settings.warmup.mass is not None
    )
    if asked and 0 < settings.num_warmup < FEWEST:
        remedy = f"give at least {FEWEST}"
        sentences.append(
            f"num_warmup = {settings.num_warmup} is too few to adapt anything, so step size and "
            f"mass were kept; {remedy}"
        )
    run = Run(
        groups,
        attributes,
        prepared.plan,
        sentences,
        path,
        reached.sampler,
        jax.tree.map(np.asarray, reached.warmup.states.position),
    )
    if is_first():
        warn(sentences, depth=depth)
    return run


def _checked(groups: dict[str, Any], prepared: Prepared) -> list[str]:
    """Advice on finished draws, which stay whatever goes wrong with it."""
    try:
        return advice_on(
            groups["posterior"],
            groups["sample_stats"],
            prepared.sampler.uses_work,
            prepared.plan,
        )
    except Exception as reason:
        return [
            f"the draws were made but could not be checked ({type(reason).__name__}: {reason}); "
            "look at run.posterior yourself"
        ]


def facts(prepared: Prepared, position: trees.PyTree, settings: Settings) -> dict[str, Any]:
    """What is kept with the draws about where they come from."""
    target = prepared.sampler.target
    form = reported_form(target, position)
    labels = None if target.labels is None else target.labels.of_variables(names_of_leaves(form))
    check_labels(labels, {name: found.shape for name, found in describe(form).items()})
    return {
        "inference_library": "amagold",
        "inference_library_version": versions()["amagold"],
        "label": prepared.sampler.label,
        **({} if labels is None else {"labels": labels.to_json()}),
        "settings": settings.to_json(),
        "versions": versions(),
        "jax_settings": jax_settings(),
        "seed": settings.seed,
        "data_fingerprint": None,
        "num_examples": target.num_examples or None,
        "notes": list(target.notes),
        "plan": {"kind": type(prepared.plan).__name__, **prepared.plan.to_json()},
        "position": describe_structure(position),
        "reported": describe_structure(form),
        "gradients_per_step": prepared.sampler.num_gradients(position)
        // prepared.sampler.num_steps,
        "is_complete": False,
        "stopped": None,
        "warmup_time": 0.0,
        "sampling_time": 0.0,
        "compile_time": 0.0,
    }


def _record(
    prepared: Prepared, reached: engine.Reached, settings: Settings, path: Path | None
) -> Recorder:
    """A place for the draws, laid out and with everything known so far."""
    position = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype),
        reached.warmup.states.position,
    )
    groups = layout(prepared.sampler, position, settings.warmup.keep)
    known = facts(prepared, position, settings)
    if path is None:
        recorder = MemoryRecorder(groups, settings.num_chains)
        recorder.note(**known)
        return recorder
    checkpoint = engine.checkpoint_of(reached, settings.num_warmup)
    if not is_first():
        share("made")
        if not path.is_dir():
            raise StoreFailedError(
                f"store must be in a folder that all processes see, but {str(path)!r} is not there "
                "for this one; give a path on a shared file system"
            )
        return FollowingRecorder(path)
    # all data are read for it, so only where a later process has to know them again
    known["data_fingerprint"] = fingerprint(prepared.sampler.target)
    check_label(known["label"])
    lengths = {
        group: settings.num_warmup if group.startswith("warmup") else settings.num_samples
        for group in groups
    }
    # made under another name and moved when it is whole: a run is there with its first checkpoint,
    # or not at all
    remove_abandoned(path)
    building = name_in_the_making(path)
    try:
        ZarrStore.create(building, groups, lengths, settings.num_chains, known)
        lock = Lock(building / PRIVATE, path)
        CheckpointFolder(building / PRIVATE).save(checkpoint)
        if isinstance(prepared.plan, planning.Plan):
            save_recipe(building, prepared.sampler.target)
        write_kept(building)
        building.rename(path)
    except BaseException as reason:
        shutil.rmtree(building, ignore_errors=True)
        if not isinstance(reason, OSError):
            raise
        remedy = "give another path, or make room on the disk"
        raise StoreFailedError(
            f"store could not be made at {str(path)!r} ({reason}); {remedy}"
        ) from reason
    share("made")
    return StoreRecorder(
        ZarrStore(path), lock, CheckpointFolder(path / PRIVATE), dict.fromkeys(groups, 0)
    )
