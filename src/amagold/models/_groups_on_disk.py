"""Groups of a mixed model whose rows are a table on disk: columns by their names."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.data import Data, Viewed
from amagold.data._columns_on_disk import ChosenColumns, ColumnOnDisk
from amagold.models._effect_columns import ColumnUnits, column_units
from amagold.models._mixed_groups import (
    CheckedGroup,
    Group,
    check_levels,
    check_name,
    checked_form,
    is_centered,
    is_given,
)
from amagold.models._stored_table import named_columns
from amagold.target._group_effects import GroupedExample

ONES = 1  # what stands for a column of ones among the names of a group's columns


class StoredGroup(NamedTuple):
    """Where a factor's levels and columns are."""

    checked: CheckedGroup
    codes: str
    columns: tuple[str | int, ...] | None  # None is one column of ones


@trees.record(static=("codes", "columns"), functions=("own",))
class GroupedView:
    """Rows of a table as those of a regression, with the levels of their groups."""

    own: Any  # the rows without their groups
    units: tuple[ColumnUnits, ...]  # of each group's columns
    codes: tuple[str, ...]
    columns: tuple[tuple[str | int, ...] | None, ...]

    def __call__(self, rows: Any) -> GroupedExample:
        codes = tuple(rows[name].astype(jnp.int32) for name in self.codes)
        return GroupedExample(
            self.own(rows),
            codes,
            tuple(map(self._columns, [rows] * len(codes), self.columns, self.units)),
        )

    def _columns(self, rows: Any, names: tuple[str | int, ...] | None, units: ColumnUnits) -> Any:
        if names is None:
            return None
        ones = jnp.ones(rows[self.codes[0]].shape, jnp.float32)
        # in float64, as columns in memory are divided before they are stored
        with jax.enable_x64(True):
            parts = [ones if name == ONES else rows[name] for name in names]
            wide = jnp.stack([part.astype(jnp.float64) for part in parts], axis=-1)
            away = wide - units.centers.astype(jnp.float64)
            return (away / units.widths.astype(jnp.float64)).astype(jnp.float32)


def stored_groups(
    data: Data, groups: Any, outcome: Any, scales: Any, standardize: Any
) -> list[StoredGroup]:
    """Groups that are given as names of columns; or a sentence."""
    columns = named_columns(data)
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "groups must map a name to a column of the data on disk, as in "
            f"groups={{'1|origin': 'origin'}}, got {type(groups).__name__}"
        )
    others = {name: column for name, column in columns.items() if name != outcome}
    return [
        _stored(str(name), given, others, not is_given(scales, name), standardize)
        for name, given in groups.items()
    ]


def _stored(
    name: str, given: Any, columns: dict[str, ColumnOnDisk], is_usual: bool, standardize: Any
) -> StoredGroup:
    check_name(name)
    group, where = given if isinstance(given, Group) else Group(given), f"groups[{name!r}]"
    levels = _column(where, group.codes, columns).moments
    if not levels.is_whole[0]:
        raise ValueError(f"{where} must hold whole numbers from 0; number the levels first")
    num_levels = check_levels(where, levels.lowest[0], levels.highest[0], group.num_levels)
    names = None if group.columns is None else _names(f"{where}.columns", group.columns, columns)
    units = None
    if names is not None:
        is_ones = [each == ONES or _is_ones(columns[str(each)]) for each in names]
        has_center = is_centered(where, group, is_usual, standardize)
        ones = is_ones.index(True) if has_center and any(is_ones) else None
        moments = [None if each == ONES else columns[str(each)].moments for each in names]
        means = [1.0 if each is None else float(each.mean[0]) for each in moments]
        variances = [0.0 if each is None else float(each.variance[0]) for each in moments]
        units = column_units(means, variances, ones)
    return StoredGroup(checked_form(name, where, num_levels, units), group.codes, names)


def _names(
    where: str, given: Any, columns: dict[str, ColumnOnDisk]
) -> tuple[str | int, ...] | None:
    """Of the columns that effects are times; None where they are nothing but a column of ones."""
    listed = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not listed:
        raise ValueError(f"{where} must name at least one column, got none; leave it out")
    found: list[str | int] = []
    for each in listed:
        if isinstance(each, (int, float, np.integer)) and each == ONES:
            found.append(ONES)
            continue
        if _column(where, each, columns).is_coded:
            raise ValueError(
                f"{where} must be numbers, but column {each!r} holds texts; give another, or write "
                "it as numbers first"
            )
        found.append(str(each))
    if len(found) == 1 and (found[0] == ONES or _is_ones(columns[str(found[0])])):
        return None
    return tuple(found)


def _is_ones(column: ColumnOnDisk) -> bool:
    return bool(column.moments.lowest[0] == column.moments.highest[0] == 1.0)


def _column(where: str, name: Any, columns: dict[str, ColumnOnDisk]) -> ColumnOnDisk:
    if not isinstance(name, str) or name not in columns:
        known = ", ".join(map(repr, list(columns)[:20]))
        got = repr(name) if isinstance(name, (str, int, float)) else type(name).__name__
        raise ValueError(
            f"{where} must be one of the columns of the data on disk other than the outcome, got "
            f"{got}; there are {known}"
        )
    if columns[name].shape:
        raise ValueError(
            f"{where} must be one number in each row, but {name!r} has shape {columns[name].shape}"
        )
    return columns[name]


def without_groups(data: Data, groups: list[StoredGroup]) -> Data:
    """The table without the levels of groups, which are no predictors."""
    known = named_columns(data)
    levels = {group.codes for group in groups}
    return Viewed(data, ChosenColumns(tuple(name for name in known if name not in levels)))


def grouped_rows(data: Data, own: Viewed, groups: list[StoredGroup]) -> Viewed:
    """The table as a mixed model's examples."""
    view = GroupedView(
        own.view,
        tuple(jax.tree.map(jnp.asarray, group.checked.units) for group in groups),
        tuple(group.codes for group in groups),
        tuple(group.columns for group in groups),
    )
    return Viewed(data, view)
