"""Groups of a mixed model, as the user gives them and as they are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core.arrays import as_numbers
from amagold.priors import TermPrior
from amagold.target._effects_prior import FactorForm, ScalePrior
from amagold.target._group_effects import FIXED, NOISE

FREEDOM = 3.0  # of the half-Student-t that is the default prior of a scale
MOST_EFFECTS = 6  # of a level


@dataclass(frozen=True, eq=False)
class Group:
    """A factor whose levels have effects of their own, drawn from one distribution.

    Args:
      codes: the level of each row, a whole number from 0.
      columns: what the effects of a row's level are times, one row for each; None is a column of
        ones, a random intercept. With several columns effects are correlated.
      num_levels: how many levels there are, where some may have no row; None takes the largest
        code.
    """

    codes: Any
    columns: Any = None
    num_levels: int | None = None


class CheckedGroup(NamedTuple):
    form: FactorForm
    codes: np.ndarray
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
    if name in (FIXED, NOISE):
        raise ValueError(f"groups must not be called {name!r}, which is a parameter; rename it")
    codes = np.asarray(as_numbers(where, group.codes))
    if codes.shape != (num_rows,) or codes.dtype.kind not in "biuf":
        raise ValueError(
            f"{where} must have one level for each of the {num_rows} rows, got shape "
            f"{codes.shape}; give whole numbers from 0"
        )
    if codes.dtype.kind == "f" and not np.array_equal(codes, np.floor(codes)):
        raise ValueError(f"{where} must hold whole numbers from 0; number the levels first")
    lowest, highest = int(codes.min()), int(codes.max())
    num_levels = highest + 1 if group.num_levels is None else int(group.num_levels)
    if lowest < 0 or highest >= num_levels:
        raise ValueError(
            f"{where} must hold whole numbers from 0 to {num_levels - 1}, got {lowest} to "
            f"{highest}; number the levels, or raise num_levels"
        )
    columns = widths = None
    if group.columns is not None:
        columns = np.asarray(as_numbers(f"{where}.columns", group.columns), np.float64)
        columns = columns[:, None] if columns.ndim == 1 else columns
        if columns.shape[0] != num_rows or columns.ndim != 2 or not columns.shape[1] > 0:
            raise ValueError(
                f"{where}.columns must have a row of numbers for each of the {num_rows} rows, got "
                f"shape {columns.shape}"
            )
        if columns.shape[1] > MOST_EFFECTS:
            raise ValueError(
                f"{where}.columns must be at most {MOST_EFFECTS}, got {columns.shape[1]}; give "
                "some of them groups of their own, without correlations"
            )
        if not np.isfinite(columns).all():
            raise ValueError(f"{where}.columns must be finite; drop or impute those rows first")
        widths = np.sqrt(np.mean(columns**2, axis=0))
        if not (widths > 0).all():
            raise ValueError(f"{where}.columns must not be zero in all rows; drop that column")
        columns = (columns / widths).astype(np.float32)
        if columns.shape[1] == 1 and (columns == 1.0).all():
            columns = None
    is_vector = columns is not None
    k = columns.shape[1] if columns is not None else 1
    widths = np.ones(1) if widths is None else widths
    if keep is not None:
        codes, columns = codes[keep], None if columns is None else columns[keep]
    form = FactorForm(name, num_levels, k, is_vector)
    return CheckedGroup(form, codes.astype(np.int32), columns, widths)


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
