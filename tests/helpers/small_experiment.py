"""An experiment that takes no time: what the report does with it is what it does with all."""

from typing import NamedTuple

from matplotlib.figure import Figure

from amagold_lab.paper.experiment import Check, Experiment, ResultTable, UnavailableError


class Settings(NamedTuple):
    num_samples: int
    is_available: bool = True


def compute(settings, finished):
    if not settings.is_available:
        raise UnavailableError("the data <cannot> be had; set AMAGOLD_DATA")
    errors = {"AMAGOLD": 0.01, "SGHMC": 0.5}
    return {
        "methods": {
            name: finished.part(
                name, {"num_samples": settings.num_samples}, lambda error=error: {"error": error}
            )
            for name, error in errors.items()
        }
    }


def checks(numbers):
    return [Check("AMAGOLD's error", numbers["methods"]["AMAGOLD"]["error"], "<=", 0.1)]


def pictures(numbers):
    figure = Figure(figsize=(2.0, 1.0))
    figure.text(0.5, 0.5, "errors")
    return {"": figure, "again": figure}


def tables(numbers):
    return [
        ResultTable(
            "Errors",
            ("method", "error"),
            [(name, f"{found['error']}") for name, found in numbers["methods"].items()],
        )
    ]


EXPERIMENT = Experiment(
    name="small",
    title="Figure 0: <errors> & more",
    claim="AMAGOLD's error is small.",
    choices=("The error is <made up>.",),
    settings={preset: Settings(10) for preset in ("tiny", "quick", "paper")},
    duration={preset: "no time" for preset in ("tiny", "quick", "paper")},
    num_parts=lambda settings: 2,
    compute=compute,
    checks=checks,
    pictures=pictures,
    tables=tables,
)
