"""Draws of the coefficients, and the predictors z = x . theta of rows under each of them."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks, trees
from amagold.models._coded_rows import CodedTable
from amagold.store._names import name_leaves
from amagold.tables._table_outcome import SEVERAL_CLASSES

INTERCEPT = "Intercept"


class CoefficientDraws(NamedTuple):
    """Draws of a run on the scale of the table, in float64."""

    coefficients: np.ndarray  # (draws, coefficients), the intercept first where there is one
    log_scale: np.ndarray | None  # (draws,), of families that have one
    has_intercept: bool
    names: tuple[str, ...]  # of the coefficients without the intercept
    num_chains: int  # one after another along the first axis

    def exact_z(self, rows: CodedTable, offset: Any) -> np.ndarray:
        """Of these rows in float64, for differences between rows that are alike."""
        return np.asarray(predictors(self.of(rows, offset, np.float64), np), np.float64)

    def z(self, rows: CodedTable, offset: Any) -> jax.Array:
        """Of these rows, with axes (rows, draws), and the log scale where there is one."""
        return with_scale(_predictors(self.of(rows, offset)), self.log_scale)

    def of(self, rows: CodedTable, offset: Any, kind: Any = np.float32) -> "RowPredictors":
        """What gives z of these rows, to which an offset may be added."""
        first = int(self.has_intercept)
        place = {name: first + at for at, name in enumerate(self.names)}
        # a block of columns that takes codes for one table may take numbers for another
        chosen = self.coefficients[:, [place[name] for name in rows.names]]
        width = rows.numbers.shape[1]
        # z = (x - c) . theta + (theta_0 + c . theta): float32 keeps what differs between rows
        center = rows.numbers.mean(axis=0)
        base = chosen[:, :width] @ center
        if self.has_intercept:
            base = base + self.coefficients[:, 0]
        tables, start = [], width
        for size in rows.sizes:
            # the level that the others are compared with comes first, and is zero
            levels = np.zeros((size + 1, len(chosen)), kind)
            levels[1:] = chosen[:, start : start + size].T
            tables.append(levels)
            start += size
        return RowPredictors(
            (rows.numbers - center).astype(kind),
            rows.codes + 1,
            rows.multipliers.astype(kind),
            np.zeros(len(rows), kind) if offset is None else np.asarray(offset, kind),
            np.ascontiguousarray(chosen[:, :width].T, kind),
            base.astype(kind),
            tuple(tables),
            rows.multiplied_by,
        )


@trees.record(static=("multiplied_by",))
class RowPredictors:
    """Rows, and what they are multiplied by."""

    numbers: Any  # (rows, columns)
    codes: Any  # (rows, factors), from 0
    multipliers: Any
    offset: Any  # (rows,)
    slopes: Any  # (columns, draws)
    base: Any  # (draws,)
    levels: tuple[Any, ...]  # of each factor (levels, draws)
    multiplied_by: tuple[int | None, ...]

    @property
    def num_rows(self) -> int:
        return self.numbers.shape[0]

    def take(self, rows: Any) -> "RowPredictors":
        """Some of the rows."""
        return dataclasses.replace(
            self,
            numbers=self.numbers[rows],
            codes=self.codes[rows],
            multipliers=self.multipliers[rows],
            offset=self.offset[rows],
        )


def predictors(rows: RowPredictors, here: Any = jnp) -> Any:
    """z, with axes (rows, draws), by JAX or NumPy."""
    z = here.dot(rows.numbers, rows.slopes) + rows.base + rows.offset[:, None]
    for factor, levels in enumerate(rows.levels):
        found = here.take(levels, rows.codes[:, factor], axis=0, mode="clip")
        place = rows.multiplied_by[factor]
        z = z + (found if place is None else found * rows.multipliers[:, place, None])
    return z


_predictors = jax.jit(lambda rows: predictors(rows))


def with_scale(z: Any, log_scale: Any) -> Any:
    """(z, log scale) where a family has one, as its outcome takes them."""
    if log_scale is None:
        return z
    return jnp.stack([z, jnp.broadcast_to(jnp.asarray(log_scale, z.dtype), z.shape)], axis=-1)


def coefficient_draws(run: Any, model: Any, num_draws: int) -> CoefficientDraws:
    """So many draws of a run, evenly spread over each of its chains."""
    checks.whole_number("num_draws", num_draws, at_least=1, remedy="give how many draws to use")
    if model.family in SEVERAL_CLASSES:
        raise ValueError(
            f"predictions must be of families with one predictor, but {model.family} has several "
            "classes; compute them from run.posterior"
        )
    posterior = run.posterior
    num_chains = posterior.sizes["chain"]
    per_chain = min(posterior.sizes["draw"], max(1, num_draws // num_chains))
    chosen = np.linspace(0, posterior.sizes["draw"] - 1, per_chain).round().astype(int)
    some = posterior.isel(draw=chosen)
    terms = model.terms.terms
    # what a variable is called where the name of its term cannot be that of a folder
    called = {term: variable for variable, term in name_leaves(_own_names(model)).items()}
    width = sum(len(term.places) for term in terms)
    flat = np.zeros((some.sizes["chain"] * some.sizes["draw"], width))
    for term in terms:
        values = _values(some, called[term.name], len(term.places))
        flat[:, np.array(term.places)] = values
    log_scale = None
    if model.scale is not None:
        log_scale = np.log(_values(some, called[model.scale], 1)[:, 0])
    has_intercept = model.terms.has_intercept
    return CoefficientDraws(flat, log_scale, has_intercept, model.names, num_chains)


def _values(posterior: Any, name: str, width: int) -> np.ndarray:
    """The draws of a variable as rows; a store may come from a stranger."""
    size = 0
    if name in posterior:
        size = int(np.prod(posterior[name].shape[2:], dtype=np.int64))
    if size != width:
        raise ValueError(
            f"the run must have {width} coefficients {name!r}, as its table's model says, got "
            f"{size}; its files do not belong together"
        )
    return np.asarray(posterior[name], np.float64).reshape(-1, width)


def _own_names(model: Any) -> dict[str, str]:
    names = [term.name for term in model.terms.terms]
    return {name: name for name in ([*names, model.scale] if model.scale else names)}
