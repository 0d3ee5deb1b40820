"""Some of many rows, drawn by how often each counts: every observation is as likely as another."""

import numpy as np


def chances(counts: np.ndarray, number: int) -> np.ndarray:
    """pi_i = min(1, c count_i) with c such that they add up to `number`: how likely each row is to
    be among so many.
    """
    if number >= len(counts):
        return np.ones(len(counts))
    is_sure = np.zeros(len(counts), bool)
    while True:
        found = (number - is_sure.sum()) * counts / counts[~is_sure].sum()
        more = (found >= 1.0) & ~is_sure
        if not more.any():
            return np.where(is_sure, 1.0, found)
        is_sure |= more


def drawn(expected: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """How often each row is drawn: what is expected of it, rounded up or down at random.

    Rows lie one after another in random order, each as long as what is expected of it, and are
    drawn where marks fall that are one apart (systematic sampling). Of rows alike every subset is
    as likely.
    """
    order = generator.permutation(len(expected))
    ends = np.cumsum(expected[order])
    marks = generator.random() + np.arange(round(ends[-1]))
    places = np.minimum(np.searchsorted(ends, marks, side="right"), len(order) - 1)
    return np.bincount(order[places], minlength=len(order))


def alike_rows(num_rows: int, number: int, generator: np.random.Generator) -> np.ndarray:
    """So many of rows that count alike, by their numbers; every subset is as likely."""
    if number >= num_rows:
        return np.arange(num_rows)
    # as above, without numbers of all rows
    return np.sort(generator.choice(num_rows, number, replace=False, shuffle=False))


def some_rows(
    counts: np.ndarray, number: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """So many rows by their numbers, and the chance that each had to be drawn: sums over rows are
    those of these, each divided by its chance (Horvitz and Thompson).
    """
    likely = chances(counts, number)
    if number >= len(counts):
        return np.arange(len(counts)), likely
    numbers = np.flatnonzero(drawn(likely, generator))
    return numbers, likely[numbers]
