"""Draws of a run as positions again, some at a time."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from amagold.core import checks, trees
from amagold.sampling import Run
from amagold.store._names import LONE, name_leaves

NUM_BYTES = 2**26  # of draws that are read together


def blocks_of_draws(
    run: Run, like: Any = None, num_draws: int | None = None, most: int = 1000
) -> Iterator[trees.PyTree]:
    """Positions stacked along a first axis, chain after chain, at most `most` at a time and no more
    than fit a share of the memory.

    Args:
      like: a position of the wanted form; None is that of the run's target, of a loaded run a dict
        by the names of its variables, or the array if it is one alone.
      num_draws: how many, spread evenly over all of them; None is all.
    """
    posterior = run.posterior
    num_chains, length = posterior.sizes["chain"], posterior.sizes["draw"]
    total = num_chains * length
    if not total:
        raise ValueError("run must have draws, got none; sample some first")
    wanted = np.arange(total)
    if num_draws is not None:
        checks.whole_number("num_draws", num_draws, at_least=1, remedy="give how many to take")
        wanted = np.unique(np.linspace(0, total - 1, min(num_draws, total)).round().astype(int))
    form = _form(run, like)
    names = list(form) if isinstance(form, dict) else list(name_leaves(form[0]))
    size = sum(posterior[name].nbytes for name in names) // total
    most = max(1, min(most, NUM_BYTES // max(size, 1)))
    for chain in range(num_chains):
        here = wanted[(wanted >= chain * length) & (wanted < (chain + 1) * length)] - chain * length
        for start in range(0, len(here), most):
            chosen = posterior[names].isel(chain=chain, draw=here[start : start + most])
            arrays = {name: chosen[name].to_numpy() for name in names}
            if isinstance(form, dict):
                yield arrays[LONE] if names == [LONE] else arrays
            else:
                yield jax.tree.unflatten(form[1], [arrays[name] for name in names])


def _form(run: Run, like: Any) -> Any:
    """The names of the variables, or a position and its form."""
    by_name = dict.fromkeys(str(name) for name in run.posterior)
    target = getattr(run.sampler, "target", None)
    guess = like if like is not None else getattr(target, "init", None)
    if guess is None:
        return by_name
    if set(name_leaves(guess)) <= set(by_name):
        return guess, jax.tree.structure(guess)
    if like is not None:
        raise ValueError(
            f"like must have the run's variables ({', '.join(by_name)}), got "
            f"{', '.join(name_leaves(like))}; give a position of the run's own target"
        )
    return by_name
