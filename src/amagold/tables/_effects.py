"""What a change of one column does to the outcome, averaged over what the rows stand for."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core.freed_memory import give_back
from amagold.core.optional_packages import required
from amagold.core.progress import show_steps
from amagold.tables._coefficient_draws import (
    CoefficientDraws,
    RowPredictors,
    coefficient_draws,
    predictors,
)
from amagold.tables._drawn_rows import some_rows
from amagold.tables._new_rows import kind_of, levels_of, new_rows
from amagold.tables._observed_rows import observed_rows
from amagold.tables._predict import check_interval, num_columns
from amagold.tables._table_model import TableModel, needs_model

if TYPE_CHECKING:
    import pandas

COLUMNS = ("term", "level", "mean", "sd", "lower", "upper")
STEP = 1e-6  # of a column's spread, by which it is moved for its derivative
MOST_ROWS = 2**14  # that are coded together
TOGETHER = 512  # rows whose predictors are there at a time
MOST_NUMBERS = 10**9  # of rows, levels and draws of one factor


class Averaging(NamedTuple):
    """Rows to average over, and draws to do it with."""

    model: TableModel
    rows: Any  # pandas' frame
    draws: CoefficientDraws
    counts: np.ndarray | None = None  # how many observations each row stands for; None is one

    @property
    def times(self) -> np.ndarray:
        """w_i: how many observations each row stands for."""
        return np.ones(len(self.rows)) if self.counts is None else self.counts

    def average(self, values: np.ndarray) -> np.ndarray:
        """sum_i w_i values_i / sum_i w_i over the first axis, which is that of rows."""
        return np.average(values.astype(np.float64), axis=0, weights=self.counts)

    def average_mean(self, rows: RowPredictors) -> np.ndarray:
        """The same of E[y | z], a few rows at a time, whose z is small."""
        total: Any = 0.0
        for start in range(0, rows.num_rows, TOGETHER):
            some = slice(start, start + TOGETHER)
            mean = self.mean(predictors(rows.take(some), np))
            total = total + np.tensordot(self.times[some], mean.astype(np.float64), 1)
        return total / self.times.sum()

    def fewer(self, number: int) -> "Averaging":
        """So many of the rows at most, which stand for all."""
        if len(self.rows) <= number:
            return self
        chosen, likely = some_rows(self.times, number, np.random.default_rng(0))
        return self._replace(rows=self.rows.iloc[chosen], counts=self.times[chosen] / likely)

    def z(self, rows: Any) -> np.ndarray:
        """z in float64, of rows in which something was changed; axes (rows, draws)."""
        return predictors(self.of(rows), np)

    def of(self, rows: Any) -> RowPredictors:
        """What gives that z."""
        nw = required("narwhals", "tables")
        frame = nw.from_native(rows)
        return self.draws.of(self.model.inputs(frame), np.float64)

    def mean(self, z: np.ndarray) -> np.ndarray:
        """E[y | z]."""
        if self.model.is_location:
            return z
        return np.asarray(self.model.law.mean(self.draws.whole(jnp.asarray(z, jnp.float32))))

    def change(self, z: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """dE[y | z] along a direction of z."""
        if self.model.is_location:
            return moved
        _, along = jax.jvp(
            lambda at: self.model.law.mean(self.draws.whole(at)),
            (jnp.asarray(z, jnp.float32),),
            (jnp.asarray(moved, jnp.float32),),
        )
        return np.asarray(along, np.float64)


def effects(
    run: Any, interval: float, table: Any, num_rows: int, num_draws: int, seed: int
) -> "pandas.DataFrame":
    """As `Run.effects` says."""
    pandas = required("pandas", "tables")
    model = needs_model(run, "effects")
    check_interval(interval)
    over = _averaging(run, model, table, num_rows, num_draws, seed)
    levels = levels_of(model.terms.spec)
    found: list[dict[str, Any]] = []
    with show_steps("averaging effects") as report:
        names = model.terms.varied_columns
        for number, name in enumerate(names):
            if kind_of(model.example[name]) == "booleans":
                levels.setdefault(name, [False, True])
            if name in levels:
                per_level = _differences(over, name, levels[name])
            else:
                per_level = [(None, _derivative(over, name))]
            for level, values in per_level:
                found += _told({"term": name, "level": level}, values, interval, model)
            report(number + 1, len(names))
    names = ("class", *COLUMNS) if num_columns(model) > 1 else COLUMNS
    table = {name: [row[name] for row in found] for name in names}
    # as objects, among which None stays what it is
    return pandas.DataFrame(table | {"level": pandas.Series(table["level"], dtype=object)})


def contrast(
    run: Any,
    change: tuple[str, Any, Any],
    interval: float,
    table: Any,
    num_rows: int,
    num_draws: int,
    seed: int,
) -> "pandas.DataFrame":
    """As `Run.contrast` says."""
    pandas = required("pandas", "tables")
    model = needs_model(run, "contrast")
    check_interval(interval)
    name, first, second = change
    if name not in model.terms.columns:
        known = ", ".join(map(repr, model.terms.columns[:20]))
        raise ValueError(f"term must be a column that the formula reads, {known}, got {name!r}")
    over = _averaging(run, model, table, num_rows, num_draws, seed)
    ends = []
    for value in (first, second):
        changed = over.rows.assign(**{name: value})
        _check_known(model, new_rows(model, changed.iloc[:1]), name, value)
        ends.append(over.z(changed))
    of_link = over.average(ends[1] - ends[0])
    if over.draws.num_classes is not None:  # of which only differences are known
        of_link = of_link.reshape(-1, over.draws.num_classes)
        of_link = of_link - of_link.mean(axis=1, keepdims=True)
    of_outcome = over.average(over.mean(ends[1]) - over.mean(ends[0]))
    told = {"link": of_link, "outcome": of_outcome}
    return pandas.DataFrame(
        [
            row
            for scale, values in told.items()
            for row in _told({"scale": scale}, values, interval, model)
        ]
    )


def _check_known(model: TableModel, row: Any, name: str, value: Any) -> None:
    """A level of a group that was not fitted would be drawn, and a wrong letter look like a level;
    other values that cannot be are said where the row is made.
    """
    for term, rows in zip(model.terms.groups, model.inputs(row).groups, strict=True):
        if rows.strangers and set(term.parsed.columns) == {name}:
            raise ValueError(
                f"values must be levels of {term.group!r} that were fitted, got {value!r}; for a "
                'new one see run.predict(new, groups="new")'
            )


def _averaging(
    run: Any, model: TableModel, table: Any, num_rows: int, num_draws: int, seed: int
) -> Averaging:
    rows = observed_rows(model, table, are_few=True).some(num_rows, seed)
    frame = rows.frame.select(*model.predicting_columns()).to_pandas().reset_index(drop=True)
    return Averaging(model, frame, coefficient_draws(run, model, num_draws), rows.counts)


def _derivative(over: Averaging, name: str) -> np.ndarray:
    """The average of dE[y | x] / dx = mean'(z) dz/dx for each draw, dz/dx by a small step."""
    values = over.rows[name].to_numpy().astype(np.float64)
    spread = values.std() or max(1.0, abs(float(values[0])))
    # inwards at the upper end, beyond which splines are not defined
    step = np.where(values + STEP * spread <= values.max(), STEP * spread, -STEP * spread)
    moved = (values + step) - values  # as far as float64 moved it
    total: Any = 0.0
    for start in range(0, len(values), TOGETHER):
        some = slice(start, start + TOGETHER)
        rows = over.rows.iloc[some]
        here = over.z(rows.assign(**{name: values[some]}))
        there = over.z(rows.assign(**{name: (values + step)[some]}))
        slopes = over.change(here, (there - here) / moved[some, None])
        total = total + np.tensordot(over.times[some], slopes, 1)
    return total / over.times.sum()


def _differences(over: Averaging, name: str, levels: Sequence[Any]) -> list[tuple[str, np.ndarray]]:
    """For each level the average difference of E[y | x] from the first one."""
    most = max(20, MOST_NUMBERS // (max(1, len(levels)) * over.draws.num_draws))
    averages = list(_averages(over.fewer(most), name, levels))
    return [
        (str(level), average - averages[0])
        for level, average in zip(levels[1:], averages[1:], strict=True)
    ]


def _averages(over: Averaging, name: str, levels: Sequence[Any]) -> Iterator[np.ndarray]:
    """The average of E[y | x] with all rows at one level, some levels at a time."""
    pandas = required("pandas", "tables")
    rows = over.rows
    at_once = max(1, MOST_ROWS // len(rows))
    for start in range(0, len(levels), at_once):
        some = levels[start : start + at_once]
        every = pandas.concat([rows.assign(**{name: level}) for level in some], ignore_index=True)
        coded = over.of(every)
        for first in range(0, len(every), len(rows)):
            yield over.average_mean(coded.take(slice(first, first + len(rows))))
        give_back()  # pieces of many sizes, which would add up


def _told(
    names: dict[str, Any], draws: np.ndarray, interval: float, model: TableModel
) -> list[dict[str, Any]]:
    """A row of figures, or one for each class where draws have a last axis of them."""
    if draws.ndim == 2:
        by_class = zip(model.classes, draws.T, strict=True)
        return [
            row
            for label, values in by_class
            for row in _told({"class": label, **names}, values, interval, model)
        ]
    shares = [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]
    lower, upper = map(float, np.quantile(draws, shares))
    figures = {"mean": float(draws.mean()), "sd": float(draws.std())}
    return [{**names, **figures, "lower": lower, "upper": upper}]
