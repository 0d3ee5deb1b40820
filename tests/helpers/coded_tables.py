"""Tables of numbers and codes, as formulas make them."""

import numpy as np

from amagold.models._coded_rows import CodedTable


def coded(numbers, codes, sizes, multipliers=None, multiplied_by=None):
    """With names that are numbers."""
    none = np.zeros((len(codes), 0), np.float32)
    names = tuple(map(str, range(numbers.shape[1] + sum(sizes))))
    given = none if multipliers is None else multipliers.astype(np.float32)
    return CodedTable(numbers, codes, given, names, sizes, multiplied_by or (None,) * len(sizes))
