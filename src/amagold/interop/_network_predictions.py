"""Predictions of many draws together, in bounded memory: some draws and some inputs at a time."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks, trees
from amagold.interop._draws_of_run import blocks_of_draws
from amagold.sampling import Run
from amagold.target import Posterior

NUM_NUMBERS = 2**23  # of outputs that are held at a time: 32 MB
KINDS = ("logits", "probabilities", "numbers")


@dataclass(frozen=True)
class Prediction:
    """What the draws say together about each input.

    Attributes:
      mean: the mean over draws: of classes their predictive probabilities, a column for each.
      spread: the standard deviation over draws.
      num_draws: how many they are.
      mean_entropy: of classes, the mean entropy of single draws: the doubt that more data would
        not remove; None for numbers.
      noise_scale: the noise around a number that is predicted, root mean square over draws, where
        the target knows it.
    """

    mean: np.ndarray
    spread: np.ndarray
    num_draws: int
    mean_entropy: np.ndarray | None = None
    noise_scale: float | None = None

    @property
    def probabilities(self) -> np.ndarray:
        """Of each class, for each input."""
        if self.mean_entropy is None:
            raise ValueError(
                'probabilities are of classes; predict with outputs="logits" or '
                'outputs="probabilities" where there are some'
            )
        return self.mean

    @property
    def entropy(self) -> np.ndarray:
        """Of the predictive probabilities, in nats: all doubt about the class."""
        from amagold.diagnose.metrics import entropy  # late: its room is slow to load

        return entropy(self.probabilities)

    @property
    def mutual_information(self) -> np.ndarray:
        """Between the class and the weights, in nats: how far the draws disagree. It is the entropy
        of the mean less the mean entropy, and small where every draw has the same doubts.
        """
        return np.maximum(self.entropy - self.mean_entropy, 0.0)

    @property
    def total_spread(self) -> np.ndarray:
        """Of an outcome: the spread over draws and the noise together."""
        return np.sqrt(self.spread**2 + (self.noise_scale or 0.0) ** 2)


@trees.record(functions=("function",))
class Applied:
    """(position, one input) -> its output; the arrays of a record are no constants of a program."""

    function: Callable[[Any, Any], Any]


def predict(
    run: Run,
    apply: Any,
    inputs: Any,
    *,
    outputs: str | None = None,
    num_draws: int | None = None,
    batch_size: int = 1024,
    like: Any = None,
) -> Prediction:
    """Predictions averaged over the draws of a run.

    Memory holds some draws and `batch_size` inputs at a time, and a few numbers for every input;
    draws are read once.

    Args:
      run: what `amagold.sample` returned, or a stored run.
      apply: the target that `amagold.from_module` made, what `amagold.last_layer` returned, or a
        function of (position, one input) that returns the output.
      inputs: one row for each: an array or a tree of arrays.
      outputs: what `apply` gives: "logits", "probabilities" or "numbers". None is what the target
        says, and "numbers" for a function.
      num_draws: how many draws to take, spread evenly over all of them; None takes all.
      batch_size: inputs at a time.
      like: a position of the form that a function takes. None is that of the run's own target;
        of a loaded run a dict by the names of its variables, or the array if it is one alone.
    """
    function, kind, noise_of, like = _understood(apply, outputs, like)
    if hasattr(apply, "prepare"):
        inputs = apply.prepare(inputs)  # once for all draws
    checks.whole_number("batch_size", batch_size, at_least=1, remedy="give the inputs per block")
    arrays = jax.tree.map(np.asarray, inputs)
    leaves = jax.tree.leaves(arrays)
    if not leaves or any(leaf.ndim == 0 or len(leaf) != len(leaves[0]) for leaf in leaves):
        raise ValueError("inputs must have one row for each; give arrays of one length")
    sums: list[np.ndarray] | None = None
    noise, count = 0.0, 0
    size = min(batch_size, max(1, len(leaves[0])))
    one = jax.tree.map(lambda leaf: leaf[0], next(blocks_of_draws(run, like, 1)))
    most = _draws_at_a_time(function, one, arrays, size)
    for block in blocks_of_draws(run, like, num_draws, most):
        here = len(jax.tree.leaves(block)[0])
        pieces = [_moments(Applied(function), kind, block, rows) for rows in _blocks(arrays, size)]
        found = [np.concatenate(piece)[: len(leaves[0])] for piece in zip(*pieces, strict=True)]
        sums = found if sums is None else _merged(sums, count, found, here)
        noise += 0.0 if noise_of is None else float(np.sum(noise_of(block)))
        count += here
    assert sums is not None
    mean, squares, doubt = sums
    return Prediction(
        mean,
        np.sqrt(squares / max(count - 1, 1)),
        count,
        None if kind == "numbers" else doubt,
        None if noise_of is None else float(np.sqrt(noise / count)),
    )


def _understood(apply: Any, outputs: str | None, like: Any) -> tuple[Any, str, Any, Any]:
    """The function, what it gives, the squared noise of draws, and the form of positions."""
    own: Any = None
    noise_of = None
    if isinstance(apply, Posterior):
        likelihood: Any = apply.log_likelihood
        if not hasattr(likelihood, "apply"):
            raise ValueError(
                "apply must be a target of amagold.from_module or a function of (position, input), "
                "got another target; give the function that predicts"
            )
        function, own, like = likelihood.apply, likelihood.outputs, apply.init
        noise_of = _noise_of(likelihood)
    elif hasattr(apply, "apply") and hasattr(apply, "outputs"):
        function, own = apply.apply, apply.outputs
        noise_of = _noise_of(apply) if own == "numbers" else None
    elif callable(apply):
        function = apply
    else:
        raise ValueError(
            f"apply must be a function of (position, one input), got {type(apply).__name__}"
        )
    kind = outputs or own or "numbers"
    if kind not in KINDS:
        raise ValueError(f"outputs must be one of {', '.join(KINDS)}, got {outputs!r}")
    return function, kind, noise_of, like


def _noise_of(likelihood: Any) -> Callable[[Any], np.ndarray] | None:
    """The squared noise of each of some draws, where the likelihood has noise."""
    if not hasattr(likelihood, "log_noise_scale"):
        return None

    def squared(block: Any) -> np.ndarray:
        logs = jax.vmap(likelihood.log_noise_scale)(block)
        return np.exp(2.0 * np.asarray(logs, np.float64))

    return squared


def _draws_at_a_time(function: Any, like: Any, rows: Any, size: int) -> int:
    """How many draws' outputs for `size` inputs fit the memory."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), rows)
    found = jax.eval_shape(function, like, one)
    if not isinstance(found, jax.ShapeDtypeStruct):
        raise ValueError(
            "apply must return one array for one input, got a tree of several; choose one of them"
        )
    return max(1, NUM_NUMBERS // (size * max(1, math.prod(found.shape))))


def _blocks(arrays: Any, size: int) -> Iterator[Any]:
    """Rows in blocks of one length, the last filled up with its last row."""
    total = len(jax.tree.leaves(arrays)[0])
    for start in range(0, total, size):
        numbers = np.minimum(np.arange(start, start + size), total - 1)
        yield jax.tree.map(lambda leaf, numbers=numbers: leaf[numbers], arrays)


def _moments(applied: Applied, kind: str, block: Any, rows: Any) -> list[np.ndarray]:
    return [np.asarray(part, np.float64) for part in _program(applied, kind, block, rows)]


def _program_of(applied: Applied, kind: str, block: Any, rows: Any) -> tuple[jax.Array, ...]:
    """Of some draws: the mean, the sum of squares around it, and the mean entropy."""

    def one(position: Any) -> jax.Array:
        return jax.vmap(lambda row: applied.function(position, row))(rows)

    found = jax.lax.map(one, block)
    if kind == "logits":
        found = jax.nn.softmax(found)
    mean = found.mean(axis=0)
    squares = jnp.sum((found - mean) ** 2, axis=0)
    if kind == "numbers":
        return mean, squares, jnp.zeros(len(mean))
    doubt = -jnp.sum(jax.scipy.special.xlogy(found, found), axis=-1)
    return mean, squares, doubt.mean(axis=0)


_program = jax.jit(_program_of, static_argnames="kind")


def _merged(
    old: list[np.ndarray], count: int, new: list[np.ndarray], more: int
) -> list[np.ndarray]:
    """Moments of two sets of draws as those of one (Chan, Golub and LeVeque)."""
    share = more / (count + more)
    gap = new[0] - old[0]
    return [
        old[0] + share * gap,
        old[1] + new[1] + count * share * gap**2,
        old[2] + share * (new[2] - old[2]),
    ]
