"""How long the compiler may take, and what need not be compiled: for a few thousand draws its time
counts more than the program's own.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import jax
from jax.core import Tracer

from amagold.core.program_cache import (
    MOST_BYTES,
    whole_programs,
    without_jax_keeping,
)
from amagold.core.program_files import find_program, keep_program
from amagold.core.program_words import (
    UnknownDependencyError,
    settings_of_jax,
    words_of_program,
)

Function = TypeVar("Function", bound=Callable[..., Any])

PROGRAMS: list[dict[Any, Any]] = []

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
        whole = WholePrograms(function, static_argnames, level)

        @lru_cache(maxsize=1)
        def compiled() -> Any:
            # made when it is first called, because asking for the backend fixes JAX's devices
            return jax.jit(
                function, static_argnames=static_argnames, compiler_options=_options(level)
            )

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            # inside another program, that one's options count
            is_nested = any(
                isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named))
            )
            if is_nested:
                return nested(*arguments, **named)
            folder = whole_programs()
            if folder is None:
                return compiled()(*arguments, **named)
            return whole.call(folder, compiled, arguments, named)

        call.compiled = compiled  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


class WholePrograms:
    """The programs of one function that are found, or kept, without tracing it."""

    def __init__(self, function: Callable[..., Any], static: tuple[str, ...], level: int) -> None:
        self.function, self.static, self.level = function, static, level
        self.signature = inspect.signature(function)
        self.ready: dict[Any, Any] = {}  # None for those that cannot be kept
        PROGRAMS.append(self.ready)

    def call(
        self,
        folder: Path,
        compiled: Callable[[], Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        bound = self.signature.bind(*arguments, **named)
        bound.apply_defaults()
        fixed = {name: bound.arguments[name] for name in self.static}
        varying = [value for name, value in bound.arguments.items() if name not in fixed]
        # the types too: 1, 1.0 and True are equal
        static = tuple((type(value), value) for value in fixed.values())
        like = (*_likeness(varying), static, settings_of_jax())
        if like not in self.ready:
            self.ready[like] = self._prepared(folder, compiled, bound, fixed, varying)
        program = self.ready[like]
        return compiled()(*arguments, **named) if program is None else program(*varying)

    def _prepared(
        self,
        folder: Path,
        compiled: Callable[[], Any],
        bound: inspect.BoundArguments,
        fixed: dict[str, Any],
        varying: list[Any],
    ) -> Any:
        try:
            words = words_of_program(self.function, fixed, varying, self.level)
        except UnknownDependencyError:
            return None
        found = find_program(folder, words, varying)
        if found is not None:
            return found
        lowered = compiled().lower(*bound.args)
        with without_jax_keeping():
            program = lowered.compile()
        keep_program(folder, words, lowered, program, MOST_BYTES // 2)
        return program


def forget_programs() -> None:
    """Give up what was compiled; who calls a program again finds or compiles it again."""
    for ready in PROGRAMS:
        ready.clear()
    jax.clear_caches()


def _likeness(varying: list[Any]) -> tuple[Any, ...]:
    """What arguments of one program have in common."""
    leaves, form = jax.tree.flatten(varying)
    return form, *(
        (leaf.aval, leaf.sharding, leaf.committed)
        if isinstance(leaf, jax.Array)
        else (type(leaf), getattr(leaf, "shape", ()), getattr(leaf, "dtype", None))
        for leaf in leaves
    )


def _options(level: int) -> dict[str, int | bool] | None:
    """The compiler's, as far as this release of it knows them."""
    if jax.default_backend() != "cpu":
        return None
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
