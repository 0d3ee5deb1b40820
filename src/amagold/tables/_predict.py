"""Predictions of new rows: mean and interval over draws, a chunk of rows at a time."""

from collections import deque
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks
from amagold.core.optional_packages import required
from amagold.core.progress import show_steps
from amagold.models._regression import Outcome
from amagold.tables._coefficient_draws import (
    CoefficientDraws,
    RowPredictors,
    coefficient_draws,
    predictors,
    whole_predictor,
)
from amagold.tables._new_rows import new_rows
from amagold.tables._some_rows import parts_of
from amagold.tables._table_model import OWN, WHOSE, TableModel, needs_model
from amagold.tables._table_outcome import SEVERAL_CLASSES
from amagold.tables._tail_quantiles import tails

CHUNK_ROWS = 2**14  # that are coded together
BLOCK_NUMBERS = 2**18  # of rows times draws, which the processor's cache holds
KINDS = ("mean", "outcome")


def predict(
    run: Any,
    table: Any,
    interval: float,
    of: str,
    groups: str,
    draws: int,
    num_draws: int,
    seed: int,
) -> Any:
    """As `Run.predict` says."""
    model = needs_model(run, "predict")
    check_interval(interval)
    if groups not in WHOSE:
        raise ValueError(f"groups must be 'own', 'new' or 'none', got {groups!r}")
    if groups != OWN and not model.terms.groups:
        raise ValueError(f"groups must be 'own' for a formula without any, got {groups!r}")
    if of not in KINDS:
        raise ValueError(f"of must be 'mean' or 'outcome', got {of!r}")
    checks.whole_number("draws", draws, at_least=0, remedy="give how many draws to return")
    checks.whole_number("seed", seed, at_least=0, remedy="give a whole number")
    frame = new_rows(model, table, groups)
    chosen = coefficient_draws(run, model, num_draws, seed)
    draws = min(draws, chosen.num_draws)
    settings = {
        "interval": float(interval),
        "draws": draws,
        "of": of,
        "num_classes": chosen.num_classes,
        "num_columns": num_columns(model) if of == "mean" else 1,
    }
    extras = None if chosen.extras is None else jnp.asarray(chosen.extras, jnp.float32)
    key = jax.random.key(seed)
    parts: list[np.ndarray] = []
    waiting: deque[tuple[Any, RowPredictors, int]] = deque()
    devices, at_once = jax.local_devices(), CHUNK_ROWS * 1000 // len(chosen.coefficients)
    size = min(CHUNK_ROWS, _padded(max(1, at_once)), _padded(len(frame)))
    with show_steps("predicting") as report:
        for number, chunk in enumerate(parts_of(frame, size)):
            rows = chosen.of(model.inputs(chunk, groups), origin=None if model.is_location else 0.0)
            place = devices[number % len(devices)]
            given = jax.device_put(_filled(rows, _padded(rows.num_rows)), place)
            found = _predicted(
                given,
                jax.device_put(extras, place),
                jax.device_put(jax.random.fold_in(key, number), place),
                law=model.law,
                **settings,
            )
            waiting.append((found, rows, rows.num_rows))
            if len(waiting) > len(devices):
                parts.append(_finished(waiting.popleft(), chosen, model, interval))
            report(min(len(frame), (number + 1) * size), len(frame))
        parts += [_finished(each, chosen, model, interval) for each in waiting]
    return _as_table(frame, np.concatenate(parts, axis=1), _column_names(model, draws, of))


def check_interval(interval: Any) -> None:
    remedy = "give a share between 0 and 1, such as 0.9"
    checks.number("interval", interval, above=0.0, remedy=remedy)
    if interval >= 1.0:
        raise ValueError(f"interval must be below 1, got {interval:g}; {remedy}")


def num_columns(model: TableModel) -> int:
    """How many numbers a mean has: a probability for each of several classes."""
    return len(model.classes) if model.family in SEVERAL_CLASSES else 1


STATIC = ("law", "interval", "draws", "of", "num_classes", "num_columns")


@partial(jax.jit, static_argnames=STATIC)
def _predicted(
    rows: RowPredictors,
    extras: jax.Array | None,
    key: jax.Array,
    *,
    law: Outcome,
    interval: float,
    draws: int,
    of: str,
    num_classes: int | None,
    num_columns: int,
) -> jax.Array:
    """For every row whether quantiles were found, then (mean, lower, upper, and draws) of each
    column.
    """
    num_rows, num_draws = rows.num_rows, rows.base.shape[0]
    block = min(num_rows, max(16, _padded(BLOCK_NUMBERS // num_draws)))

    def visit(number: jax.Array) -> jax.Array:
        part = rows.take(number * block + jnp.arange(block))
        z = predictors(part)
        whole = whole_predictor(z, extras, num_classes)
        if of == "outcome":
            values = law.draw(jax.random.fold_in(key, number), whole).astype(jnp.float32)
            quantiles = jnp.quantile(values, jnp.asarray(_shares(interval)), axis=1)
            found = [(_mean(values), *quantiles, jnp.ones(block, bool))]
        elif num_columns > 1:
            values = law.mean(whole)
            each = [values[..., place] for place in range(num_columns)]
            found = [(_mean(one), *tails(one, _mean(one), interval)) for one in each]
        else:
            values = law.mean(whole)
            lower, upper, is_found = tails(z, _mean(z), interval)
            # E[y | z] grows with z, so its quantiles are those of z
            ends = (_mean_at(law, end, extras) for end in (lower, upper))
            found = [(_mean(values), *ends, is_found)]
        is_found = jnp.all(jnp.stack([one[3] for one in found]), axis=0)
        columns = [column for one in found for column in one[:3]]
        shown = values[:, :draws].reshape(block, -1).T
        return jnp.concatenate([jnp.stack([is_found.astype(jnp.float32), *columns]), shown])

    found = jax.lax.map(visit, jnp.arange(num_rows // block))
    return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], num_rows)


def _mean(values: jax.Array) -> jax.Array:
    """Over draws, as a product, which XLA does in wide registers."""
    return jnp.dot(values, jnp.ones(values.shape[1], values.dtype)) / values.shape[1]


def _mean_at(law: Outcome, z: jax.Array, extras: Any) -> jax.Array:
    """E[y | z], which does not depend on the extras of a draw."""
    none = None if extras is None else jnp.zeros((1, extras.shape[-1]), z.dtype)
    return law.mean(whole_predictor(z, none, None))


def _finished(
    waiting: tuple[Any, RowPredictors, int],
    chosen: CoefficientDraws,
    model: TableModel,
    interval: float,
) -> np.ndarray:
    """The columns on the host, rows without quantiles sorted after all."""
    columns, rows, num_rows = waiting
    found = np.array(columns[:, :num_rows])
    odd = np.flatnonzero(found[0] == 0.0)
    block = max(1, BLOCK_NUMBERS // rows.base.shape[0])
    for start in range(0, len(odd), block):
        some = odd[start : start + block]
        z = predictors(rows.take(some))
        mean = np.asarray(model.law.mean(chosen.whole(z)))
        ends = np.quantile(mean, _shares(interval), axis=1).reshape(2, len(some), -1)
        for place in range(ends.shape[2]):
            found[2 + 3 * place : 4 + 3 * place, some] = ends[..., place]
    # in float64, which numbers far from zero need
    return found[1:] + np.float64(rows.origin)


def _shares(interval: float) -> list[float]:
    return [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]


def _padded(number: int) -> int:
    """The next power of two, so that few programs are compiled."""
    return 1 << max(0, number - 1).bit_length()


def _filled(rows: RowPredictors, number: int) -> RowPredictors:
    """As many rows, the first of them again where there are fewer."""
    missing = number - rows.num_rows
    return (
        rows.take(np.concatenate([np.arange(rows.num_rows), np.zeros(missing, int)]))
        if missing
        else rows
    )


def _column_names(model: TableModel, draws: int, of: str) -> list[str]:
    """mean, lower, upper, with the class that they are of where it has a name."""
    figures = ("mean", "lower", "upper")
    shown = [f"draw_{number}" for number in range(draws)]
    if model.family in SEVERAL_CLASSES and of == "mean":
        return [
            *(f"{name}[{label}]" for label in model.classes for name in figures),
            *(f"{name}[{label}]" for name in shown for label in model.classes),
        ]
    is_named = len(model.classes) == 2 and model.classes != ("False", "True")
    of_class = f"[{model.classes[1]}]" if is_named else ""
    return [*(f"{name}{of_class}" for name in figures), *shown]


def _as_table(frame: Any, columns: np.ndarray, names: list[str]) -> Any:
    """A table of the kind that came in, pandas' with its index."""
    nw = required("narwhals", "tables")
    backend = nw.get_native_namespace(frame)
    found = nw.from_dict(
        {name: values.astype(np.float64) for name, values in zip(names, columns, strict=True)},
        backend=backend,
    ).to_native()
    if frame.implementation.is_pandas():
        found.index = frame.to_native().index
    return found
