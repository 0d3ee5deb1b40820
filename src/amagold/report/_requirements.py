"""What pictures need beyond the library itself."""

import importlib


def check_matplotlib() -> None:
    """Raise unless pictures can be drawn."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise ValueError(
            "pictures are drawn with matplotlib, which is not installed; run: pip install "
            "'amagold[plot]'"
        ) from None
