"""`amagold compare RUN RUN`: which run expects new rows best."""

from pathlib import Path

from amagold.core.printable import printable


def run(paths: list[str], table: str | None = None) -> None:
    """Print the runs, the best first.

    Args:
      paths: folders of runs of `amagold fit`.
      table: the file that was fitted, where the runs did not keep its rows.
    """
    from amagold.sampling._load import load
    from amagold.tables._compare import compare

    names = [Path(path).name for path in paths]
    is_clear = len(set(names)) == len(names)
    runs = [load(path) for path in paths]
    found = compare(runs, names if is_clear else paths, tables=table)
    print(printable(found.round(2).to_string()))
