"""The truth of the applied posteriors: long runs of BlackJAX's NUTS in float64. `python
make_references.py [NAME ...]`.
"""

import json
import math
import os
import sys
import time
from functools import cache
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

import blackjax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from applied import FILE  # noqa: E402
from arviz_stats.base import array_stats  # noqa: E402
from suite import APPLIED  # noqa: E402

import amagold  # noqa: E402

NUM_CHAINS, NUM_DRAWS, NUM_WARMUP = 4, 5_000, 1_000
LARGEST_R_HAT = 1.005


def log_density_of(target):
    """The target's own functions, in float64."""
    if isinstance(target, amagold.Density):
        return target.log_density
    data = jax.tree.map(
        lambda leaf: leaf.astype(jnp.float64) if leaf.dtype == jnp.float32 else leaf, target.data
    )
    rows = jax.vmap(target.log_likelihood, in_axes=(None, 0))
    return lambda position: target.log_prior(position) + rows(position, data).sum()


def start_of(log_density, position):
    """Near the mode, because a chain from raw units would take long to come in."""
    flat, unflatten = jax.flatten_util.ravel_pytree(
        jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), position)
    )
    from scipy.optimize import minimize

    energy = jax.jit(jax.value_and_grad(lambda at: -log_density(unflatten(at))))
    best = minimize(
        lambda at: tuple(map(np.asarray, energy(at))),
        np.asarray(flat),
        jac=True,
        method="BFGS",
        options={"maxiter": 2000},
    )
    hessian = np.asarray(jax.hessian(lambda at: -log_density(unflatten(at)))(jnp.asarray(best.x)))
    values, vectors = np.linalg.eigh(hessian)
    spread = vectors @ np.diag(1 / np.sqrt(np.maximum(np.abs(values), 1e-12))) @ vectors.T
    return unflatten, jnp.asarray(best.x), jnp.asarray(spread)


@cache
def sample(build, is_diagonal):
    """Draws by variable, with axes (chain, draw, ...), in units where the curvature at the mode is
    one.
    """
    target = build()
    log_density = log_density_of(target)
    key = jax.random.key(2024)
    unflatten, mode, spread = start_of(log_density, target.init)
    scaled = lambda at: log_density(unflatten(mode + spread @ at))  # noqa: E731
    size = mode.shape[0]

    @jax.jit
    def chain(key):
        start_key, warm_key, run_key = jax.random.split(key, 3)
        warm = blackjax.window_adaptation(
            blackjax.nuts, scaled, is_mass_matrix_diagonal=is_diagonal, target_acceptance_rate=0.9
        )
        (state, parameters), _ = warm.run(
            warm_key, 0.5 * jax.random.normal(start_key, (size,), jnp.float64), NUM_WARMUP
        )
        step = blackjax.nuts(scaled, **parameters).step

        def one(state, key):
            state, info = step(key, state)
            return state, (mode + spread @ state.position, info.is_divergent)

        return jax.lax.scan(one, state, jax.random.split(run_key, NUM_DRAWS))[1]

    positions, divergent = zip(
        *(chain(key) for key in jax.random.split(key, NUM_CHAINS)), strict=True
    )
    stacked = jax.vmap(jax.vmap(unflatten))(jnp.stack(positions))
    draws = (
        {"theta": np.asarray(stacked)}
        if not isinstance(stacked, dict)
        else {name: np.asarray(leaf) for name, leaf in stacked.items()}
    )
    return draws, int(np.sum(divergent))


def error_of(series):
    return float(
        series.std(ddof=1)
        / math.sqrt(float(array_stats.ess(series, chain_axis=0, draw_axis=1, method="mean")))
    )


def summarise(series):
    """Mean, variance and two tails with their errors."""
    mean, (low, high) = float(series.mean()), np.quantile(series, [0.05, 0.95])
    square, below, above = (
        (series - mean) ** 2,
        (series < low).astype(float),
        (series > high).astype(float),
    )
    return {
        "mean": mean,
        "variance": float(square.mean()),
        "lower": [float(low), float(below.mean())],
        "upper": [float(high), float(above.mean())],
        "errors": [error_of(part) for part in (series, square, below, above)],
        "r_hat": float(array_stats.rhat(series, chain_axis=0, draw_axis=1)),
    }


def main(names):
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    for applied in APPLIED:
        if names and not any(name in applied.name for name in names):
            continue
        began = time.monotonic()
        # one run serves a posterior in all its parameters
        draws, divergent = sample(applied.other or applied.target, applied.is_diagonal)
        draws = applied.back(draws)
        kept[applied.name] = {name: summarise(of(draws)) for name, of in applied.numbers.items()}
        largest = max(known["r_hat"] for known in kept[applied.name].values())
        print(
            f"{applied.name}: R-hat {largest:.4f}, {divergent} divergent, "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
        if largest > LARGEST_R_HAT:
            raise SystemExit(f"{applied.name} did not mix: R-hat {largest:.4f}")
        FILE.write_text(json.dumps(kept, indent=1) + "\n")
        jax.clear_caches()


if __name__ == "__main__":
    main(sys.argv[1:])
