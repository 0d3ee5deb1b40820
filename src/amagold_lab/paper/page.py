"""The report as one HTML file with everything in it: no scripts, no other files, nothing
fetched.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amagold_lab.paper.experiment import Check

if TYPE_CHECKING:
    from amagold_lab.paper.reproduce import ExperimentOutcome

TEMPLATE = "page.html"


def render(folder: Path, outcomes: "Sequence[ExperimentOutcome]", facts: Mapping[str, Any]) -> str:
    """The whole page; figures are read from the folder."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("amagold_lab.paper", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "duration": duration,
        "image": lambda name: _image(folder / name),
        "control": control,
    }
    return environment.get_template(TEMPLATE).render(outcomes=outcomes, facts=facts)


def number(value: float) -> str:
    """Three digits, short."""
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def control(checks: Sequence[Check]) -> str:
    """What the checks said when they should say no."""
    failed = sum(not check.holds for check in checks)
    return (
        f"{failed} of {len(checks)} checks fail"
        if failed
        else "every check passes, so they cannot tell the two apart"
    )


def _image(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
