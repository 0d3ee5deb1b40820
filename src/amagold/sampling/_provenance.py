"""Where draws come from: versions, and a fingerprint of the data."""

import hashlib
import platform
from typing import Any

import jax
import numpy as np

from amagold import __version__
from amagold.target import Target

SETTINGS = (
    "jax_enable_x64",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_random_seed_offset",
    "jax_default_matmul_precision",
)


def versions() -> dict[str, Any]:
    """What made the draws; another version of JAX may round differently."""
    return {
        "amagold": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{jax.default_backend()} x {len(jax.devices())}",
    }


def jax_settings() -> dict[str, Any]:
    """What JAX is set to, of all that shows in the bits: the types of numbers, and the
    random ones.
    """
    return {name: getattr(jax.config, name, None) for name in SETTINGS}


def fingerprint(target: Target) -> str | None:
    """A checksum of all data, in order, and of the units they are reported in; None without
    data.
    """
    of_data = target.examples.fingerprint()
    if of_data is None or target.transform is None:
        return of_data
    seal = hashlib.sha256(of_data.encode())
    for path, leaf in jax.tree_util.tree_leaves_with_path(target.transform):
        values = np.asarray(leaf)
        seal.update(f"{jax.tree_util.keystr(path)} {values.dtype} {values.shape}".encode())
        seal.update(np.ascontiguousarray(values).tobytes())
    return seal.hexdigest()
