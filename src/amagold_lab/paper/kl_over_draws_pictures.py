"""Pictures of a divergence that falls with draws or with time."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from amagold.report._picture_style import QUIET, new_figure
from amagold_lab.paper.curves import curve_of_means, framed, name_ends
from amagold_lab.paper.experiment import Numbers
from amagold_lab.paper.figure3_convergence import METHODS, cost_of


def convergence(numbers: Numbers) -> Figure:
    """KL against draws, AMAGOLD and L2MC, with SGHMC beside."""
    cost = cost_of(numbers, "AMAGOLD")
    title = f"AMAGOLD needs {cost.slow_down:.2f} times L2MC's draws for the same divergence"
    rates = {method: numbers["methods"][method]["acceptance"] for method in METHODS}
    subtitle = (
        "Dist1, step size 0.15: KL of one chain's first draws, mean and range over "
        f"{numbers['num_chains']} chains. AMAGOLD accepts\n"
        f"{rates['AMAGOLD']:.0%} of its proposals ({numbers['predicted_acceptance']:.0%} "
        f"predicted), L2MC {rates['L2MC']:.1%}. "
        f"The paper's bound would allow {1 / numbers['bound']['gap_ratio']:.0f} times as many "
        "draws."
    )
    figure = new_figure(9.0, 5.2, title, subtitle)
    axes = figure.add_axes((0.1, 0.12, 0.76, 0.67))
    framed(axes, "draws of one chain")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for method in METHODS:
        curve_of_means(
            axes, numbers["iterations"], numbers["methods"][method]["kl"], method, markers=False
        )
    name_ends(
        axes, {method: float(np.mean(numbers["methods"][method]["kl"][-1])) for method in METHODS}
    )
    return figure


def runtime(numbers: Numbers) -> Figure:
    """KL against seconds, a panel for each density."""
    from amagold_lab.paper.appendix_runtime import METHODS, PROBLEMS, race

    races = {problem: race(numbers, problem) for problem in PROBLEMS}
    when = [found.crossing for found in races.values()]
    overtaken = all(seconds is not None for seconds in when)
    title = (
        "SGHMC leads at first and is overtaken by AMAGOLD"
        if overtaken
        else "AMAGOLD has not overtaken SGHMC"
    )
    more = " and ".join(f"{found.cost_ratio:.2f}" for found in races.values())
    subtitle = (
        "Step size 0.15: KL of one chain's first draws, mean and range over "
        f"{numbers['num_chains']} chains, against its seconds.\n"
        f"A draw of AMAGOLD takes {more} times as long as one of SGHMC."
    )
    figure = new_figure(10.0, 5.0, title, subtitle)
    grid = figure.add_gridspec(1, 2, left=0.085, right=0.89, bottom=0.12, top=0.74, wspace=0.45)
    for column, problem in enumerate(PROBLEMS):
        axes = figure.add_subplot(grid[0, column])
        framed(axes, "seconds", problem)
        if column:
            axes.set_ylabel("")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        for method in METHODS:
            found = numbers["methods"][method][problem]
            curve_of_means(
                axes,
                [found["seconds_per_draw"] * count for count in numbers["iterations"]],
                found["kl"],
                method,
                markers=False,
            )
        name_ends(
            axes,
            {
                method: float(np.mean(numbers["methods"][method][problem]["kl"][-1]))
                for method in METHODS
            },
        )
        if (crossing := when[column]) is not None:
            axes.axvline(crossing, color=QUIET, linewidth=0.8, linestyle=(0, (2, 3)))
            axes.text(
                crossing,
                0.98,
                f" {crossing:.2g} s",
                transform=axes.get_xaxis_transform(),
                fontsize=10,
                color=QUIET,
                va="top",
            )
    return figure
