"""What a figure or table of the paper is made of: settings, a claim, numbers, checks of the claim,
pictures, tables.

Each experiment is a module of this package with a constant `EXPERIMENT`. To add one, write that
module and add a row to `experiment_list.py`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from amagold_lab.paper.finished_parts import FinishedParts

PRESETS = ("tiny", "quick", "paper")  # seconds, for tests; minutes; the paper's own sizes

# as JSON holds it; what comes of a method's draws is in numbers["methods"][method]
Numbers = dict[str, Any]


class UnavailableError(ValueError):
    """The experiment cannot be run here, for a reason that the message gives with its remedy, such
    as data that cannot be had.
    """


class Check(NamedTuple):
    """One comparison that the claim rests on."""

    sentence: str  # what is compared, in words with the figures' meaning but not their values
    value: float
    relation: str  # "<=" or ">="
    bound: float

    @property
    def holds(self) -> bool:
        # a NaN fails either way
        return bool(self.value <= self.bound if self.relation == "<=" else self.value >= self.bound)


class ResultTable(NamedTuple):
    """Our numbers, with the paper's beside them where it prints any."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Experiment(NamedTuple):
    """One figure or table.

    `compute` gets the settings of a preset and `FinishedParts`, which keeps them on disk. `checks`,
    `pictures` and `tables` see nothing but the numbers, so that they can be made again from a file,
    and with one method's draws in the place of another's.
    """

    name: str  # on the command line
    title: str  # where it is in the paper, and what it shows
    claim: str  # one sentence
    # what the paper leaves open, where the authors' code differs, what is done here
    choices: tuple[str, ...]
    settings: Mapping[str, Any]  # a NamedTuple for each preset
    duration: Mapping[str, str]  # how long each preset takes, in words
    num_parts: Callable[[Any], int]  # how many parts `compute` asks `FinishedParts` for
    compute: Callable[[Any, "FinishedParts"], Numbers]
    checks: Callable[[Numbers], list[Check]]
    # a name for each, made part of the file's
    pictures: Callable[[Numbers], Mapping[str, "Figure"]]
    tables: Callable[[Numbers], list[ResultTable]]


class Verdict(NamedTuple):
    """Whether the claim holds, by its checks, and whether the checks could have said no."""

    checks: list[Check]
    # the same checks with SGHMC's draws in AMAGOLD's place: one of them must fail
    control: list[Check]

    @property
    def word(self) -> str:
        if not all(check.holds for check in self.checks):
            return "does not hold"
        return "holds" if not all(check.holds for check in self.control) else "cannot be told"


def judge(experiment: Experiment, numbers: Numbers) -> Verdict:
    """The verdict on an experiment's claim, from its numbers alone."""
    return Verdict(experiment.checks(numbers), experiment.checks(impostor(numbers)))


def impostor(numbers: Numbers) -> Numbers:
    """The numbers that would have come out had SGHMC's draws been passed as AMAGOLD's."""
    methods = numbers["methods"]
    return numbers | {"methods": methods | {"AMAGOLD": methods["SGHMC"]}}
