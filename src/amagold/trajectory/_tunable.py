"""What warm-up may set: a proposal's fields of these names, whoever wrote the proposal."""

import dataclasses
from typing import Any

from amagold.trajectory._densities import FromDensities

TUNABLE = ("step_size", "friction", "mass")


def settings_of(proposal: Any) -> dict[str, Any]:
    """The fields that warm-up may set, by name; empty where the proposal has none."""
    own = proposal.proposal if isinstance(proposal, FromDensities) else proposal
    return {name: getattr(own, name) for name in _fields(own) if name in TUNABLE}


def with_settings(proposal: Any, **settings: Any) -> Any:
    """The same proposal with other settings; traced values may be given."""
    if isinstance(proposal, FromDensities):
        return FromDensities(with_settings(proposal.proposal, **settings), proposal.is_tested)
    if dataclasses.is_dataclass(proposal):
        return dataclasses.replace(proposal, **settings)  # type: ignore[type-var]
    return proposal._replace(**settings)


def _fields(own: Any) -> tuple[str, ...]:
    """Of a dataclass, or of a NamedTuple; other classes have none that could be set."""
    if dataclasses.is_dataclass(own):
        return tuple(field.name for field in dataclasses.fields(own))
    return getattr(own, "_fields", ())
