"""Groups of a mixed model, as the user gives them and as they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks
from amagold.core.arrays import as_numbers
from amagold.models._effect_columns import ColumnUnits, column_units, ones_alone
from amagold.priors import TermPrior
from amagold.target._effects_prior import FactorForm, ScalePrior
from amagold.target._group_effects import FIXED, NOISE

FREEDOM = 3.0  # of the half-Student-t that is the default prior of a scale
MOST_EFFECTS = 6  # of a level
MOST_LEVELS = 2**28


@dataclass(frozen=True, eq=False)
class Group:
    """A factor whose levels have effects of their own, drawn from one distribution.

    Args:
      codes: the level of each row, a whole number from 0; of a table on disk the name of a column.
      columns: what the effects of a row's level are times, one row for each; None is a column of
        ones, a random intercept. With several columns effects are correlated. Of a table on disk
        names of columns, and 1 for a column of ones: `Group("origin", [1, "distance"])`.
      num_levels: how many levels there are, where some may have no row; None takes the largest
        code.
      center: whether columns beside one of ones count from their means, where the priors of the
        intercept's standard deviation and of the correlations then hold, wherever the columns have
        their zero. None: unless priors of the group's scales are given, or `standardize=False`.
        What is reported is on the scale of the columns as they are in any case.
    """

    codes: Any
    columns: Any = None
    num_levels: int | None = None
    center: bool | None = None


class CheckedGroup(NamedTuple):
    form: FactorForm
    codes: np.ndarray | None  # None where rows are on disk, and are read there
    columns: np.ndarray | None  # as sampled
    units: ColumnUnits


def checked_groups(
    groups: Any, num_rows: int, keep: np.ndarray | None, scales: Any, standardize: Any
) -> list[CheckedGroup]:
    """In the order given; rows that `keep` leaves out are dropped. Or a sentence."""
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "groups must map a name to the level of every row, got "
            f"{'none' if isinstance(groups, Mapping) else type(groups).__name__}; as in "
            "groups={'1|origin': codes}"
        )
    return [
        _checked(str(name), given, num_rows, keep, not is_given(scales, name), standardize)
        for name, given in groups.items()
    ]


def is_centered(where: str, group: Group, is_usual: bool, standardize: Any) -> bool:
    """Whether columns count from their means; `is_usual` is that no prior was given. Or a
    sentence.
    """
    if group.center is None:
        return is_usual and standardize is not False
    if not isinstance(group.center, (bool, np.bool_)):
        raise ValueError(
            f"{where}.center must be True, False or None, which lets the priors decide, got "
            f"{group.center!r}"
        )
    return bool(group.center)


def is_given(scales: Any, name: Any) -> bool:
    """Whether `scale_prior` speaks of a group."""
    return name in scales if isinstance(scales, Mapping) else scales is not None


def _checked(
    name: str,
    given: Any,
    num_rows: int,
    keep: np.ndarray | None,
    is_usual: bool,
    standardize: Any,
) -> CheckedGroup:
    group = given if isinstance(given, Group) else Group(given)
    where = f"groups[{name!r}]"
    check_name(name)
    codes = np.asarray(as_numbers(where, group.codes))
    if codes.shape != (num_rows,) or codes.dtype.kind not in "biuf":
        raise ValueError(
            f"{where} must have one level for each of the {num_rows} rows, got shape "
            f"{codes.shape}; give whole numbers from 0"
        )
    if codes.dtype.kind == "f" and not np.array_equal(codes, np.floor(codes)):
        raise ValueError(f"{where} must hold whole numbers from 0; number the levels first")
    num_levels = check_levels(where, codes.min(), codes.max(), group.num_levels)
    columns = units = None
    if group.columns is not None:
        columns = np.asarray(as_numbers(f"{where}.columns", group.columns), np.float64)
        columns = columns[:, None] if columns.ndim == 1 else columns
        if columns.shape[0] != num_rows or columns.ndim != 2 or not columns.shape[1] > 0:
            raise ValueError(
                f"{where}.columns must have a row of numbers for each of the {num_rows} rows, got "
                f"shape {columns.shape}"
            )
        if not np.isfinite(columns).all():
            raise ValueError(f"{where}.columns must be finite; drop or impute those rows first")
        if columns.shape[1] == 1 and (columns == 1.0).all():
            columns = None
        else:
            is_ones = np.flatnonzero((columns == 1.0).all(axis=0))
            has_center = is_centered(where, group, is_usual, standardize)
            ones = int(is_ones[0]) if has_center and len(is_ones) else None
            units = column_units(columns.mean(axis=0), columns.var(axis=0), ones)
            _check_units(where, units)
            columns = units.scaled(columns)
    if keep is not None:
        codes, columns = codes[keep], None if columns is None else columns[keep]
    checked = checked_form(name, where, num_levels, units)
    return checked._replace(codes=codes.astype(np.int32), columns=columns)


def check_name(name: str) -> None:
    if name in (FIXED, NOISE):
        raise ValueError(f"groups must not be called {name!r}, which is a parameter; rename it")


def check_levels(where: str, lowest: float, highest: float, num_levels: int | None) -> int:
    """How many levels there are, or a sentence."""
    if num_levels is not None:
        remedy = "give how many levels there are, or None for the largest code"
        checks.whole_number(f"{where}.num_levels", num_levels, at_least=1, remedy=remedy)
    found = int(highest) + 1 if num_levels is None else int(num_levels)
    if lowest < 0:
        raise ValueError(
            f"{where} must hold whole numbers from 0, got {lowest:.0f}; number the levels from 0, "
            "and drop rows without one"
        )
    if highest >= found:
        raise ValueError(
            f"{where} must hold whole numbers from 0 to {found - 1}, got up to {highest:.0f}; "
            "number the levels, or raise num_levels"
        )
    if found > MOST_LEVELS:
        raise ValueError(
            f"{where} must have at most {MOST_LEVELS:,} levels, got {found:,}; number those that "
            "occur from 0 on"
        )
    return found


def checked_form(name: str, where: str, num_levels: int, units: ColumnUnits | None) -> CheckedGroup:
    """The group without its rows; units are those of its columns, None is a column of ones."""
    if units is None:
        return CheckedGroup(FactorForm(name, num_levels, 1, False), None, None, ones_alone())
    _check_units(where, units)
    number = units.widths.shape[0]
    return CheckedGroup(FactorForm(name, num_levels, number, True), None, None, units)


def _check_units(where: str, units: ColumnUnits) -> None:
    number = units.widths.shape[0]
    if number > MOST_EFFECTS:
        raise ValueError(
            f"{where}.columns must be at most {MOST_EFFECTS}, got {number}; give some of them "
            "groups of their own, without correlations"
        )
    if not (np.asarray(units.widths) > 0).all():
        what = "zero in all rows" if units.ones is None else "constant beside a column of ones"
        raise ValueError(f"{where}.columns must not be {what}; drop that column")


def scale_priors(
    groups: list[CheckedGroup], given: Any, usual: float, response_scale: float
) -> tuple[ScalePrior, ...]:
    """Of each factor: as given on the user's scale, or the default of scale `usual`."""
    if isinstance(given, Mapping):
        strangers = [name for name in given if name not in {each.form.name for each in groups}]
        if strangers:
            raise ValueError(
                f"scale_prior must be of groups, but {strangers[0]!r} is none; name one of "
                f"{', '.join(repr(each.form.name) for each in groups)}"
            )
    found = []
    for group in groups:
        own = given.get(group.form.name) if isinstance(given, Mapping) else given
        scale, freedom = usual, FREEDOM
        if own is not None:
            scale, freedom = _of_user(own)
        scales = np.full(group.form.num_effects, scale / response_scale)
        if own is not None:
            scales = scales * np.asarray(group.units.widths, np.float64)
        scales = jnp.asarray(scales, jnp.float32)
        is_at_means = group.units.ones is not None
        found.append(ScalePrior(group.form, scales, jnp.float32(freedom), is_at_means))
    return tuple(found)


def _of_user(given: Any) -> tuple[float, float]:
    """Scale and degrees of freedom."""
    if isinstance(given, TermPrior):
        if given.kind not in ("normal", "student_t") or given.location != 0.0:
            raise ValueError(
                f"scale_prior must be half of a normal or student_t about zero, got {given}; give "
                "amagold.priors.student_t(3, 0, scale)"
            )
        freedom = given.degrees_of_freedom
        return given.scale, float("inf") if freedom is None else freedom
    try:
        scale = float(given)
    except (TypeError, ValueError):
        scale = float("nan")
    if not 0.0 < scale < float("inf"):
        raise ValueError(
            f"scale_prior must be a number above zero, the scale of a half-Student-t({FREEDOM:g}), "
            f"or a prior of amagold.priors, got {given!r}"
        )
    return scale, FREEDOM


def stored_columns(group: CheckedGroup) -> jax.Array | None:
    return None if group.columns is None else jax.device_put(group.columns)
