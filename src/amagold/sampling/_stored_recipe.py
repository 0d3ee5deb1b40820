"""A ready-made model kept beside its run, so that `amagold resume` needs nothing else."""

from pathlib import Path
from typing import Any

from amagold.core.files import UNUSABLE, read_whole, write_whole
from amagold.store._checkpoint import Checkpoint, DamagedError, decode, encode
from amagold.store._root import PRIVATE
from amagold.target import Target

MOST_BYTES = 64 * 2**20  # of data are copied into the run; larger data stay where they are
MOST_FILE_BYTES = MOST_BYTES + 2**20  # with what describes them
NAME = "model"


def begun_with(folder: Path, table: Any = None) -> Any:
    """What a stored run was begun with, made of what lies beside it: the posterior of a formula, or
    a ready-made model; None for a target of one's own.

    Args:
      folder: of the run.
      table: the table that was fitted, where it was too large to be kept.
    """
    from amagold.tables._stored_model import load_model  # late: most runs are of no table

    model = load_model(folder)
    if model is not None:
        return model.known_target(table)
    if table is not None:
        raise ValueError("table must not be given for a run that was not fitted to one")
    return load_recipe(folder)


def save_recipe(folder: Path, target: Target) -> None:
    """Keep the model of a run, if it is one of this library's and not large."""
    from amagold.models._recipes import recipe_of  # late: a target of one's own needs no models

    recipe = recipe_of(target)
    if recipe is not None and sum(array.nbytes for array in recipe[1].values()) <= MOST_BYTES:
        write_whole(
            folder / PRIVATE / NAME,
            encode(Checkpoint("model", 0, recipe[1], recipe[0])),
            durable=False,
        )


def load_recipe(folder: Path) -> Target | None:
    """The model that was kept; None when there is none."""
    from amagold.models._recipes import build_again

    file = folder / PRIVATE / NAME
    if not file.exists():
        return None
    try:
        kept = decode(read_whole(file, MOST_FILE_BYTES))
        target = build_again(kept.notes, kept.arrays)
        target.check(target.init)
        return target
    # the builders say what is wrong with settings of any type, each in its own way
    except (DamagedError, OSError, MemoryError, *UNUSABLE) as reason:
        is_told = isinstance(reason, (DamagedError, ValueError))
        detail = str(reason) if is_told else f"{type(reason).__name__}: {reason}"
        wrong = f"path must hold the model of the run, but {str(file)!r} is damaged: {detail}"
        raise ValueError(f"{wrong}; name it with --target") from None
