"""Random effects of a table: which level of each group a row has, and what its effects multiply."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from amagold.core.arrays import blocks
from amagold.core.optional_packages import required
from amagold.models._coded_rows import CodedTable
from amagold.models._mixed_groups import MOST_EFFECTS
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._formula_text import ParsedGroup
from amagold.tables._term_checks import check_terms
from amagold.tables._term_codes import INTERCEPT, coded_terms, specification

ONES = "1"  # the effect of a group that is an intercept
MOST_COMBINATIONS = 2**62  # of the values of several columns
SEPARATOR = ":"  # of the values of several columns


class GroupedRows(NamedTuple):
    """One random effect of some rows."""

    codes: np.ndarray  # the level of each; those above the known ones are strangers
    strangers: tuple[str, ...]  # names of levels that were not fitted
    values: np.ndarray | None  # (rows, effects); None where the one effect is an intercept


@dataclass(frozen=True, eq=False)
class GroupTerm:
    """(1 + x | g) for one table."""

    parsed: ParsedGroup
    effects: tuple[str, ...]  # what varies, an intercept as "1"
    spec: Any  # formulaic's, of what varies
    values: tuple[Any, ...]  # of each column all values that it has, as pandas' index
    places: np.ndarray  # (levels, columns), which of the values each level has
    num_rows: np.ndarray  # of each level
    # (effects, effects), the mean of t t^T over rows, whose effects are times t
    moments: np.ndarray

    @property
    def group(self) -> str:
        return self.parsed.name

    @property
    def name(self) -> str:
        """Of all of it."""
        return f"{' + '.join(self.effects)}|{self.group}"

    @property
    def variables(self) -> tuple[str, ...]:
        """What draws of the effects are called, as Bambi calls them."""
        return tuple(f"{effect}|{self.group}" for effect in self.effects)

    @property
    def scales(self) -> tuple[str, ...]:
        return tuple(f"{name}_sigma" for name in self.variables)

    @property
    def correlations(self) -> dict[str, tuple[int, int]]:
        """What the correlation of every two effects is called."""
        number = len(self.effects)
        return {
            f"{self.effects[first]}, {self.effects[second]}|{self.group}_correlation": (
                first,
                second,
            )
            for first in range(number)
            for second in range(first + 1, number)
        }

    @property
    def all_variables(self) -> tuple[str, ...]:
        return (*self.variables, *self.scales, *self.correlations)

    @property
    def num_levels(self) -> int:
        return len(self.places)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(_named(self.values, self.places))

    def codes(self, columns: FormulaColumns) -> tuple[np.ndarray, tuple[str, ...]]:
        """The level of each row, and the names of those that were not fitted."""
        joined, values, sizes = _joined(columns, self.parsed)
        found, codes = np.unique(joined, return_inverse=True)
        places = np.stack(np.unravel_index(found, sizes), axis=1)
        # where each value is among the known ones, and each level among the known levels
        known = [
            ours.get_indexer(theirs)[places[:, at]]
            for at, (ours, theirs) in enumerate(zip(self.values, values, strict=True))
        ]
        is_known = np.all(np.stack(known) >= 0, axis=0)
        own = tuple(map(len, self.values))
        ours = np.asarray(np.ravel_multi_index(tuple(self.places.T), own))
        theirs = np.ravel_multi_index(tuple(np.maximum(each, 0) for each in known), own)
        at = np.minimum(np.searchsorted(ours, theirs), len(ours) - 1)
        is_known &= ours[at] == theirs
        at = np.where(is_known, at, len(ours) + np.cumsum(~is_known) - 1)
        return at[codes].astype(np.int32), tuple(_named(values, places[~is_known]))

    def varying(self, columns: FormulaColumns) -> np.ndarray | None:
        """What effects multiply, (rows, effects); None where that is one alone."""
        if self.effects == (ONES,):
            return None
        coded = coded_terms(self.spec, self.parsed.varying, columns)[0]
        return _dense(coded, self.effects[0] == ONES)

    def with_moments(self, values: np.ndarray | None, counts: np.ndarray | None) -> "GroupTerm":
        """The same, of rows that count as often."""
        if values is None:
            return self
        total = np.zeros((values.shape[1], values.shape[1]))
        for rows in blocks(values):
            part = np.asarray(values[rows], np.float64)
            total += part.T @ (part if counts is None else part * counts[rows, None])
        return replace(self, moments=total / (len(values) if counts is None else counts.sum()))

    def rows(self, columns: FormulaColumns) -> GroupedRows:
        return GroupedRows(*self.codes(columns), self.varying(columns))


def group_term(parsed: ParsedGroup, columns: FormulaColumns, few: FormulaColumns) -> GroupTerm:
    """What a random effect means for a table, of which a few rows stand for what varies."""
    spec = specification(parsed.varying, few)
    coded, terms = coded_terms(spec, parsed.varying, few)
    if not terms:
        raise ValueError(f"formula must say what varies by {parsed.name!r}, but nothing does")
    if parsed.varying.columns:
        check_terms(spec, terms, coded)
    has_ones = any(term.name == INTERCEPT for term in terms)
    effects = (*((ONES,) if has_ones else ()), *coded.names)
    if len(effects) > MOST_EFFECTS:
        raise ValueError(
            f"formula must let at most {MOST_EFFECTS} effects vary together by a group, but those "
            f"by {parsed.name!r} are {len(effects):,}; choose among them"
        )
    joined, values, sizes = _joined(columns, parsed)
    found, num_rows = np.unique(joined, return_counts=True)
    places = np.stack(np.unravel_index(found, sizes), axis=1)
    if len(places) < 2:
        raise ValueError(
            f"formula must group by columns of several levels, but {parsed.name!r} has one level "
            "in all rows; leave it out"
        )
    none = np.eye(len(effects))
    return GroupTerm(parsed, effects, spec, tuple(values), places, num_rows, none)


def _joined(
    columns: FormulaColumns, parsed: ParsedGroup
) -> tuple[np.ndarray, list[Any], tuple[int, ...]]:
    """For each row one number that says its values, the values of each column, and how many."""
    found = [_levels(columns, name) for name in parsed.columns]
    sizes = tuple(len(values) for _, values in found)
    if math.prod(sizes) > MOST_COMBINATIONS:
        raise ValueError(f"formula must group by fewer levels, but {parsed.name!r} has too many")
    joined = np.zeros(columns.num_rows, np.int64)
    for codes, values in found:
        joined = joined * len(values) + codes
    return joined, [values for _, values in found], sizes


def _levels(columns: FormulaColumns, name: str) -> tuple[np.ndarray, Any]:
    """Codes and values of a column; whole numbers are whole whatever type they came in."""
    codes, found = columns.levels(name)
    if columns.is_number(name) and found.dtype.kind == "f":
        numbers = np.asarray(found, np.float64)
        if not (np.isfinite(numbers) & (numbers == np.floor(numbers))).all():
            raise ValueError(
                f"formula must group by texts or whole numbers, but {name!r} holds numbers with "
                "fractions; give it as a fixed term, or make classes of it first"
            )
        found = required("pandas", "tables").Index(numbers.astype(np.int64))
    return codes, found


def _named(values: Any, places: np.ndarray) -> list[str]:
    texts = [[str(value) for value in each] for each in values]
    return [
        SEPARATOR.join(texts[at][place] for at, place in enumerate(row)) for row in places.tolist()
    ]


def _dense(coded: CodedTable, has_ones: bool) -> np.ndarray:
    """The columns of a coded table, those of factors as zeros and ones."""
    width = coded.numbers.shape[1]
    found = np.zeros((len(coded), has_ones + len(coded.names)))
    found[:, :has_ones] = 1.0
    found[:, has_ones : has_ones + width] = coded.numbers
    start = has_ones + width
    for factor, size in enumerate(coded.sizes):
        code, place = coded.codes[:, factor], coded.multiplied_by[factor]
        rows = np.flatnonzero(code >= 0)
        times = 1.0 if place is None else coded.multipliers[rows, place]
        found[rows, start + code[rows]] = times
        start += size
    return found
