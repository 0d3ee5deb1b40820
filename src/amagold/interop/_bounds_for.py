"""Bounds for likelihoods that are recognised: exact tests on a few rows without asking."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.data import InMemory
from amagold.interop._affine_trace import evaluate
from amagold.interop._cut_likelihood import CutLikelihood, found_for
from amagold.interop._observed_site import MOST_HELD, ObservedSite
from amagold.interop._one_row import InsideLikelihood, NumpyroModel
from amagold.interop._site_outcomes import SiteOutcome, SitePredictor, family_of, linear_bounds
from amagold.interop._traced_numbers import FIXED, LOG_AFFINE, Traced
from amagold.target import LinearBounds

NUM_EXAMPLES = 4096  # by which the scale of the noise is estimated
TOLERANCE = 2e-3  # of a log likelihood, beside that much of one
SCALES = 0.1, 1.0  # of the positions at which likelihoods are compared


@trees.record(static=("predictor", "outcome"))
class ComposedLikelihood:
    """log p(row | theta) = outcome(z, row), z affine in theta."""

    predictor: SitePredictor
    outcome: SiteOutcome

    @property
    def composition(self) -> tuple[Any, Any]:
        """Of which it is nothing but the composition: bounds of these two need no comparison."""
        return self.predictor, self.outcome

    def __call__(self, position: trees.PyTree, example: trees.PyTree) -> jax.Array:
        return self.outcome(self.predictor(position, example), example)


def bounds_for(
    likelihood: InsideLikelihood, position: dict[str, Any], rows: InMemory
) -> tuple[InsideLikelihood | ComposedLikelihood | CutLikelihood, LinearBounds | None]:
    """The likelihood and its bounds: composed of a linear predictor and a known outcome where that
    is proved; else of a few affine numbers and the rest of its program, if bounds of that are
    found; else as it is, without bounds, and with a note that says why.
    """
    if trees.size(likelihood.held) > MOST_HELD:
        note = (
            "No bounds of the likelihood were looked for, because arrays beside the rows hold "
            f"more than {MOST_HELD} numbers: exact tests look at all data."
        )
        return dataclasses.replace(likelihood, note=note), None
    known = _known(likelihood, position, rows)
    if known is not None:
        return known
    found = found_for(likelihood, position, rows.rows(np.int32(0)))
    if isinstance(found, str):
        return dataclasses.replace(likelihood, note=found), None
    if not _agree(likelihood, found[0], position, rows):
        note = (
            "No bounds of the likelihood are known, because what was read off its program differs "
            "from it by more than rounding: exact tests look at all data."
        )
        return dataclasses.replace(likelihood, note=note), None
    return found


def _known(
    likelihood: InsideLikelihood, position: dict[str, Any], rows: InMemory
) -> tuple[ComposedLikelihood, LinearBounds] | None:
    """Of a distribution that is known."""
    site = ObservedSite.of(likelihood, position)
    kind, found = _look(site, position, rows.rows(np.int32(0)))
    family = family_of(kind, found)
    if family is None:
        return None
    unit = 1.0
    if found.get("scale", Traced("", None)).kind == LOG_AFFINE:
        unit = _noise_scale(site, position, rows)
    bounds = linear_bounds(site, family, unit)
    if bounds is None:
        return None
    composed = ComposedLikelihood(SitePredictor(site, unit), SiteOutcome(site, unit))
    counts_once = np.asarray(_weights(site, rows.arrays)).min() >= 0.0
    return (
        (composed, bounds) if counts_once and _agree(likelihood, composed, position, rows) else None
    )


def _look(site: ObservedSite, position: Any, example: Any) -> tuple[type | None, dict[str, Traced]]:
    """The kinds of the site's numbers; nothing is computed but constants."""
    kept: list[Any] = []

    def run(position: Any, example: Any) -> None:
        kept.append(site.at(position, example))

    jax.eval_shape(run, position, example)
    return kept[-1]


def _noise_scale(site: ObservedSite, position: Any, rows: InMemory) -> float:
    """About the standard deviation of what a least squares fit to a few rows leaves, as a power of
    two: any unit is exact, and one near the noise's scale makes bounds small.
    """
    found = _design(site, position, rows.some(NUM_EXAMPLES).arrays)
    y, slopes = (np.asarray(each, np.float64) for each in found)
    columns = slopes[:, np.abs(slopes).max(axis=0) > 0.0]
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    freedom = max(1, len(y) - columns.shape[1])
    scale = math.sqrt(float(left @ left) / freedom)
    return 2.0 ** round(math.log2(scale)) if 0.0 < scale < math.inf else 1.0


@jit(ONCE, "site")
def _design(site: ObservedSite, position: Any, rows: Any) -> tuple[jax.Array, jax.Array]:
    """What is left to explain at the position, and the slopes of the predictor."""
    predictor = SitePredictor(site, 1.0)

    def one(example: Any) -> tuple[jax.Array, jax.Array]:
        z, slopes = jax.value_and_grad(lambda at: predictor(at, example)[0])(position)
        return site.of_row(example)["outcome"] - z, trees.flatten(slopes)

    return jax.vmap(one)(rows)


def _agree(likelihood: InsideLikelihood, composed: Any, position: Any, rows: InMemory) -> bool:
    """Whether every row is as likely by both."""
    random = np.random.default_rng(0)
    for scale in SCALES:
        at = jax.tree.map(
            lambda leaf, scale=scale: np.float32(scale * random.uniform(-1.0, 1.0, leaf.shape)),
            position,
        )
        ours, theirs = map(np.asarray, _compared(likelihood, composed, at, rows.arrays))
        is_finite = np.isfinite(theirs)
        near = np.abs(ours - theirs) <= TOLERANCE * (1.0 + np.abs(theirs))
        if not is_finite.any() or not np.all(near | ~is_finite):
            return False
    return True


@jit(ONCE)
def _compared(likelihood: Any, composed: Any, position: Any, rows: Any) -> Any:
    def one(example: Any) -> tuple[jax.Array, jax.Array]:
        return composed(position, example), likelihood(position, example)

    return jax.vmap(one)(rows)


@jit(ONCE, "site")
def _weights(site: ObservedSite, rows: Any) -> jax.Array:
    """How often each row counts."""
    return jax.vmap(lambda example: site.of_row(example)["weight"])(rows)


def is_log_concave(model: NumpyroModel, position: Any, rows: Any, held: Any) -> bool:
    """Whether the prior is known to be: independent normal sites, whose parameters are fixed, and
    nothing else outside the plate.
    """
    is_normal: list[bool] = []

    def parameters(position: Any, row: Any) -> Any:
        values = model.constrained(position, row, held)
        found = []
        for name, site in model.sites(values, row, held).items():
            if site["type"] != "sample" or (name not in position and site["is_observed"]):
                is_inside = any(f.name == model.plate for f in site.get("cond_indep_stack", ()))
                is_normal.append(site["type"] != "sample" or is_inside)
                continue
            fn = site["fn"]
            while hasattr(fn, "base_dist"):
                fn = fn.base_dist
            is_normal.append(type(fn) is distributions.Normal)
            found += jax.tree.leaves(fn)
        return [jnp.asarray(leaf) for leaf in found]

    kinds = _kinds(parameters, position, rows)
    return all(is_normal) and all(kind in FIXED for kind in kinds)


def _kinds(function: Any, position: Any, rows: Any) -> list[str]:
    kept: list[Traced] = []

    def run(position: Any, rows: Any) -> None:
        is_traced = lambda leaf: isinstance(leaf, Traced)  # noqa: E731
        kept.extend(jax.tree.leaves(evaluate(function, position, rows), is_leaf=is_traced))

    jax.eval_shape(run, position, rows)
    return [each.kind for each in kept]
