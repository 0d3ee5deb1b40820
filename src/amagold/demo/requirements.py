"""What the demo needs beyond the library itself."""

import importlib


def check_matplotlib() -> None:
    """Raise unless pictures can be drawn."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        raise ValueError("the demo draws pictures with matplotlib, which is not installed; run: pip install 'amagold[plot]'") from None
