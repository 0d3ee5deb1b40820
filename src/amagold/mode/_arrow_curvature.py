"""The curvature of a posterior with groups, as an arrow over all its parameters: what a mass of
that shape is made of.

For a mixed model it is the mean curvature about the reference rather than the curvature there: with
u_g ~ N(m_g, V_g) given the scales, and Q = Sigma^-1 a function of log scales and correlations phi,

    E[d^2 / d phi d phi] = d^2 / d phi d phi (G log |Sigma| + tr(Q T)) / 2,
    E[d^2 / d u_g d phi] = (d Q / d phi) m_g,  T = sum_g m_g m_g^T + V_g.

At the reference itself, where effects are shrunk, scales would look less curved than they are, and
not curved up at all where groups are small.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import block_diag

from amagold.core.compiling import ONCE, jit
from amagold.data import InMemory
from amagold.mode._arrow import Arrow, arrow_mode, layout_of
from amagold.mode._effect_mode import covariance_of, effects_of, find_reference, fixed_prior
from amagold.mode._effect_solver import EffectSolver
from amagold.mode._effect_sums import EffectSums, forms_of
from amagold.target import Posterior, Target
from amagold.target._effects_prior import (
    EffectsPrior,
    PriorOfScales,
    scale_factor,
    whitened_effects,
)
from amagold.target._group_effects import FIXED, NOISE, correlation_name, scale_name

LEAST = 1.0  # curvature of a scale that stands apart
MOST_BORDER = 512  # parameters that all levels know of, whose own matrix is factorised


class ArrowCurvature(NamedTuple):
    """D, B^T and A, the curvatures of parameters that stand alone, and which parameter is what."""

    sections: tuple[tuple[str, int], ...]  # kinds and how many, in the order of the position
    blocks: np.ndarray  # D, (levels, effects, effects)
    border: np.ndarray  # B^T, (levels, effects, border)
    corner: np.ndarray  # A
    alone: np.ndarray
    scales: np.ndarray  # which of the border are log scales and correlations

    def without_scales(self) -> "ArrowCurvature":
        """The same with scales apart from everything else: positive wherever the rest is."""
        border, corner = self.border.copy(), self.corner.copy()
        own = np.maximum(np.diagonal(corner)[self.scales], LEAST)
        border[..., self.scales] = corner[self.scales] = corner[:, self.scales] = 0.0
        corner[self.scales, self.scales] = own
        return self._replace(border=border, corner=corner)


class ScaleCurvature(NamedTuple):
    """Of one factor's log scales and correlations, phi."""

    own: np.ndarray  # (phi, phi)
    of_effects: np.ndarray  # with the effects, (levels x effects, phi)


def is_mixed(target: Target) -> bool:
    """Whether the target is a mixed model whose rows can be summed."""
    return (
        isinstance(target, Posterior)
        and isinstance(target.examples, InMemory)
        and target.examples.is_concrete
        and isinstance(target.log_prior, EffectsPrior)
        and target.domain is None
    )


def arrow_curvature(target: Target) -> ArrowCurvature | None:
    """Of a mixed model about its reference, or of a regression with a factor at its mode; None
    for any other target, and where no such place is found.
    """
    if is_mixed(target):
        assert isinstance(target, Posterior)
        sums = find_reference(target)
        return None if sums is None else effects_curvature(target, sums)
    if not isinstance(target, Posterior) or not isinstance(target.examples, InMemory):
        return None
    if target.bounds is None or not target.has_one_mode or not target.examples.is_concrete:
        return None
    layout = layout_of(target, target.bounds)
    if layout is None or len(layout.slopes) > MOST_BORDER:
        return None
    arrow = arrow_mode(target, target.bounds, layout)
    return None if arrow is None else levels_curvature(arrow)


def levels_curvature(arrow: Arrow) -> ArrowCurvature:
    """Of a factor whose level 0 has no coefficient."""
    groups, size = arrow.layout.groups, len(arrow.position)
    runs = ("border", groups.start), ("blocks", groups.stop - groups.start)
    sections = (*runs, ("border", size - groups.stop))
    return ArrowCurvature(
        sections,
        arrow.precisions[1:, None, None],
        arrow.border[1:, None, :],
        arrow.slope_matrix,
        np.zeros(0),
        np.zeros(0, int),
    )


def scale_names(name: str) -> tuple[str, str]:
    """What a position calls a factor's log scales and the free numbers of their correlations."""
    return scale_name(name), correlation_name(name)


def kinds_of(target: Posterior) -> dict[str, str]:
    """What each name of a mixed model's position is: the largest factor is the blocks, and others
    belong to the border while it is small.
    """
    forms = forms_of(target)
    init: Any = target.init
    sizes = [form.num_levels * form.num_effects for form in forms]
    main = int(np.argmax(sizes))
    scales = sum(form.num_effects + form.num_correlations for form in forms)
    width = len(init[FIXED]) + scales + sum(sizes) - sizes[main]
    kinds = {name: "border" for name in init}
    for number, form in enumerate(forms):
        if number == main:
            kinds[form.name] = "blocks"
        elif width > MOST_BORDER:
            kinds.update(dict.fromkeys((form.name, *scale_names(form.name)), "alone"))
    if NOISE in init:
        kinds[NOISE] = "alone"  # residuals tell it, and hardly anything else does
    return kinds


def sections_of(target: Posterior) -> tuple[tuple[str, int], ...]:
    """Of a mixed model, in the order of its position's leaves."""
    kinds = kinds_of(target)
    leaves = jax.tree_util.tree_flatten_with_path(target.init)[0]
    return tuple((kinds[path[0].key], int(np.size(leaf))) for path, leaf in leaves)


def effects_curvature(target: Posterior, sums: EffectSums) -> ArrowCurvature:
    """Of a mixed model about the place that the sums were taken at."""
    kinds, forms = kinds_of(target), forms_of(target)
    precisions = [np.linalg.inv(covariance_of(sums.position, form)) for form in forms]
    pieces = _pieces(target, sums, EffectSolver(sums, precisions))
    blocks = next(name for name, kind in kinds.items() if kind == "blocks")
    border, alone = (
        [name for name in sorted(kinds) if kinds[name] == kind and name in sums.position]
        for kind in ("border", "alone")
    )
    levels, effects = pieces[blocks, blocks].shape[:2]
    parts = [pieces.get((blocks, name), 0.0) for name in border]
    of_scales = {name for form in forms for name in scale_names(form.name)}
    is_scale = [np.full(np.size(sums.position[name]), name in of_scales) for name in border]
    return ArrowCurvature(
        sections_of(target),
        pieces[blocks, blocks],
        _side_by_side(sums.position, border, parts, levels * effects).reshape(levels, effects, -1),
        np.concatenate(
            [
                _side_by_side(
                    sums.position,
                    border,
                    [_between(pieces, one, other) for other in border],
                    np.size(sums.position[one]),
                )
                for one in border
            ]
        ),
        np.concatenate([np.zeros(0), *(_diagonal(pieces[name, name]) for name in alone)]),
        np.flatnonzero(np.concatenate(is_scale)),
    )


def _pieces(
    target: Posterior, sums: EffectSums, solver: EffectSolver
) -> dict[tuple[str, str], np.ndarray]:
    """The curvature by pairs of names, each pair once; (levels, effects, effects) for a factor with
    itself, matrices for others.
    """
    forms, prior = forms_of(target), target.log_prior
    assert isinstance(prior, EffectsPrior)
    width = len(sums.gradient)
    found = {(FIXED, FIXED): sums.matrix + fixed_prior(target, sums.position[FIXED]).matrix}
    for number, (form, own) in enumerate(zip(forms, prior.factors, strict=True)):
        name, size = form.name, form.num_effects
        found[name, name] = solver.blocks[number]
        found[name, FIXED] = sums.factors[number].border.reshape(-1, width)
        scales = _scale_curvature(sums, own, solver.inverses[number])
        log_scale, free = scale_names(name)
        found[log_scale, log_scale] = scales.own[:size, :size]
        found[name, log_scale] = scales.of_effects[:, :size]
        if form.num_correlations:
            found[free, free] = scales.own[size:, size:]
            found[log_scale, free] = scales.own[:size, size:]
            found[name, free] = scales.of_effects[:, size:]
    for (one, other), table in sums.crossed.items():
        found[forms[one].name, forms[other].name] = table.toarray()
        found[forms[other].name, forms[one].name] = found[forms[one].name, forms[other].name].T
    if prior.noise is not None:
        # sum_i e_i^2 / s^2 is about as many as there are rows
        rows = sums.weight * np.exp(2.0 * float(sums.position[NOISE]))
        bend = jax.grad(jax.grad(prior.noise))(jnp.asarray(sums.position[NOISE], jnp.float32))
        found[NOISE, NOISE] = np.full((1, 1), 2.0 * rows + max(0.0, -float(bend)))
    return found


def _between(pieces: dict[tuple[str, str], np.ndarray], one: str, other: str) -> Any:
    """The matrix of two names; zero where they do not know of each other."""
    if one == other and pieces[one, one].ndim == 3:
        return block_diag(*pieces[one, one])
    if (one, other) in pieces:
        return pieces[one, other]
    return pieces[other, one].T if (other, one) in pieces else 0.0


def _side_by_side(
    position: dict[str, np.ndarray], names: list[str], parts: list[Any], height: int
) -> np.ndarray:
    shapes = [(height, np.size(position[name])) for name in names]
    return np.hstack(
        [np.broadcast_to(part, shape) for part, shape in zip(parts, shapes, strict=True)]
    )


def _diagonal(piece: np.ndarray) -> np.ndarray:
    return np.einsum("...aa->...a", piece).ravel()


def _scale_curvature(
    sums: EffectSums, prior: PriorOfScales, inverses: np.ndarray
) -> ScaleCurvature:
    form, position = prior.form, sums.position
    effects = effects_of(position, form)
    # rows whose squares are T, so that they stand for all levels
    root = np.linalg.cholesky(effects.T @ effects + inverses.sum(axis=0)).T
    log_scales = np.reshape(position[scale_name(form.name)], -1)
    free = position[correlation_name(form.name)] if form.num_correlations else np.zeros(0)
    at = np.concatenate([log_scales, free])
    given = (jnp.asarray(part, jnp.float32) for part in (at, root, effects))
    found = _of_scales(prior, *given)
    own, of_effects = (np.asarray(part, np.float64) for part in found)
    return ScaleCurvature(own, of_effects.reshape(-1, len(at)))


@jit(ONCE)
def _of_scales(
    prior: PriorOfScales, at: jax.Array, root: jax.Array, effects: jax.Array
) -> tuple[jax.Array, jax.Array]:
    size = prior.form.num_effects

    def squares(phi: jax.Array, rows: jax.Array) -> jax.Array:
        columns = whitened_effects(rows, scale_factor(phi[:size], phi[size:]))
        return 0.5 * jnp.sum(jnp.stack(columns) ** 2)

    def energy(phi: jax.Array) -> jax.Array:
        logs = sum(jnp.log(row[-1]) for row in scale_factor(phi[:size], phi[size:]))
        own = prior(phi[:size], phi[size:])
        return squares(phi, root) + prior.form.num_levels * logs - own

    along = jax.jacfwd(jax.grad(squares, argnums=1))
    return jax.hessian(energy)(at), along(at, effects)
