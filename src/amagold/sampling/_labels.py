"""What draws can be called. A store that calls its draws anything else is not believed."""

import re
from typing import Any

MIXED = "mixed: resumed with another target"
# of an approximate test: its name, its error parameter, and what else it says of itself
APPROXIMATE = r"approximate \([a-z][\w ]*, [a-z][\w ]* [0-9][0-9.e+-]*(, [a-z][\w ]*)*\)"
PATTERN = re.compile(rf"exact|biased|{APPROXIMATE}|{MIXED}", re.ASCII)


def check_label(label: Any) -> None:
    """Raise unless it is a label of the contract of acceptance tests, or that of a spoilt run."""
    if not isinstance(label, str) or PATTERN.fullmatch(label) is None:
        raise ValueError(
            "label must be 'exact', 'biased', or 'approximate (NAME, PARAMETER NUMBER)' with the "
            "error "
            f"parameter of the test, got {label!r}; give the test one of these"
        )
