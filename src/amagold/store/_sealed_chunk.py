"""One chunk of an array as the bytes of its file: Blosc's LZ4, then a CRC-32C. Nothing else is
decoded.

Blosc's header has 16 bytes: version, version of the format, flags, size of an item, and as 32-bit
numbers the size of the content, of a block, and of the whole. It is compared with what the array's
shape says before anything is decompressed.
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from amagold.core.files import read_whole

HEADER = struct.Struct("<BBBBIII")
CHECKSUM = struct.Struct("<I")
# Blosc copies what it cannot make smaller, behind its header
OVERHEAD = HEADER.size + CHECKSUM.size
MOST_BYTES = 2**31 - 1 - HEADER.size  # that Blosc takes at once
OURS = (2, 1, 1)  # version of Blosc's format, version of LZ4's, and the number of LZ4 in the flags
UNWRITTEN_FLAGS = 0b1100  # bits are never shuffled here, and one flag is nobody's


class DamagedChunkError(OSError):
    """A chunk is missing, or not what was written."""


def encode(values: np.ndarray) -> bytes:
    """The bytes of a chunk's file."""
    import google_crc32c

    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    compressed = _blosc(little.dtype.itemsize).encode(little)
    return compressed + CHECKSUM.pack(google_crc32c.value(compressed))


def decode(content: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The chunk back again; anything else raises `DamagedChunkError` before it is decompressed."""
    _check(content, num_bytes(shape, dtype), dtype.itemsize)
    try:
        found = _blosc(dtype.itemsize).decode(content[: -CHECKSUM.size])
        values = np.frombuffer(found, dtype.newbyteorder("<"))
    except (RuntimeError, ValueError) as reason:
        raise DamagedChunkError(f"it cannot be decompressed ({reason})") from None
    if dtype.kind == "b" and values.view(np.uint8).max(initial=0) > 1:
        raise DamagedChunkError("it holds truth values that are neither true nor false")
    return values.astype(dtype, copy=False).reshape(shape)


def read(file: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The chunk in a file; raises `DamagedChunkError`."""
    try:
        return decode(read_whole(file, num_bytes(shape, dtype) + OVERHEAD), shape, dtype)
    except FileNotFoundError:
        raise DamagedChunkError("it is missing") from None
    except DamagedChunkError:
        raise
    except OSError as reason:
        raise DamagedChunkError(f"it cannot be read ({reason})") from None


def num_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.itemsize


def _check(content: bytes, expected: int, itemsize: int) -> None:
    """Raise unless these are the bytes of a chunk that holds so many, and no bit of them
    differs.
    """
    import google_crc32c

    if not OVERHEAD <= len(content) <= expected + OVERHEAD:
        raise DamagedChunkError(f"it has {len(content)} bytes")
    compressed, checksum = content[: -CHECKSUM.size], content[-CHECKSUM.size :]
    if CHECKSUM.unpack(checksum)[0] != google_crc32c.value(compressed):
        raise DamagedChunkError("its checksum does not match")
    version, of_lz4, flags, item, size, block, whole = HEADER.unpack(compressed[: HEADER.size])
    is_ours = (version, of_lz4, flags >> 5) == OURS and not flags & UNWRITTEN_FLAGS
    if not is_ours or item != itemsize or whole != len(compressed):
        raise DamagedChunkError("it is not compressed as amagold does")
    if size != expected or not 0 < block <= size:
        raise DamagedChunkError(f"it says that it holds {size} bytes where {expected} belong")


def _blosc(itemsize: int) -> Any:
    from numcodecs import blosc  # pyright: ignore[reportAttributeAccessIssue]

    # its own threads are shared by the whole process, and not all callers are the main thread
    blosc.use_threads = False
    # fast, and it takes most out of counts and truth values
    return blosc.Blosc(cname="lz4", clevel=1, shuffle=blosc.SHUFFLE, blocksize=0, typesize=itemsize)
