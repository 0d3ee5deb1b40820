"""Exact tests on a few examples whose bounds are wrong."""

import dataclasses


def smaller_bounds(test, factor):
    """Every bound divided by the factor, and fewer arrivals accordingly."""
    table = dataclasses.replace(
        test.table, weights=test.table.weights / factor, total=test.table.total / factor
    )
    return dataclasses.replace(test, table=table)


def fewer_arrivals(test, factor):
    """Bounds as they are, but not as many arrivals as they need."""
    table = dataclasses.replace(test.table, total=test.table.total / factor)
    return dataclasses.replace(test, table=table)
