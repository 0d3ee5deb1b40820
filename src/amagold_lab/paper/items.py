"""The items, in the paper's order. Their modules are loaded when they are needed."""

import importlib
from collections.abc import Sequence

from amagold_lab.paper.item import Item

MODULES = {
    "double-well": "amagold_lab.paper.double_well",
    "dist": "amagold_lab.paper.dist",
    "convergence": "amagold_lab.paper.convergence",
    "runtime": "amagold_lab.paper.runtime",
    "logistic": "amagold_lab.paper.logistic",
    "acceptance": "amagold_lab.paper.acceptance",
    "bnn": "amagold_lab.paper.bnn",
    "uncertainty": "amagold_lab.paper.uncertainty",
}


def items_named(names: Sequence[str]) -> list[Item]:
    """The items of these names in the paper's order; all of them for "all" or no name."""
    wanted = set(names) or {"all"}
    if unknown := sorted(wanted - MODULES.keys() - {"all"}):
        raise ValueError(
            f"names must be among {', '.join(MODULES)} or all, got {', '.join(unknown)}"
        )
    return [
        importlib.import_module(module).ITEM
        for name, module in MODULES.items()
        if "all" in wanted or name in wanted
    ]
