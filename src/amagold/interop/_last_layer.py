"""An exact last layer: what a trained trunk makes of the inputs are columns of a regression."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold import models
from amagold.core import checks
from amagold.core.devices import use_all_cores
from amagold.core.files import as_path
from amagold.data import open as open_data
from amagold.interop._module_form import ModuleApply, is_module, take_apart
from amagold.models._priors import LOG_SCALE
from amagold.target import Posterior

FEATURES, OUTCOMES = "features", "outcome"  # what the files on disk are called


@dataclass(frozen=True)
class LastLayer:
    """A last layer to be sampled: `amagold.sample(layer.posterior)`, then
    `amagold.predict(run, layer, new_inputs)`.

    Attributes:
      posterior: `models.softmax` or `models.linear` of the features, which know their bounds.
      outputs: "logits" or "numbers".
      prepare: inputs -> their features, a row for each.
    """

    posterior: Posterior
    outputs: str
    prepare: Callable[[Any], np.ndarray]
    noise_scale: float | None = None

    def apply(self, position: Any, features: jax.Array) -> jax.Array:
        """z = theta_0 + features . theta: logits, or the mean."""
        weights = position["coefficients"] if isinstance(position, dict) else position
        return weights[0] + features @ weights[1:]

    def log_noise_scale(self, position: Any) -> jax.Array:
        if self.noise_scale is not None:
            return jnp.log(jnp.float32(self.noise_scale))
        return position[LOG_SCALE]


def last_layer(
    trunk: Any,
    inputs: Any,
    outcomes: Any,
    likelihood: str = "classification",
    *,
    noise_scale: float | None = None,
    prior_scale: float | None = None,
    num_classes: int | None = None,
    batch_size: int = 1024,
    folder: str | Path | None = None,
) -> LastLayer:
    """The posterior of a last layer on the features of a frozen trunk: a regression, which is
    sampled exactly with few rows a test where features are few, and far faster than a network in
    any case.

    Args:
      trunk: a Flax NNX or Equinox module without its last layer, which is set to predict; or a
        function of many inputs that returns a row of features for each.
      inputs: one row for each example; they are sent through the trunk once, `batch_size` at a
        time.
      outcomes: classes as whole numbers from 0, or numbers.
      likelihood: "classification" or "regression".
      noise_scale: of a regression, as for `models.linear`; None is unknown.
      prior_scale: of the weights and biases; None scales the priors by the features, as
        `models.softmax` and `models.linear` do.
      num_classes: where `outcomes` do not hold them all.
      folder: where to keep the features, which are then read from disk (`amagold.data.open`);
        None keeps them in memory.
    """
    if likelihood not in ("classification", "regression"):
        raise ValueError(
            f'likelihood must be "classification" or "regression", got {likelihood!r}; for one of '
            "your own use amagold.LinearLikelihood on the features"
        )
    checks.whole_number("batch_size", batch_size, at_least=1, remedy="give the inputs per block")
    use_all_cores()  # before the first array is made
    prepare = FeaturesOf(trunk, batch_size)
    is_classes = likelihood == "classification"
    place = None if folder is None else as_path("folder", folder, "a folder to write")
    columns = prepare(inputs, place)
    options: dict[str, Any] = {"prior_scale": prior_scale}
    if is_classes:
        options["num_classes"] = num_classes
    else:
        options["noise_scale"] = noise_scale
    build = models.softmax if is_classes else models.linear
    if place is None:
        posterior = build(columns, outcomes, **options)
    else:
        kind = np.int32 if is_classes else np.float32
        np.save(place / f"{OUTCOMES}.npy", np.asarray(outcomes, kind))
        posterior = build(open_data(place), outcome=OUTCOMES, **options)
    return LastLayer(posterior, "logits" if is_classes else "numbers", prepare, noise_scale)


class FeaturesOf:
    """Inputs -> features, `batch_size` at a time; the trunk is compiled once."""

    def __init__(self, trunk: Any, batch_size: int) -> None:
        self.batch_size = batch_size
        if callable(trunk) and not is_module(trunk):
            self._rows: Callable[[Any], Any] = jax.jit(trunk)
            return
        parts = take_apart(trunk)
        apply = ModuleApply(parts.form, parts.frozen)
        of_many = jax.jit(jax.vmap(apply.__call__, in_axes=(None, 0)))
        self._rows = lambda rows: of_many(parts.position, rows)

    def __call__(self, inputs: Any, folder: Path | None = None) -> np.ndarray:
        leaves = jax.tree.leaves(inputs)
        if not leaves or any(np.ndim(leaf) == 0 or not len(leaf) for leaf in leaves):
            raise ValueError("inputs must have at least one row; give one row per example")
        total, size = len(leaves[0]), min(self.batch_size, len(leaves[0]))
        columns: np.ndarray | None = None
        for start in range(0, total, size):
            # the last block overlaps the one before it, so that all have one shape
            first = min(start, total - size)
            rows = jax.tree.map(lambda leaf, at=first: np.asarray(leaf[at : at + size]), inputs)
            found = np.asarray(self._rows(rows), np.float32)
            if found.ndim != 2 or len(found) != size:
                raise ValueError(
                    "trunk must give one row of features for each input, got shape "
                    f"{found.shape} for {size} inputs; flatten them"
                )
            if columns is None:
                columns = _room(folder, (total, found.shape[1]))
            columns[first : first + size] = found
        assert columns is not None
        return columns


def _room(folder: Path | None, shape: tuple[int, int]) -> np.ndarray:
    if folder is None:
        return np.empty(shape, np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{FEATURES}.npy"
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
