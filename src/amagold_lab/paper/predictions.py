"""What a chain over a network's weights predicts: errors, calibration, and how sure it is of images
it has never seen the like of.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from amagold.datasets._mnist import Images
from amagold.diagnose.metrics import calibration_error, entropy, error_rate, log_score
from amagold.energy import _chunks as chunks
from amagold.models._network import Layers, logits
from amagold.sampling._run import Run
from amagold.store._names import name_leaves
from amagold.target import Posterior

NUM_AVERAGED = 20  # draws, as in the paper
SURE = 0.1  # nats: a prediction of lower entropy gives one class 97% or more
ENTROPIES = np.linspace(0.0, np.log(10.0), 93)  # where the distribution of entropies is kept


def draws_of(run: Run, target: Posterior, last: int | None = None) -> Iterator[Layers]:
    """The positions of the only chain, one at a time, from the store."""
    names, form = list(name_leaves(target.init)), jax.tree.structure(target.init)
    total = run.posterior.sizes["draw"]
    for draw in range(0 if last is None else max(0, total - last), total):
        here = run.posterior.isel(chain=0, draw=draw)
        yield jax.tree.unflatten(form, [np.asarray(here[name]) for name in names])


@jax.jit
def probabilities(layers: Layers, inputs: jax.Array) -> jax.Array:
    """p(y | x, theta) of every class, a row per image."""
    return jax.nn.softmax(logits(layers, inputs))


@jax.jit
def energy_per_example(target: Posterior, layers: Layers) -> jax.Array:
    """U / N over the images that the chain learns from."""
    return -(
        target.log_prior(layers) / target.num_examples
        + chunks.log_likelihoods(target, layers).mean()
    )


def averaged(run: Run, target: Posterior, inputs: np.ndarray) -> np.ndarray:
    """The predictive distribution: the mean of the last draws' probabilities."""
    found = [
        np.asarray(probabilities(layers, inputs), np.float64)
        for layers in draws_of(run, target, NUM_AVERAGED)
    ]
    return np.mean(found, axis=0)


def percent_wrong(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Of images whose most probable class is another."""
    return 100.0 * error_rate(predicted, labels)


def scores(run: Run, target: Posterior, test: Images, start: Layers) -> dict[str, Any]:
    """How the chain went, draw by draw, and what its last draws predict together. As JSON
    holds it.
    """
    statistics = run.sample_stats.isel(chain=0)
    wrong, energies, distances = [], [], []
    for layers in draws_of(run, target):
        wrong.append(percent_wrong(np.asarray(probabilities(layers, test.X)), test.y))
        energies.append(float(energy_per_example(target, layers)))
        distances.append(distance(layers, start))
    together = averaged(run, target, test.X)
    return {
        "gradients": np.cumsum(np.asarray(statistics["n_steps"])).tolist(),
        "examples": int(
            (statistics["num_gradient_examples"] + statistics["num_energy_examples"]).sum()
        ),
        "test_error": wrong,
        "energy": energies,
        "distance": distances,
        "acceptance": np.asarray(statistics["acceptance_rate"], float).tolist(),
        "step_size": float(statistics["step_size"][-1]),
        "start_error": percent_wrong(np.asarray(probabilities(start, test.X)), test.y),
        "start_energy": float(energy_per_example(target, start)),
        "ensemble_error": percent_wrong(together, test.y),
        "ensemble_log_score": log_score(together, test.y),
        "ensemble_calibration_error": calibration_error(together, test.y),
        "seconds": run.sampling_seconds,
    }


def uncertainty(run: Run, target: Posterior, inputs: np.ndarray) -> dict[str, Any]:
    """How sure the last draws are together and each alone: the share of images below each entropy,
    means, and shares.
    """
    each = [
        np.asarray(probabilities(layers, inputs), np.float64)
        for layers in draws_of(run, target, NUM_AVERAGED)
    ]
    together = entropy(np.mean(each, axis=0))
    return {
        "below": (
            np.searchsorted(np.sort(together), ENTROPIES, side="right") / len(together)
        ).tolist(),
        "mean": float(together.mean()),
        "mean_of_draws": float(np.mean([entropy(predicted).mean() for predicted in each])),
        "sure": float(np.mean(together < SURE)),
        "sure_of_draws": float(np.mean([np.mean(entropy(predicted) < SURE) for predicted in each])),
    }


def distance(layers: Layers, start: Layers) -> float:
    """Root mean square change of a weight since the start."""
    changes = [
        np.asarray(now) - np.asarray(then)
        for now, then in zip(jax.tree.leaves(layers), jax.tree.leaves(start), strict=True)
    ]
    return float(np.sqrt(np.mean(np.concatenate([change.ravel() for change in changes]) ** 2)))
