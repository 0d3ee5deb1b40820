"""Horseshoe priors of coefficients, from what users say of them."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from amagold.priors import TermPrior
from amagold.target._horseshoe import Horseshoe, HorseshoeGuide

TAU_GUESS = 0.3  # of the width that data leave a coefficient, for a search to begin with


def horseshoe_and_guide(
    places: Sequence[Sequence[int]],
    priors: Sequence[TermPrior],
    units: np.ndarray,
    widths: np.ndarray,
) -> tuple[Horseshoe, HorseshoeGuide]:
    """The prior, and what takes its place in searches.

    Args:
      places: in the flat position, of the coefficients of each prior.
      priors: with a tau each.
      units: reported coefficients over sampled ones, for every place of the position.
      widths: how wide the data leave each number of the position.
    """
    flat = np.concatenate([np.asarray(each, np.int64) for each in places])
    groups = np.repeat(np.arange(len(priors)), [len(each) for each in places])
    units, widths = units[flat], widths[flat]
    # in the units of the coefficients
    guesses = [
        np.log(TAU_GUESS * np.median(np.abs(units * widths)[groups == group]))
        for group in range(len(priors))
    ]
    slabs = [0.0 if prior.slab is None else prior.slab**-2.0 for prior in priors]
    prior = Horseshoe(
        jnp.asarray(flat, jnp.int32),
        jnp.asarray(groups, jnp.int32),
        jnp.asarray(units, jnp.float32),
        jnp.asarray([one.scale for one in priors], jnp.float32),
        jnp.asarray(slabs, jnp.float32),
        len(priors),
    )
    guide = HorseshoeGuide(
        prior.places, jnp.asarray(widths, jnp.float32), jnp.asarray(guesses, jnp.float32)
    )
    return prior, guide
