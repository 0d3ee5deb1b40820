"""Horseshoe priors of coefficients beside effects of groups."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.mode._effect_sums import effect_rows
from amagold.mode._mode_search import standing_for_all
from amagold.models._chosen_horseshoes import horseshoe_and_guide
from amagold.models._scale import UserScale
from amagold.priors import TermPrior
from amagold.target import Posterior
from amagold.target._effects_prior import EffectsPrior
from amagold.target._group_effects import FIXED, TAU
from amagold.target._shrunk_coefficients import ShrunkCoefficients

FEW_EXAMPLES = 4096  # that tell how wide the data leave each coefficient


def with_shrinkage(
    target: Posterior,
    scale: UserScale | None,
    places: Sequence[Sequence[int]],
    priors: Sequence[TermPrior],
    words: tuple[str, ...],
) -> Posterior:
    """The target of a mixed model whose positions have log tau of each horseshoe too.

    Args:
      target: with usual priors of all coefficients.
      scale: of the coefficients; None where they are sampled as they are reported.
      places: in `theta`, of the coefficients of each prior.
      priors: horseshoes, on the user's scale.
      words: of the priors.
    """
    prior, init = target.log_prior, dict(target.init)
    assert isinstance(prior, EffectsPrior)
    size = len(init[FIXED])
    ends = [
        np.full(size, value) if scale is None else scale(np.full(size, value)) for value in (0, 1)
    ]
    units = np.asarray(ends[1] - ends[0], np.float64)
    horseshoe, guide = horseshoe_and_guide(places, priors, units, _widths(target))
    # a Gaussian as wide as can be says nothing
    fixed: Any = prior.fixed
    fixed = dataclasses.replace(fixed, scale=fixed.scale.at[horseshoe.places].set(jnp.inf))
    shrunk = ShrunkCoefficients(horseshoe, guide, words)
    return dataclasses.replace(
        target,
        log_prior=dataclasses.replace(prior, fixed=fixed, shrunk=shrunk),
        init={**init, TAU: np.asarray(guide.guesses)},
    )


def _widths(target: Posterior) -> np.ndarray:
    """How wide some of the data leave each coefficient, all others fixed."""
    few, weight = target, 1.0
    if target.num_examples > 2 * FEW_EXAMPLES:
        few, weight = standing_for_all(target, FEW_EXAMPLES)
    assert isinstance(few, Posterior)
    init: Any = target.init
    position = {name: np.asarray(values) for name, values in init.items()}
    curvature = sum(
        weight * np.asarray(rows.second, np.float64) @ np.asarray(rows.predictors, np.float64) ** 2
        for rows in effect_rows(few, position)
    )
    return np.where(curvature > 0.0, 1.0 / np.sqrt(np.maximum(curvature, 1e-12)), 1.0)
