"""The two sides of a formula, and its parts."""

from typing import Any, NamedTuple

from amagold.core.optional_packages import required
from amagold.tables._formula_check import QUOTED, Expression, checked_expression
from amagold.tables._formula_size import MOST_NAMES, MOST_PRODUCTS, size_of
from amagold.tables._group_text import parted

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
    groups: "tuple[ParsedGroup, ...]" = ()  # random effects

    @property
    def columns(self) -> tuple[str, ...]:
        """That the fixed terms read."""
        found = {column for part in self.parts.values() for column in part.reads.columns}
        return tuple(sorted(found))

    @property
    def all_columns(self) -> tuple[str, ...]:
        """That the right side reads, random effects included."""
        of_groups = {name for group in self.groups for name in group.all_columns}
        return tuple(sorted({*self.columns, *of_groups}))


class ParsedGroup(NamedTuple):
    """A random effect: what varies by group, and the columns whose values are the group."""

    varying: ParsedFormula  # as the right side of a formula of its own
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the group, as Bambi calls it."""
        return ":".join(self.columns)

    @property
    def all_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.varying.columns, *self.columns]))


def parsed_formula(formula: Any) -> ParsedFormula:
    """The formula, or a sentence."""
    bare = QUOTED.sub("", formula) if isinstance(formula, str) else ""
    if not isinstance(formula, str) or bare.count("~") != 1 or "\0" in formula:
        raise ValueError(
            "formula must be a text such as 'late ~ distance + C(month)', with one '~' between "
            f"the outcome and the terms, got {formula!r}"
        )
    # the sign may also stand within the name of a column
    hidden = QUOTED.sub(lambda found: found[0].replace("~", "\0"), formula)
    left, right = (side.replace("\0", "~").strip() for side in hidden.split("~"))
    if not left:
        raise ValueError("formula must name the outcome before '~', as in 'late ~ distance'")
    right, random = parted(right)
    if right == ".":
        raise ValueError(
            f"formula must name its terms, got '.'; leave it out, and give outcome={left!r} "
            f"(--outcome {left}) for all other columns"
        )
    _check_names([*QUOTED.findall(right), *(name for each in random for name in each.columns)])
    parsed = _expanded(right or "1")
    is_quoted = QUOTED.fullmatch(left)
    if not is_quoted and "(" in left:
        raise ValueError(
            f"formula must have a column before '~', got {left!r}; make a column of it first"
        )
    outcome = is_quoted[1] if is_quoted else left
    groups = tuple(ParsedGroup(_varying(each.left), each.columns) for each in random)
    return ParsedFormula(formula, outcome, parsed, _parts(parsed), groups)


def _varying(left: str) -> ParsedFormula:
    """What stands before the '|' of a random effect."""
    _check_names(QUOTED.findall(left))
    found = _expanded(left)
    return ParsedFormula(left, "", found, _parts(found))


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
