"""`amagold resume RUN`: go on with a stored run."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from amagold.core.printable import printable


def run(
    path: str,
    target: str | None = None,
    max_time: float | None = None,
    table: str | None = None,
) -> None:
    """Go on where the run stopped, and print what came of it.

    Args:
      path: the folder of the run.
      target: MODULE:NAME of what the run was begun with: a target, a sampler, or a function that
        makes one. Runs of this library's own models planned by `amagold.sample` need none.
      max_time: seconds, or None.
      table: the file that was fitted, for runs of `amagold fit` on tables too large to be kept.
    """
    from amagold.core.devices import use_all_cores
    from amagold.sampling._description import open_store
    from amagold.sampling._resume import resume
    from amagold.sampling._stored_recipe import begun_with

    use_all_cores()
    store, _ = open_store(path, read_only=True)
    known = named(target) if target is not None else begun_with(store.path, table)
    if known is None:
        raise ValueError(
            "target must be named for a model of your own; give --target MODULE:NAME, a target or "
            "sampler, or a function that makes one"
        )
    result = resume(path, known, max_time=max_time)
    print(printable(str(result)))
    if result.posterior.sizes["draw"]:
        print(printable(result.summary().to_string()))


def named(reference: str) -> Any:
    """The object that MODULE:NAME refers to, called if it is a function. Modules of the current
    folder are found too.
    """
    module_name, separator, name = reference.partition(":")
    if not separator or not name:
        raise ValueError(
            f"target must be MODULE:NAME, got {reference!r}; for a variable `sampler` in model.py "
            "give model:sampler"
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    if not all(part.isidentifier() for part in module_name.split(".")):
        wrong = f"target must be MODULE:NAME with the module's full name, got {reference!r}"
        raise ValueError(f"{wrong}; for model.py give model:{name}")
    try:
        module = importlib.import_module(module_name)
    except Exception as reason:  # whatever the user's own code raises
        detail = str(reason) if isinstance(reason, ImportError) else _told(reason)
        wrong = f"target must name a module that can be imported, got {module_name!r}"
        raise ValueError(f"{wrong} ({detail})") from None
    try:
        found = getattr(module, name)
    except AttributeError:
        raise ValueError(
            f"target must name something in {module_name!r}, but it has no {name!r}"
        ) from None
    try:
        return found() if callable(found) else found
    except Exception as reason:
        wrong = f"target must make a target or a sampler, but {reference!r} raised {_told(reason)}"
        raise ValueError(f"{wrong}; mend it first") from None


def _told(reason: Exception) -> str:
    """An exception of the user's own code in one line, with the line that raised it."""
    frames = traceback.extract_tb(reason.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(reason).__name__}{where}: {' '.join(str(reason).split())}"
