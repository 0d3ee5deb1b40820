"""Draws of a model with random effects, by the names of its terms and groups."""

from typing import Any

import numpy as np

from amagold.core import trees
from amagold.models._mixed_scale import MixedScale
from amagold.tables._group_terms import GroupTerm
from amagold.tables._term_codes import Term
from amagold.tables._term_scale import TermScale
from amagold.target._group_effects import FIXED, NOISE, TAU, correlation_name, scale_name


@trees.record(static=("name", "variables", "scales", "correlations"))
class BlockNames:
    """What the draws of one random effect are called."""

    name: str  # in the position
    variables: tuple[str, ...]
    scales: tuple[str, ...]
    correlations: tuple[tuple[str, int, int], ...]


@trees.record(static=("terms", "blocks", "taus"))
class GroupedScale:
    """Positions of a mixed model as one array for each term and effect, and back."""

    scale: MixedScale
    terms: tuple[Term, ...]
    blocks: tuple[BlockNames, ...]
    taus: tuple[str, ...] = ()  # what the scales of horseshoe priors are called

    def __call__(self, position: dict[str, Any]) -> dict[str, Any]:
        found = self.scale(position)
        named = self._fixed(found[FIXED])
        for block, form in zip(self.blocks, self.scale.forms, strict=True):
            effects, scales = found[block.name], found[scale_name(block.name)]
            if not form.is_vector:
                effects, scales = effects[..., None], scales[..., None]
            for place, name in enumerate(block.variables):
                named[name] = effects[..., place]
        for block, form in zip(self.blocks, self.scale.forms, strict=True):
            scales = found[scale_name(block.name)]
            scales = scales if form.is_vector else scales[..., None]
            for place, name in enumerate(block.scales):
                named[name] = scales[..., place]
            for name, first, second in block.correlations:
                named[name] = found[correlation_name(block.name)][..., first, second]
        if NOISE in found:
            named[NOISE] = found[NOISE]
        for number, name in enumerate(self.taus):
            named[name] = found[TAU][..., number]
        return named

    def inverse(self, reported: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {FIXED: self._fixed.inverse(reported)}
        for block, form in zip(self.blocks, self.scale.forms, strict=True):
            effects, scales = (
                np.stack([np.asarray(reported[name], np.float64) for name in names], axis=-1)
                for names in (block.variables, block.scales)
            )
            found[block.name] = effects if form.is_vector else effects[..., 0]
            found[scale_name(block.name)] = scales if form.is_vector else scales[..., 0]
            if block.correlations:
                number = len(block.variables)
                whole = np.zeros((*scales.shape[:-1], number, number))
                whole[..., np.arange(number), np.arange(number)] = 1.0
                for name, first, second in block.correlations:
                    value = np.asarray(reported[name], np.float64)
                    whole[..., first, second] = whole[..., second, first] = value
                found[correlation_name(block.name)] = whole
        if NOISE in reported:
            found[NOISE] = reported[NOISE]
        if self.taus:
            found[TAU] = np.stack([np.asarray(reported[name]) for name in self.taus], axis=-1)
        return self.scale.inverse(found)

    @property
    def _fixed(self) -> TermScale:
        return TermScale(None, self.terms, None)


def grouped_scale(
    scale: Any, terms: tuple[Term, ...], groups: tuple[GroupTerm, ...]
) -> GroupedScale:
    """The names of a formula for the draws of its model."""
    assert isinstance(scale, MixedScale)
    blocks = tuple(
        BlockNames(
            term.name,
            term.variables,
            term.scales,
            tuple((name, *places) for name, places in term.correlations.items()),
        )
        for term in groups
    )
    return GroupedScale(scale, terms, blocks)


def group_labels(groups: tuple[GroupTerm, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The levels of each group, along an axis that its effects share."""
    names = {axis_of(term): list(term.levels) for term in groups}
    dims = {name: [axis_of(term)] for term in groups for name in term.variables}
    return names, dims


def axis_of(term: GroupTerm) -> str:
    """As Bambi calls it."""
    return f"{term.group}__factor_dim"
