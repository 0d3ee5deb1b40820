"""The command `amagold`: the library's own words and the laboratory's.

Nothing here imports JAX until a command runs, so that help is instant.
"""

import sys

from amagold.cli import COMMANDS, Command, Option, main as run_command

LABORATORY = (
    Command(
        "demo",
        "Sample the paper's double well and a real table, and draw the pictures.",
        "amagold_lab.demo",
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
        "reproduce",
        "Run the paper's figures and tables and judge its claims.",
        "amagold_lab.paper.reproduce",
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
        "amagold_lab.bench",
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


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_command(arguments, (*COMMANDS, *LABORATORY))


if __name__ == "__main__":
    sys.exit(main())
