"""Freed memory goes back to the system, where it can be asked to take it."""

import sys

import numpy as np
import pytest

from amagold.core import freed_memory
from amagold.core.freed_memory import give_back

MEGABYTE = 2**20


def resident_bytes():
    import os

    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or freed_memory._trim() is None,
    reason="needs glibc and /proc",
)
def test_what_was_freed_between_what_stays_goes_back():
    # small enough for the heap, where every second piece keeps the others from going by themselves
    pieces = [np.ones(64 * 1024, np.uint8) for _ in range(2048)]
    kept = pieces[::2]
    del pieces
    before = resident_bytes()
    give_back()
    assert before - resident_bytes() > 32 * MEGABYTE
    assert all(piece[0] == 1 for piece in kept)


def test_systems_that_cannot_be_asked_are_left_alone(monkeypatch):
    monkeypatch.setattr(freed_memory.sys, "platform", "darwin")
    freed_memory._trim.cache_clear()
    try:
        assert freed_memory._trim() is None
        give_back()
    finally:
        freed_memory._trim.cache_clear()
