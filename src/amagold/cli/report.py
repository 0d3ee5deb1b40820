"""`amagold report RUN`: what a stored run found, and how it went."""

from pathlib import Path


def run(path: str, picture: str | None = None) -> None:
    """Print the plan, the warnings and the summary of a run; also of one that is still going on.

    Args:
      path: the folder of the run.
      picture: a PNG file to write the run at a glance to, or None.
    """
    from amagold.sampling.load import load

    if picture is not None and Path(picture).suffix != ".png":
        raise ValueError(f"picture must be a file that ends in .png, got {picture!r}")
    found = load(path)
    print(found.plan)
    print()
    print(found)
    if found.posterior.sizes["draw"]:
        print()
        print(found.summary().to_string())
    if picture is not None:
        found.plot().savefig(picture, dpi=200)
        print(f"\nWritten to {picture}")
