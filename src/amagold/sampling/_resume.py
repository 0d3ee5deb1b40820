"""Going on with a stored run where it stopped, bit for bit as if it never had."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from amagold import planning
from amagold.adaptation._window_adaptation import Progress, begin
from amagold.core import trees
from amagold.core.devices import use_all_cores
from amagold.processes import share, watched
from amagold.runner._placement import using
from amagold.samplers import Kernel, Sampler, State
from amagold.sampling import _engine as engine
from amagold.sampling._advice import warn
from amagold.sampling._description import Description, open_store
from amagold.sampling._display import say
from amagold.sampling._given_sampler import Given
from amagold.sampling._interruption import Stopper
from amagold.sampling._jax_context import usual_jax
from amagold.sampling._labels import MIXED
from amagold.sampling._layout_on_mesh import laid_out, plain
from amagold.sampling._likeness import unlike_parts
from amagold.sampling._load import load, stored_doubts
from amagold.sampling._prepare import Prepared, rules_of, target_of
from amagold.sampling._provenance import fingerprint, jax_settings, versions
from amagold.sampling._recorder import FollowingRecorder, StoreRecorder
from amagold.sampling._run import Run
from amagold.sampling._sample import finish
from amagold.sampling._settings import Settings, check_max_time
from amagold.sampling._stored_recipe import begun_with
from amagold.sampling._together import agree_on, agreed, is_first
from amagold.store._checkpoint import Checkpoint, CheckpointFolder
from amagold.store._lock import Lock
from amagold.store._zarr_store import PRIVATE, ZarrStore
from amagold.target import Target
from amagold.target._reported import sampled
from amagold.trajectory._named_mass import ARROW

OTHER_DATA, OTHER_TARGET = "the data fingerprint changed", "another target"
MIXES = (
    "so the run would mix draws of two posteriors; pass the target that began it, or begin a new "
    "run"
)
SAME_ENERGY = 1e-3  # relative, for runs of earlier versions, which kept nothing better to compare


def resume(
    path: str | Path,
    target_or_sampler: Any = None,
    *,
    progress: bool = True,
    max_time: float | None = None,
    init: trees.PyTree = None,
    mesh: Mesh | None = None,
) -> Run:
    """Go on with a run that was stopped or killed. The draws end bit-identical to those of a run
    that never stopped.

    Damaged draws and checkpoints are found by their checksums, reported, and made again from the
    last good checkpoint.

    Args:
      path: the folder that `amagold.sample(..., store=path)` made.
      target_or_sampler: what the run was begun with; not needed for runs of `amagold.fit`, and of
        ready-made models, that kept their data.
      progress, max_time: as in `amagold.sample`.
      init: a position of the target, needed only where positions are of a class of your own.
      mesh: as in `amagold.sample`; another one than the run began with may round differently.
    """
    use_all_cores()
    check_max_time(max_time)
    mesh = plain(mesh)
    if target_or_sampler is None:
        target_or_sampler = begun_with(open_store(path, read_only=True)[0].path)
        if target_or_sampler is None:
            raise ValueError(
                "target_or_sampler must be given for a run of a target of your own, which is not "
                "kept; pass what it was begun with"
            )
    if mesh is not None:
        num_chains = open_store(path, read_only=True)[1].settings.num_chains
        target_or_sampler = laid_out(target_or_sampler, mesh, num_chains)
    target = target_of(target_or_sampler)
    folder = open_store(path, read_only=True)[0].path
    with watched(), using(mesh), Stopper(max_time) as own, usual_jax():
        lock = Lock(folder / PRIVATE, folder) if is_first() else None
        try:
            if lock is None:
                share("repaired")
            store, description = open_store(folder, read_only=lock is None)
            settings, plan, position = description
            _check_sampler(target_or_sampler, plan, settings)
            _check_positions(target, position)
            changes = _changes(store, target)
            if lock is not None:
                changes += store.repair()
                share("repaired")
            agree_on(target_or_sampler, target, settings, folder)
            if store.attributes["is_complete"] and not _damage(store):
                _say_problems(changes)
                return load(folder)
            _check_jax(store.attributes.get("jax_settings"))
            reached, checkpoint, problems = _restore(store, target_or_sampler, description, init)
            sampler = reached.sampler
            problems += changes + _unlike(reached, checkpoint)
            if any(sentence.startswith(OTHER_TARGET) for sentence in problems):
                reached = _remember_again(reached)
            _say_problems(problems)
            say(plan, progress and is_first(), target.notes)
            recorder = FollowingRecorder(folder)
            if lock is not None:
                recorder = _record_again(store, lock, reached, problems)
            rules, doubts = rules_of(sampler, plan, settings), stored_doubts(folder)
            prepared = Prepared(sampler, plan, rules, None, doubts)
            return finish(reached, prepared, settings, recorder, progress, agreed(own))
        finally:
            if lock is not None:
                lock.release()


def _say_problems(sentences: list[str]) -> None:
    if is_first():
        warn(sentences, depth=2)


def _record_again(
    store: ZarrStore, lock: Lock, reached: engine.Reached, problems: list[str]
) -> StoreRecorder:
    """The store, cut back to where the run goes on."""
    mixed = [sentence for sentence in problems if sentence.startswith((OTHER_DATA, OTHER_TARGET))]
    # a record of the warm-up that was damaged is not made again, and ends where it does
    kept = {
        group: min(reached.warmup.done, store.num_readable(group))
        for group in store.groups
        if group.startswith("warmup")
    }
    done = {group: kept.get(group, reached.num_drawn) for group in store.groups}
    # draws of two posteriors are not exact draws of either, and the store must not forget it
    spoilt = {"label": MIXED, "spoilt": mixed} if mixed else {}
    store.commit(done, {"is_complete": False, **spoilt})
    return StoreRecorder(store, lock, CheckpointFolder(store.path / PRIVATE), done)


def _check_jax(before: Any) -> None:
    """Raise when JAX is set otherwise than it was: the draws would not be those of a run that never
    stopped.
    """
    # runs of earlier versions do not say
    for name, now in jax_settings().items() if isinstance(before, dict) else ():
        if name in before and before[name] != now:
            raise ValueError(
                f"path must be resumed with JAX set as it was when the run began, but {name} is "
                f"{now!r} where the run has "
                f"{before[name]!r}; call jax.config.update({name!r}, {before[name]!r}) first"
            )


def _check_positions(target: Target, position: trees.PyTree) -> None:
    """Raise when the target's positions are not those of the run."""
    if position is None or target.init is None:
        return
    ours, theirs = (
        jax.tree.map(lambda leaf: tuple(leaf.shape), tree) for tree in (position, target.init)
    )
    if ours != theirs:
        raise ValueError(
            f"target_or_sampler must be the one that began this run, whose positions are {ours}, "
            f"got positions {theirs}"
        )


def _damage(store: ZarrStore) -> dict[str, tuple[int, str]]:
    """The first damaged draw of each group that has one."""
    found = {group: store.first_damage(group) for group in store.groups}
    return {group: damage for group, damage in found.items() if damage is not None}


def _check_sampler(target_or_sampler: Any, plan: Any, settings: Settings) -> None:
    """Raise when it is not what the run was begun with."""
    if isinstance(plan, Given):
        if not isinstance(target_or_sampler, Kernel):
            raise ValueError(
                "target_or_sampler must be the sampler that began this run, got a target alone; "
                "build the sampler again"
            )
        given = Given.from_sampler(target_or_sampler, settings.warmup)
        differing = [
            name for name, value in given.to_json().items() if value != plan.to_json()[name]
        ]
        wrong = "target_or_sampler must be the sampler that began this run, but its"
        if differing == ["numbers"]:
            raise ValueError(
                f"{wrong} numbers are others: the mass, or what its gradient and test know of the "
                "target beforehand, which another "
                "prior or other data change; pass the same one"
            )
        if differing:
            name = differing[0]
            raise ValueError(
                f"{wrong} {name} is {given.to_json()[name]} where the run has "
                f"{plan.to_json()[name]}; pass the same one"
            )
    elif isinstance(target_or_sampler, Kernel):
        raise ValueError(
            "target_or_sampler must be the target that began this run, got a sampler; the run "
            "planned its own: pass the target"
        )


def _built(
    target_or_sampler: Any, plan: Any, checkpoint: Checkpoint, position: trees.PyTree
) -> Any:
    """The sampler of the run, before warm-up."""
    if isinstance(target_or_sampler, Kernel):
        return target_or_sampler
    reference = engine.restore_reference(checkpoint, target_or_sampler, position)
    if not isinstance(plan, planning.Plan):  # a sweep
        assert reference is not None
        return plan.restored(target_or_sampler, reference)
    norm = engine.restore_norm(checkpoint, position)
    at_mode = planning.restored_at_mode(target_or_sampler, plan, reference, position, norm)
    size = plan.num_parameters
    masses = {
        "dense": lambda: np.eye(size),
        "diagonal": lambda: np.ones(size),
        ARROW: lambda: planning.unit_mass(target_or_sampler),
    }
    return plan.build(target_or_sampler, masses[plan.mass](), at_mode)


def _restore(
    store: ZarrStore, target_or_sampler: Any, description: Description, init: trees.PyTree
) -> tuple[engine.Reached, Checkpoint, list[str]]:
    """Where the last good checkpoint was, before any damage, itself, and what was found wrong."""
    damages = _damage(store)
    problems = [f"damaged draws: {reason}; they are made again" for _, reason in damages.values()]
    # damage in the record of the warm-up sends only a run that is still there back; later draws do
    # not depend on it
    at_most: dict[str, int] = {}
    for group, (first, _) in damages.items():
        phase = "warmup" if group.startswith("warmup") else "sampling"
        at_most[phase] = min(first, at_most.get(phase, first))
    checkpoint, others = CheckpointFolder(store.path / PRIVATE).load(at_most)
    problems += others
    if checkpoint is None:
        raise ValueError(
            f"path must hold a good checkpoint, but {str(store.path)!r} has none left "
            f"({'; '.join(problems)}); its draws so far open with "
            "amagold.load: begin the run again at another path"
        )
    share("read")  # before anything is written over
    for group in store.groups if is_first() else ():
        store.clear_damage(group)
    position = _position(target_of(target_or_sampler), description, init)
    sampler = _built(target_or_sampler, description.plan, checkpoint, position)
    return engine.restore(checkpoint, _form(sampler, description, position)), checkpoint, problems


def _position(target: Target, description: Description, init: trees.PyTree) -> trees.PyTree:
    """Something of the form of a position."""
    if description.position is not None:
        return description.position
    if init is None and target.init is None:
        raise ValueError(
            "init must be given, because this run's positions are of a class of your own; pass "
            "any position of the target"
        )
    return target.init if init is None else trees.as_position(sampled(target, init, "init"), "init")


def _form(sampler: Sampler, description: Description, position: trees.PyTree) -> Progress:
    """A warm-up that has not begun, with zeros for values: what is saved fits into it."""
    settings, plan, _ = description
    num_chains = settings.num_chains
    stacked = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((num_chains, *leaf.shape), leaf.dtype), position
    )
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), num_chains))
    states: State = jax.eval_shape(jax.vmap(sampler.init), stacked, keys)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), states)
    return begin(sampler, zeros, rules_of(sampler, plan, settings))


def _changes(store: ZarrStore, target: Target) -> list[str]:
    """What is not as it was when the run began."""
    found = []
    if fingerprint(target) != store.attributes["data_fingerprint"]:
        found.append(
            f"{OTHER_DATA}: the target's data are not those that the run began with, and its "
            "draws would mix two "
            "posteriors; "
            "pass the same data in the same order, or begin a new run"
        )
    before, now = store.attributes["versions"], versions()
    differing = [name for name in ("amagold", "jax", "platform") if before.get(name) != now[name]]
    if differing:
        changes = ", ".join(f"{name} {before.get(name)} -> {now[name]}" for name in differing)
        found.append(
            f"versions changed ({changes}): the draws stay correct, and may differ from an "
            "uninterrupted run by rounding"
        )
    return found


@jax.jit
def _remember(sampler: Sampler, positions: trees.PyTree) -> Any:
    return jax.vmap(sampler.remember)(positions)


def _unlike(reached: engine.Reached, checkpoint: Checkpoint) -> list[str]:
    """A sentence for each part of the target that is not what it was when the checkpoint was made,
    or cannot be compared.
    """
    target, positions = reached.sampler.target, reached.warmup.states.position
    parts = unlike_parts(checkpoint.arrays, target, positions)
    if parts is None:
        return _unlike_energy(reached)
    sentences = []
    for part, difference in parts.items():
        if np.isnan(difference):
            sentences.append(
                f"the target's {part} could not be compared with that of the run, because it is "
                "nowhere finite around the saved positions"
            )
        elif part == "domain":
            sentences.append(
                f"{OTHER_TARGET}: its domain holds other positions than it did, {MIXES}"
            )
        else:
            by = f" (by up to {difference:.3g})" if np.isfinite(difference) else ""
            sentences.append(
                f"{OTHER_TARGET}: its {part} around the saved positions is not what it was{by}, "
                f"{MIXES}"
            )
    return sentences


def _unlike_energy(reached: engine.Reached) -> list[str]:
    """The same for a checkpoint of an earlier version, which has nothing to compare but what the
    test remembers.
    """
    states = reached.warmup.states
    energy = jax.jit(jax.vmap(reached.sampler.energy))
    again = states._replace(memory=_remember(reached.sampler, states.position))
    before, now = energy(states), energy(again)
    if not jax.tree.leaves(before):
        return [
            "the target could not be compared with the one that began the run, which an earlier "
            "version of amagold stored without "
            "anything to know it by; make sure that it is the same, with the same prior and domain"
        ]
    before, now = np.asarray(before), np.asarray(now)
    if not np.all(np.abs(before - now) <= SAME_ENERGY * (1.0 + np.abs(before))):
        return [f"{OTHER_TARGET}: its energy at the saved positions is not the saved one, {MIXES}"]
    return [
        "the target was compared with the one that began the run by its energy alone, because an "
        "earlier version of amagold stored "
        "the run; make sure that it is the same, with the same prior and domain"
    ]


def _remember_again(reached: engine.Reached) -> engine.Reached:
    states = reached.warmup.states
    memory = _remember(reached.sampler, states.position)
    return reached._replace(warmup=reached.warmup._replace(states=states._replace(memory=memory)))
