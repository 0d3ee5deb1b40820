"""Random effects of a formula, (1 + x | g), as texts: parted from its fixed terms, which formulaic
reads, and their groups taken apart.
"""

import re
from typing import NamedTuple

from amagold.tables._formula_check import QUOTED

# names in backticks and texts in quotes, whose signs mean nothing
HIDDEN = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
FACTOR = re.compile(r"C\((.*)\)", re.DOTALL)
MOST_GROUPS = 20  # (... | ...) of a formula
DEEPEST = 5  # columns that make one group


class GroupText(NamedTuple):
    """What varies by group, and the columns whose values together are the group."""

    left: str  # "1 + x"
    columns: tuple[str, ...]


def parted(right: str) -> tuple[str, tuple[GroupText, ...]]:
    """The fixed terms of a formula's right side, and its random effects."""
    hidden = HIDDEN.sub(lambda found: "\0" * len(found[0]), right)
    if "|" not in hidden:
        return right, ()
    spans = _brackets(hidden)
    kept, found, end = "", [], 0
    for start, stop in spans:
        if "|" not in hidden[start:stop]:
            continue
        _check_bars(right[start:stop], hidden[start:stop])
        _check_alone(hidden, start, stop, right)
        bar = start + hidden[start:stop].index("|")
        left, grouping = right[start + 1 : bar].strip(), right[bar + 1 : stop - 1].strip()
        if not left or left == ".":
            raise ValueError(
                f"formula must say what varies by group, but {right[start:stop]!r} has nothing "
                "before '|'; write (1 | g) for an intercept"
            )
        found += [GroupText(left, names) for names in _groups(grouping, right[start:stop])]
        if len(found) > MOST_GROUPS:
            raise ValueError(
                f"formula must have at most {MOST_GROUPS} random effects, got more; choose "
                "what matters"
            )
        kept += right[end:start].rstrip().removesuffix("+")
        end = stop
    if "|" in _without(hidden, spans):
        raise ValueError(
            "formula must hold random effects in brackets, as in 'late ~ distance + (1 | g)', but "
            "has a '|' outside of them, or a bracket that is not closed"
        )
    fixed = (kept + right[end:]).strip()
    fixed = fixed.removeprefix("+").strip() or fixed  # a sign that nothing follows is an error
    return (f"1 {fixed}" if fixed.startswith("-") else fixed or "1"), tuple(found)


def _brackets(hidden: str) -> list[tuple[int, int]]:
    """Where the outermost brackets that are no function's begin and end."""
    found, depth, start = [], 0, 0
    for place, sign in enumerate(hidden):
        if sign in "([{":
            start = place if depth == 0 else start
            depth += 1
        elif sign in ")]}":
            depth -= 1
            is_call = start > 0 and (hidden[start - 1].isalnum() or hidden[start - 1] in "_.\0")
            if depth == 0 and hidden[start] == "(" and not is_call:
                found.append((start, place + 1))
    return found


def _without(hidden: str, spans: list[tuple[int, int]]) -> str:
    ends = [0, *(end for span in spans for end in span), len(hidden)]
    return " ".join(hidden[ends[at] : ends[at + 1]] for at in range(0, len(ends), 2))


def _check_bars(text: str, hidden: str) -> None:
    if "||" in hidden:
        raise ValueError(
            f"formula must not hold '||', as {text!r} does: write effects without correlation as "
            "(1 | g) + (0 + x | g)"
        )
    depth = 0
    for sign in hidden[: hidden.index("|")]:
        depth += (sign in "([{") - (sign in ")]}")
    if hidden.count("|") > 1 or depth != 1:
        raise ValueError(
            "formula must have one '|' in the brackets of a random effect, as in (1 + x | g), got "
            f"{text!r}"
        )


def _check_alone(hidden: str, start: int, stop: int, right: str) -> None:
    """Raise where a random effect is more than a summand."""
    before, after = hidden[:start].rstrip()[-1:], hidden[stop:].lstrip()[:1]
    if before not in ("", "+") or after not in ("", "+", "-"):
        raise ValueError(
            f"formula must add random effects to its terms, but {right[start:stop]!r} is "
            "multiplied, nested or taken away; write '+ (1 | g)', and what varies by group inside, "
            "as in (1 + x | g)"
        )


def _groups(grouping: str, text: str) -> list[tuple[str, ...]]:
    """The columns of each group: g/h is g, and h within g."""
    hidden = HIDDEN.sub(lambda found: "\0" * len(found[0]), grouping)
    if re.search(r"[+*^%~-]", hidden):
        raise ValueError(
            f"formula must group by columns, as in (1 | g), (1 | g:h) or (1 | g/h), got {text!r}; "
            "write each group in brackets of its own"
        )
    nested = [[_column(name, text) for name in _split(part, ":")] for part in _split(grouping, "/")]
    found = [
        tuple(dict.fromkeys(name for part in nested[: depth + 1] for name in part))
        for depth in range(len(nested))
    ]
    if len(found[-1]) > DEEPEST or len(found[-1]) < sum(map(len, nested)):
        raise ValueError(f"formula must group by at most {DEEPEST} different columns, got {text!r}")
    return found


def _split(text: str, sign: str) -> list[str]:
    """At signs that are not within a name."""
    hidden = HIDDEN.sub(lambda found: "\0" * len(found[0]), text)
    cuts = [-1, *(place for place, found in enumerate(hidden) if found == sign), len(text)]
    return [text[cuts[at] + 1 : cuts[at + 1]] for at in range(len(cuts) - 1)]


def _column(name: str, text: str) -> str:
    """`g` or `C(g)`: every value is a level in any case."""
    name = name.strip()
    called = FACTOR.fullmatch(name)
    name = (called[1] if called else name).strip()
    quoted = QUOTED.fullmatch(name)
    if quoted is None and not name.isidentifier():
        raise ValueError(
            f"formula must group by columns, as in (1 | g), (1 | g:h) or (1 | g/h), got {text!r}; "
            "make a column of it first"
        )
    return quoted[1] if quoted else name
