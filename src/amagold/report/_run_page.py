"""The report of a run: one HTML file with everything in it. No scripts, nothing fetched, and every
name from outside escaped.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any

from amagold.core.files import as_path
from amagold.core.optional_packages import required
from amagold.core.printable import printable
from amagold.core.progress import show_steps
from amagold.report._page_content import PARTS, PageContent
from amagold.report._result_files import write_text
from amagold.report._rounded_numbers import whole

TEMPLATE, STYLE = "run_page.html", "run_page.css"


def write_report(run: Any, path: str | Path, table: Any = None) -> Path:
    """Write the report to a file, which appears whole or not at all.

    Args:
      run: a run.
      path: the file, which ends in .html.
      table: the table that was fitted, for a loaded run that did not keep it.
    """
    place = checked_path(path)
    write_text(place, report_text(run, table))
    return place


def checked_path(path: Any, name: str = "path") -> Path:
    """The file to write; raises before the work begins where there would be no place for it."""
    place = as_path(name, path, "a file that ends in .html")
    if place.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{name} must be a file that ends in .html, got {str(path)!r}")
    folder = place.absolute().parent
    if not folder.is_dir() or place.is_dir():
        raise ValueError(
            f"{name} must be a file in a folder that exists, got {str(path)!r}; make the folder "
            "first"
        )
    required("jinja2", "report")
    return place


def report_text(run: Any, table: Any = None) -> str:
    """The whole page."""
    with show_steps("writing the report") as report:
        content = PageContent(run, table)
        for number, part in enumerate(PARTS):
            report(number, len(PARTS))
            getattr(content, part)
        return render(content)


def render(content: PageContent) -> str:
    """The page of what is known."""
    jinja2 = required("jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("amagold.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        # names may hold signs that turn the direction of a line around
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["whole"] = whole
    style = environment.loader.get_source(environment, STYLE)[0]
    seal = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template(TEMPLATE).render(page=content, style=style, style_seal=seal)
