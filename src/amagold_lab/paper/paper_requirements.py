"""What the report needs beyond the library itself."""

import importlib.util

from amagold.report._requirements import check_matplotlib


def check_requirements() -> None:
    """Raise unless the figures and the page can be made."""
    check_matplotlib()
    if importlib.util.find_spec("jinja2") is None:
        raise ValueError(
            "the report is made with Jinja2, which is not installed; run: pip install "
            "'amagold[paper]'"
        )
