"""Tables as files, there whole or not at all."""

import os
from pathlib import Path
from typing import Any

from amagold.core.files import as_path
from amagold.core.optional_packages import required

SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")


def check_output(given: Any) -> Path:
    """Where to write, or a sentence before any work is done."""
    place = as_path("output", given, "a file to write")
    if place.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"output must be a CSV, Parquet or Arrow file ({', '.join(SUFFIXES)}), got "
            f"{place.name!r}"
        )
    if not place.absolute().parent.is_dir() or place.is_dir():
        raise ValueError(
            f"output must be a file in a folder that exists, got {str(place)!r}; make the folder "
            "first, or name a file"
        )
    return place


def write_table(table: Any, place: Path) -> None:
    """Write a data frame of any library in the format that the suffix says."""
    nw, pyarrow = required("narwhals", "tables"), required("pyarrow", "tables")
    from pyarrow import csv, feather, parquet

    arrow = nw.from_native(table).to_arrow()
    suffix = place.suffix.lower()
    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    part = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        writers.get(suffix, feather.write_feather)(arrow, str(part))
        part.replace(place)
    except pyarrow.ArrowException as reason:
        raise ValueError(f"output could not be written: {str(reason).splitlines()[0]}") from None
    finally:
        part.unlink(missing_ok=True)
