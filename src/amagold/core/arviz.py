"""ArviZ's statistics, also where Python was told to leave docstrings out (`python -OO`)."""

from typing import Any


def arviz_stats() -> Any:
    """The module `arviz_stats`, loaded when it is first needed because that takes a second."""
    import arviz_stats
    from arviz_stats.base import stats_utils

    if not stats_utils.make_ufunc.__doc__:
        # it adds to docstrings at every call, and fails where there are none
        stats_utils.update_docstring = lambda *arguments, **options: None
    return arviz_stats
