"""Every command, its options, and the module whose `run(**options)` does the work. Add a command by
adding a row.
"""

from typing import Any, NamedTuple


class Option(NamedTuple):
    """Arguments for argparse's add_argument."""

    names: tuple[str, ...]
    settings: dict[str, Any]


class Command(NamedTuple):
    """One word of the command line."""

    name: str
    summary: str
    module: str
    options: tuple[Option, ...]


COMMANDS = (
    Command(
        "demo",
        "Sample the paper's double well and a real table, and draw the pictures.",
        "amagold.demo",
        (
            Option(
                ("--output",),
                {
                    "default": "amagold-demo",
                    "help": "folder for the pictures (default: amagold-demo)",
                },
            ),
            Option(
                ("--seed",),
                {"type": int, "default": 0, "help": "seed of all random numbers (default: 0)"},
            ),
        ),
    ),
    Command(
        "resume",
        "Go on with a stored run where it stopped.",
        "amagold.cli.resume",
        (
            Option(
                ("path",),
                {"metavar": "RUN", "help": "the folder that amagold.sample(..., store=RUN) made"},
            ),
            Option(
                ("--target",),
                {
                    "metavar": "MODULE:NAME",
                    "help": "what the run was begun with; runs of this library's own models need "
                    "none",
                },
            ),
            Option(
                ("--max-time",),
                {"type": float, "metavar": "SECONDS", "help": "stop after this time"},
            ),
        ),
    ),
    Command(
        "report",
        "Print what a stored run found and how it went.",
        "amagold.cli.report",
        (
            Option(
                ("path",),
                {"metavar": "RUN", "help": "the folder of the run; it may still be going on"},
            ),
            Option(
                ("--picture",),
                {"metavar": "FILE", "help": "also draw the run at a glance into this PNG file"},
            ),
        ),
    ),
    Command(
        "reproduce",
        "Run the paper's figures and tables and judge its claims.",
        "amagold.paper.reproduce",
        (
            Option(
                ("names",),
                {
                    "nargs": "*",
                    "metavar": "NAME",
                    "help": "double-well, dist, convergence, runtime, logistic, acceptance, bnn, "
                    "uncertainty, or all (default: all)",
                },
            ),
            Option(
                ("--preset",),
                {
                    "choices": ("quick", "paper", "tiny"),
                    "default": "quick",
                    "help": "quick: at most ten minutes for all; paper: the paper's own sizes, "
                    "hours, goes on where it stopped; "
                    "tiny: a dry run, too small for verdicts (default: quick)",
                },
            ),
            Option(
                ("--output",),
                {
                    "default": "amagold-paper",
                    "help": "folder for report and figures (default: amagold-paper)",
                },
            ),
            Option(
                ("--seed",),
                {"type": int, "default": 0, "help": "seed of all random numbers (default: 0)"},
            ),
        ),
    ),
    Command(
        "bench",
        "Measure speed as ratios within one run.",
        "amagold.bench",
        (
            Option(
                ("--only",),
                {
                    "nargs": "*",
                    "default": None,
                    "metavar": "NAME",
                    "help": "run these benchmarks alone",
                },
            ),
            Option(
                ("--seconds",),
                {"type": float, "default": 1.0, "help": "time for each measurement (default: 1)"},
            ),
        ),
    ),
)
