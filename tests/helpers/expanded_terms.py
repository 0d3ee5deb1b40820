"""What codes stand for: the matrix of all columns."""

import numpy as np


def expanded(coded):
    """The columns of a coded table, in the order of the coefficients."""
    columns = [coded.numbers]
    for factor, size in enumerate(coded.sizes):
        place = coded.multiplied_by[factor]
        times = 1.0 if place is None else coded.multipliers[:, [place]]
        columns.append((coded.codes[:, [factor]] == np.arange(size)) * times)
    return np.concatenate(columns, axis=1)
