"""Tables that are texts: CSV and its kin, compressed or not."""

import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amagold.core.progress import Steps
from amagold.tables._column_names import check_columns

TEXTS = (".csv", ".tsv", ".txt")
SIGNS = (",", ";", "\t", "|")
ONE_READ = 2**22  # bytes that are parsed together
LONGEST_HEADER = 2**24
# at the beginning of other texts, the longer ones first
MARKS = {
    **{b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32"},
    **{b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"},
}


def read_text(path: Path, suffix: str, columns: Sequence[str] | None, report: Steps) -> Any:
    """The columns as an Arrow table, whatever sign parts them."""
    from pyarrow import csv

    sign, names = text_header(path, suffix)
    check_columns(columns, names)
    with path.open("rb") as raw:
        counted = CountedFile(raw, path.stat().st_size, report)
        is_compressed = path.suffix.lower() == ".gz"
        text = WatchedText(gzip.GzipFile(fileobj=counted) if is_compressed else counted)
        table = csv.read_csv(text, **reading_options(sign, names, columns))
    check_texts(table.schema)
    text.check(path.name, len(table))
    return table


def reading_options(
    sign: str, names: list[str], columns: Sequence[str] | None, types: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Of pyarrow's reader; `types` are those of columns that are known."""
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(block_size=max(ONE_READ, 2 * len("".join(names)))),
        "parse_options": csv.ParseOptions(delimiter=sign, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            strings_can_be_null=True,
            include_columns=None if columns is None else list(dict.fromkeys(columns)),
            column_types=types,
        ),
    }


class WatchedText(io.RawIOBase):
    """A text whose quotes and lines are counted while it is read."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file, self._is_within_line = file, False
        self.num_quotes, self.num_ends = 0, 0

    @property
    def num_lines(self) -> int:
        """Those that are empty count too, and the last without its end."""
        return self.num_ends + self._is_within_line

    def check(self, name: str, num_rows: int) -> None:
        """Raise where one quote that is never closed took all that follows for a single text."""
        if self.num_quotes % 2 and num_rows + 1 < self.num_lines:
            raise ValueError(
                f"table must close what it quotes, but {name!r} has an odd number of '\"' and "
                f"{num_rows:,} rows in {self.num_lines:,} lines; write '\"\"' within a quoted text"
            )

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        if found:
            self.num_quotes += found.count(b'"')
            self.num_ends += found.count(b"\n")
            self._is_within_line = not found.endswith(b"\n")
        return found


class CountedFile(io.RawIOBase):
    """A file that tells how much of it has been read."""

    def __init__(self, file: Any, size: int, report: Steps) -> None:
        super().__init__()
        self._file, self._size, self._report = file, size, report

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        self._report(min(self._file.tell(), self._size), self._size)
        return found


def text_header(path: Path, suffix: str) -> tuple[str, list[str]]:
    """The sign that parts the columns, and their names."""
    import csv

    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rb") as file:
        first = file.readline(LONGEST_HEADER)
    other = next((MARKS[mark] for mark in MARKS if first.startswith(mark)), None)
    if other is not None or b"\0" in first:
        raise ValueError(
            f"table must be a text in UTF-8, but {path.name!r} is one in {other or 'UTF-16'}; save "
            "it as UTF-8"
        )
    first = first.split(b"\r")[0]  # old line ends
    try:
        header = first.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"table must be a text in UTF-8, but the header of {path.name!r} is not; save it as "
            "UTF-8"
        ) from None
    # the sign that parts the header most often, unless the suffix says it
    sign = "\t" if suffix == ".tsv" else max(SIGNS, key=header.count)
    try:
        rows = list(csv.reader([header], delimiter=sign))
    except csv.Error as reason:  # a name beyond all measure
        raise ValueError(f"table must begin with names, but {path.name!r}: {reason}") from None
    if not rows or not any(rows[0]):
        raise ValueError(
            f"table must begin with the names of its columns, but {path.name!r} does not"
        )
    return sign, rows[0]


def check_texts(schema: Any) -> None:
    import pyarrow

    for field in schema:
        if pyarrow.types.is_binary(field.type):
            raise ValueError(
                f"table must be a text in UTF-8, but column {field.name!r} is not; save it as UTF-8"
            )
