"""`amagold resume RUN`: go on with a stored run."""

import importlib
import sys
from pathlib import Path
from typing import Any


def run(path: str, target: str | None = None, max_time: float | None = None) -> None:
    """Go on where the run stopped, and print what came of it.

    Args:
      path: the folder of the run.
      target: MODULE:NAME of what the run was begun with: a target, a sampler, or a function that makes one. Runs of this library's own
        models planned by `amagold.sample` need none.
      max_time: seconds, or None.
    """
    from amagold.run.devices import use_all_cores
    from amagold.sampling.description import open_store
    from amagold.sampling.recipe import load_recipe
    from amagold.sampling.resume import resume

    use_all_cores()
    store, _ = open_store(path, read_only=True)
    begun_with = load_recipe(store.path) if target is None else named(target)
    if begun_with is None:
        raise ValueError(
            "target must be named for a model of your own; give --target MODULE:NAME, a target or sampler, or a function that makes one"
        )
    result = resume(path, begun_with, max_time=max_time)
    print(result)
    if result.posterior.sizes["draw"]:
        print(result.summary().to_string())


def named(reference: str) -> Any:
    """The object that MODULE:NAME refers to, called if it is a function. Modules of the current folder are found too."""
    module_name, separator, name = reference.partition(":")
    if not separator or not name:
        raise ValueError(f"target must be MODULE:NAME, got {reference!r}; for a variable `sampler` in model.py give model:sampler")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module_name), name)
    except ImportError as reason:
        raise ValueError(f"target must name a module that can be imported, got {module_name!r} ({reason})") from None
    except AttributeError:
        raise ValueError(f"target must name something in {module_name!r}, but it has no {name!r}") from None
    return found() if callable(found) else found
