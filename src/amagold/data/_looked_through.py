"""What one reading of an array says of its rows: that they are finite, their checksum and their
moments.

It is said block by block, in blocks that the number of rows alone decides, so that several
processes come to the same as one, to the bit.
"""

import base64
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from amagold.data._fields import ColumnMoments
from amagold.data._row_store import checksum

MOST_BLOCKS = 1024
FEWEST_ROWS = 16  # in a block


class Facts(NamedTuple):
    """Of some blocks of one array, in order."""

    num_rows: list[int]
    checksums: list[int]
    moments: list[str]  # each as text

    def followed_by(self, others: "Facts") -> "Facts":
        return Facts(
            self.num_rows + others.num_rows,
            self.checksums + others.checksums,
            self.moments + others.moments,
        )

    def joined_moments(self, width: int) -> ColumnMoments:
        found = ColumnMoments.nothing(width)
        for num_rows, text in zip(self.num_rows, self.moments, strict=True):
            block = ColumnMoments.from_bytes(num_rows, base64.b64decode(text))
            assert block is not None
            found = found.with_others(block)
        return found


def look_through(
    array: np.ndarray, first: int, last: int, report: Callable[[int], None]
) -> tuple[Facts, int | None]:
    """The facts of the blocks that begin in rows `first` up to `last`, and the number of a row that
    is not finite, if there is one; `report` is told of the bytes that were read.
    """
    facts = Facts([], [], [])
    length = block_length(len(array))
    for start in range(-(-first // length) * length, last, length):
        block = np.ascontiguousarray(array[start : start + length])
        if block.dtype.kind == "f" and not np.isfinite(block).all():
            return facts, start + int(np.argwhere(~np.isfinite(block))[0][0])
        numbers = block.reshape(len(block), -1)
        moments = ColumnMoments.nothing(numbers.shape[1]).with_block(numbers)
        facts.num_rows.append(len(block))
        facts.checksums.append(checksum(block))
        facts.moments.append(base64.b64encode(moments.as_bytes()).decode())
        report(block.nbytes)
    return facts, None


def block_length(num_rows: int) -> int:
    """Rows in a block: a power of two."""
    return max(FEWEST_ROWS, 1 << max(0, -(-num_rows // MOST_BLOCKS) - 1).bit_length())
