"""What all rows say of a mixed model about a reference, to second order: sums by level, never a
matrix of levels x levels of one factor.

With delta and omega the distances of coefficients and effects from the reference, f' and w = f''
the derivatives of a row's energy there, t the columns of a factor's effects,

    sum_i f_i = r . delta + delta A delta / 2 + sum_f [s_f . omega_f + delta b_f^T omega_f]
              + sum_{f, l} omega_f W_fl omega_l / 2 + remainders

W_ff is diagonal but for blocks of a level's own effects; W_fl has an entry where two levels meet in
a row. Derivatives are those of the device in float32, sums are in float64 on the host, a chunk of
rows at a time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import Position, Whole
from amagold.data import Data
from amagold.data._neighbours import neighbours
from amagold.target import Posterior
from amagold.target._effects_prior import FactorForm
from amagold.target._group_effects import FIXED, GroupedLikelihood
from amagold.target._linear_bounds import LinearBounds

CHUNK = 2**23  # numbers of predictors that are looked at together
SHORTEST = 1024  # rows of a chunk


class EffectRows(NamedTuple):
    """Of some rows: predictors, levels, and derivatives of the energy in z at a position."""

    predictors: Any  # x
    codes: Any  # of each factor
    columns: Any  # of each factor, ones where it has none
    value: Any  # f
    first: Any
    second: Any
    third: Any
    scales: Any  # scale_i of the bounds


class FactorSums(NamedTuple):
    """Of one factor, by level."""

    gradient: np.ndarray  # s, (levels, effects)
    curvature: np.ndarray  # W, (levels, effects, effects)
    border: np.ndarray  # b, (levels, effects, coefficients)


class EffectSums(NamedTuple):
    """Of all rows at a position."""

    position: dict[str, np.ndarray]  # as the device has it
    energy: float  # sum f
    weight: float  # sum w
    gradient: np.ndarray  # r
    matrix: np.ndarray  # A
    factors: tuple[FactorSums, ...]
    crossed: dict[tuple[int, int], sparse.csr_matrix]  # W_fl for f < l, over levels x effects


def forms_of(target: Posterior) -> tuple[FactorForm, ...]:
    prior: Any = target.log_prior
    return tuple(factor.form for factor in prior.factors)


def effect_rows(target: Posterior, position: dict[str, np.ndarray]) -> Iterator[EffectRows]:
    """Of all rows, a chunk at a time."""
    data = target.examples
    likelihood: Any = target.log_likelihood
    width = max(len(position[FIXED]), 8)
    length = min(max(CHUNK // width, SHORTEST), data.num_examples)
    at = {name: jnp.asarray(values, jnp.float32) for name, values in position.items()}
    for start in range(0, data.num_examples, length):
        begin = min(start, data.num_examples - length)  # the last is as long as the others
        found = _of_rows(target.bounds, likelihood, at, data, jnp.int32(begin), length)
        new = slice(start - begin, None)
        yield jax.tree.map(lambda leaf, new=new: np.asarray(leaf)[new], found)


@jit(ONCE, "bounds", "length")
def _of_rows(
    bounds: LinearBounds | None,
    likelihood: GroupedLikelihood,
    position: Position,
    data: Data,
    start: Whole,
    length: int,
) -> EffectRows:
    predictor = likelihood.predictor

    def one(row: Any) -> EffectRows:
        x = jax.grad(lambda theta: predictor.fixed(theta, row.own))(position[FIXED])
        z = predictor(position, row)
        if predictor.has_noise:
            # the curve in z alone, at the reference's noise
            z, log_noise = z[0], z[1]
            energy = lambda at: -likelihood.outcome(jnp.stack([at, log_noise]), row.own)  # noqa: E731
        else:
            energy = lambda at: -likelihood.outcome(at, row.own)  # noqa: E731
        first = jax.grad(energy)
        second = jax.grad(first)
        scale = jnp.float32(1.0)
        if bounds is not None and bounds.scale is not None and not predictor.has_noise:
            scale = bounds.scale(z, row)
        columns = tuple(jnp.ones(1) if each is None else each for each in row.columns)
        derivatives = (energy(z), first(z), second(z), jax.grad(second)(z))
        return EffectRows(x, row.codes, columns, *derivatives, scale)

    return jax.vmap(one)(neighbours(data, start, length))


def sums_at(target: Posterior, position: dict[str, np.ndarray]) -> EffectSums:
    """A pass over the data."""
    forms, width = forms_of(target), len(position[FIXED])
    gradient, matrix = np.zeros(width), np.zeros((width, width))
    energy = total = 0.0
    of_factors = [
        FactorSums(
            np.zeros((form.num_levels, form.num_effects)),
            np.zeros((form.num_levels, form.num_effects, form.num_effects)),
            np.zeros((form.num_levels, form.num_effects, width)),
        )
        for form in forms
    ]
    crossed: dict[tuple[int, int], Any] = {}
    for rows in effect_rows(target, position):
        x, first, weight = (
            np.asarray(each, np.float64) for each in (rows.predictors, rows.first, rows.second)
        )
        energy += float(np.sum(rows.value, dtype=np.float64))
        total += float(weight.sum())
        gradient += x.T @ first
        weighted = x * weight[:, None]
        matrix += x.T @ weighted
        tables = [incidence(*each) for each in zip(forms, rows.codes, rows.columns, strict=True)]
        each = zip(forms, tables, rows.codes, rows.columns, of_factors, strict=True)
        for form, table, codes, columns, sums in each:
            shape = (form.num_levels, form.num_effects)
            for one, other in np.ndindex(form.num_effects, form.num_effects):
                product = weight * columns[:, one] * columns[:, other]
                sums.curvature[:, one, other] += np.bincount(codes, product, form.num_levels)
            sums.gradient[...] += (table.T @ first).reshape(shape)
            sums.border[...] += (table.T @ weighted).reshape(*shape, width)
        for later in range(1, len(forms)):
            for earlier in range(later):
                both = (tables[earlier].T @ tables[later].multiply(weight[:, None])).tocsr()
                known = crossed.get((earlier, later))
                crossed[earlier, later] = both if known is None else known + both
    return EffectSums(position, energy, total, gradient, matrix, tuple(of_factors), crossed)


def incidence(form: FactorForm, codes: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    """Rows x (levels x effects): where a row's effects are, and what they are times."""
    k = form.num_effects
    places = np.asarray(codes, np.int64)[:, None] * k + np.arange(k)
    starts = np.arange(0, places.size + 1, k)
    shape = (len(codes), form.num_levels * k)
    values = np.asarray(columns, np.float64).ravel()
    return sparse.csr_matrix((values, places.ravel(), starts), shape)
