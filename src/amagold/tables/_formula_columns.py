"""The columns of a table as formulas take them: numbers, or levels with their codes."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from amagold.core.optional_packages import required

MOST_LEVELS = 100_000  # of a factor, whose second derivatives are a matrix


class ColumnLevels(NamedTuple):
    """A column as codes: which of the values each row has."""

    codes: np.ndarray
    values: Any  # pandas' index, in the order of the levels


class Distinct(NamedTuple):
    """The different rows of some columns."""

    places: np.ndarray  # for every row of the table which of them it is
    rows: np.ndarray  # for each of them a row of the table


def code_type(number: int) -> Any:
    """The narrowest whole numbers that have room for -1 and the codes of so many levels."""
    return np.min_scalar_type(-max(1, number))


class FormulaColumns:
    """The columns of a narwhals frame, each converted once when it is asked for."""

    def __init__(self, frame: Any) -> None:
        nw = required("narwhals", "tables")
        self._columns = {name: frame[name] for name in frame.columns}
        for name, column in self._columns.items():
            if column.dtype == nw.Object:  # pandas' for whatever is no array
                self._columns[name] = _inferred(column)
        self._values: dict[str, Any] = {}
        self._levels: dict[str, ColumnLevels] = {}
        self.num_rows = len(frame)

    def kind(self, name: str) -> Any:
        """narwhals' type of the column."""
        return self._columns[name].dtype

    def is_number(self, name: str) -> bool:
        kind = self.kind(name)
        return kind.is_numeric() or _is_boolean(kind)

    def values(self, name: str) -> Any:
        """The column as formulaic takes it: an array of numbers, or pandas' categories."""
        if name not in self._values:
            self._values[name] = self._converted(name)
        return self._values[name]

    def levels(self, name: str) -> ColumnLevels:
        """The codes of a column, whatever it holds."""
        if name not in self._levels:
            self._levels[name] = self._coded(name)
        return self._levels[name]

    def distinct(self, names: tuple[str, ...]) -> Distinct:
        """The different rows of these columns."""
        pandas = required("pandas", "tables")
        found = [self.levels(name) for name in names]
        places, number = found[0].codes, len(found[0].values)
        if len(found) > 1:
            joined = np.zeros(self.num_rows, np.int64)
            for levels in found:
                joined = joined * len(levels.values) + levels.codes
            codes, distinct = pandas.factorize(joined)
            places, number = codes.astype(code_type(len(distinct))), len(distinct)
        rows = np.full(number, -1, np.int64)
        rows[places] = np.arange(self.num_rows)
        is_met = rows >= 0
        if not is_met.all():  # declared levels that no row has
            kept = (np.cumsum(is_met) - 1).astype(places.dtype)
            places, rows = kept[places], rows[is_met]
        return Distinct(places, rows)

    def _converted(self, name: str) -> Any:
        column = self._columns[name]
        kind = column.dtype
        nw = required("narwhals", "tables")
        if kind.is_decimal():
            return np.asarray(column.cast(nw.Float64).to_numpy())
        if kind.is_numeric() or _is_boolean(kind):
            return _plain(column.to_numpy())
        if kind in (nw.List, nw.Array, nw.Struct, nw.Unknown):
            raise ValueError(
                f"table must have numbers or texts in a column, but {name!r} is of type {kind}; "
                "make numbers or texts of it first"
            )
        if kind in (nw.Categorical, nw.Enum):  # they keep their order
            return _declared(column)
        if kind in (nw.String, nw.Object):
            return _categories(name, column)
        return column.to_pandas().astype("category").array

    def _coded(self, name: str) -> ColumnLevels:
        pandas = required("pandas", "tables")
        values = self._values.pop(name, None)  # the codes say as much
        values = self._converted(name) if values is None else values
        if isinstance(values, np.ndarray):
            codes, found = pandas.factorize(values, sort=True)
            found = pandas.Index(found)
        else:
            codes, found = values.codes, values.categories
        if len(found) > MOST_LEVELS:
            raise ValueError(
                f"formula must have factors of at most {MOST_LEVELS:,} levels, but {name!r} has "
                f"{len(found):,}; leave it out, or make fewer of it"
            )
        return ColumnLevels(np.asarray(codes, code_type(len(found))), found)

    def frame(
        self, names: list[str], rows: np.ndarray | None = None, named: Iterable[str] = ()
    ) -> Any:
        """These columns as pandas' frame, of all rows or of some, for arithmetic; values of the
        `named` ones are names of levels too.
        """
        pandas = required("pandas", "tables")
        chosen = {name: _for_arithmetic(self._at(name, rows), name in named) for name in names}
        length = self.num_rows if rows is None else len(rows)
        return pandas.DataFrame(chosen, index=pandas.RangeIndex(length), copy=False)

    def _at(self, name: str, rows: np.ndarray | None) -> Any:
        if rows is None:
            return self.values(name)
        if name not in self._levels:
            return self.values(name)[rows]
        codes, found = self._levels[name]
        if self.is_number(name):
            return np.asarray(found)[codes[rows]]
        pandas = required("pandas", "tables")
        return pandas.Categorical.from_codes(codes[rows], found)


def _for_arithmetic(values: Any, is_named: bool) -> Any:
    """Whole numbers and booleans as wide numbers: 200 * 200 is 64 as bytes. Names of levels stay
    whole.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biu":
        return values
    if not is_named:
        return values.astype(np.float64)
    return values if values.dtype.kind == "b" or values.itemsize == 8 else values.astype(np.int64)


def _inferred(column: Any) -> Any:
    """Objects as what they all are, such as decimals or booleans; as they are if they are mixed."""
    nw = required("narwhals", "tables")
    pyarrow = required("pyarrow", "tables")
    try:
        found = pyarrow.chunked_array([pyarrow.array(column.to_list())])
    except (pyarrow.ArrowException, TypeError, ValueError):
        return column
    return nw.from_native(found, series_only=True)


def _declared(column: Any) -> Any:
    """Categories in the order in which they were declared."""
    pandas = required("pandas", "tables")
    pyarrow = required("pyarrow", "tables")
    coded = column.to_arrow()
    if isinstance(coded, pyarrow.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    if isinstance(coded, pyarrow.ChunkedArray):  # of no parts at all
        coded = pyarrow.array([], coded.type)
    levels = pandas.Index(coded.dictionary.to_pylist(), dtype=object)
    return pandas.Categorical.from_codes(coded.indices.to_numpy(), levels)


def _categories(name: str, column: Any) -> Any:
    """Texts as pandas' categories, sorted as formulaic sorts them."""
    pandas = required("pandas", "tables")
    pyarrow = required("pyarrow", "tables")
    try:
        texts = column.to_arrow()
        if not pyarrow.types.is_string(texts.type) and not pyarrow.types.is_large_string(
            texts.type
        ):
            raise TypeError
        coded = texts.dictionary_encode()
    except (pyarrow.ArrowException, TypeError):
        kinds = sorted({type(value).__name__ for value in column.head(100_000).to_list()})
        raise ValueError(
            f"table must have one kind of value in a column, but {name!r} holds "
            f"{' and '.join(kinds)}; make it numbers or texts"
        ) from None
    if isinstance(coded, pyarrow.ChunkedArray):
        coded = coded.combine_chunks()
    found = np.asarray(coded.dictionary.to_pylist(), object)
    order = np.argsort(found)
    rank = np.empty(len(found), code_type(len(found)))
    rank[order] = np.arange(len(found))
    codes = rank[coded.indices.to_numpy()]
    return pandas.Categorical.from_codes(codes, pandas.Index(found[order], dtype=object))


def _is_boolean(kind: Any) -> bool:
    nw = required("narwhals", "tables")
    return kind == nw.Boolean


def _plain(values: np.ndarray) -> np.ndarray:
    """Objects of numbers or booleans as numbers: a column had missing values, which are gone. Half
    precision too, which formulaic does not know.
    """
    return values.astype(np.float64) if values.dtype in (object, np.float16) else values
