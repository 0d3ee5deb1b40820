"""Tables that come with the package as comma-separated files: predictors, and the outcome in the
last column.
"""

from importlib import resources
from typing import NamedTuple

import numpy as np


class Table(NamedTuple):
    """Predictors with a row per example, their names, and an outcome per example."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


def read_table(name: str, standardise: bool) -> Table:
    """The table of this name; with `standardise`, each predictor has mean 0 and standard deviation
    1.
    """
    text = resources.files("amagold.datasets").joinpath(f"{name}.csv").read_text()
    header, *rows = text.splitlines()
    values = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    predictors, outcome = values[:, :-1], values[:, -1].astype(int)
    if standardise:
        predictors = (predictors - predictors.mean(axis=0)) / predictors.std(axis=0)
    return Table(predictors.astype(np.float32), outcome, tuple(header.split(",")[:-1]))
