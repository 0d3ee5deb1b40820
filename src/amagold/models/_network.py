"""A Bayesian neural network that classifies: fully connected layers with rectified linear units."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.core import checks
from amagold.core.arrays import as_numbers
from amagold.core.devices import use_all_cores
from amagold.models._outcomes import classes
from amagold.models._priors import Normal
from amagold.target import Posterior

Layers = list[dict[str, jax.Array]]


class NetworkExample(NamedTuple):
    """One row of the table: its inputs and its class."""

    inputs: jax.Array
    label: jax.Array


def logits(layers: Layers, inputs: jax.Array) -> jax.Array:
    """The unnormalised log probability of every class, for one row of inputs or for many."""
    hidden = inputs
    for layer in layers[:-1]:
        hidden = jax.nn.relu(hidden @ layer["weights"] + layer["biases"])
    return hidden @ layers[-1]["weights"] + layers[-1]["biases"]


def log_likelihood(layers: Layers, example: NetworkExample) -> jax.Array:
    """log p(y | x, theta): the log of the softmax, at the example's class."""
    return jax.nn.log_softmax(logits(layers, example.inputs))[example.label]


def network(
    X: ArrayLike,
    y: ArrayLike,
    hidden: Sequence[int] = (500, 256),
    prior_scale: float = 1.0,
    num_classes: int | None = None,
    seed: int = 0,
) -> Posterior:
    """The posterior of a network's weights and biases with independent N(0, prior_scale^2) priors.

    A position is a list of layers, each a dict of `weights` (inputs x outputs) and `biases`.

    Args:
      X: inputs, one row per example.
      y: classes, whole numbers from 0, each of them seen at least once.
      hidden: widths of the hidden layers; the paper's network has 500 and 256.
      prior_scale: standard deviation of the prior on every weight and bias.
      num_classes: how many classes there are, where y does not hold them all; None takes them from
        y.
      seed: of the random start `init`, uniform within 1 / sqrt(a layer's inputs).
    """
    use_all_cores()  # before the first array is made
    inputs, labels = np.asarray(as_numbers("X", X), np.float32), np.asarray(as_numbers("y", y))
    if inputs.ndim != 2:
        raise ValueError(
            f"X must have a row per example and a column per input, got shape {inputs.shape}; "
            "flatten the images"
        )
    if not len(inputs):
        raise ValueError("X must have at least one row, got none; give one row per example")
    if labels.shape != inputs.shape[:1]:
        raise ValueError(
            f"y must have one class for each of the {len(inputs)} rows of X, got shape "
            f"{labels.shape}; give one label per row"
        )
    if not np.issubdtype(labels.dtype, np.integer) or (labels.size and labels.min() < 0):
        raise ValueError(
            f"y must hold classes as whole numbers from 0, got {labels.dtype} from "
            f"{_least(labels)}; number the classes"
        )
    if not isinstance(hidden, Sequence | np.ndarray) or isinstance(hidden, str):
        raise ValueError(
            f"hidden must be the widths of the hidden layers, got {hidden!r}; for one layer write "
            f"hidden=({hidden!r},)"
        )
    for place, width in enumerate(hidden):
        checks.whole_number(
            f"hidden[{place}]", width, at_least=1, remedy="give the width of every hidden layer"
        )
    checks.number(
        "prior_scale", prior_scale, above=0.0, remedy="give the prior's standard deviation"
    )
    labels, num_classes = classes(labels, len(inputs), num_classes)
    data = NetworkExample(jnp.asarray(inputs), jnp.asarray(labels))
    widths = (inputs.shape[1], *(int(width) for width in hidden), num_classes)
    return Posterior(
        log_likelihood, Normal(jnp.float32(prior_scale)), data, init=_random_layers(widths, seed)
    )


def _random_layers(widths: tuple[int, ...], seed: int) -> list[dict[str, np.ndarray]]:
    """Weights and biases uniform within 1 / sqrt(inputs): small enough not to saturate, different
    enough to learn apart.
    """
    generator = np.random.default_rng(seed)
    layers = []
    for num_inputs, num_outputs in pairwise(widths):
        bound = num_inputs**-0.5
        weights = generator.uniform(-bound, bound, (num_inputs, num_outputs)).astype(np.float32)
        layers.append(
            {
                "weights": weights,
                "biases": generator.uniform(-bound, bound, num_outputs).astype(np.float32),
            }
        )
    return layers


def _least(labels: np.ndarray) -> str:
    return str(labels.min()) if labels.size else "none"
