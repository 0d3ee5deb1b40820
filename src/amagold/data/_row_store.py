"""A row store: a folder with one file of rows, which memory can map, and a manifest that seals it.

rows.npy   32-bit words, one row after the other: a row is read by one page of the file
rows.json  the manifest, written last: fields, number of rows, checksums, statistics, source
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from amagold.core.files import UNUSABLE, read_whole
from amagold.data._fields import KINDS, ColumnMoments, Field, width_of, word_type
from amagold.data._memory_mapped import map_file

MANIFEST, ROWS = "rows.json", "rows.npy"
FORMAT, VERSION = "amagold rows", 1
MOST_BYTES = 2**28  # of a manifest
BLOCK_BYTES = 2**24  # that one checksum is of


class Stamp(NamedTuple):
    """A file as it was when it was read."""

    name: str
    num_bytes: int
    modified: int  # in nanoseconds

    @classmethod
    def of(cls, path: Path, name: str | None = None) -> "Stamp":
        found = path.stat()
        return cls(path.name if name is None else name, found.st_size, found.st_mtime_ns)


class Manifest(NamedTuple):
    """What a row store says of itself."""

    fields: tuple[Field, ...]
    num_rows: int
    file: Stamp
    rows_per_block: int
    checksums: tuple[int, ...]  # CRC-32C of each block of rows
    moments: ColumnMoments
    source: tuple[Stamp, ...]  # the files that it was made of

    @property
    def seal(self) -> str:
        """Of all rows and what they mean; where they came from does not matter."""
        content = json.dumps(
            [[list(field) for field in self.fields], self.num_rows, self.checksums],
            separators=(",", ":"),
        )
        return f"crc32c:{google_crc32c.value(content.encode()):08x}:{self.num_rows}"

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "fields": [field._asdict() for field in self.fields],
            "num_rows": self.num_rows,
            "file": self.file._asdict(),
            "rows_per_block": self.rows_per_block,
            "checksums": list(self.checksums),
            "moments": self.moments.as_json(),
            "source": [stamp._asdict() for stamp in self.source],
        }

    @classmethod
    def from_json(cls, found: Any) -> "Manifest":
        """Raises one of `UNUSABLE` where the content is not a manifest's."""
        if found["format"] != FORMAT or found["version"] != VERSION:
            raise ValueError("it is of another format or version")
        fields = tuple(
            Field(
                str(each["name"]),
                str(each["kind"]),
                tuple(int(length) for length in each["shape"]),
                None if each["levels"] is None else tuple(map(str, each["levels"])),
            )
            for each in found["fields"]
        )
        if not fields or any(field.kind not in KINDS for field in fields):
            raise ValueError("its fields are none that this version knows")
        manifest = cls(
            fields,
            int(found["num_rows"]),
            Stamp(**found["file"]),
            int(found["rows_per_block"]),
            tuple(map(int, found["checksums"])),
            ColumnMoments.from_json(found["moments"]),
            tuple(Stamp(**stamp) for stamp in found["source"]),
        )
        blocks = -(-manifest.num_rows // manifest.rows_per_block)
        if manifest.num_rows < 1 or len(manifest.checksums) != blocks:
            raise ValueError("its numbers do not fit together")
        return manifest


def rows_per_block(fields: tuple[Field, ...]) -> int:
    return max(1, BLOCK_BYTES // (4 * max(1, width_of(fields))))


def checksum(words: np.ndarray) -> int:
    """CRC-32C of rows as they lie in the file."""
    return google_crc32c.value(words.tobytes())


def is_row_store(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> Manifest:
    """Raises one sentence where the manifest is not there or not usable."""
    try:
        return Manifest.from_json(json.loads(read_whole(folder / MANIFEST, MOST_BYTES)))
    except OSError as reason:
        why = reason.strerror or str(reason)
    except UNUSABLE as reason:
        why = str(reason) or type(reason).__name__
    raise ValueError(
        f"path must be a row store, but the manifest {str(folder / MANIFEST)!r} cannot be used: "
        f"{why}; prepare it again from its source"
    )


def open_rows(
    folder: Path, manifest: Manifest, report: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """The rows, mapped into memory; all of them are compared with their checksums where the file
    is not as it was left.
    """
    path = folder / ROWS
    again = "copy the store anew, or prepare it again"
    try:
        words = map_file(path)
        stamp = Stamp.of(path)
    except (OSError, ValueError, EOFError) as reason:
        why = getattr(reason, "strerror", None) or str(reason)
        raise ValueError(f"path must hold {ROWS}, but {str(path)!r}: {why}; {again}") from None
    form = (manifest.num_rows, width_of(manifest.fields))
    if words.shape != form or words.dtype != word_type(manifest.fields):
        raise ValueError(
            f"path must hold {form[0]:,} rows of {form[1]} words, but {str(path)!r} has shape "
            f"{words.shape} of {words.dtype}; {again}"
        )
    if stamp != manifest.file:
        verify(path, words, manifest, report)
    return words


def verify(
    path: Path,
    words: np.ndarray,
    manifest: Manifest,
    report: Callable[[int, int], None] | None = None,
) -> None:
    """Compare all rows with their checksums."""
    for number, block in blocks_of(words, manifest.rows_per_block):
        if checksum(block) != manifest.checksums[number]:
            first = number * manifest.rows_per_block
            raise ValueError(
                f"path must be undamaged, but rows {first:,} to {first + len(block) - 1:,} of "
                f"{str(path)!r} are not as they were written; copy the store anew, or prepare it "
                "again"
            )
        if report is not None:
            report(number + 1, len(manifest.checksums))


def blocks_of(words: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    for number, start in enumerate(range(0, len(words), size)):
        yield number, words[start : start + size]
