"""Which formulas are evaluated: columns, arithmetic, and a list of functions. formulaic evaluates
any Python, and a formula may come from a stranger's run.
"""

import ast

FUNCTIONS = {
    *("log", "log2", "log10", "exp", "exp2", "exp10"),
    *("C", "I", "Q", "bs", "cr", "cc", "cs", "poly", "center", "scale", "lag"),
}
OF_NUMPY = {"log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "abs", "sin", "cos", "tanh"}
CONTRASTS = {"treatment", "Treatment", "sum", "Sum", "helmert", "poly", "diff", "sas", "SAS"}
HARMLESS = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.Attribute),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.Not, ast.Compare, ast.BoolOp, ast.And, ast.Or),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.List, ast.Tuple),
)


def check_expression(text: str) -> None:
    """Raise where a factor of a formula is more than that."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        raise ValueError(f"formula must hold terms of columns, but {text!r} is none") from None
    for node in ast.walk(tree):
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
    if not isinstance(node.value, ast.Name):
        return False
    known = {"np": OF_NUMPY, "contr": CONTRASTS}.get(node.value.id, set())
    return node.attr in known


def _remedy() -> str:
    return f"use {', '.join(sorted(FUNCTIONS))} or np.log and the like, or make a column of it"
