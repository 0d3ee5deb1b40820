"""Random effects that cannot be, and what a table says little about."""

import dataclasses

import numpy as np

from amagold.tables._families import GROUPED
from amagold.tables._formula_text import ParsedFormula
from amagold.tables._group_terms import ONES, GroupedRows, GroupTerm
from amagold.tables._term_codes import Term
from amagold.tables._terms import FormulaTerms

FEW_LEVELS = 5  # from which little is known of how much levels differ


def check_grouped(formula: ParsedFormula, family: str, dispersion: float | None) -> None:
    """Raise where the formula says what cannot be, whatever the table."""
    if family not in GROUPED:
        known = ", ".join(map(repr, GROUPED))
        raise ValueError(
            f"family must be one of {known} for a formula with random effects, got {family!r}; "
            "give the groups as factors"
        )
    if (dispersion is not None) != (family == "negative_binomial"):
        raise ValueError(
            "dispersion must be given for negative_binomial with random effects and for no other "
            "family: a with var y = m + m^2 / a at the mean m (--dispersion)"
        )
    if formula.outcome in formula.all_columns:
        raise ValueError(
            f"formula must not explain the outcome {formula.outcome!r} by itself; leave it out on "
            "the right side"
        )


def check_groups(
    groups: tuple[GroupTerm, ...], terms: tuple[Term, ...], family: str, num_rows: int
) -> None:
    """Raise where draws could not be told apart, or a group says no more than the noise."""
    taken = {term.name for term in terms} | {"sigma", "theta"}
    for term in groups:
        for name in term.variables:
            if name in taken:
                raise ValueError(
                    f"formula must have each effect of a group once, got {name!r} twice; write "
                    f"(0 + x | {term.group}) for slopes without another intercept"
                )
            taken.add(name)
        beside = {*term.scales, *term.correlations}
        if beside & taken:
            raise ValueError(
                f"table must not have a column called {sorted(beside & taken)[0]!r} beside a "
                "random effect, whose scale has that name; rename it"
            )
        taken |= beside
        if family == "linear" and term.num_levels >= num_rows:
            raise ValueError(
                f"formula must group by columns whose levels come back, but {term.group!r} has "
                f"one for each of the {num_rows:,} rows, which the noise says already; leave it out"
            )


def with_doubts_about_classes(
    terms: FormulaTerms,
    groups: tuple[GroupedRows, ...],
    successes: np.ndarray,
    trials: np.ndarray | None,
) -> FormulaTerms:
    """Where every level has one class alone its effect has no end but the prior's."""
    found, has_one = [], successes > 0
    has_zero = successes < (1.0 if trials is None else trials)
    for term, rows in zip(terms.groups, groups, strict=True):
        ones, zeros = (np.bincount(rows.codes, each) for each in (has_one, has_zero))
        if term.effects[0] == ONES and not np.any((ones > 0) & (zeros > 0)):
            found.append(
                f"Separation: the outcome is the same in all rows of each level of "
                f"{term.group!r}, so that nothing but its prior says how large "
                f"{term.scales[0]!r} can be, and chains wander far out; give it a prior that you "
                "believe, such as normal(0, 1)."
            )
    return dataclasses.replace(terms, doubts=(*terms.doubts, *found))


def doubts_about_groups(
    groups: tuple[GroupTerm, ...], terms: tuple[Term, ...], codes: list[np.ndarray]
) -> list[str]:
    """Sentences about what the table says little of."""
    found = []
    fixed = {term.name for term in terms}
    for term in groups:
        if term.num_levels < FEW_LEVELS and term.effects[0] == ONES:
            found.append(
                f"Few groups: {term.group!r} has {term.num_levels} levels, which say little about "
                f"how much levels differ, so that the prior of {term.scales[0]!r} matters; give "
                "it one, or take the group as a factor."
            )
        if term.effects[0] == ONES and fixed & {term.group, f"C({term.group})"}:
            found.append(
                f"Group twice: {term.group!r} is a fixed term too, which says already how its "
                f"levels differ, so that only the prior knows {term.scales[0]!r}; leave one of "
                "them out."
            )
        about_zero = [name for name in term.effects if name != ONES and name not in fixed]
        if about_zero and all("[" not in name for name in about_zero):
            found.append(
                f"Slopes about zero: {about_zero[0]!r} varies by {term.group!r} and is no fixed "
                "term, so that its average over the levels is held near zero; add it to the "
                "formula if it is not."
            )
    for first, one in enumerate(groups):
        for second, other in enumerate(groups[:first]):
            is_same = one.num_levels == other.num_levels and one.group != other.group
            if is_same and one.effects == other.effects:
                pairs = np.unique(codes[first].astype(np.int64) * one.num_levels + codes[second])
                if len(pairs) == one.num_levels:
                    found.append(
                        f"Groups alike: {one.group!r} and {other.group!r} have the same rows in "
                        "every level, so that only their sum is known; leave one out."
                    )
    return found
