"""What a sweep over the effects of a mixed model must know beforehand, from the sums at its
reference and one more pass over the rows.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from amagold.acceptance._effect_nesting import Nesting
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.acceptance._effect_terms import CrossedTable, FactorTerms, SharedMeans, ShrunkTerms
from amagold.acceptance._group_rows import group_rows
from amagold.core import trees
from amagold.mode._effect_mode import covariance_of, effects_of, fixed_prior
from amagold.mode._effect_solver import EffectSolver
from amagold.mode._effect_sums import EffectSums, effect_rows, forms_of, incidence
from amagold.mode._reference import Reference
from amagold.target import Posterior
from amagold.target._group_effects import FIXED, NOISE

SMALLEST_BLOCK = 64
SKEWED = 0.3  # skewness of a level's conditional, beyond which fresh draws alone would get stuck
ROOM = 1.0 + 1e-5  # of lengths, that float32 may round
DENSE_TABLE = 2**20  # entries of two factors' table, up to which it is kept whole
STRIDE = 2.4  # of a walk, in standard deviations


class WalkedFactor(NamedTuple):
    """What a walk over all rows told of one factor."""

    codes: np.ndarray  # of every row
    lengths: np.ndarray
    reach: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    tilts: np.ndarray
    thirds: np.ndarray  # sum of |t|^3 f'''


def untuned_effects(target: Posterior, sums: EffectSums) -> EffectSweep:
    """The sweep about a reference, before its angle, strides and noise are chosen."""
    forms, prior = forms_of(target), fixed_prior(target, sums.position[FIXED])
    precisions = [np.linalg.inv(covariance_of(sums.position, form)) for form in forms]
    solver, width = EffectSolver(sums, precisions), len(sums.gradient)
    border = np.concatenate([factor.border.reshape(-1, width) for factor in sums.factors])
    shifts = solver.solve(border)
    own = sums.matrix + prior.matrix - border.T @ shifts
    factor = np.linalg.cholesky(0.5 * (own + own.T))
    inverse = solve_triangular(factor, np.eye(width), lower=True)
    whitened = [part @ inverse.T for part in solver.split(shifts)]
    slopes = [
        part.gradient + effects_of(sums.position, form) @ precision
        for part, form, precision in zip(sums.factors, forms, precisions, strict=True)
    ]
    flat = np.concatenate([part.ravel() for part in slopes])
    slope = inverse @ (sums.gradient + prior.gradient - shifts.T @ flat)
    has_rows = NOISE not in sums.position
    norms = [np.linalg.cholesky(block) for block in solver.blocks]
    tilt, walked = np.zeros(width), [None] * len(forms)
    directions = _directions(solver) if len(forms) > 1 else None
    lengths = np.zeros(max(form.num_levels for form in forms))
    nesting = Nesting(forms)
    if has_rows:
        tilt, walked, lengths = _walk(target, sums, inverse, whitened, norms, directions, nesting)
    elif len(forms) > 1:
        for rows in effect_rows(target, sums.position):
            nesting.see(rows)
    factors = tuple(
        _terms(*each)
        for each in zip(
            forms,
            sums.factors,
            precisions,
            slopes,
            whitened,
            norms,
            walked,
            [sums.position] * len(forms),
            strict=True,
        )
    )
    center = {name: jnp.asarray(values, jnp.float32) for name, values in sums.position.items()}
    num_rows, squares = 0.0, 0.0
    if not has_rows:
        log_scale = float(sums.position[NOISE])
        num_rows = sums.weight * math.exp(2.0 * log_scale)
        squares = 2.0 * (sums.energy - num_rows * log_scale)
    return EffectSweep(
        bounds=target.bounds if has_rows else None,
        block_size=SMALLEST_BLOCK,
        num_rows=jnp.float32(num_rows),
        reference=Reference(center, jnp.zeros(trees.size(center), jnp.float32), None),
        factors=factors,
        crossed=_tables(sums),
        unwhitening=_single(inverse.T),
        slope=_single(slope),
        prior_slope=_single(inverse @ prior.gradient),
        prior_matrix=_single(inverse @ prior.matrix @ inverse.T),
        tilt=_single(tilt),
        angle=jnp.float32(math.pi / 2.0),
        slope_spread=jnp.float32(0.0),
        squares=jnp.float32(squares),
        means=None if directions is None else _shared_means(directions, lengths),
        nested=nesting.pairs(),
        shrunk=_shrunk_terms(target, sums, factor),
    )


def _terms(
    form: Any,
    sums: Any,
    precision: np.ndarray,
    slope: np.ndarray,
    shifts: np.ndarray,
    norm: np.ndarray,
    walked: WalkedFactor | None,
    position: dict[str, np.ndarray],
) -> FactorTerms:
    levels, zeros = form.num_levels, np.zeros(form.num_levels)
    blocks = sums.curvature + precision
    # 1 - 1 / (P sigma^2), the share of what is known of an effect that rows say
    shares = 1.0 - np.einsum("gaa->ga", np.linalg.inv(blocks)) * np.diag(precision)
    known = 1.0 + 2.0 * float(np.sum(np.mean(shares, axis=1) ** 2))
    size = form.num_effects + form.num_correlations
    widths = np.sqrt(np.einsum("gaa->ga", np.linalg.inv(blocks))).max(axis=1)
    is_single = form.num_effects == 1
    found = walked or WalkedFactor(
        np.zeros(0, np.int32), zeros, zeros, zeros, zeros, np.zeros((levels, 0)), zeros
    )
    return FactorTerms(
        form=form,
        rows=None if walked is None else group_rows(found.codes, levels),
        slope=_single(slope),
        curvature=_single(sums.curvature),
        center=_single(effects_of(position, form)),
        precision=_single(precision),
        shifts=_single(shifts),
        spans=_single(np.einsum("gap,gbq->abpq", shifts, shifts)),
        lengths=_single(found.lengths * ROOM),
        reach=_single(found.reach * ROOM),
        norm=_single(np.ones_like(norm) if is_single else norm),
        scales=_single(found.scales * ROOM),
        weights=_single(found.weights * ROOM),
        tilts=_single(found.tilts) if is_single and walked is not None else None,
        is_skewed=jnp.asarray(np.abs(found.thirds) * widths**3 > SKEWED),
        stride=jnp.full(size, STRIDE / math.sqrt(known * size), jnp.float32),
        effect_spread=jnp.float32(0.0),
        scale_spread=jnp.float32(0.0),
    )


def _walk(
    target: Posterior,
    sums: EffectSums,
    inverse: np.ndarray,
    shifts: list[np.ndarray],
    norms: list[np.ndarray],
    directions: list[np.ndarray] | None,
    nesting: Nesting,
) -> tuple[np.ndarray, list[WalkedFactor], np.ndarray]:
    """How long rows are in whitened coordinates, and what their third derivatives tilt."""
    forms, width = forms_of(target), len(inverse)
    likelihood: Any = target.log_likelihood
    bends_slowly = getattr(likelihood.outcome, "bends_slowly", False)
    parts = [
        WalkedFactor(
            np.empty(target.num_examples, np.int32),
            np.zeros(form.num_levels),
            np.zeros(form.num_levels),
            np.zeros(form.num_levels),
            np.zeros(form.num_levels),
            np.zeros((form.num_levels, width)),
            np.zeros(form.num_levels),
        )
        for form in forms
    ]
    largest = max(range(len(forms)), key=lambda number: forms[number].num_levels)
    longest = np.zeros(forms[largest].num_levels)
    tilt, start = np.zeros(width), 0
    for rows in effect_rows(target, sums.position):
        nesting.see(rows)
        own = np.asarray(rows.predictors, np.float64) @ inverse.T
        tables = []
        for form, codes, columns, drag in zip(forms, rows.codes, rows.columns, shifts, strict=True):
            tables.append(incidence(form, codes, columns))
            own -= tables[-1] @ drag.reshape(-1, width)
        squares = np.einsum("ij,ij->i", own, own)
        third = np.asarray(rows.third, np.float64)
        spread = squares.copy()
        stop = start + len(third)
        each = zip(forms, parts, norms, rows.codes, rows.columns, tables, strict=True)
        for form, part, norm, codes, columns, table in each:
            part.codes[start:stop] = codes
            columns = np.asarray(columns, np.float64)
            if form.num_effects == 1:
                reached = np.abs(columns[:, 0])
                part.tilts[...] += table.T @ ((third * columns[:, 0])[:, None] * own)
            else:
                # |t . eta| <= |norm^-1 t| |norm^T eta|
                solved = np.linalg.solve(norm[codes], columns[..., None])[..., 0]
                reached = np.sqrt(np.einsum("ij,ij->i", solved, solved))
                spread += reached**2
            np.maximum.at(part.lengths, codes, np.sqrt(squares))
            np.maximum.at(part.reach, codes, reached)
            np.maximum.at(part.scales, codes, np.asarray(rows.scales, np.float64))
            np.maximum.at(part.weights, codes, np.asarray(rows.second, np.float64))
            length = np.sqrt(np.einsum("ij,ij->i", columns, columns))
            part.thirds[...] += np.bincount(codes, third * length**3, form.num_levels)
        tilt += 0.5 * (third * spread) @ own
        if directions is not None:
            seen = sum(
                table @ part.reshape(-1, part.shape[-1])
                for table, part in zip(tables, directions, strict=True)
            )
            np.maximum.at(longest, rows.codes[largest], np.sqrt(np.sum(seen**2, axis=1)))
        start = stop
    if not bends_slowly:
        for part in parts:
            part.weights[...] = np.inf
    return tilt, parts, longest


def _directions(solver: EffectSolver) -> list[np.ndarray]:
    """D of every factor: (W + Q)^-1 E, scaled so that D (W + Q) D is one."""
    total = solver.ends[-1]
    means = np.zeros((total, len(solver.shapes)))
    for number, (levels, effects) in enumerate(solver.shapes):
        means[solver.ends[number] + effects * np.arange(levels), number] = 1.0 / levels
    solved = solver.solve(means)
    factor = np.linalg.cholesky(means.T @ solved)
    return solver.split(solve_triangular(factor, solved.T, lower=True).T)


def _shared_means(directions: list[np.ndarray], lengths: np.ndarray) -> SharedMeans:
    return SharedMeans(
        tuple(map(_single, directions)),
        tuple(_single(np.einsum("gam,gbn->abmn", part, part)) for part in directions),
        _single(lengths * ROOM),
        jnp.float32(0.0),
    )


def _shrunk_terms(target: Posterior, sums: EffectSums, root: np.ndarray) -> ShrunkTerms | None:
    prior: Any = target.log_prior
    if prior.shrunk is None:
        return None
    at = jnp.asarray(sums.position[FIXED], jnp.float32)
    return ShrunkTerms(
        prior.shrunk.horseshoe, _single(root), _single(prior.shrunk.guide.precisions(at))
    )


def _tables(sums: EffectSums) -> tuple[CrossedTable, ...]:
    found = []
    crossed: dict[tuple[int, int], Any] = sums.crossed
    for factors, table in crossed.items():
        if table.shape[0] * table.shape[1] <= DENSE_TABLE:
            found.append(CrossedTable(factors, _single(table.toarray()), None))
            continue
        pairs = table.tocoo()
        places = jnp.asarray(pairs.row, jnp.int32), jnp.asarray(pairs.col, jnp.int32)
        found.append(CrossedTable(factors, _single(pairs.data), places))
    return tuple(found)


def _single(numbers: Any) -> jax.Array:
    return jax.device_put(np.asarray(numbers, np.float64).astype(np.float32))
