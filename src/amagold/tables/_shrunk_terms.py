"""Horseshoe priors of terms: log tau of every one joins the position, where the likelihood does not
see it.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from amagold.core import trees
from amagold.mode._derivatives import derivatives_at
from amagold.mode._mode_search import standing_for_all
from amagold.models._chosen_horseshoes import horseshoe_and_guide
from amagold.models._gaussian_sums import GaussianSums
from amagold.models._regression import BesidePredictor, Likelihood, Predictor, SharedPredictor
from amagold.priors import TermPrior
from amagold.tables._term_codes import INTERCEPT
from amagold.tables._term_scale import LOG_TAU, TermScale
from amagold.target import Posterior
from amagold.target._horseshoe import Horseshoe, HorseshoeGuide

FEW_EXAMPLES = 4096  # that tell how wide the data leave each coefficient
MOST_NAMES = 8  # of terms that are said
UNEQUAL = 10.0  # ratio of the widths of columns that should not have one tau


class Shrunk(NamedTuple):
    """Terms with one horseshoe."""

    terms: tuple[str, ...]
    prior: TermPrior
    tau: str  # what the draws of its scale are called

    @property
    def words(self) -> str:
        shown = list(self.terms)
        if len(shown) > MOST_NAMES:
            shown = [*shown[: MOST_NAMES - 1], "...", f"{shown[-1]} ({len(shown)} terms)"]
        return f"{', '.join(shown)} ~ {self.prior} with the scale {self.tau}"


def named_horseshoes(chosen: list[tuple[tuple[str, ...], TermPrior]]) -> tuple[Shrunk, ...]:
    """A single term's tau has its name; that of several is "horseshoe_tau"."""
    found, several = [], 0
    for terms, prior in chosen:
        several += len(terms) > 1
        number = f"_{several}" if several > 1 else ""
        tau = f"{terms[0]}_tau" if len(terms) == 1 else f"horseshoe_tau{number}"
        found.append(Shrunk(terms, prior, tau))
    return tuple(found)


def check_names(shrunk: tuple[Shrunk, ...], names: set[str], noise: str | None) -> None:
    """That what a horseshoe is given to can be shrunk, and its scale has a name of its own."""
    for one in shrunk:
        if one.tau in names or one.tau == noise:
            raise ValueError(
                f"table must not have a column called {one.tau!r} beside a horseshoe prior, whose "
                "scale has that name; rename it"
            )
        if INTERCEPT in one.terms or noise in one.terms:
            raise ValueError(
                f"priors must not give a horseshoe to {INTERCEPT!r} or {noise!r}, which are "
                "no coefficients that may be zero; name the terms to shrink"
            )


def with_taus(target: Posterior, shrunk: tuple[Shrunk, ...]) -> Posterior:
    """The target whose positions have log tau of each horseshoe beside the others, without its
    prior yet.
    """
    scale = target.transform
    assert isinstance(scale, TermScale)
    check_names(shrunk, {term.name for term in scale.terms}, scale.noise)
    log_tau = np.zeros(len(shrunk), np.float32)
    init = target.init if isinstance(target.init, dict) else {"coefficients": target.init}
    likelihood, bounds = target.log_likelihood, target.bounds
    if isinstance(likelihood, Likelihood):
        predictor = _beside(likelihood.predictor)
        likelihood = dataclasses.replace(likelihood, predictor=predictor)
        bounds = likelihood.outcome.bounds(predictor)
    else:
        assert isinstance(likelihood, GaussianSums)
    return dataclasses.replace(
        target,
        log_likelihood=likelihood,
        bounds=bounds,
        init={**init, LOG_TAU: log_tau},
        transform=dataclasses.replace(scale, taus=tuple(one.tau for one in shrunk)),
    )


def _beside(predictor: Any) -> Any:
    """The same predictor of positions that have log tau too. Codes are looked up all the same, but
    their second derivatives are those of any rows.
    """
    if isinstance(predictor, SharedPredictor):
        usual = Predictor(predictor.coefficients.is_contrast)
        return SharedPredictor(usual, predictor.shared, predictor.num_shared)
    return BesidePredictor(predictor.is_contrast)


def horseshoe_of(target: Posterior, shrunk: tuple[Shrunk, ...]) -> tuple[Horseshoe, HorseshoeGuide]:
    """The prior of the target's positions, and what takes its place in the search for a mode."""
    scale, init = target.transform, target.init
    assert isinstance(scale, TermScale)
    shape = np.shape(init["coefficients"])
    num_columns = 1 if len(shape) == 1 else shape[1]  # a coefficient for each class
    of_term = {term.name: term.places for term in scale.terms}
    places = [
        [
            place * num_columns + column
            for name in one.terms
            for place in of_term[name]
            for column in range(num_columns)
        ]
        for one in shrunk
    ]
    priors = [one.prior for one in shrunk]
    return horseshoe_and_guide(places, priors, _units(scale, init), _widths(target))


def doubts_about(shrunk: tuple[Shrunk, ...], prior: Horseshoe) -> tuple[str, ...]:
    """One tau for columns in units that differ much says little about any of them."""
    found = []
    for group, one in enumerate(shrunk):
        units = np.abs(np.asarray(prior.units))[np.asarray(prior.groups) == group]
        ratio = float(units.max() / units.min())
        if ratio > UNEQUAL:
            found.append(
                f"the terms of the horseshoe with the scale {one.tau!r} have columns whose widths "
                f"differ by a factor of {ratio:.0f}, and one scale for all their coefficients; "
                "standardise them, as in scale(x)"
            )
    return tuple(found)


def _units(scale: TermScale, init: dict[str, Any]) -> np.ndarray:
    """Reported coefficients over sampled ones; slopes do not depend on each other."""
    shape = np.shape(init["coefficients"])
    if scale.scale is None:
        return np.ones(int(np.prod(shape)))
    on_scale: Any = scale.scale
    ends = [on_scale(np.full(shape, value)) for value in (0.0, 1.0)]
    return np.ravel(ends[1] - ends[0])


def _widths(target: Posterior) -> np.ndarray:
    """How wide some of the data leave each number of the position, all others fixed."""
    few, weight = target, 1.0
    if target.num_examples > 2 * FEW_EXAMPLES:
        few, weight = standing_for_all(target, FEW_EXAMPLES)
    assert isinstance(few, Posterior)
    hessian = derivatives_at(few, trees.as_position(target.init), 2).hessian
    curvature = weight * np.diag(np.asarray(hessian, np.float64))
    return np.where(curvature > 0.0, 1.0 / np.sqrt(np.maximum(curvature, 1e-12)), 1.0)
