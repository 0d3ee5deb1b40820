"""A trained module as a target: its weights are the start, its data the likelihood."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks
from amagold.core.arrays import as_numbers
from amagold.core.devices import use_all_cores
from amagold.interop._module_form import Chosen, ModuleApply, take_apart
from amagold.models._priors import LOG_SCALE
from amagold.target import Posterior
from amagold.target._user_function import as_function

if TYPE_CHECKING:
    from amagold.interop._module_likelihoods import ModuleExample

LOG_NOISE_SPREAD = 2.0  # standard deviation of the prior of log s, as of `models.linear`

PriorScale = float | Callable[[str, jax.Array], Any]


def from_module(
    module: Any,
    inputs: Any,
    outcomes: Any,
    likelihood: "str | Callable[[Any, ModuleExample], jax.Array]" = "classification",
    *,
    noise_scale: float | None = None,
    prior_scale: PriorScale = 1.0,
    sampled: Chosen = None,
    call: Callable[[Any, Any], Any] | None = None,
) -> Posterior:
    """The posterior of the weights of a Flax NNX or Equinox module, which starts where it is.

    Positions are dicts of arrays by their paths in the module ("layers.0.weight"), and so are the
    variables of a run. The module predicts: no dropout, and batch statistics and whatever else is
    no parameter stay as they are. `amagold.predict(run, target, new_inputs)` averages predictions
    over draws.

    Args:
      module: the trained module; it is not changed.
      inputs: what the module is given, one row per example: an array, or a tree of arrays.
      outcomes: one for each row: classes as whole numbers from 0, or numbers.
      likelihood: "classification" (the outputs are logits of a softmax), "regression" (Gaussian
        noise around the outputs), or a function of (output, example) that returns the log
        likelihood of one example, which has the fields `inputs` and `outcome`.
      noise_scale: standard deviation of a regression's noise; None when it is unknown: its log is
        sampled as `log_noise_scale`, with the prior N(log sd(outcomes), 2^2).
      prior_scale: standard deviation of the normal prior on every weight around zero: one number,
        or a function of (path, array) that returns a number or an array like the weights.
      sampled: which parameters are sampled, where not all of them: a path or several, each with
        what lies within it ("layers.2"), or a function of (path, array) that says so. The others
        stay as they were trained.
      call: (module, one input) -> its output, where it is not `module(input)`, with an axis of one
        example in front for Flax; a stateful Equinox module is
        `lambda module, x: module(x, state)[0]`.
    """
    from amagold.interop._module_likelihoods import (
        ClassLikelihood,
        GaussianLikelihood,
        ModuleExample,
        OwnLikelihood,
    )

    use_all_cores()  # before the first array is made
    parts = take_apart(module, sampled, call)
    position, apply = dict(parts.position), ModuleApply(parts.form, parts.frozen)
    examples = ModuleExample(
        jax.tree.map(lambda leaf: jnp.asarray(leaf), inputs), as_numbers("outcomes", outcomes)
    )
    shapes = _output_shape(apply, position, examples)
    noise = None
    if likelihood == "classification":
        examples = examples._replace(outcome=_labels(examples.outcome, shapes))
        chosen: Any = ClassLikelihood(apply)
    elif likelihood == "regression":
        numbers = _numbers(examples.outcome, shapes)
        examples = examples._replace(outcome=jnp.asarray(numbers))
        if noise_scale is None:
            position, noise = _unknown_noise(position, numbers)
        else:
            checks.number(
                "noise_scale", noise_scale, above=0.0, remedy="give the noise's standard deviation"
            )
        chosen = GaussianLikelihood(apply, None if noise else jnp.float32(noise_scale))
    elif callable(likelihood):
        chosen = OwnLikelihood(apply, as_function("likelihood", likelihood))
    else:
        raise ValueError(
            'likelihood must be "classification", "regression" or a function of (output, example), '
            f"got {likelihood!r}"
        )
    if noise_scale is not None and likelihood != "regression":
        raise ValueError(
            'noise_scale is of likelihood="regression" alone; leave it out, or ask for that'
        )
    prior = _prior(prior_scale, parts.position, noise)
    return Posterior(chosen, prior, examples, init=position)


def _output_shape(apply: ModuleApply, position: Any, examples: Any) -> tuple[int, ...]:
    """The shape of one output, if it is an array."""
    first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), examples)
    try:
        found = jax.eval_shape(apply, position, first.inputs)
    except Exception as reason:
        raise ValueError(
            f"module cannot be called with one input of shape {_shapes(first.inputs)}: "
            f"{str(reason).splitlines()[0]}; give inputs one row per example, or call="
        ) from reason
    return tuple(getattr(found, "shape", ()))


def _shapes(tree: Any) -> str:
    return ", ".join(str(tuple(leaf.shape)) for leaf in jax.tree.leaves(tree))


def _labels(outcomes: np.ndarray, shape: tuple[int, ...]) -> jax.Array:
    labels = np.asarray(outcomes)
    if len(shape) != 1 or shape[0] < 2:
        raise ValueError(
            "module must give one logit for each class in a classification, got outputs of shape "
            f'{shape}; two classes have two logits, and numbers are likelihood="regression"'
        )
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"outcomes must be one whole number for each example, got {labels.dtype} of shape "
            f"{labels.shape}; number the classes from 0"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < shape[0]:
        raise ValueError(
            f"outcomes must lie between 0 and {shape[0] - 1}, the module's outputs, got "
            f"{labels.min()} to {labels.max()}; number the classes from 0"
        )
    return jnp.asarray(labels, jnp.int32)


def _numbers(outcomes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.asarray(outcomes, np.float32)
    if math.prod(numbers.shape[1:]) != math.prod(shape):
        raise ValueError(
            f"outcomes must have the shape of the module's outputs, {shape} for each example, got "
            f"{numbers.shape[1:]}"
        )
    return numbers


def _unknown_noise(position: dict[str, Any], numbers: np.ndarray) -> tuple[dict[str, Any], Any]:
    from amagold.interop._module_likelihoods import NoiseScale

    if LOG_SCALE in position:
        raise ValueError(
            f"module has a parameter called {LOG_SCALE!r}, which is the noise's name here; rename "
            "it, or give noise_scale"
        )
    center = np.float32(np.log(max(float(numbers.std()), 1e-6)))
    noise = NoiseScale(jnp.asarray(center), jnp.float32(LOG_NOISE_SPREAD))
    return position | {LOG_SCALE: jnp.asarray(center)}, noise


def _prior(prior_scale: PriorScale, weights: dict[str, Any], noise: Any) -> Any:
    from amagold.interop._module_likelihoods import WeightPrior

    words = "Weights have independent normal priors around zero, of the scales given."
    if not callable(prior_scale):
        checks.number(
            "prior_scale", prior_scale, above=0.0, remedy="give the prior's standard deviation"
        )
        words = f"Weights have independent N(0, {float(prior_scale):.4g}^2) priors."
    scales = {}
    for path, leaf in weights.items():
        given = prior_scale(path, leaf) if callable(prior_scale) else prior_scale
        scale = as_numbers(f"prior_scale({path!r})", given)
        if not np.all(np.isfinite(scale) & (np.asarray(scale) > 0)):
            raise ValueError(
                f"prior_scale must be above zero, got {given!r} for {path!r}; give the prior's "
                "standard deviation"
            )
        try:
            np.broadcast_to(scale, leaf.shape)
        except ValueError:
            raise ValueError(
                f"prior_scale must be one number or as {path!r} of shape {leaf.shape}, got shape "
                f"{np.shape(scale)}"
            ) from None
        scales[path] = jnp.asarray(scale, jnp.float32)
    return WeightPrior(scales, noise, words)
