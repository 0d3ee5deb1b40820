"""Tables on disk that are more than one file: row stores, folders of files, `amagold.data`.

Of the rows only the columns that a formula reads come into memory, each as it is stored.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amagold.core.progress import Steps
from amagold.data import Data
from amagold.data._columns_on_disk import columns_on_disk
from amagold.data._row_store import open_rows, read_manifest
from amagold.tables._column_names import check_columns

ONE_READ = 2**18  # rows


def read_store(folder: Path, columns: Sequence[str] | None, report: Steps) -> Any:
    """The columns of a row store as an Arrow table."""
    import pyarrow

    manifest = read_manifest(folder)
    names = [field.name for field in manifest.fields]
    check_columns(columns, names)
    words = open_rows(folder, manifest)
    starts = np.cumsum([0, *(field.width for field in manifest.fields)])
    found: dict[str, Any] = {}
    chosen = list(dict.fromkeys(names if columns is None else columns))
    for number, name in enumerate(chosen):
        place = names.index(name)
        field = manifest.fields[place]
        check_one(name, field.shape)
        values = np.array(words[:, starts[place]]).view(field.kind)
        found[name] = values if field.levels is None else texts(values, field.levels)
        report(number + 1, len(chosen))
    return pyarrow.table(found)


def read_data(data: Data, columns: Sequence[str] | None, report: Steps) -> Any:
    """The columns of `amagold.data.open(...)` as an Arrow table."""
    import jax.numpy as jnp
    import pyarrow

    known = columns_on_disk(data)
    if known is None:
        raise ValueError(
            "table must have named columns, which these data have not; give a data frame, or a path"
        )
    check_columns(columns, list(known))
    chosen = list(dict.fromkeys(known if columns is None else columns))
    for name in chosen:
        check_one(name, known[name].shape)
        if known[name].is_coded:
            raise ValueError(
                f"table must be given by its path, because {name!r} holds texts, whose names "
                "opened data do not keep; give the folder of the row store"
            )
    parts: dict[str, list[np.ndarray]] = {name: [] for name in chosen}
    number = data.num_examples
    for start in range(0, number, ONE_READ):
        rows = data.rows(jnp.arange(start, min(start + ONE_READ, number)))
        for name in chosen:
            parts[name].append(np.asarray(rows[name]))
        report(min(start + ONE_READ, number), number)
    return pyarrow.table({name: np.concatenate(each) for name, each in parts.items()})


def check_one(name: str, shape: tuple[int, ...]) -> None:
    if shape:
        raise ValueError(
            f"formula must speak of columns of single numbers, but {name!r} has {list(shape)} in a "
            "row"
        )


def texts(codes: np.ndarray, levels: tuple[str, ...]) -> Any:
    """Sorted, as the levels of texts are everywhere else."""
    import pyarrow

    order = np.argsort(np.asarray(levels, object))
    rank = np.empty(len(levels), np.int32)
    rank[order] = np.arange(len(levels))
    # negative codes are missing values
    known = pyarrow.array(rank[np.maximum(codes, 0)], mask=codes < 0)
    return pyarrow.DictionaryArray.from_arrays(known, [levels[place] for place in order])
