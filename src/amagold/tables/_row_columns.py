"""Weights, offsets, exposures and trials of a table's rows: columns by their names, or arrays."""

from typing import Any, NamedTuple

import numpy as np

from amagold.core.arrays import as_numbers
from amagold.core.optional_packages import required
from amagold.models._row_terms import RowTerms, with_exposure
from amagold.tables._column_names import check_columns
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._some_rows import filtered

GIVEN = "<{name}, given as an array>"  # the column that an array becomes

# what the rows of a family may have beside predictors and outcome
ALLOWED: dict[str, tuple[str, ...]] = {
    "logistic": ("weights", "offset", "trials"),
    "probit": ("weights", "offset", "trials"),
    "softmax": ("weights",),
    "ordinal": ("weights", "offset"),
    "linear": ("weights", "offset"),
    "robust": ("weights", "offset"),
    "gamma": ("weights", "offset"),
    "poisson": ("weights", "offset", "exposure"),
    "negative_binomial": ("weights", "offset", "exposure"),
}


class RowColumns(NamedTuple):
    """Names of columns, or arrays with a number for each row of the table."""

    weights: Any = None
    offset: Any = None
    trials: Any = None
    exposure: Any = None

    @property
    def named(self) -> dict[str, str]:
        """The column of each that is given by name."""
        return {name: given for name, given in self._asdict().items() if isinstance(given, str)}

    @property
    def has_arrays(self) -> bool:
        return any(given is not None and not isinstance(given, str) for given in self)

    @property
    def remembered(self) -> dict[str, str]:
        """What a stored run says of them."""
        given = {name: values for name, values in self._asdict().items() if values is not None}
        return {name: self.named.get(name, GIVEN.format(name=name)) for name in given}

    def check(self, family: str) -> None:
        for name, given in self._asdict().items():
            if given is not None and name not in ALLOWED[family]:
                known = ", ".join(ALLOWED[family])
                raise ValueError(f"{name} must not be given for {family}, which takes {known}")

    @property
    def of_arrays(self) -> dict[str, str]:
        """The columns that arrays have become."""
        named = self.named.items()
        return {name: column for name, column in named if column == GIVEN.format(name=name)}

    def check_given(self, frame: Any) -> None:
        """Raise where a table lacks what was given as an array beside it."""
        for name, column in self.of_arrays.items():
            if column not in frame.columns:
                raise ValueError(
                    f"table must hold the {name} of its rows, which were given as an array; fit "
                    f"with the name of a column, or add one called {column!r}"
                )

    def with_arrays(self, frame: Any) -> "tuple[Any, RowColumns]":
        """The frame with a column for each array, so that rows which are left out are left out
        there too.
        """
        check_columns(list(self.named.values()), frame.columns)
        nw = required("narwhals", "tables")
        named = self._asdict()
        for name, given in named.items():
            if given is None or isinstance(given, str):
                continue
            values = np.asarray(as_numbers(name, given))
            if values.shape != (len(frame),):
                raise ValueError(
                    f"{name} must name a column or have one number for each of the {len(frame):,} "
                    f"rows of the table, got shape {values.shape}"
                )
            named[name] = GIVEN.format(name=name)
            series = nw.new_series(named[name], values, backend=frame.implementation)
            frame = frame.with_columns(series)
        return frame, RowColumns(**named)

    def counting(self, frame: Any, out_of_core: bool = False) -> Any:
        """The frame without rows of weight zero, of which nothing is to be said."""
        weights = self.named.get("weights")
        if weights is None or not frame[weights].dtype.is_numeric():
            return frame
        if not (frame[weights] == 0).any():
            return frame
        kept = filtered(frame, lambda part: part.filter(part[weights] != 0), out_of_core)
        return kept if len(kept) else frame

    def terms(self, frame: Any) -> RowTerms:
        """One number for each row of the frame."""
        columns = FormulaColumns(frame)
        found: dict[str, np.ndarray] = {}
        for name, column in self.named.items():
            if not columns.is_number(column):
                raise ValueError(f"{name} must be a column of numbers, but {column!r} is none")
            found[name] = np.asarray(columns.values(column), np.float64)
        offset = with_exposure(found.get("offset"), found.get("exposure"))
        return RowTerms(found.get("weights"), offset, found.get("trials"))
