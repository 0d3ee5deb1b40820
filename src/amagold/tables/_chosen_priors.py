"""Which terms a prior was given to: one, several, or all others."""

from collections.abc import Mapping, Sequence
from typing import Any

from amagold.priors import TermPrior
from amagold.priors._prior_text import parsed_prior
from amagold.tables._term_codes import INTERCEPT

ALL_OTHERS = "*"


def by_text(priors: Mapping[Any, TermPrior | str] | None) -> dict[str, TermPrior | str] | None:
    """Names of several terms as one text, which a stored run keeps and the command line takes."""
    if not priors:
        return None
    found = {}
    for names, prior in priors.items():
        if not isinstance(names, (str, tuple)) or not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"priors must be by the names of terms, or by tuples of names, got {names!r}"
            )
        found[names if isinstance(names, str) else ", ".join(names)] = prior
    return found


def chosen_priors(
    priors: Mapping[str, TermPrior | str],
    terms: list[str],
    noise: str | None,
    scales: Sequence[str] = (),
) -> list[tuple[tuple[str, ...], TermPrior]]:
    """The terms of each prior; "*" stands for all that no other speaks of but the intercept, the
    noise and the scales of random effects.
    """
    known = [*terms, *([noise] if noise else []), *scales]
    found: dict[str, tuple[str, ...]] = {}
    for text, prior in priors.items():
        if not isinstance(prior, (str, TermPrior)):
            raise ValueError(
                f"priors must hold priors such as amagold.priors.normal(0, 1), got {prior!r} for "
                f"{text!r}"
            )
        if text != ALL_OTHERS:
            found[text] = names_in(text, known)
    named = [name for names in found.values() for name in names]
    for name in named:
        if name not in known:
            told = ", ".join(map(repr, known[:20]))
            raise ValueError(f"priors must speak of the terms {told}, got {name!r}")
        if named.count(name) > 1:
            raise ValueError(f"priors must speak of each term once, got {name!r} twice")
    if ALL_OTHERS in priors:
        found[ALL_OTHERS] = tuple(name for name in terms if name not in named and name != INTERCEPT)
        if not found[ALL_OTHERS]:
            raise ValueError(
                f"priors must leave terms for {ALL_OTHERS!r}, but every one has its own; leave "
                "it out"
            )
    return [
        (found[text], parsed_prior(prior) if isinstance(prior, str) else prior)
        for text, prior in priors.items()
    ]


def names_in(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """A known name, or the names between commas, but for those within brackets or backticks."""
    if text in known:
        return (text,)
    names, depth, is_quoted = [""], 0, False
    for letter in text:
        is_quoted ^= letter == "`"
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not is_quoted:
            names.append("")
        else:
            names[-1] += letter
    return tuple(name.strip() for name in names)
