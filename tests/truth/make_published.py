"""Moments of posteriors that posteriordb has no reference draws of, or whose data are not kept:
long runs of NumPyro's NUTS in float64. `python tests/truth/make_published.py [NAME ...]`.
"""

import json
import os
import sys
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers")]

import jax  # noqa: E402
import numpy as np  # noqa: E402
from arviz_stats.base import array_stats  # noqa: E402
from make_references import LARGEST_R_HAT, error_of  # noqa: E402
from numpyro import handlers  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402
from numpyro.infer.reparam import LocScaleReparam  # noqa: E402
from published import MADE, OURS, Moments  # noqa: E402
from published_suite import POSTERIORS  # noqa: E402

NUM_CHAINS, NUM_DRAWS, NUM_WARMUP = 4, 3_000, 800
GROUPS = ("eps", "alpha")


def main(names):
    kept = json.loads(OURS.read_text()) if OURS.exists() else {}
    for posterior in POSTERIORS:
        if posterior.name not in MADE or (names and posterior.name not in names):
            continue
        arguments = [x.astype(np.float64) if x.dtype == np.float32 else x for x in posterior.args]
        apart = {name: LocScaleReparam(0) for name in GROUPS}  # NUTS moves better so
        mcmc = MCMC(
            NUTS(handlers.reparam(posterior.model, config=apart), target_accept_prob=0.9),
            num_warmup=NUM_WARMUP,
            num_samples=NUM_DRAWS,
            num_chains=NUM_CHAINS,
            chain_method="sequential",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(2024), *arguments)
        draws = {k: np.asarray(x) for k, x in mcmc.get_samples(group_by_chain=True).items()}
        series = [Moments(name, 0, 0, 0, 0).of(draws) for name in MADE[posterior.name]]
        largest = max(float(array_stats.rhat(x, chain_axis=0, draw_axis=1)) for x in series)
        print(f"{posterior.name}: R-hat {largest:.4f}", flush=True)
        if largest > LARGEST_R_HAT:
            raise SystemExit(f"{posterior.name} did not mix: R-hat {largest:.4f}")
        kept[posterior.name] = {
            "names": MADE[posterior.name],
            "mean": [float(x.mean()) for x in series],
            "mean_error": [error_of(x) for x in series],
            "square": [float((x**2).mean()) for x in series],
            "square_error": [error_of(x**2) for x in series],
        }
        OURS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
