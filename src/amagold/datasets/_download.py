"""Files of data: found where the user keeps them, or fetched once and checked against the known
content.
"""

import gzip
import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

FOLDER_VARIABLE = "AMAGOLD_DATA"
SECONDS = 60.0  # without an answer before a server is given up


class DataFile(NamedTuple):
    """A gzipped file of a data set, and the SHA-256 of what is inside: mirrors compress the same
    content differently.
    """

    folder: str
    name: str
    sha256: str
    addresses: tuple[str, ...]


class DataMissingError(RuntimeError):
    """A file of a data set is neither here nor to be had."""


def folders() -> list[Path]:
    """Where files are looked for, and at the end where downloads are kept."""
    given = os.environ.get(FOLDER_VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amagold"
    return [*([Path(given)] if given else []), cache]


def content_of(file: DataFile) -> bytes:
    """The unpacked content of a file, from the first folder that has it, else from the first
    address that answers.
    """
    for folder in folders():
        path = folder / file.folder / file.name
        if path.is_file():
            return _checked(path.read_bytes(), file, str(path))
    reasons = []
    for address in file.addresses:
        try:
            packed = _fetch(address)
            content = _checked(packed, file, address)
        except (OSError, DataMissingError) as reason:
            reasons.append(f"{address}: {reason}")
            continue
        _keep(packed, folders()[-1] / file.folder / file.name)
        return content
    tried = "; ".join(reasons) or "no address is known"
    raise DataMissingError(
        f"{file.folder}/{file.name} was neither found in "
        f"{' or '.join(str(folder) for folder in folders())} nor downloaded ({tried}); "
        f"put the file into a folder named {file.folder!r} and set {FOLDER_VARIABLE} to the "
        "folder above it"
    )


def _checked(packed: bytes, file: DataFile, origin: str) -> bytes:
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError) as reason:
        raise DataMissingError(
            f"{origin} must be a gzip file, but it does not unpack ({reason}); replace or delete it"
        ) from reason
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DataMissingError(
            f"{origin} must hold the known {file.name}, but its content has SHA-256 {found}; "
            "replace or delete it"
        )
    return content


def _fetch(address: str) -> bytes:
    if not address.startswith("https://"):
        raise ValueError(f"address must begin with https://, got {address!r}")
    with urllib.request.urlopen(address, timeout=SECONDS) as answer:
        return answer.read()


def _keep(packed: bytes, path: Path) -> None:
    """Write under a temporary name and move it when it is whole; a cache that cannot be written is
    done without.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as opened:
            temporary = Path(opened.name)
            opened.write(packed)
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
