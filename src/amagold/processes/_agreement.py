"""Whether all processes run the same."""

import json
from collections.abc import Mapping
from typing import Any

import jax

from amagold.processes._exchange import PeerError, share


def agree(facts: Mapping[str, Any], remedy: str) -> None:
    """Raise on all processes where one of them has other facts than the first."""
    every = share({name: json.loads(json.dumps(value)) for name, value in facts.items()})
    for place, theirs in enumerate(every):
        for name in facts:
            if theirs.get(name) != every[0].get(name):
                raise PeerError(
                    f"process {place} of {jax.process_count()} has another {name} than process 0: "
                    f"{_short(theirs.get(name))} and {_short(every[0].get(name))}; {remedy}"
                )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
