"""Further rows in the form that a target has its own: what `amagold.update` adds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.data import Data, InMemory, Joined, Viewed, checked_data
from amagold.data._columns_on_disk import columns_on_disk
from amagold.data._fields import RowView
from amagold.models._design import Units
from amagold.models._gaussian_sums import GaussianSums, SumsExample
from amagold.models._outcomes import classes, counts, numbers, two_classes
from amagold.models._priors import CoefficientPrior, NoisePrior
from amagold.models._scale import UserScale
from amagold.models._stored_table import RegressionView, stored_table
from amagold.models._table import Sheet, checked_table
from amagold.models._weighted import Weighted
from amagold.target import Posterior


def more_rows(target: Posterior, new_rows: Any) -> Data:
    """The rows as examples of the target. For a ready-made regression they are (X, y) on the user's
    scale, or a table on disk like its own; else a pytree of arrays like the target's data.
    """
    own = target.examples
    while isinstance(own, Joined):
        own = own.first
    if isinstance(new_rows, Data):
        found = _seen_alike(target, own, new_rows)
    elif _is_table(target, new_rows):
        found = InMemory(_examples(target, *new_rows))
    else:
        found = InMemory(checked_data(new_rows))
    form, wanted = (_form(data.example) for data in (found, own))
    if form != wanted:
        raise ValueError(
            f"new_rows must be like the target's own, {wanted}, got {form}; give the same arrays "
            "with further rows, or (X, y) for a ready-made regression"
        )
    return found


def _form(example: Any) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", example))


def _seen_alike(target: Posterior, own: Data, new: Data) -> Data:
    """Further data on disk, seen as the target sees its own."""
    if isinstance(new, Viewed) and isinstance(new.view, RowView) and new.view.coded:
        raise ValueError(
            f"new_rows must hold numbers, but column {new.view.coded[0]!r} holds texts, whose "
            "numbers may stand for others than the run's; code it as numbers first"
        )
    if not isinstance(own, Viewed) or not isinstance(own.view, RegressionView):
        return new
    columns, before = columns_on_disk(new), columns_on_disk(own.data)
    forms, wanted = (
        {name: column.shape for name, column in (found or {}).items()}
        for found in (columns, before)
    )
    if forms != wanted:
        raise ValueError(
            f"new_rows must have the columns of the run's table, {wanted}, got {forms}; open them "
            "with columns=[...]"
        )
    _, observed = stored_table(new, own.view.outcome)
    _outcomes(target, observed, new.num_examples)
    return Viewed(new, own.view)


def _is_table(target: Posterior, new_rows: Any) -> bool:
    return (
        isinstance(new_rows, (tuple, list))
        and len(new_rows) == 2
        and hasattr(target.example, "predictors")
        and not hasattr(new_rows, "predictors")
    )


def _examples(target: Posterior, X: Any, y: Any) -> Any:
    """Rows of a table as the model's examples, standardised as its own are."""
    prior: Any = target.log_prior
    if isinstance(prior, NoisePrior):
        prior = prior.coefficients
    assert isinstance(prior, CoefficientPrior)
    values = checked_table(X)
    first = int(prior.has_intercept)
    width = target.example.predictors.shape[0] - first
    if values.shape[1] != width:
        raise ValueError(
            f"new_rows must be (X, y) with the {width} columns of the run's X, got "
            f"{values.shape[1]}"
        )
    scale = target.transform
    centers, scales = np.zeros(width), np.ones(width)
    if isinstance(scale, UserScale):
        scales = np.asarray(scale.scales, np.float64)
        centers = centers if scale.centers is None else np.asarray(scale.centers, np.float64)
    sheet = Sheet(values, (), prior.has_intercept, centers, scales, np.zeros(width), None)
    predictors: Any = sheet.stored(isinstance(scale, UserScale))
    example: Any = type(target.example)
    if isinstance(target.log_likelihood, GaussianSums):
        residual = _outcomes(target, y, len(values)) - predictors @ target.log_likelihood.center
        return SumsExample(predictors, residual, jnp.ones(len(values), jnp.float32))
    if target.example.offset is not None or "trials" in example._fields:
        raise ValueError(
            "new_rows must be examples like the run's own where rows have an offset or trials; "
            "give them with all fields"
        )
    weight = None if target.example.weight is None else jnp.ones(len(values), jnp.float32)
    return example(predictors, jnp.asarray(_outcomes(target, y, len(values))), weight)


def _outcomes(target: Posterior, y: Any, num_rows: int) -> Any:
    """As the model keeps them, by the field that it keeps them in; raises where they are none."""
    field = type(target.example)._fields[1]
    if field == "sign":
        return two_classes(y, num_rows)[0]
    if field == "label":
        outcome: Any = target.log_likelihood
        outcome = outcome.outcome
        outcome = outcome.outcome if isinstance(outcome, Weighted) else outcome
        return classes(y, num_rows, outcome.num_classes)[0]
    if field == "events":
        return counts(y, num_rows)[0]
    response = numbers(y, num_rows)
    if not isinstance(response, np.ndarray):
        return response
    scale = target.transform
    units = Units()
    if isinstance(scale, UserScale):
        units = Units(float(scale.response_center), float(scale.response_scale))
    return units.stored(response)
