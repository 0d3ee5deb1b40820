"""SHA-256 of the draws of some fifty small seeded runs, to compare before and after a change that
must not change any.

    python tests/digests.py > before.txt
    python tests/digests.py | diff before.txt -

Bits depend on the machine and on XLA's version, so nothing is kept here.
"""

import hashlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import amagold

sys.path.append(str(Path(__file__).parent / "matrix"))
import cells

jax.config.update("jax_num_cpu_devices", 2)

QUIET: dict[str, Any] = {"progress": False}


def digest(draws: Any) -> str:
    """Of all arrays of a tree, with their shapes and types."""
    total = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(draws):
        array = np.ascontiguousarray(np.asarray(leaf))
        total.update(f"{jax.tree_util.keystr(path)}{array.dtype}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def of_run(run: amagold.Run) -> dict[str, np.ndarray]:
    """Draws and statistics of a run, without anything that is timed."""
    groups = {
        "posterior": run.posterior,
        "sample_stats": run.sample_stats,
        "warmup": run.warmup_sample_stats,
    }
    return {
        f"{group}.{name}": values.to_numpy()
        for group, found in groups.items()
        for name, values in found.data_vars.items()
    }


def table(num_examples: int, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(num_examples)
    X = generator.normal(size=(num_examples, num_columns)).astype(np.float32)
    return X, (
        generator.random(num_examples)
        < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, num_columns)))
    ).astype(np.float32)


def banana(position: dict[str, jax.Array]) -> jax.Array:
    return -0.5 * position["x"] ** 2 - 2.0 * (position["y"] - position["x"] ** 2) ** 2


def two_wells(position: jax.Array) -> jax.Array:
    return jnp.logaddexp(
        -0.5 * jnp.sum((position - 4.0) ** 2), -0.5 * jnp.sum((position + 4.0) ** 2)
    )


def own_likelihood(position: jax.Array, row: tuple[jax.Array, jax.Array]) -> jax.Array:
    return -0.5 * (row[1] - jnp.dot(row[0], position)) ** 2


def planned() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """A target of each kind of plan, and arguments of `sample`."""
    X, y = table(400, 3)
    flat = table(20_000, 4)
    counts = np.random.default_rng(3).poisson(np.exp(0.5 * X[:, 0]))
    yield "leapfrog, full gradient", amagold.Density(banana, init={"x": 0.0, "y": 0.0}), {}
    yield "two modes", amagold.Density(two_wells, init=np.zeros(2)), {}
    yield "quarter turn, full gradient", amagold.models.logistic(X, y), {}
    yield "unknown noise", amagold.models.linear(X, X @ np.ones(3) + y), {}
    yield "robust", amagold.models.robust(X, X @ np.ones(3) + y), {}
    yield "poisson", amagold.models.poisson(X, counts), {}
    yield "softmax", amagold.models.softmax(X, counts.clip(0, 2)), {}
    yield "control variates, few examples", amagold.models.logistic(*flat), {}
    yield (
        "control variates, 64 chains",
        amagold.models.logistic(*flat),
        {"num_chains": 64, "num_samples": 40},
    )
    own = amagold.Posterior(
        own_likelihood, lambda position: -0.5 * jnp.sum(position**2), flat, init=np.zeros(4)
    )
    yield "control variates, all data", own, {}
    yield "one chain", amagold.models.logistic(X, y), {"num_chains": 1}
    yield "seven chains, thinned", amagold.models.logistic(X, y), {"num_chains": 7, "thin": 3}
    yield (
        "another acceptance",
        amagold.models.logistic(X, y),
        {"warmup": amagold.Warmup(target_acceptance=0.7, mass="dense")},
    )
    inside = amagold.Density(lambda at: -0.5 * at**2, domain=lambda at: at > 0.0, init=1.0)
    yield "a wall", inside, {}


def runs(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name, and what makes the draws."""
    for cell in cells.selection():
        arguments = {**cell.arguments(), "num_samples": 20, **QUIET}
        yield (
            cell.name,
            lambda cell=cell, given=arguments: of_run(
                amagold.sample(cell.combination.build(), **given)
            ),
        )
    for name, target, options in planned():
        given = {"num_samples": 100, "num_warmup": 200, **QUIET, **options}
        yield name, lambda target=target, given=given: of_run(amagold.sample(target, **given))
    yield "stored", lambda: stored(folder / "stored.zarr")
    yield "stopped and resumed", lambda: resumed(folder / "resumed.zarr")
    yield "run_chains", by_hand
    yield "step by step", stepwise
    yield "self-test", checked


def stored(path: Path) -> Any:
    amagold.sample(amagold.models.double_well(), 500, 100, 3, store=path, **QUIET)
    return of_run(amagold.load(path))


def resumed(path: Path) -> Any:
    target = amagold.models.double_well()
    amagold.sample(target, 500, 100, 3, store=path, max_time=1e-9, **QUIET)
    return of_run(amagold.resume(path, target, **QUIET))


def by_hand() -> Any:
    sampler = amagold.amagold(
        amagold.models.double_well(), step_size=0.2, gradient=amagold.gradients.noisy(0.5)
    )
    draws = amagold.run_chains(sampler, jax.random.key(1), np.zeros(5), 200, num_burn_in=10, thin=2)
    return draws.position, draws.info.log_ratio


def stepwise() -> Any:
    sampler = amagold.sghmc(amagold.models.logistic(*table(400, 3)), step_size=0.02, batch_size=16)
    state = sampler.init(np.zeros(4, np.float32))
    for number in range(5):
        state, info = sampler.step(jax.random.key(number), state)
    return state.position, info.log_ratio


def checked() -> Any:
    target = amagold.models.logistic(*table(400, 3))
    sampler = amagold.amagold(target, step_size=0.05, batch_size=32)
    report = amagold.check(target, sampler, num_chains=64, num_transitions=20, num_reference=50)
    return np.array([quantity.difference for quantity in report.quantities])


def main() -> None:
    warnings.simplefilter("ignore", amagold.SamplingWarning)
    with tempfile.TemporaryDirectory() as folder:
        for name, make in runs(Path(folder)):
            print(f"{digest(make())}  {name}", flush=True)


if __name__ == "__main__":
    main()
