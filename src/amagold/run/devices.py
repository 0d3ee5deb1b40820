"""Use of the machine's cores."""

import contextlib
import os

import jax


def use_all_cores() -> None:
    """Show every core to JAX as a device, so that chains spread over them.

    JAX fixes its devices when it first computes, so this has an effect only before that; later, or where the user has set
    the number of devices, it leaves things as they are.
    """
    if "JAX_NUM_CPU_DEVICES" in os.environ or "host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    with contextlib.suppress(RuntimeError):  # the devices are already fixed
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
