"""What a formula asks, in words: the title of a report, its question, what groups add."""

from collections.abc import Sequence

from amagold.report._formula_words import listed, term_words


def title_of(outcome: str, terms: Sequence[str], groups: Sequence[str]) -> str:
    by = _told(groups, 4)
    if not terms:
        return f"How {outcome} varies by {by}" if by else f"{outcome} on its own"
    return f"How {outcome} goes with {_told(terms, 4)}" + (f", by {by}" if by else "")


def question_of(asks: str, terms: Sequence[str], groups: Sequence[str]) -> str:
    """`asks` is what changes with the terms."""
    by, verb = _told(groups, 8), "do" if asks.startswith("the odds") else "does"
    if not terms:
        return f"How {verb} {asks} vary by {by}?" if by else f"What can be said of {asks}?"
    alone = ", each with the others held fixed" if len(terms) > 1 else ""
    also = f", and vary by {by}" if by else ""
    return f"How {verb} {asks} change with {_told(terms, 12)}{alone}{also}?"


def effects_words(groups: Sequence[str]) -> str:
    """What random effects add to the model, in a sentence."""
    if not groups:
        return ""
    drawn = "normal distributions" if len(groups) > 1 else "a normal distribution"
    whose = "standard deviations are" if len(groups) > 1 else "standard deviation is"
    return (
        f"Each level of {_told(groups, 8)} adds an effect of its own, drawn from {drawn} about "
        f"zero whose {whose} found from how much levels differ: levels with few rows are drawn "
        "towards the average."
    )


def _told(names: Sequence[str], most: int) -> str:
    return listed([term_words(name) for name in names], most) if names else ""
