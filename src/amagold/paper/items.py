"""The items, in the paper's order. Their modules are loaded when they are needed."""

import importlib
from collections.abc import Sequence

from amagold.paper.item import Item

MODULES = {
    "double-well": "amagold.paper.double_well",
    "dist": "amagold.paper.dist",
    "convergence": "amagold.paper.convergence",
    "runtime": "amagold.paper.runtime",
    "logistic": "amagold.paper.logistic",
    "acceptance": "amagold.paper.acceptance",
    "bnn": "amagold.paper.bnn",
    "uncertainty": "amagold.paper.uncertainty",
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
