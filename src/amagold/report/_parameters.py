"""What the draws say of every parameter, by its term and level."""

import itertools
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from amagold.core.progress import show_steps

INTERVAL, INNER = 0.9, 0.5  # shares of the draws between the ends of the intervals
MOST_PARAMETERS = 20_000  # of one variable, above which some are looked at
MOST_EFFECTS = 1_000  # of levels of a group, likewise: a section of their own tells of all
FEW_PARAMETERS = 500  # as many then
AT_ONCE = 100  # places along an axis, between two steps of a bar
MOST_VALUES = 4 * 10**7  # in memory at a time


class Parameter(NamedTuple):
    """One number of the model, and what is known of it."""

    term: str
    level: str | None  # None: the term is one number
    mean: float
    sd: float
    lower: float
    inner_lower: float
    inner_upper: float
    upper: float
    error: float  # of the mean, by Monte Carlo
    share_above: float  # of the draws that are above zero
    ess_bulk: float
    ess_tail: float
    r_hat: float

    @property
    def name(self) -> str:
        return self.term if self.level is None else f"{self.term}[{self.level}]"

    @property
    def clearance(self) -> float:
        """How far the interval stays away from zero; negative where zero is within it."""
        return max(self.lower, -self.upper)


def parameters_of(run: Any, effects: Collection[str] = ()) -> dict[str, list[Parameter]]:
    """The parameters of every variable of the posterior; of `effects` of many levels some."""
    variables = [
        some_of(variable, MOST_EFFECTS if name in effects else MOST_PARAMETERS)
        for name, variable in run.posterior.items()
        if variable.size
    ]
    parts = [part for variable in variables for part in _parts(variable)]
    found: dict[str, list[Parameter]] = {}
    with show_steps("looking at the draws") as report:
        for number, part in enumerate(parts):
            found.setdefault(str(part.name), []).extend(_of_part(part))
            report(number + 1, len(parts))
    return found


def _parts(variable: Any) -> Iterator[Any]:
    """The variable, some places along its first axis at a time."""
    if variable.ndim == 2:
        yield variable
        return
    axis = variable.dims[2]
    for start in range(0, variable.sizes[axis], AT_ONCE):
        yield variable.isel({axis: slice(start, start + AT_ONCE)})


def _of_part(variable: Any) -> list[Parameter]:
    import xarray

    from amagold.sampling._summary import summarise

    tree = xarray.DataTree.from_dict({"posterior": variable.to_dataset(name="part")})
    options: dict[str, Any] = {"fmt": "xarray", "round_to": "none", "ci_kind": "eti"}
    wide = summarise(tree, ci_prob=INTERVAL, **options)[0]["part"]
    inner = summarise(tree, ci_prob=INNER, kind="stats", **options)[0]["part"]
    ends = [f"eti{100 * share:.0f}" for share in (INTERVAL, INNER)]
    columns = [
        *(_numbers(wide, word) for word in ("mean", "sd", f"{ends[0]}_lb")),
        *(_numbers(inner, f"{ends[1]}_{end}") for end in ("lb", "ub")),
        *(_numbers(wide, word) for word in (f"{ends[0]}_ub", "mcse_mean")),
        _shares_above_zero(variable),
        *(_numbers(wide, word) for word in ("ess_bulk", "ess_tail", "r_hat")),
    ]
    levels = _levels(variable)
    return [
        Parameter(str(variable.name), level, *numbers)
        for level, *numbers in zip(levels, *columns, strict=True)
    ]


def some_of(variable: Any, most: int = MOST_PARAMETERS) -> Any:
    """All of the variable, or of very many parameters some that are evenly apart."""
    bare = [axis for axis in variable.dims[2:] if axis not in variable.coords]
    # numbers that stay with their places
    variable = variable.assign_coords({axis: np.arange(variable.sizes[axis]) for axis in bare})
    count = int(np.prod(variable.shape[2:], dtype=np.int64))
    if count <= most:
        return variable
    # along every axis the same share, so that there are so many in all
    share = (FEW_PARAMETERS / count) ** (1.0 / len(variable.dims[2:]))
    picks = {
        axis: np.unique(np.linspace(0, length - 1, max(1, int(share * length))).astype(int))
        for axis, length in zip(variable.dims[2:], variable.shape[2:], strict=True)
    }
    return variable.isel(picks)


def _levels(variable: Any) -> list[str | None]:
    """What the places along the axes are called, in C order."""
    axes = [[str(value) for value in variable[axis].values] for axis in variable.dims[2:]]
    if not axes:
        return [None]
    return [", ".join(names) for names in itertools.product(*axes)]


def _shares_above_zero(variable: Any) -> list[float]:
    stride = max(1, variable.size // MOST_VALUES)
    draws = np.asarray(variable.isel(draw=slice(None, None, stride)))
    return np.mean(draws > 0.0, axis=(0, 1)).reshape(-1).tolist()


def _numbers(summary: Any, word: str) -> list[float]:
    return np.asarray(summary.sel(summary=word), np.float64).reshape(-1).tolist()
