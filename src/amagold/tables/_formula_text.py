"""The two sides of a formula, and its parts."""

from typing import Any, NamedTuple

from amagold.core.optional_packages import required
from amagold.tables._formula_check import QUOTED, Expression, checked_expression
from amagold.tables._formula_size import MOST_NAMES, MOST_PRODUCTS, size_of

SHOWN = 200  # signs of a formula that a sentence repeats


class FormulaPart(NamedTuple):
    """A factor in formulaic's sense, of which terms are products: a column, or an expression."""

    name: str  # the column's, or the text of the expression
    is_column: bool
    is_constant: bool
    reads: Expression


class ParsedFormula(NamedTuple):
    """A formula that is harmless."""

    text: str
    outcome: str  # a column
    right: Any  # formulaic's
    parts: dict[str, FormulaPart]  # by formulaic's text for them

    @property
    def columns(self) -> tuple[str, ...]:
        """That the right side reads."""
        found = {column for part in self.parts.values() for column in part.reads.columns}
        return tuple(sorted(found))


def parsed_formula(formula: Any) -> ParsedFormula:
    """The formula, or a sentence."""
    bare = QUOTED.sub("", formula) if isinstance(formula, str) else ""
    if not isinstance(formula, str) or bare.count("~") != 1 or "\0" in formula:
        raise ValueError(
            f"formula must be a text such as 'late ~ distance + C(month)', got {formula!r}"
        )
    # the sign may also stand within the name of a column
    hidden = QUOTED.sub(lambda found: found[0].replace("~", "\0"), formula)
    left, right = (side.replace("\0", "~").strip() for side in hidden.split("~"))
    if not left:
        raise ValueError("formula must name the outcome before '~', as in 'late ~ distance'")
    if "|" in QUOTED.sub("", right):
        raise ValueError(
            "formula must hold fixed terms, but has '|' of a random effect, which is not known "
            "yet; give the groups as a factor"
        )
    if right == ".":
        raise ValueError(
            f"formula must name its terms, got '.'; leave it out, and give outcome={left!r} "
            f"(--outcome {left}) for all other columns"
        )
    _check_names(QUOTED.findall(right))
    parsed = _expanded(right or "1")
    is_quoted = QUOTED.fullmatch(left)
    if not is_quoted and "(" in left:
        raise ValueError(
            f"formula must have a column before '~', got {left!r}; make a column of it first"
        )
    return ParsedFormula(formula, is_quoted[1] if is_quoted else left, parsed, _parts(parsed))


def _expanded(right: str) -> Any:
    """formulaic's formula of the right side."""
    formulaic = required("formulaic", "tables")
    shown = right if len(right) <= SHOWN else f"{right[:SHOWN]}..."
    try:
        size = size_of(right)
        if size.names <= MOST_NAMES and size.products <= MOST_PRODUCTS:
            found = formulaic.Formula(right)
            if not isinstance(found, formulaic.SimpleFormula):
                raise ValueError("it has several parts")
            return found
    except Exception as reason:
        why = (str(reason) or type(reason).__name__).splitlines()[0]
        raise ValueError(
            f"formula must be one that formulaic knows, but {shown!r}: {why}"
        ) from None
    raise ValueError(
        f"formula must name at most {MOST_NAMES:,} columns and expand to at most "
        f"{MOST_PRODUCTS:,} products of them, but {shown!r} has more; choose what matters"
    )


def formula_of_all(outcome: str, others: list[str]) -> ParsedFormula:
    """All other columns for the outcome: no text that would have to be read again."""
    formulaic = required("formulaic", "tables")
    from formulaic.parser.types import Factor, Term

    _check_names([outcome, *others])
    terms = [Term([Factor("1", eval_method="literal")])]
    terms += [Term([Factor(name, eval_method="lookup")]) for name in others]
    text = f"{quoted(outcome)} ~ {' + '.join(map(quoted, others)) or '1'}"
    right = formulaic.Formula(terms)
    return ParsedFormula(text, outcome, right, _parts(right))


def _check_names(names: list[str]) -> None:
    """Raise where a formula cannot speak of a column: a one stands for the intercept."""
    odd = next((name for name in names if "`" in name or "\n" in name or name == "1"), None)
    if odd is not None:
        raise ValueError(
            f"table must have names without '`' and line ends, and other than '1', got {odd!r}; "
            "rename it"
        )


def quoted(name: str) -> str:
    """The name of a column as formulas take it."""
    return name if name.isidentifier() else f"`{name}`"


def _parts(right: Any) -> dict[str, FormulaPart]:
    found: dict[str, FormulaPart] = {}
    for term in right:
        for factor in term.factors:
            text, method = str(factor.expr), factor.eval_method.value
            if method == "python":
                reads = checked_expression(text)
            else:
                reads = Expression((text,) if method == "lookup" else (), False, False)
            found[text] = FormulaPart(text, method == "lookup", method == "literal", reads)
    return found
