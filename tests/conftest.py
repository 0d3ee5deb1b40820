"""Two host devices, as on a small machine, so that chains spread over devices are tested everywhere."""

import jax

jax.config.update("jax_num_cpu_devices", 2)
