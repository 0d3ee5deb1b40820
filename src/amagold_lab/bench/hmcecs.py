"""NumPyro's HMC with energy-conserving subsampling, the peer that looks at few examples: given the
mode and the covariance for free.
"""

from typing import Any

import jax
import jax.numpy as jnp

from amagold_lab.bench.benchmark_posteriors import BenchmarkPosterior
from amagold_lab.bench.effective_sample_size import TimedDraws
from amagold_lab.bench.peers import mode_and_covariance, require, run_kernel

# examples of an estimate, and the parts of them that are exchanged one at a time
SUBSAMPLE, NUM_BLOCKS = 20, 5
NUM_WARMUP = 300


def draws(
    problem: BenchmarkPosterior,
    seconds: float,
    subsample: int = SUBSAMPLE,
    num_blocks: int = NUM_BLOCKS,
    seed: int = 0,
) -> TimedDraws:
    """One chain (it does not run vectorised) on a logistic regression whose data are rows with the
    outcome's sign in them.
    """
    require("numpyro")
    import numpyro
    from numpyro.distributions import BernoulliLogits, Normal
    from numpyro.infer import HMCECS, NUTS, init_to_value

    mode, covariance = mode_and_covariance(problem)

    def model(rows: jax.Array) -> None:
        position: Any = numpyro.sample("position", Normal(0.0, 1.0).expand(mode.shape).to_event(1))
        with numpyro.plate("examples", len(rows), subsample_size=subsample):
            batch: Any = numpyro.subsample(rows, event_dim=1)
            numpyro.sample("outcome", BernoulliLogits(batch @ position), obs=jnp.ones(len(batch)))

    settings: dict[str, Any] = {
        "init_strategy": init_to_value(values={"position": jnp.asarray(mode)}),
        "dense_mass": True,
        "inverse_mass_matrix": jnp.asarray(covariance, jnp.float32),
        "adapt_mass_matrix": False,
    }
    kernel = HMCECS(
        NUTS(model, **settings),
        num_blocks=num_blocks,
        proxy=HMCECS.taylor_proxy({"position": jnp.asarray(mode)}),
    )
    return run_kernel(kernel, problem.data(), 1, NUM_WARMUP, seconds, block=50, seed=seed)
