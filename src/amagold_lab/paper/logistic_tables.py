"""Tables of the logistic regressions: errors at each step size, and seconds to the same error."""

import math

from amagold_lab.paper.experiment import Numbers, ResultTable
from amagold_lab.paper.logistic_findings import (
    BOTH,
    METHODS,
    PLANNED,
    compared,
    draws_in_words,
    planned_in_words,
    times,
)


def tables(numbers: Numbers) -> list[ResultTable]:
    return [*(_errors(numbers, table) for table in numbers["tables"]), _seconds(numbers)]


def _errors(numbers: Numbers, table: str) -> ResultTable:
    problem = numbers["problems"][table]
    ours, theirs = (numbers["methods"][method]["sweep"][table] for method in BOTH)
    places = compared(numbers, table)
    rows = []
    for at, (step, exact, biased) in enumerate(
        zip(numbers["step_sizes"], ours, theirs, strict=True)
    ):
        cells = [
            f"{row['error']:.2g} ± {row['spread']:.1g} ({row['noise']:.1g})"
            for row in (exact, biased)
        ]
        widths = f"{exact['widening']:.3f}, {biased['widening']:.3f}"
        ratio = f"{biased['error'] / max(exact['error'], exact['noise']):.2g}" + (
            "" if at in places else " (not compared)"
        )
        rows.append((f"{step:g}", cells[0], f"{exact['acceptance']:.3f}", cells[1], ratio, widths))
    title = (
        f"{table.capitalize()} ({problem['examples']} x {problem['coefficients']}, batches of "
        f"{problem['batch_size']}): MSE of the "
        "posterior mean over "
        f"{draws_in_words(numbers)} ± its standard error, in brackets what the chains' scatter "
        "alone would make "
        "it. The truth comes "
        f"from {problem['truth_draws']:,} exact draws and has a Monte Carlo MSE of "
        f"{problem['truth_error']:.1g}. The paper prints no "
        "numbers."
    )
    header = (
        "step size",
        "AMAGOLD MSE",
        "accepts",
        "SGHMC MSE",
        "SGHMC / AMAGOLD or its expectation",
        "posterior sd over the true one: AMAGOLD, SGHMC",
    )
    return ResultTable(title, header, rows)


def _seconds(numbers: Numbers) -> ResultTable:
    rows = []
    for table in numbers["tables"]:
        for at in numbers["races"]:
            step = at["step_size"]
            level, needed = times(numbers, table, step)
            for method in METHODS:
                found = numbers["methods"][method]["race"][table][f"{step:g}"]
                cost = f"{1e6 * found['per_draw']:.1f} ({1e6 * found['wall_per_draw']:.1f})"
                rows.append(
                    (
                        table.capitalize(),
                        f"{step:g}",
                        method,
                        cost,
                        f"{found['acceptance']:.2f}",
                        f"{level:.2g}",
                        _clock(needed[method]),
                    )
                )
            found = numbers["methods"][PLANNED]["race"][table]
            rows.append(
                (
                    table.capitalize(),
                    "its own",
                    PLANNED,
                    "",
                    f"{found['acceptance']:.2f}",
                    f"{level:.2g}",
                    _clock(needed[PLANNED]),
                )
            )
    title = (
        "Processor seconds until the MSE of a chain's running mean, averaged over chains side by "
        "side from 0, comes down to an error that "
        "AMAGOLD, HMC and L2MC all "
        "reach; compilation not counted. Tuned HMC is amagold.sample as it plans itself, warm-up "
        "included, by the clock on the wall; "
        f"it {planned_in_words(numbers)}: tables this small need no batches."
    )
    header = (
        "table",
        "step size",
        "method",
        "microseconds per draw (wall)",
        "accepts",
        "MSE",
        "seconds to it",
    )
    return ResultTable(title, header, rows)


def _clock(seconds: float) -> str:
    return f"{seconds:.2g}" if math.isfinite(seconds) else "not reached"
