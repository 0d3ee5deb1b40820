"""Small messages between processes, by the coordination service that `jax.distributed` starts."""

import itertools
import json
import os
from typing import Any

import jax

PREFIX = "amagold"
SLICE = 0.5  # seconds that a message is waited for before it is asked who is there
DEFAULT_PATIENCE = 30.0  # seconds
FIRST_PATIENCE = 300.0  # seconds, for a process that has not been heard of yet

_numbers = itertools.count()


class PeerError(RuntimeError):
    """A process of several is gone, hangs, or differs from its peers."""


def patience() -> float:
    """Seconds without a sign of life after which a process counts as lost."""
    given = os.environ.get("AMAGOLD_PATIENCE", str(DEFAULT_PATIENCE))
    try:
        return float(given)
    except ValueError:
        raise ValueError(
            f"AMAGOLD_PATIENCE must be a number of seconds, got {given!r}; unset it, or give 30"
        ) from None


def client() -> Any:
    """Of the coordination service. JAX has no public name for it, and no other way to send a few
    bytes without a program on all devices, which is what fails when a process is gone.
    """
    from jax._src import distributed

    return distributed.global_state.client


def is_alone() -> bool:
    return jax.process_count() == 1


def share(value: Any) -> list[Any]:
    """What every process has for this call, in their order; all of them make the same calls."""
    if is_alone():
        return [value]
    from amagold.processes._watch import the_watch

    watch, number, here = the_watch(), next(_numbers), jax.process_index()
    client().key_value_set(_name(number, here), json.dumps(value))
    every = [
        json.loads(watch.wait_for(_name(number, place))) for place in range(jax.process_count())
    ]
    if number:
        # everybody has it, having said something since
        client().key_value_delete(_name(number - 1, here))
    return every


def _name(number: int, place: int) -> str:
    return f"{PREFIX}/shared/{number}/{place}"
