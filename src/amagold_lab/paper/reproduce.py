"""`amagold reproduce`: run the paper's figures and tables, judge its claims, write the report."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from amagold import __version__
from amagold.core.devices import use_all_cores
from amagold.report._part_progress import PartReport, show_progress
from amagold.report._result_files import make_folder, write_json, write_picture, write_text
from amagold_lab.paper.experiment import (
    PRESETS,
    Experiment,
    Numbers,
    UnavailableError,
    Verdict,
    judge,
)
from amagold_lab.paper.experiment_list import experiments_named
from amagold_lab.paper.finished_parts import FinishedParts, say_nothing
from amagold_lab.paper.paper_requirements import check_requirements


class ExperimentOutcome(NamedTuple):
    """What came of one experiment; without `numbers` and `verdict` where it could not be run."""

    experiment: Experiment
    settings: Any
    seconds: float = 0.0  # of computing, in this run or an earlier one
    numbers: Numbers | None = None
    verdict: Verdict | None = None
    pictures: tuple[str, ...] = ()  # file names
    reason: str = ""  # why it could not be run


def run(
    names: Sequence[str] = (),
    preset: str = "quick",
    output: str | Path = "amagold-paper",
    seed: int = 0,
) -> int:
    """Run experiments and write figures, numbers.json and report.html into the folder `output`; 1
    if a claim does not hold, else 0.

    The same command again goes on where it was interrupted, and takes finished parts from the
    folder.

    Args:
      names: experiments, or "all".
      preset: "quick" (minutes) or "paper" (the paper's own sizes).
      output: folder for the files; made if it is missing.
      seed: seed of all random numbers.
    """
    experiments = experiments_named(names)
    if preset not in PRESETS:
        raise ValueError(f"preset must be quick or paper, got {preset!r}")
    check_requirements()  # before the work, not after it
    folder = make_folder(output)
    use_all_cores()
    console = Console()
    outcomes = []
    for experiment in experiments:
        settings = experiment.settings[preset]
        console.print(
            f"[bold]{experiment.name}[/]  {experiment.title}  "
            f"[dim]({experiment.duration[preset]})[/]",
            highlight=False,
            soft_wrap=True,
        )
        with show_progress(console, experiment.num_parts(settings), lines=True) as say:
            outcome = reproduce(experiment, settings, folder, seed, say)
        outcomes.append(outcome)
        for line in _lines(outcome):
            console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    command = f"amagold reproduce {' '.join(names) or 'all'} --preset {preset}" + (
        f" --seed {seed}" if seed else ""
    )
    write(folder, outcomes, command, seed)
    console.print(
        f"Written to {folder}: report.html, numbers.json and the figures",
        soft_wrap=True,
        highlight=False,
    )
    return int(
        any(outcome.verdict is not None and outcome.verdict.word != "holds" for outcome in outcomes)
    )


def reproduce(
    experiment: Experiment,
    settings: Any,
    folder: Path,
    seed: int = 0,
    say: PartReport = say_nothing,
) -> ExperimentOutcome:
    """Compute one experiment, judge its claim and draw its pictures."""
    finished = FinishedParts(folder / "parts", experiment.name, seed, say)
    try:
        numbers = experiment.compute(settings, finished)
    except UnavailableError as reason:
        return ExperimentOutcome(experiment, settings, reason=str(reason))
    files = []
    for name, figure in experiment.pictures(numbers).items():
        files.append(f"{experiment.name}-{name}.png" if name else f"{experiment.name}.png")
        write_picture(folder / files[-1], figure)
    return ExperimentOutcome(
        experiment, settings, finished.seconds, numbers, judge(experiment, numbers), tuple(files)
    )


def write(folder: Path, outcomes: Sequence[ExperimentOutcome], command: str, seed: int) -> None:
    """numbers.json and report.html."""
    from amagold_lab.paper.page import render

    facts = {
        "command": command,
        "seed": seed,
        "version": __version__,
        "date": time.strftime("%Y-%m-%d"),
    }
    found = {outcome.experiment.name: _as_json(outcome) for outcome in outcomes}
    write_json(folder / "numbers.json", facts | {"items": found})
    write_text(folder / "report.html", render(folder, outcomes, facts))


def _as_json(outcome: ExperimentOutcome) -> dict[str, Any]:
    if outcome.verdict is None:
        return {"unavailable": outcome.reason}
    return {
        "claim": outcome.experiment.claim,
        "verdict": outcome.verdict.word,
        "checks": [check._asdict() | {"holds": check.holds} for check in outcome.verdict.checks],
        "control": [check._asdict() | {"holds": check.holds} for check in outcome.verdict.control],
        "seconds": round(outcome.seconds, 1),
        "settings": outcome.settings._asdict(),
        "pictures": list(outcome.pictures),
        "numbers": outcome.numbers,
    }


def _lines(outcome: ExperimentOutcome) -> list[str]:
    """The verdict in words."""
    if outcome.verdict is None:
        return [f"not run: {outcome.reason}"]
    lines = [f"{outcome.experiment.claim}", f"The claim {outcome.verdict.word}."]
    failed = [check for check in outcome.verdict.checks if not check.holds]
    return lines + [
        f"failed: {check.sentence}: {check.value:.4g}, should be {check.relation} {check.bound:.4g}"
        for check in failed
    ]
