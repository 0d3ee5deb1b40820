"""The columns that a formula needs are there, each once."""

from collections.abc import Sequence


def check_columns(needed: Sequence[str] | None, known: Sequence[str], name: str = "table") -> None:
    """Raise where names are there twice, or one that is needed is not there."""
    if len(set(known)) < len(known):
        twice = next(column for column in known if list(known).count(column) > 1)
        raise ValueError(f"{name} must have a name for every column, but {twice!r} is there twice")
    stranger = next((column for column in needed or () if column not in known), None)
    if stranger is not None:
        some = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
        alone = "; is it parted by other signs than ',', ';', '|' or tabs?" * (len(known) == 1)
        raise ValueError(
            f"{name} must have all columns that the formula, weights and the like speak of, but "
            f"{stranger!r} is none: it has {some or 'no columns'}{alone}"
        )
