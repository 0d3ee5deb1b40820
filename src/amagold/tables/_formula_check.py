"""Which formulas are evaluated: columns, arithmetic, and a list of functions. formulaic evaluates
any Python, and a formula may come from a stranger's run.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

STATEFUL = {"bs", "cr", "cc", "cs", "poly", "center", "scale"}
FUNCTIONS = {*("log", "log2", "log10", "exp", "exp2", "exp10"), *("C", "I", "Q"), *STATEFUL}
OF_NUMPY = {"log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "abs", "sin", "cos", "tanh"}
CONTRASTS = {"treatment", "Treatment", "sum", "Sum", "helmert", "poly", "diff", "sas", "SAS"}
MODULES = {"np": OF_NUMPY, "contr": CONTRASTS}
HARMLESS = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.Attribute),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.Compare),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.List, ast.Tuple),
)
ARITHMETIC = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod},
    ast.Pow: operator.pow,
}
MOST_COLUMNS = 1000  # that one spline or polynomial may ask for
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
    columns = tuple(dict.fromkeys(names.get(name, name) for name in _columns(tree)))
    if not columns:
        raise ValueError(f"formula must hold terms that read columns, but {text!r} reads none")
    return Expression(columns, "C" in called, bool(called & STATEFUL))


def _columns(tree: ast.AST) -> list[str]:
    """Names that stand for columns, and the texts that Q(...) reads."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = [call.func for call in calls]
    by_name = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node not in functions and node.id not in MODULES
    ]
    by_text = [
        str(call.args[0].value)
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id == "Q"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    ]
    return by_name + by_text


def _check_node(node: ast.AST, text: str) -> None:
    if not isinstance(node, HARMLESS):
        raise ValueError(
            f"formula must hold columns, arithmetic and functions, but {text!r} has more; make "
            "a column of it first"
        )
    if isinstance(node, ast.BinOp):
        _check_arithmetic(node, text)
    if isinstance(node, (ast.List, ast.Tuple)) and _columns(node):
        raise ValueError(f"formula must not hold lists of columns, as {text!r} does; add them")
    if isinstance(node, ast.Attribute) and not _is_known_attribute(node):
        raise ValueError(f"formula must not reach into {ast.unparse(node)!r}; {_remedy()}")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in FUNCTIONS:
            raise ValueError(f"formula must not call {node.func.id!r}; {_remedy()}")
        if node.func.id in STATEFUL:
            _check_size(node, text)
    elif isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
        raise ValueError(f"formula must not call {ast.unparse(node.func)!r}; {_remedy()}")


def _check_arithmetic(node: ast.BinOp, text: str) -> None:
    """Arithmetic is of columns and finite numbers: 9**9**9 as a whole number would take for ever,
    and 'a' * 10**12 all memory.
    """
    sides = [side for side in (node.left, node.right) if not _columns(side)]
    values = [_constant(side) for side in sides]
    if len(sides) == 2:
        values.append(_constant(node))
    if any(value is None or not math.isfinite(value) for value in values):
        raise ValueError(
            f"formula must hold arithmetic of columns and finite numbers, but {text!r} has other; "
            "make a column of it first"
        )


def _check_size(call: ast.Call, text: str) -> None:
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        value = _constant(argument)
        if value is not None and value > MOST_COLUMNS and not _is_bound(call, argument):
            raise ValueError(
                f"formula must make at most {MOST_COLUMNS:,} columns of a term, but {text!r} asks "
                "for more"
            )


def _is_bound(call: ast.Call, argument: ast.expr) -> bool:
    """Whether the number says where a spline begins or ends, not how many columns it has."""
    return any(
        keyword.value is argument and keyword.arg not in ("df", "degree")
        for keyword in call.keywords
    )


def _constant(node: ast.expr) -> float | None:
    """The value of arithmetic without columns, in floating point, which is bounded in time."""
    number = node.value if isinstance(node, ast.Constant) else None
    if isinstance(number, (int, float)):
        return _finite(lambda: float(number))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _constant(node.operand)
        return None if value is None else (-value if isinstance(node.op, ast.USub) else value)
    if isinstance(node, ast.BinOp):
        left, right = _constant(node.left), _constant(node.right)
        if left is not None and right is not None:
            return _finite(lambda: ARITHMETIC[type(node.op)](left, right))
    return None


def _finite(compute: Callable[[], Any]) -> float:
    try:
        value = compute()
    except ArithmeticError:
        return math.inf
    return math.inf if isinstance(value, complex) else value


def _is_known_attribute(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.attr in MODULES.get(node.value.id, set())


def _remedy() -> str:
    return f"use {', '.join(sorted(FUNCTIONS))} or np.log and the like, or make a column of it"
