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
    RowPredictors,
    coefficient_draws,
    predictors,
    with_scale,
)
from amagold.tables._new_rows import chunks_of, new_rows
from amagold.tables._table_model import TableModel, needs_model
from amagold.tables._tail_quantiles import tails

CHUNK_ROWS = 2**14  # that are coded together
BLOCK_NUMBERS = 2**18  # of rows times draws, which the processor's cache holds
KINDS = ("mean", "outcome")


def predict(
    run: Any, table: Any, interval: float, of: str, draws: int, num_draws: int, seed: int
) -> Any:
    """As `Run.predict` says."""
    model = needs_model(run, "predict")
    check_interval(interval)
    if of not in KINDS:
        raise ValueError(f"of must be 'mean' or 'outcome', got {of!r}")
    checks.whole_number("draws", draws, at_least=0, remedy="give how many draws to return")
    checks.whole_number("seed", seed, at_least=0, remedy="give a whole number")
    frame = new_rows(model, table)
    chosen = coefficient_draws(run, model, num_draws)
    draws = min(draws, len(chosen.coefficients))
    settings = {"interval": float(interval), "draws": draws, "of": of}
    key = jax.random.key(seed)
    parts: list[np.ndarray] = []
    waiting: deque[tuple[Any, RowPredictors, int]] = deque()
    devices, at_once = jax.local_devices(), max(1, CHUNK_ROWS * 1000 // max(1, num_draws))
    size = min(CHUNK_ROWS, _padded(at_once), _padded(len(frame)))
    with show_steps("predicting") as report:
        for number, chunk in enumerate(chunks_of(frame, size)):
            rows = chosen.of(model.terms.coded(chunk), model.offset(chunk))
            place = devices[number % len(devices)]
            given = jax.device_put(_filled(rows, _padded(rows.num_rows)), place)
            scale = None if chosen.log_scale is None else jnp.asarray(chosen.log_scale, jnp.float32)
            found = _predicted(
                given,
                jax.device_put(scale, place),
                jax.device_put(jax.random.fold_in(key, number), place),
                law=model.law,
                **settings,
            )
            waiting.append((found, rows, rows.num_rows))
            if len(waiting) > len(devices):
                parts.append(_finished(waiting.popleft(), chosen.log_scale, model, interval))
            report(min(len(frame), (number + 1) * size), len(frame))
        parts += [_finished(each, chosen.log_scale, model, interval) for each in waiting]
    return _as_table(frame, np.concatenate(parts, axis=1), _column_names(model, draws))


def check_interval(interval: Any) -> None:
    remedy = "give a share between 0 and 1, such as 0.9"
    checks.number("interval", interval, above=0.0, remedy=remedy)
    if interval >= 1.0:
        raise ValueError(f"interval must be below 1, got {interval:g}; {remedy}")


@partial(jax.jit, static_argnames=("law", "interval", "draws", "of"))
def _predicted(
    rows: RowPredictors,
    log_scale: jax.Array | None,
    key: jax.Array,
    *,
    law: Outcome,
    interval: float,
    draws: int,
    of: str,
) -> jax.Array:
    """Columns (mean, lower, upper, whether they were found, and draws) of every row."""
    num_rows, num_draws = rows.num_rows, rows.base.shape[0]
    block = min(num_rows, max(16, _padded(BLOCK_NUMBERS // num_draws)))
    ones = jnp.ones(num_draws, jnp.float32)

    def visit(number: jax.Array) -> jax.Array:
        part = rows.take(number * block + jnp.arange(block))
        z = predictors(part)
        whole = with_scale(z, log_scale)
        if of == "outcome":
            values = law.draw(jax.random.fold_in(key, number), whole)
            quantiles = jnp.quantile(values, jnp.asarray(_shares(interval)), axis=1)
            lower, upper, is_found = *quantiles, jnp.ones(block, bool)
        else:
            values = law.mean(whole)
            found = tails(z, jnp.dot(z, ones) / num_draws, interval)
            # E[y | z] grows with z, so its quantiles are those of z
            lower, upper = (law.mean(with_scale(end, _any(log_scale))) for end in found[:2])
            is_found = found.is_found
        mean = jnp.dot(values, ones) / num_draws
        columns = [mean, lower, upper, is_found.astype(jnp.float32)]
        return jnp.concatenate([jnp.stack(columns), values[:, :draws].T])

    found = jax.lax.map(visit, jnp.arange(num_rows // block))
    return jnp.moveaxis(found, 0, 1).reshape(4 + draws, num_rows)


def _finished(
    waiting: tuple[Any, RowPredictors, int], log_scale: Any, model: TableModel, interval: float
) -> np.ndarray:
    """The columns on the host, rows without quantiles sorted after all."""
    columns, rows, num_rows = waiting
    found = np.array(columns[:, :num_rows])
    odd = np.flatnonzero(found[3] == 0.0)
    block = max(1, BLOCK_NUMBERS // rows.base.shape[0])
    for start in range(0, len(odd), block):
        some = odd[start : start + block]
        z = np.asarray(predictors(rows.take(some)))
        ends = np.quantile(z, _shares(interval), axis=1).astype(np.float32)
        found[1:3, some] = model.law.mean(with_scale(jnp.asarray(ends), _any(log_scale)))
    return np.delete(found, 3, axis=0)


def _any(log_scale: Any) -> Any:
    """A log scale for a mean, which does not depend on it."""
    return None if log_scale is None else 0.0


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


def _column_names(model: TableModel, draws: int) -> list[str]:
    """mean, lower, upper, with the class that they are of where it has a name."""
    of_class = "" if model.classes in ((), ("False", "True")) else f"[{model.classes[1]}]"
    return [
        *(f"{name}{of_class}" for name in ("mean", "lower", "upper")),
        *(f"draw_{number}" for number in range(draws)),
    ]


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
