"""A run in a process of its own, to be killed: `python long_run.py begin|resume PATH`, in many
short chunks.
"""

import sys

import jax

jax.config.update("jax_num_cpu_devices", 2)

import numpy as np  # noqa: E402

import amagold  # noqa: E402
from amagold.runner import _layout as layout  # noqa: E402
from amagold.sampling import _recorder as recorder  # noqa: E402

NUM_SAMPLES, NUM_WARMUP, NUM_CHAINS = 6_000, 400, 4


def sampler():
    table = amagold.datasets.heart()
    target = amagold.models.logistic(table.X, table.y, prior_scale=1.0)
    return amagold.amagold(
        target,
        step_size=0.1,
        num_steps=5,
        gradient=amagold.gradients.minibatch(54, plan="epoch"),
        resample_momentum=False,
    )


def begin(path):
    warmup = amagold.Warmup(target_acceptance=0.7, mass="diagonal", keep=True)
    start = np.zeros(14)
    return amagold.sample(
        sampler(),
        NUM_SAMPLES,
        NUM_WARMUP,
        NUM_CHAINS,
        seed=5,
        init=start,
        store=path,
        progress=False,
        warmup=warmup,
    )


def main(command, path):
    if path != "none":
        layout.MAX_CHUNK = 50
        recorder.LONGEST_WAIT = 0.0
        recorder.CHECKPOINT_SHARE = 0.5
    if command == "begin":
        return begin(None if path == "none" else path)
    return amagold.resume(path, sampler(), progress=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
