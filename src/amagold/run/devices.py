"""Use of the machine's cores."""

import os

import jax


def use_all_cores() -> None:
    """Show every core to JAX as a device, so that chains spread over them.

    JAX fixes its devices when it first computes, so this only has an effect before that; later it leaves things as they are.
    """
    try:
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    except RuntimeError:  # the devices are already fixed
        pass
