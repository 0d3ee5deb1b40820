"""Groups of a mixed model, as the user gives them and as they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks
from amagold.core.arrays import as_numbers
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
    """

    codes: Any
    columns: Any = None
    num_levels: int | None = None


class CheckedGroup(NamedTuple):
    form: FactorForm
    codes: np.ndarray | None  # None where rows are on disk, and are read there
    columns: np.ndarray | None  # divided by their widths
    widths: np.ndarray


def checked_groups(groups: Any, num_rows: int, keep: np.ndarray | None) -> list[CheckedGroup]:
    """In the order given; rows that `keep` leaves out are dropped. Or a sentence."""
    if not isinstance(groups, Mapping) or not groups:
        raise ValueError(
            "groups must map a name to the level of every row, got "
            f"{type(groups).__name__}; as in groups={{'1|origin': codes}}"
        )
    return [_checked(str(name), given, num_rows, keep) for name, given in groups.items()]


def _checked(name: str, given: Any, num_rows: int, keep: np.ndarray | None) -> CheckedGroup:
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
    columns = widths = None
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
            widths = rounded_widths(np.mean(columns**2, axis=0))
            _check_widths(where, widths)
            columns = (columns / widths).astype(np.float32)
    if keep is not None:
        codes, columns = codes[keep], None if columns is None else columns[keep]
    checked = checked_form(name, where, num_levels, widths)
    return checked._replace(codes=codes.astype(np.int32), columns=columns)


def rounded_widths(squares: Any) -> np.ndarray:
    """Of columns with these mean squares: rounded to float32 before they are used, so that rows in
    memory and on disk are divided by the same.
    """
    return np.sqrt(np.asarray(squares, np.float64)).astype(np.float32).astype(np.float64)


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


def checked_form(name: str, where: str, num_levels: int, widths: np.ndarray | None) -> CheckedGroup:
    """The group without its rows; widths are those of its columns, None is a column of ones."""
    if widths is None:
        return CheckedGroup(FactorForm(name, num_levels, 1, False), None, None, np.ones(1))
    _check_widths(where, widths)
    return CheckedGroup(FactorForm(name, num_levels, len(widths), True), None, None, widths)


def _check_widths(where: str, widths: np.ndarray) -> None:
    if len(widths) > MOST_EFFECTS:
        raise ValueError(
            f"{where}.columns must be at most {MOST_EFFECTS}, got {len(widths)}; give some of them "
            "groups of their own, without correlations"
        )
    if not (widths > 0).all():
        raise ValueError(f"{where}.columns must not be zero in all rows; drop that column")


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
            scales = scales * group.widths
        found.append(ScalePrior(group.form, jnp.asarray(scales, jnp.float32), jnp.float32(freedom)))
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
