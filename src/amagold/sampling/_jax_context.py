"""JAX as a run needs it, whatever the process has set for its own code."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import jax

from amagold.core.program_cache import kept_programs
from amagold.core.rare_collection import rare_collection


@contextmanager
def usual_jax() -> Iterator[None]:
    """Within this, and in this thread alone, JAX promotes types, moves numbers and compiles as
    usual.

    Guards that help while own code is debugged (strict types, transfers refused, no compilation,
    a search for leaked tracers) would fail in this library's code, or take hours. Compiled
    programs are found again by other processes, and tracing is not held up by the search for
    garbage.
    """
    with ExitStack() as settings:
        settings.enter_context(kept_programs())
        settings.enter_context(rare_collection())
        settings.enter_context(jax.numpy_dtype_promotion("standard"))
        settings.enter_context(jax.transfer_guard("allow"))
        settings.enter_context(jax.disable_jit(False))
        # JAX offers its leak checker switched on alone; behind that is the switch
        switch = getattr(jax.checking_leaks, "func", None)
        if switch is not None:
            settings.enter_context(switch(False))
        yield
