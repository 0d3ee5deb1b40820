"""Priors as texts, such as "distance=normal(0, 1)": read, never evaluated."""

import ast

from amagold.priors._kinds import KINDS, TermPrior


def parsed_priors(texts: list[str]) -> dict[str, TermPrior]:
    """By the names of their terms, or of several: "x1, x2=horseshoe(0.1)", "*=normal(0, 1)"."""
    found: dict[str, TermPrior] = {}
    for text in texts:
        # the last sign: a term may hold some itself, as in C(month, levels=[1, 2])
        name, sign, prior = text.rpartition("=")
        while sign and not _is_call(prior):
            name, sign, rest = name.rpartition("=")
            prior = f"{rest}={prior}"
        if not sign or not name.strip():
            raise ValueError(
                f"prior must be TERM=KIND(NUMBERS), such as 'distance=normal(0, 1)', got {text!r}"
            )
        found[name.strip()] = parsed_prior(prior)
    return found


def parsed_prior(text: str) -> TermPrior:
    """`student_t(3, 0, scale=2.5)` and the like."""
    wrong = f"prior must be one of {', '.join(KINDS)} with its numbers, got {text.strip()!r}"
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(wrong) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(wrong)
    kind = call.func.id
    if kind not in KINDS or any(keyword.arg is None for keyword in call.keywords):
        raise ValueError(wrong)
    try:
        numbers = [ast.literal_eval(argument) for argument in call.args]
        named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        return KINDS[kind](*numbers, **named)
    except (TypeError, SyntaxError):
        raise ValueError(wrong) from None
    except ValueError as reason:
        said = str(reason)
        raise ValueError(f"{wrong}: {said}" if "must be" in said else wrong) from None


def _is_call(text: str) -> bool:
    try:
        return isinstance(ast.parse(text.strip(), mode="eval").body, ast.Call)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
