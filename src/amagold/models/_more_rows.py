"""Further rows in the form that a target has its own: what `amagold.update` adds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.data import Data, InMemory, Joined, Viewed, checked_data
from amagold.models._outcomes import classes, counts, numbers, two_classes
from amagold.models._regression import Likelihood
from amagold.models._scale import UserScale
from amagold.models._stored_table import RegressionView, stored_table
from amagold.target import Posterior


def more_rows(target: Posterior, new_rows: Any) -> Data:
    """The rows as examples of the target. For a ready-made model they are (X, y) on the user's
    scale, or a table on disk like its own; else a pytree of arrays like the target's data.
    """
    own = target.examples
    if isinstance(new_rows, Data):
        found = _like_view(own, new_rows)
    elif _is_table(target, new_rows):
        found = InMemory(_examples(target, *new_rows))
    else:
        found = InMemory(checked_data(new_rows))
    form, wanted = (_form(data.example) for data in (found, own))
    if form != wanted:
        raise ValueError(
            f"new_rows must be like the target's own, {wanted}, got {form}; give the same arrays "
            "with further rows, or (X, y) for a ready-made model"
        )
    return found


def _form(example: Any) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", example))


def _like_view(own: Data, new: Data) -> Data:
    """Further data on disk, seen as the target sees its own."""
    while isinstance(own, Joined):
        own = own.first
    if not isinstance(own, Viewed) or not isinstance(own.view, RegressionView):
        return new
    outcome = own.view.outcome
    _, observed = stored_table(new, outcome)
    _, before = stored_table(own.data, outcome)
    is_within = before.lowest <= observed.lowest and observed.highest <= before.highest
    if (
        before.is_whole
        and own.view.example.__name__ != "CountExample"
        and not (observed.is_whole and is_within)
    ):
        raise ValueError(
            f"new_rows must have outcomes like the run's, from {before.lowest:g} to "
            f"{before.highest:g}, but {outcome!r} goes from {observed.lowest:g} to "
            f"{observed.highest:g}; code it alike"
        )
    return Viewed(new, own.view)


def _is_table(target: Posterior, new_rows: Any) -> bool:
    return (
        isinstance(new_rows, (tuple, list))
        and len(new_rows) == 2
        and hasattr(target.example, "predictors")
        and not hasattr(new_rows, "predictors")
    )


def _examples(target: Posterior, X: Any, y: Any) -> Any:
    """Rows of a table as the model's examples."""
    example: Any = type(target.example)
    width = target.example.predictors.shape[0]
    values = np.asarray(X)
    if values.ndim != 2 or not len(values) or values.shape[1] not in (width, width - 1):
        raise ValueError(
            f"new_rows must be (X, y) with the columns of the run's X, got X of shape "
            f"{values.shape} where a row has {width} predictors, the intercept's one included"
        )
    scale = target.transform
    first = width - values.shape[1]
    stored = np.ones((len(values), width), np.float32)
    block = values.astype(np.float64)
    if isinstance(scale, UserScale):
        centers = 0.0 if scale.centers is None else np.asarray(scale.centers, np.float64)
        block = (block - centers) / np.asarray(scale.scales, np.float64)
    stored[:, first:] = block
    return example(jnp.asarray(stored), jnp.asarray(_outcomes(target, example, y, len(values))))


def _outcomes(target: Posterior, example: Any, y: Any, num_rows: int) -> np.ndarray:
    """By the field that the model keeps them in."""
    field = example._fields[1]
    if field == "sign":
        return np.asarray(two_classes(y, num_rows)[0])
    if field == "label":
        assert isinstance(target.log_likelihood, Likelihood)
        return np.asarray(classes(y, num_rows, target.log_likelihood.outcome.num_classes)[0])  # type: ignore[attr-defined]
    if field == "events":
        return np.asarray(counts(y, num_rows)[0])
    response = np.asarray(numbers(y, num_rows))
    if isinstance(target.transform, UserScale):
        center, scale = (
            np.asarray(each, np.float64)
            for each in (target.transform.response_center, target.transform.response_scale)
        )
        response = (response - center) / scale
    return response.astype(np.float32)
