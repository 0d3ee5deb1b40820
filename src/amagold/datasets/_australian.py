"""The Statlog Australian credit data (UCI Machine Learning Repository, CC BY 4.0): 690
applications, 14 predictors, approved or not.

The meaning of the predictors is confidential. The copy in `australian.csv` names them a1 to a14 and
codes the outcome as 0 (refused) or 1.
"""

from amagold.datasets._embedded_table import Table, read_table


def australian(standardise: bool = True) -> Table:
    """The credit data; with `standardise`, each predictor has mean 0 and standard deviation 1."""
    return read_table("australian", standardise)
