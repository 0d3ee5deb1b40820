"""What stands for the rest in `make test`; the rest runs in `make test-slow`."""

import pytest


def some_of(values, *chosen):
    """Every value as a parameter of a test, the ones that were not chosen marked slow."""
    values = list(values)
    assert chosen
    assert not [value for value in chosen if value not in values], (
        "a name that is chosen must exist"
    )
    return [
        value if value in chosen else pytest.param(*_as_tuple(value), marks=pytest.mark.slow)
        for value in values
    ]


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)
