"""Two host devices, as on a small machine, so that chains spread over devices are tested everywhere."""

import os

# the suite compiles much and runs little: the tests' own programs at the level of the library's
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=1".strip()

import jax

jax.config.update("jax_num_cpu_devices", 2)
