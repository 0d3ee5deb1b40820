"""Draws of the coefficients, and the predictors z = x . theta of rows under each of them."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks, trees
from amagold.models._noise_names import THRESHOLD
from amagold.models._ordinal import places_of
from amagold.store._names import names_of_leaves
from amagold.tables._group_draws import GroupDraws, RowInputs, group_draws
from amagold.tables._term_codes import INTERCEPT


class CoefficientDraws(NamedTuple):
    """Draws of a run on the scale of the table, in float64."""

    # (draws, coefficients), the intercept first where there is one; of several classes those of
    # one draw follow each other
    coefficients: np.ndarray
    # (draws, numbers) that a law takes beside z: the log of a scale, the places of gaps
    extras: np.ndarray | None
    has_intercept: bool
    names: tuple[str, ...]  # of the coefficients without the intercept
    num_chains: int  # one after another along the first axis
    num_classes: int | None = None  # with coefficients of their own
    groups: tuple[GroupDraws, ...] = ()  # of each random effect

    @property
    def num_draws(self) -> int:
        return len(self.coefficients) // (self.num_classes or 1)

    def z(self, rows: RowInputs, origin: float = 0.0) -> jax.Array:
        """Of these rows, from the origin, with axes (rows, draws), and the log scale where there is
        one.
        """
        return self.whole(_predictors(self.of(rows, origin=origin)))

    def whole(self, z: Any) -> jax.Array:
        """z with what else the law takes."""
        return whole_predictor(z, self.extras, self.num_classes)

    def of(
        self, given: RowInputs, kind: Any = np.float32, origin: float | None = 0.0
    ) -> "RowPredictors":
        """What gives z of these rows, from the origin; None takes a place among them."""
        rows, first = given.fixed, int(self.has_intercept)
        place = {name: first + at for at, name in enumerate(self.names)}
        # a block of columns that takes codes for one table may take numbers for another
        chosen = self.coefficients[:, [place[name] for name in rows.names]]
        width = rows.numbers.shape[1]
        # z = (x - c) . theta + (theta_0 + c . theta): float32 keeps what differs between rows
        center = rows.numbers.mean(axis=0)
        base = chosen[:, :width] @ center
        if self.has_intercept:
            base = base + self.coefficients[:, 0]
        if origin is None:
            origin = float(base.mean())
        tables, start = [], width
        for size in rows.sizes:
            # the level that the others are compared with comes first, and is zero
            levels = np.zeros((size + 1, len(chosen)), kind)
            levels[1:] = chosen[:, start : start + size].T
            tables.append(levels)
            start += size
        found = RowPredictors(
            (rows.numbers - center).astype(kind),
            rows.codes.astype(np.int32) + 1,
            rows.multipliers.astype(kind),
            np.zeros(len(rows), kind) if given.offset is None else np.asarray(given.offset, kind),
            np.ascontiguousarray(chosen[:, :width].T, kind),
            (base - origin).astype(kind),
            tuple(tables),
            rows.multiplied_by,
            origin,
        )
        return found.with_groups(given, self.groups) if given.groups else found


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
    origin: Any = 0.0  # that z is counted from, in float64 on the host

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

    def with_groups(self, given: RowInputs, draws: tuple[GroupDraws, ...]) -> "RowPredictors":
        """With a factor for each random effect, of the levels that the rows have."""
        codes, times = [self.codes], [self.multipliers]
        tables, places = list(self.levels), list(self.multiplied_by)
        start = self.multipliers.shape[1]
        for rows, drawn in zip(given.groups, draws, strict=True):
            own, effects = drawn.of(rows)
            number, length, num_draws = effects.shape
            # as many levels as a power of two, so that few programs are compiled
            room = np.zeros((number, 1 << max(0, length - 1).bit_length(), num_draws))
            room = room.astype(self.base.dtype)
            room[:, :length] = effects
            tables += list(room)
            codes.append(np.tile(own[:, None], number))
            places += [None] * number if rows.values is None else range(start, start + number)
            if rows.values is not None:
                times.append(rows.values.astype(self.multipliers.dtype))
                start += number
        return dataclasses.replace(
            self,
            codes=np.concatenate(codes, axis=1),
            multipliers=np.concatenate(times, axis=1),
            levels=tuple(tables),
            multiplied_by=tuple(places),
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


def whole_predictor(z: Any, extras: Any, num_classes: int | None) -> Any:
    """z of (rows, draws) as laws take it: with the extras of each draw, or with the classes along
    an axis of their own.
    """
    if num_classes is not None:
        return jnp.reshape(z, (*z.shape[:-1], -1, num_classes))
    if extras is None:
        return jnp.asarray(z)
    beside = jnp.broadcast_to(jnp.asarray(extras, z.dtype), (*z.shape, extras.shape[-1]))
    return jnp.concatenate([jnp.asarray(z)[..., None], beside], axis=-1)


def coefficient_draws(run: Any, model: Any, num_draws: int, seed: int = 0) -> CoefficientDraws:
    """So many draws of a run, evenly spread over each of its chains; the seed is that of levels of
    groups that were not fitted.
    """
    checks.whole_number("num_draws", num_draws, at_least=1, remedy="give how many draws to use")
    posterior = run.posterior
    num_chains = posterior.sizes["chain"]
    per_chain = min(posterior.sizes["draw"], max(1, num_draws // num_chains))
    chosen = np.linspace(0, posterior.sizes["draw"] - 1, per_chain).round().astype(int)
    some = posterior.isel(draw=chosen)
    # what a variable is called where the name of its term cannot be that of a folder
    called = names_of_leaves(own_names(model))
    num_classes = len(model.classes) if model.family == "softmax" else None
    terms = model.terms.terms
    width = sum(len(term.places) for term in terms)
    flat = np.zeros((num_chains * per_chain, width, num_classes or 1))
    for term in terms:
        if model.scale != THRESHOLD or term.name != INTERCEPT:
            values = _values(some, called[term.name], len(term.places) * (num_classes or 1))
            flat[:, np.array(term.places)] = values.reshape(len(flat), len(term.places), -1)
    extras = None
    if model.scale == THRESHOLD:
        cutpoints = _values(some, THRESHOLD, len(model.classes) - 1)
        # P(y <= k) = s(c_k - x . theta): the first cutpoint takes the intercept's place
        flat[:, 0, 0] = -cutpoints[:, 0]
        extras = places_of(np.diff(cutpoints, axis=1))
    elif model.scale is not None:
        extras = np.log(_values(some, called[model.scale], 1))
    return CoefficientDraws(
        np.moveaxis(flat, 2, 1).reshape(-1, width),
        extras,
        model.terms.has_intercept,
        model.names,
        num_chains,
        num_classes,
        tuple(
            group_draws(term, lambda name, width: _values(some, called[name], width), seed)
            for term in model.terms.groups
        ),
    )


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


def own_names(model: Any) -> dict[str, str]:
    """All that draws of a model are called, as leaves of a position are."""
    names = [term.name for term in model.terms.terms]
    names += [name for term in model.terms.groups for name in term.all_variables]
    return {name: name for name in ([*names, model.scale] if model.scale else names)}
