"""Data split over the devices of this process as several processes have them: each device a part,
and chains of its own.
"""

import dataclasses

import jax
import numpy as np
from jax.sharding import Mesh

from amagold.data import InMemory, spread_over
from amagold.data._split_over import pieces_of

AXES = ("chain", "data")


def over_devices(target, counts=None):
    """The target with a part of its data on each device; `counts` are the rows of the parts."""
    devices = jax.devices()
    arrays = jax.tree.map(np.asarray, target.examples.arrays)
    if counts is None:
        parts = pieces_of(arrays, len(devices))
        counts = [len(jax.tree.leaves(part)[0]) for part in parts]
    else:
        ends = np.cumsum(counts)
        parts = [
            jax.tree.map(lambda leaf, n=n, end=end: leaf[end - n : end], arrays)
            for n, end in zip(counts, ends, strict=True)
        ]
    mesh = Mesh(np.array(devices).reshape(1, -1), AXES)
    seal = InMemory(arrays).fingerprint()
    spread = spread_over(mesh, AXES, [(part, part) for part in parts], counts, seal, None)
    return dataclasses.replace(target, data=spread)
