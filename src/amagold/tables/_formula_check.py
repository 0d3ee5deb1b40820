"""Which formulas are evaluated: columns, arithmetic, and a list of functions. formulaic evaluates
any Python, and a formula may come from a stranger's run.
"""

import ast
import re
from typing import NamedTuple

STATEFUL = {"bs", "cr", "cc", "cs", "poly", "center", "scale"}
FUNCTIONS = {*("log", "log2", "log10", "exp", "exp2", "exp10"), *("C", "I", "Q"), *STATEFUL}
OF_NUMPY = {"log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "abs", "sin", "cos", "tanh"}
CONTRASTS = {"treatment", "Treatment", "sum", "Sum", "helmert", "poly", "diff", "sas", "SAS"}
MODULES = {"np": OF_NUMPY, "contr": CONTRASTS}
HARMLESS = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.Attribute),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.Not, ast.Compare, ast.BoolOp, ast.And, ast.Or),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.List, ast.Tuple),
)
QUOTED = re.compile("`([^`]*)`")  # a name that Python would not take


class Expression(NamedTuple):
    """A part of a formula that is to be computed: what it reads, and what it does."""

    columns: tuple[str, ...]
    is_factor: bool  # C(...)
    is_stateful: bool  # what it makes of a row depends on the others


def checked_expression(text: str) -> Expression:
    """What the text reads and does; raises where it is more than columns, arithmetic and the
    functions of the list.
    """
    quoted: dict[str, str] = {}

    def stand_in(found: re.Match[str]) -> str:
        return quoted.setdefault(found[1], f"quoted_name_{len(quoted)}")

    try:
        tree = ast.parse(QUOTED.sub(stand_in, text).strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"formula must hold terms of columns, but {text!r} is none") from None
    for node in ast.walk(tree):
        _check_node(node, text)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {func.id for func in calls if isinstance(func, ast.Name)}
    names = {name: column for column, name in quoted.items()}
    reading = [
        names.get(node.id, node.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node not in calls and node.id not in MODULES
    ]
    by_text = [
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Q"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    columns = tuple(dict.fromkeys([*reading, *by_text]))
    return Expression(columns, "C" in called, bool(called & STATEFUL))


def _check_node(node: ast.AST, text: str) -> None:
    if not isinstance(node, HARMLESS):
        raise ValueError(
            f"formula must hold columns, arithmetic and functions, but {text!r} has more; make "
            "a column of it first"
        )
    if isinstance(node, ast.Attribute) and not _is_known_attribute(node):
        raise ValueError(f"formula must not reach into {ast.unparse(node)!r}; {_remedy()}")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in FUNCTIONS:
            raise ValueError(f"formula must not call {node.func.id!r}; {_remedy()}")
    elif isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
        raise ValueError(f"formula must not call {ast.unparse(node.func)!r}; {_remedy()}")


def _is_known_attribute(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.attr in MODULES.get(node.value.id, set())


def _remedy() -> str:
    return f"use {', '.join(sorted(FUNCTIONS))} or np.log and the like, or make a column of it"
