"""Programs that run once: for them the compiler's time counts, not their own."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

import jax

Function = TypeVar("Function", bound=Callable[..., Any])

HURRIED = {"xla_backend_optimization_level": 0}  # several times faster to compile, and slower to run


def run_once(function: Function) -> Function:
    """`jax.jit` for a program that does little work and does it once or twice."""

    @lru_cache(maxsize=1)
    def compiled() -> Any:
        # asked for when it is first called, because asking fixes JAX's devices
        return jax.jit(function, compiler_options=HURRIED if jax.default_backend() == "cpu" else None)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled()(*arguments)

    return call  # type: ignore[return-value]
