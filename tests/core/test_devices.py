"""Whatever a user begins with, JAX sees every core; nothing is set by an import alone."""

import os
import subprocess
import sys

import pytest
from doubles import some_of

from amagold import models

TABLE = "X = np.random.default_rng(0).normal(size=(60, 2)); y = (X[:, 0] > 0).astype(int)"
FIRST = {
    name: f"{TABLE}; amagold.models.{name}(X, y{arguments})"
    for name, arguments in {
        **dict.fromkeys(sorted({*models.__all__} - {"Group"}), ""),
        "gamma": " + 1",
        "ordinal": " + (X[:, 1] > 0)",
        "network": ", hidden=(3,)",
        "mixed": ", {'1|g': np.arange(60) // 9}",
    }.items()
} | {
    "double_well": "amagold.models.double_well()",
    "posterior": "amagold.Posterior(lambda at, x: -at * x, lambda at: 0.0, np.ones(3), init=0.0)",
    "density": "amagold.Density(lambda at: -0.5 * at**2, init=0.0)",
    "by hand": "amagold.use_all_cores()",
}


def devices_after(first):
    """How many devices a process of its own has, after this came first."""
    program = f"import numpy as np, amagold\n{first}\nimport jax; print(jax.device_count())"
    hidden = ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return int(found.stdout)


@pytest.mark.skipif((os.cpu_count() or 1) == 1, reason="needs two cores")
@pytest.mark.parametrize("first", some_of(FIRST, "logistic", "mixed", "posterior"))
def test_all_cores_are_shown_to_jax(first):
    assert devices_after(FIRST[first]) == os.cpu_count()


@pytest.mark.skipif((os.cpu_count() or 1) == 1, reason="needs two cores")
@pytest.mark.slow
def test_an_import_sets_nothing_and_late_is_said():
    assert devices_after("amagold.models") == 1
    late = (
        "import io, contextlib, jax.numpy as jnp; jnp.zeros(3) + 1.0; said = io.StringIO()\n"
        "with contextlib.redirect_stdout(said):\n"
        "    amagold.sample(amagold.Density(lambda at: -0.5 * at**2, init=0.0), 500, 200)\n"
        "assert 'call amagold.use_all_cores() before' in said.getvalue()"
    )
    assert devices_after(late) == 1
