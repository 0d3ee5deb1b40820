"""What the data cannot say, before anything is sampled: the prior alone decides it."""

from collections.abc import Callable

import numpy as np

from amagold.models._coded_rows import CodedTable
from amagold.tables._term_codes import INTERCEPT, Term

MOST_COEFFICIENTS = 1000  # whose sums of products are looked at
SAME = 1e-9  # of a direction's mean square, in units of the columns' own
FEW = 3  # names in a sentence
RARE, RARE_SHARE = 30, 1000  # rows of a class, and how many to one
ONE_BLOCK = 2**18  # rows


def doubts_about(
    coded: CodedTable,
    terms: tuple[Term, ...],
    classes: np.ndarray | None,
    trials: np.ndarray | None,
) -> tuple[str, ...]:
    """Sentences about what the table cannot say; `classes` are outcomes of 0 and 1, or successes
    of trials.
    """
    found = collinear_terms(coded, terms)
    if classes is not None:
        has_zero = classes < (1.0 if trials is None else trials)
        found += separated_terms(coded, terms, classes > 0, has_zero)
        found += rare_class(classes) if trials is None else []
    return tuple(found)


def collinear_terms(coded: CodedTable, terms: tuple[Term, ...]) -> list[str]:
    """Directions in which all rows are the same: differences that no row shows."""
    width = len(coded.names)
    has_intercept = any(term.name == INTERCEPT for term in terms)
    if not 1 < width + has_intercept <= MOST_COEFFICIENTS:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        gram = _gram(coded, has_intercept)
    if not np.isfinite(gram).all():  # numbers that are too wide are refused with the model
        return []
    lengths = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    scaled = gram / lengths / lengths[:, None]
    if _is_above(scaled, SAME):
        return []
    values, vectors = np.linalg.eigh(scaled)
    idle = vectors[:, values < SAME]
    if not idle.shape[1]:
        return []
    places = set(np.flatnonzero((np.abs(idle) > 1e-3).any(axis=1)).tolist())
    named = [term.name for term in terms if places & set(term.places)]
    told = ", ".join(map(repr, named[:FEW])) + (" and others" if len(named) > FEW else "")
    number = idle.shape[1]
    many = "a combination" if number == 1 else f"{number} combinations"
    return [
        f"Collinear terms: {many} of the coefficients of {told} makes no difference to any row; "
        "only the prior tells them apart, and only what they say together is known from the data. "
        "Leave one out, or read their sums."
    ]


def rare_class(observed: np.ndarray) -> list[str]:
    """A class of a few rows among many, which parts of the data hardly ever hold."""
    ones = int(np.sum(observed > 0))
    few = min(ones, len(observed) - ones)
    if few >= RARE or few * RARE_SHARE >= len(observed):
        return []
    return [
        f"Rare outcome: {few:,} of {len(observed):,} rows have it; a part of the rows hardly ever "
        "holds one, so that plans on parts may mix slowly: trust the draws only where R-hat is "
        "near 1."
    ]


def light_weights(weights: np.ndarray | None, num_coefficients: int) -> list[str]:
    """Weights that were divided by their sum, as surveys have them: the rows count as one."""
    total = np.inf if weights is None else float(weights.sum())
    if total >= num_coefficients:
        return []
    return [
        f"Light weights: they add up to {total:.3g}, so that all rows together count as so many, "
        f"for {num_coefficients:,} coefficients; the priors say most. Give how often each row "
        "counts, such as weights whose mean is 1."
    ]


def separated_terms(
    coded: CodedTable, terms: tuple[Term, ...], has_one: np.ndarray, has_zero: np.ndarray
) -> list[str]:
    """Levels and numbers that one class alone has: the likelihood has no maximum there. A row of
    several trials may have both.
    """
    names = {place: term.name for term in terms for place in term.places}
    first = int(any(term.name == INTERCEPT for term in terms))
    ranges, counts = _by_class(coded, has_zero, has_one)
    (low, high), (low_of_ones, high_of_ones) = ranges
    apart = (high < low_of_ones) | (high_of_ones < low)
    known = np.isfinite(high) & np.isfinite(high_of_ones)  # both classes have a row
    found = [names[first + place] for place in np.flatnonzero(apart & known).tolist()]
    found += _levels_of(coded, counts, lambda zeros, ones: (ones > 0) != (zeros > 0))
    return _separation(found)


def levels_without_events(coded: CodedTable, counts: np.ndarray) -> list[str]:
    """Levels whose counts are all zero: the likelihood rises for ever as their rate falls."""
    _, of_levels = _by_class(coded, counts == 0, counts > 0)
    odd = _levels_of(coded, of_levels, lambda zeros, some: (some == 0) & (zeros > 0))
    return _separation(odd)


def _levels_of(
    coded: CodedTable,
    counts: list[np.ndarray],
    is_odd: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[str]:
    """Names of levels that are odd by how many rows of each class they have."""
    found: list[str] = []
    start = coded.numbers.shape[1]
    for factor, size in enumerate(coded.sizes):
        if coded.multiplied_by[factor] is None:
            odd = np.flatnonzero(is_odd(*counts[factor]))
            found += [coded.names[start + level] for level in odd]
        start += size
    return found


def _separation(found: list[str]) -> list[str]:
    if not found:
        return []
    told = ", ".join(map(repr, found[:FEW])) + (
        f" and {len(found) - FEW:,} others" if len(found) > FEW else ""
    )
    return [
        f"Separation: the outcome is the same in all rows that {told} tells apart; how far such a "
        "coefficient lies from zero is held by its prior alone. Give a prior that you believe, or "
        "join the level with another."
    ]


def _by_class(
    coded: CodedTable, has_zero: np.ndarray, has_one: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Of each class the ends of every column of numbers, and how many rows every level has."""
    width = coded.numbers.shape[1]
    ranges = np.full((2, 2, width), np.inf)  # of a class, from and to
    ranges[:, 1] = -np.inf
    counts = [np.zeros((2, size), np.int64) for size in coded.sizes]
    for start in range(0, len(coded), ONE_BLOCK):
        part = slice(start, start + ONE_BLOCK)
        rows = coded.take(part)
        for place, chosen in enumerate((has_zero[part], has_one[part])):
            numbers = rows.numbers[chosen]
            ranges[place, 0] = np.minimum(ranges[place, 0], numbers.min(axis=0, initial=np.inf))
            ranges[place, 1] = np.maximum(ranges[place, 1], numbers.max(axis=0, initial=-np.inf))
            for factor, size in enumerate(coded.sizes):
                codes = rows.codes[chosen, factor]
                counts[factor][place] += np.bincount(codes[codes >= 0], minlength=size)
    return ranges, counts


def _gram(coded: CodedTable, has_intercept: bool) -> np.ndarray:
    """X'X of standardised numbers and of levels, a block of rows at a time."""
    parts = [slice(start, start + ONE_BLOCK) for start in range(0, len(coded), ONE_BLOCK)]
    means = coded.numbers.mean(axis=0) if has_intercept else np.zeros(coded.numbers.shape[1])
    squares = [((coded.numbers[rows] - means) ** 2).sum(axis=0) for rows in parts]
    scales = np.sqrt(np.sum(squares, axis=0) / len(coded))
    scales = np.where(scales > 0, scales, 1.0)
    width = len(coded.names) + has_intercept
    gram = np.zeros((width, width))
    for rows in parts:
        numbers = (coded.numbers[rows] - means) / scales
        gram += _gram_of(coded.take(rows), numbers, has_intercept)
    return gram


def _gram_of(coded: CodedTable, numbers: np.ndarray, has_intercept: bool) -> np.ndarray:
    """The same of some rows, factor by factor."""
    num_rows = len(coded)
    if has_intercept:
        numbers = np.concatenate([np.ones((num_rows, 1)), numbers], axis=1)
    blocks: list[tuple[int, np.ndarray | None, np.ndarray | None]] = []
    start = numbers.shape[1]
    for factor, size in enumerate(coded.sizes):
        codes = coded.codes[:, factor]
        place = coded.multiplied_by[factor]
        times = None if place is None else coded.multipliers[:, place].astype(np.float64)
        blocks.append((size, codes, times))
    width = start + sum(coded.sizes)
    gram = np.zeros((width, width))
    gram[:start, :start] = numbers.T @ numbers
    at = start
    for place, (size, codes, times) in enumerate(blocks):
        assert codes is not None
        here = slice(at, at + size)
        known = codes >= 0
        for column in range(start):
            weights = numbers[:, column] if times is None else numbers[:, column] * times
            gram[column, here] = np.bincount(codes[known], weights[known], minlength=size)
        gram[here, :start] = gram[:start, here].T
        to = at
        for size_there, codes_there, times_there in blocks[place:]:
            assert codes_there is not None
            both = known & (codes_there >= 0)
            joined = codes[both].astype(np.int64) * size_there + codes_there[both]
            weights = _product(times, times_there)
            sums = np.bincount(
                joined, None if weights is None else weights[both], minlength=size * size_there
            ).reshape(size, size_there)
            there = slice(to, to + size_there)
            gram[here, there], gram[there, here] = sums, sums.T
            to += size_there
        at += size
    return gram


def _is_above(matrix: np.ndarray, least: float) -> bool:
    """Whether all eigenvalues are, which is cheaper to know than they are."""
    try:
        np.linalg.cholesky(matrix - least * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def _product(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    if first is None or second is None:
        return first if second is None else second
    return first * second
