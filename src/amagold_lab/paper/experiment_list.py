"""The experiments, in the paper's order. Their modules are loaded when they are needed."""

import importlib
from collections.abc import Sequence

from amagold_lab.paper.experiment import Experiment

MODULES = {
    "double-well": "amagold_lab.paper.figure1_double_well",
    "dist": "amagold_lab.paper.figure2_dist1_dist2",
    "convergence": "amagold_lab.paper.figure3_convergence",
    "runtime": "amagold_lab.paper.appendix_runtime",
    "logistic": "amagold_lab.paper.figure4_logistic",
    "acceptance": "amagold_lab.paper.appendix_acceptance",
    "bnn": "amagold_lab.paper.table2_network_error",
    "uncertainty": "amagold_lab.paper.figure5_uncertainty",
}


def experiments_named(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names in the paper's order; all of them for "all" or no name."""
    wanted = set(names) or {"all"}
    if unknown := sorted(wanted - MODULES.keys() - {"all"}):
        raise ValueError(
            f"names must be among {', '.join(MODULES)} or all, got {', '.join(unknown)}"
        )
    return [
        importlib.import_module(module).EXPERIMENT
        for name, module in MODULES.items()
        if "all" in wanted or name in wanted
    ]
