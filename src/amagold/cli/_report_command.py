"""`amagold report RUN`: what a stored run found, and how it went."""

from pathlib import Path

from amagold.core.files import as_path
from amagold.core.printable import printable
from amagold.report._result_files import write_picture


def run(
    path: str, picture: str | None = None, output: str | None = None, table: str | None = None
) -> None:
    """Print the plan, the warnings and the summary of a run; also of one that is still going on.

    Args:
      path: the folder of the run.
      picture: a PNG file to write the run at a glance to, or None.
      output: an HTML file to write the whole report to, or None.
      table: the table that was fitted, where the run did not keep it.
    """
    from amagold.report._run_page import checked_path
    from amagold.sampling._load import load

    if picture is not None:
        check_picture(picture)
    if output is not None:
        checked_path(output, "output")
    elif table is not None:
        raise ValueError("table must be given with --output, the page that needs it")
    found = load(path)
    print(printable(f"{found.plan}\n\n{found}"))
    if found.posterior.sizes["draw"]:
        print(printable(f"\n{found.summary().to_string()}"))
    if picture is not None:
        write_picture(Path(picture), found.plot())
        print(printable(f"\nWritten to {picture}"))
    if output is not None:
        print(printable(f"\nWritten to {found.report(output, table=table)}"))


def check_picture(picture: str) -> None:
    """Raise before the work begins when there would be no place for the picture."""
    path = as_path("picture", picture, "a file that ends in .png")
    if path.suffix != ".png":
        raise ValueError(f"picture must be a file that ends in .png, got {picture!r}")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(
            f"picture must lie in a folder that exists, but {str(folder)!r} does not; make it first"
        )
