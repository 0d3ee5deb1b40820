"""How much a formula expands to, before it is expanded: (a + b + c)**30 has 3^30 products, which
nobody waits for.
"""

from typing import Any, NamedTuple

from amagold.core.optional_packages import required

MOST_PRODUCTS = 100_000  # of columns, those that are alike counted apart
MOST_NAMES = 5_000  # whose sum takes formulaic as many times as long as their square
POWERS = ("**", "^")


class FormulaSize(NamedTuple):
    """Of the right side of a formula."""

    names: int  # those that are there twice count twice
    products: int  # at most so many; more than MOST_PRODUCTS are not counted


def size_of(right: str) -> FormulaSize:
    """How large the right side is, as it is written and once it is expanded."""
    required("formulaic", "tables")
    from formulaic.parser import DefaultFormulaParser

    # by a stack, because sums of many columns are deep trees
    tree = DefaultFormulaParser().get_ast(right)
    order: list[Any] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += getattr(node, "args", ())
    found: dict[int, int] = {}
    for node in reversed(order):  # parts before the whole
        operator = getattr(node, "operator", None)
        if operator is None:
            found[id(node)] = 1
            continue
        counts = [found[id(part)] for part in node.args]
        found[id(node)] = min(_joined(operator.symbol, counts, node.args), MOST_PRODUCTS + 1)
    num_names = sum(getattr(node, "operator", None) is None for node in order)
    return FormulaSize(num_names, found[id(tree)])


def _joined(symbol: str, counts: list[int], parts: Any) -> int:
    if symbol in POWERS:
        power = str(getattr(parts[-1], "token", ""))
        # other powers are refused by formulaic
        return counts[0] ** min(int(power), 64) if power.isdecimal() and counts[0] > 1 else 1
    if symbol in ("*", ":") and len(counts) == 2:
        return counts[0] * counts[1] + (sum(counts) if symbol == "*" else 0)
    return sum(counts)
