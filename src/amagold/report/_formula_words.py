"""A formula as people would say it."""

import re
from collections.abc import Sequence

CATEGORICAL = re.compile(r"C\((?P<inner>[^,()]+)(,.*)?\)")
CALLED = re.compile(r"(?P<name>[\w.]+)\((?P<inner>.*)\)")
FUNCTIONS = {
    "log": "the logarithm of",
    "np.log": "the logarithm of",
    "log10": "the logarithm of",
    "log2": "the binary logarithm of",
    "np.log1p": "the logarithm of one plus",
    "sqrt": "the root of",
    "np.sqrt": "the root of",
    "exp": "the exponential of",
    "scale": "the standardised",
    "center": "the centred",
    "bs": "a smooth curve of",
    "cr": "a smooth curve of",
    "cc": "a cyclic curve of",
    "cs": "a smooth curve of",
    "poly": "a polynomial of",
}


def term_words(term: str) -> str:
    """`C(month)` is month, `a:b` how a and b go together; what is not known stays as it is."""
    parts = _split(term, ":")
    if len(parts) > 1:
        return " together with ".join(map(term_words, parts))
    term = term.strip().strip("`")
    found = CATEGORICAL.fullmatch(term)
    if found:
        return found["inner"].strip().strip("`")
    called = CALLED.fullmatch(term)
    if called and called["name"] in FUNCTIONS:
        return f"{FUNCTIONS[called['name']]} {term_words(_split(called['inner'], ',')[0])}"
    return term


def listed(words: Sequence[str], most: int = 8) -> str:
    """a, b and c; of very many the first ones."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _split(text: str, sign: str) -> list[str]:
    """At the signs that are within no brackets."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == sign and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
