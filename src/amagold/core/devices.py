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
    if _is_chosen() or getattr(jax.config, "jax_num_cpu_devices", UNSET) != UNSET:
        return
    with contextlib.suppress(RuntimeError):  # the devices are already fixed
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)


def idle_cores() -> list[str]:
    """A sentence where cores stay idle because JAX began to compute too early; else nothing."""
    cores = os.cpu_count() or 1
    if _is_chosen() or jax.default_backend() != "cpu" or jax.device_count() > 1 or cores == 1:
        return []
    return [
        f"Cores: 1 of {cores}, because JAX was computing before amagold was asked for anything; "
        "call amagold.use_all_cores() before the first array is made."
    ]


def _is_chosen() -> bool:
    """Whether the user has set the number of devices."""
    by_flag = "host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    return "JAX_NUM_CPU_DEVICES" in os.environ or by_flag
