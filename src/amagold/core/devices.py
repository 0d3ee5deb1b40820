"""Use of the machine's cores."""

import contextlib
import os

import jax

UNSET = -1  # JAX's own default: one device, unless told otherwise


def use_all_cores() -> None:
    """Show every core to JAX as a device, so that chains spread over them.

    JAX fixes its devices when it first computes, so this has an effect only before that; later, or
    where the user has set the number of devices, it leaves things as they are. `amagold.sample`,
    the command line, and whatever builds a target (whose data are then put on a device) call it.
    """
    chosen = "JAX_NUM_CPU_DEVICES" in os.environ or "host_platform_device_count" in os.environ.get(
        "XLA_FLAGS", ""
    )
    if chosen or getattr(jax.config, "jax_num_cpu_devices", UNSET) != UNSET:
        return
    with contextlib.suppress(RuntimeError):  # the devices are already fixed
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
