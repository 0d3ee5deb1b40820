"""The Statlog heart data (UCI Machine Learning Repository, CC BY 4.0): 270 patients, 13 predictors,
disease or none.

The copy in `heart.csv` has named columns, ST depression in millimetres and the outcome as 0 (none)
or 1 (disease).
"""

from amagold.datasets._embedded_table import Table, read_table


def heart(standardise: bool = True) -> Table:
    """The heart data; with `standardise`, each predictor has mean 0 and standard deviation 1."""
    return read_table("heart", standardise)
