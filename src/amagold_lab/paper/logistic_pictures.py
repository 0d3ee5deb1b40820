"""Pictures of the logistic regressions: error against step size, error against seconds, acceptance
against step size.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from amagold.report._picture_style import COLOURS, HAIRLINE, INK, QUIET, TRUTH_FILL, new_figure
from amagold_lab.paper import appendix_acceptance
from amagold_lab.paper.curves import LINES, MARKERS, framed, name_ends
from amagold_lab.paper.experiment import Numbers
from amagold_lab.paper.logistic_chains import PAPERS_RANGE
from amagold_lab.paper.logistic_findings import (
    BOTH,
    METHODS,
    PLANNED,
    REASONABLE,
    draws_in_words,
    planned_in_words,
    ratios,
    speed_up,
    times,
)


def errors(numbers: Numbers) -> Figure:
    """A panel for each table."""
    found = list(ratios(numbers).values())
    told = "So few draws do not tell the errors of AMAGOLD and SGHMC apart"
    if found:
        least, most = f"{min(found):.2g}", f"{max(found):.2g}"
        told = (
            "Where SGHMC's bias is clear, its error is "
            f"{least if least == most else f'{least} to {most}'} times AMAGOLD's"
        )
    figure = new_figure(
        10.0,
        5.4,
        told,
        f"MSE of the posterior mean after {draws_in_words(numbers)} from 0; bars: standard error; "
        "hollow: accepts < 20%.\n"
        "Faint: the error that Monte Carlo alone would leave. Grey: the paper's step sizes, read "
        "as epsilon; read as its square they are "
        "0.001 to 0.07.",
    )
    grid = figure.add_gridspec(1, 2, left=0.08, right=0.9, bottom=0.115, top=0.755, wspace=0.42)
    for column, table in enumerate(numbers["tables"]):
        axes = figure.add_subplot(grid[0, column])
        framed(
            axes,
            "step size",
            f"{table.capitalize()}, batches of {numbers['problems'][table]['batch_size']}",
            "MSE of the posterior mean",
        )
        if column:
            axes.set_ylabel("")
        _shade(axes, numbers["step_sizes"])
        start = numbers["problems"][table]["start_error"]
        axes.axhline(start, color=QUIET, linewidth=0.9, linestyle=":")
        axes.text(
            numbers["step_sizes"][0],
            start * 1.15,
            "error of staying at 0",
            fontsize=9,
            color=QUIET,
            va="bottom",
        )
        for method in BOTH:
            _sweep(axes, numbers["step_sizes"], numbers["methods"][method]["sweep"][table], method)
        lowest, highest = (
            pick(
                row["error"]
                for method in BOTH
                for row in numbers["methods"][method]["sweep"][table]
            )
            for pick in (min, max)
        )
        axes.set_ylim(0.3 * lowest, 4.0 * max(highest, start))
        name_ends(
            axes,
            {method: numbers["methods"][method]["sweep"][table][-1]["error"] for method in BOTH},
        )
    return figure


def _sweep(axes: Axes, steps: list[float], rows: list[dict[str, float]], method: str) -> None:
    colour = COLOURS[method]
    error, spread = (np.array([row[word] for row in rows]) for word in ("error", "spread"))
    noise = np.array([row["noise"] for row in rows])
    # chains that never moved have no scatter to show
    spreads = np.array([row["widening"] >= 0.8 for row in rows])
    axes.plot(
        np.array(steps)[spreads],
        noise[spreads],
        color=colour,
        linewidth=1.4,
        alpha=0.5,
        linestyle=(0, (1, 1.5)),
    )
    axes.plot(steps, error, color=colour, linewidth=2.0)
    axes.vlines(
        steps, np.maximum(error - spread, 0.3 * error), error + spread, color=colour, linewidth=1.6
    )
    fill = [colour if row["acceptance"] >= REASONABLE else "white" for row in rows]
    axes.scatter(
        steps,
        error,
        s=36,
        marker=MARKERS[method],
        c=fill,
        edgecolors=colour,
        linewidths=1.5,
        zorder=3,
    )


def _shade(axes: Axes, steps: list[float]) -> None:
    """Step sizes on a logarithmic axis, with the paper's range behind."""
    axes.set_xscale("log")
    axes.axvspan(
        max(PAPERS_RANGE[0], steps[0] / 1.6),
        PAPERS_RANGE[1],
        color=TRUTH_FILL,
        alpha=0.45,
        linewidth=0,
        zorder=0,
    )
    axes.set_xlim(steps[0] / 1.6, steps[-1] * 1.6)
    axes.xaxis.set_major_locator(LogLocator(10.0, numticks=10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def seconds(numbers: Numbers) -> Figure:
    """A row for each step size, a panel for each table."""
    first, *others = (at["step_size"] for at in numbers["races"])
    gains = {
        step: " and ".join(f"{speed_up(numbers, table, step):.2g}" for table in numbers["tables"])
        for step in (first, *others)
    }
    beyond = "".join(
        f" At {step:g}, its value if the paper's 1e-4 is the square of epsilon, AMAGOLD is "
        f"{gains[step]} times as fast."
        for step in others
    )
    height = 1.9 + 3.0 * len(numbers["races"])
    figure = new_figure(
        10.0,
        height,
        f"At step size {first:g} AMAGOLD is {gains[first]} times as fast as full batches",
        "MSE of one chain's running mean from 0, averaged over chains side by side, against "
        "processor seconds. Times are for the\n"
        "same error, on "
        f"{' and '.join(table.capitalize() for table in numbers['tables'])}.{beyond}\n"
        "Dotted: full-batch HMC as amagold.sample tunes it for itself, with its warm-up; it "
        f"{planned_in_words(numbers)}.",
    )
    margins = {"left": 0.085, "right": 0.885, "bottom": 0.6 / height, "top": 1.0 - 1.55 / height}
    grid = figure.add_gridspec(len(numbers["races"]), 2, wspace=0.5, hspace=0.36, **margins)
    for row, at in enumerate(numbers["races"]):
        for column, table in enumerate(numbers["tables"]):
            axes = figure.add_subplot(grid[row, column])
            framed(
                axes,
                "processor seconds",
                f"{table.capitalize()}, step size {at['step_size']:g}",
                "" if column else "MSE of the posterior mean",
            )
            if row + 1 < len(numbers["races"]):
                axes.set_xlabel("")
            _race(axes, numbers, table, at["step_size"])
    return figure


def _race(axes: Axes, numbers: Numbers, table: str, step: float) -> None:
    races = {method: numbers["methods"][method]["race"][table][f"{step:g}"] for method in METHODS}
    axes.set_xscale("log")
    planned = numbers["methods"][PLANNED]["race"][table]
    axes.plot(planned["seconds"], planned["error"], color=INK, linewidth=1.4, linestyle=":")
    for method, found in races.items():
        axes.plot(
            found["seconds"],
            found["error"],
            color=COLOURS[method],
            linewidth=2.0,
            linestyle=LINES[method],
        )
    axes.axhline(times(numbers, table, step)[0], color=HAIRLINE, linewidth=1.0, zorder=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    ends = [found["error"][-1] for found in races.values()]
    bottom, top = (
        min(0.25 * min(ends), 0.5 * planned["error"][0]),
        2.0 * max(found["error"][0] for found in races.values()),
    )
    axes.set_ylim(bottom, top)
    if top < 100.0 * bottom:
        axes.yaxis.set_major_locator(LogLocator(10.0, (1.0, 2.0, 5.0)))
    # where the tuned run leaves the panel
    at = next(
        (at for at, error in enumerate(planned["error"]) if error < 3.0 * bottom),
        len(planned["error"]) - 1,
    )
    place = (planned["seconds"][at], max(planned["error"][at], bottom * (top / bottom) ** 0.12))
    axes.annotate(
        "tuned\nHMC",
        place,
        (-12, 0),
        textcoords="offset points",
        fontsize=9.5,
        color=INK,
        ha="right",
        va="center",
    )
    name_ends(axes, {method: found["error"][-1] for method, found in races.items()}, least=0.1)


def acceptance(numbers: Numbers) -> Figure:
    """One panel, with the squares of the step sizes on top."""
    rates, steps = numbers["methods"]["AMAGOLD"]["acceptance"], numbers["step_sizes"]
    end = appendix_acceptance.last_in_range(numbers)
    off = np.abs(np.array(rates) - np.array(numbers["predicted"])).max()
    figure = new_figure(
        9.0,
        4.9,
        f"AMAGOLD accepts {rates[0]:.0%} at step size {steps[0]:g}, {rates[end]:.0%} at "
        f"{steps[end]:g}, {rates[-1]:.0%} at {steps[-1]:g}",
        f"Heart, batches of {appendix_acceptance.BATCH_SIZE}, T = 10. Grey: the paper's step "
        "sizes, read as epsilon; read as its square they "
        "are "
        "0.001 to 0.07.\n"
        f"The prediction from the gradients' variance alone is never off by more than {off:.2f}.",
    )
    axes = figure.add_axes((0.085, 0.13, 0.785, 0.6))
    framed(axes, "step size epsilon", "", "acceptance")
    axes.set_yscale("linear")
    _shade(axes, steps)
    axes.plot(
        steps, numbers["methods"]["SGHMC"]["acceptance"], color=COLOURS["SGHMC"], linewidth=1.4
    )
    axes.text(
        steps[-1],
        1.03,
        "SGHMC has no test",
        color=COLOURS["SGHMC"],
        fontsize=10,
        ha="right",
        va="bottom",
    )
    axes.plot(steps, numbers["predicted"], color=INK, linewidth=1.4, linestyle=":")
    axes.plot(steps, rates, "o", color=COLOURS["AMAGOLD"], markersize=7)
    axes.set(ylim=(-0.02, 1.12), yticks=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    middle = int(np.argmin(np.abs(np.array(rates) - 0.5)))
    axes.annotate(
        "AMAGOLD",
        (steps[middle], rates[middle]),
        (12, 8),
        textcoords="offset points",
        color=COLOURS["AMAGOLD"],
        fontsize=11,
        fontweight="bold",
    )
    axes.annotate(
        "predicted",
        (steps[middle], numbers["predicted"][middle]),
        (-14, -22),
        textcoords="offset points",
        color=INK,
        fontsize=10,
        ha="right",
    )
    return figure
