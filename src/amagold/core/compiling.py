"""How long the compiler may take: for a few thousand draws its time counts more than the program's
own.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

import jax
from jax.core import Tracer

Function = TypeVar("Function", bound=Callable[..., Any])

ONCE, OFTEN = (
    0,
    1,
    # LLVM's levels: 1 gave programs as fast as 3 in half the time, 0 is twice as quick again and
    # its programs slow
)


def jit(level: int, *static_argnames: str) -> Callable[[Function], Function]:
    """`jax.jit` that does not take all the time in the world: level ONCE for little work that is
    done once, OFTEN for the rest.
    """

    def decorate(function: Function) -> Function:
        nested = jax.jit(function, static_argnames=static_argnames)

        @lru_cache(maxsize=1)
        def compiled() -> Any:
            # made when it is first called, because asking for the backend fixes JAX's devices
            options = _options(level) if jax.default_backend() == "cpu" else None
            return jax.jit(function, static_argnames=static_argnames, compiler_options=options)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            # inside another program, that one's options count
            is_nested = any(
                isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named))
            )
            return nested(*arguments, **named) if is_nested else compiled()(*arguments, **named)

        call.compiled = compiled  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _options(level: int) -> dict[str, int | bool]:
    """The compiler's, as far as this release of it knows them."""
    return {"xla_backend_optimization_level": level, **_plain_loops()}


@lru_cache(maxsize=1)
def _plain_loops() -> dict[str, bool]:
    """Fused loops straight to LLVM, not by way of MLIR: a third less to compile, and the small
    loops of samplers run as fast or faster. A release without the choice has nothing to set.
    """
    option = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=option).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return option
