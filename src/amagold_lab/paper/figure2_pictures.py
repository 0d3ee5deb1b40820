"""Pictures of Dist1 and Dist2: KL against step size for four methods, and the densities as they
came out.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amagold.report._picture_style import COLOURS, INK, new_figure
from amagold_lab.paper.curves import curve, framed, name_ends, rounded
from amagold_lab.paper.experiment import Numbers
from amagold_lab.paper.figure2_dist1_dist2 import METHODS, PROBLEMS, error_of, kl_of, num_draws
from amagold_lab.paper.synthetic_chains import cells_for

LEVELS = (0.1, 0.5, 0.9)  # parts of the highest true density, as contours


def divergences(numbers: Numbers) -> Figure:
    """A panel for each density."""
    steps = numbers["step_sizes"]
    ends = {
        problem: {method: float(kl_of(numbers, method, problem)[-1]) for method in METHODS}
        for problem in PROBLEMS
    }
    times = " and ".join(rounded(values["SGHMC"] / values["AMAGOLD"]) for values in ends.values())
    figure = new_figure(
        10.0,
        5.0,
        f"At step size {steps[-1]:g} SGHMC's divergence is {times} times AMAGOLD's",
        f"Symmetric KL of {num_draws(numbers):,} draws, with a band of two standard deviations. "
        "HMC and L2MC see exact gradients.\n"
        "Small steps are slow: there, all methods have Monte Carlo error left.",
    )
    grid = figure.add_gridspec(1, 2, left=0.085, right=0.89, bottom=0.12, top=0.74, wspace=0.45)
    for column, problem in enumerate(PROBLEMS):
        axes = figure.add_subplot(grid[0, column])
        framed(axes, "step size", problem)
        if column:
            axes.set_ylabel("")
        for method in METHODS:
            kl, error = kl_of(numbers, method, problem), error_of(numbers, method, problem)
            factor = np.exp(2.0 * error / kl)  # the same way up and down on a logarithmic scale
            curve(axes, steps, kl, kl / factor, kl * factor, method)
        axes.set_xticks(steps, [f"{step:g}" for step in steps])
        name_ends(axes, ends[problem])
    return figure


def densities(numbers: Numbers) -> Figure:
    """A row for each density: the truth, AMAGOLD and SGHMC at the largest step size, with the true
    contours over all.
    """
    figure = new_figure(
        10.0,
        7.6,
        f"Dist1 and Dist2 as drawn at step size {numbers['step_sizes'][-1]:g}",
        f"Histograms of {num_draws(numbers):,} draws; the lines are those of the true density at "
        "90%, 50% and 10% of its height.",
    )
    grid = figure.add_gridspec(
        2, 3, left=0.075, right=0.985, bottom=0.03, top=0.85, wspace=0.06, hspace=0.08
    )
    for row, problem in enumerate(PROBLEMS):
        cells = cells_for(problem)
        for column, method in enumerate(("truth", "AMAGOLD", "SGHMC")):
            counts = (
                cells.masses
                if method == "truth"
                else np.array(numbers["methods"][method][problem]["counts"])
            )
            axes = figure.add_subplot(grid[row, column])
            _panel(axes, cells.density(counts), problem)
            if method != "truth":
                words = f"KL {kl_of(numbers, method, problem)[-1]:.4f}"
                axes.text(
                    0.5,
                    0.94,
                    words,
                    transform=axes.transAxes,
                    ha="center",
                    va="top",
                    fontsize=12,
                    color=COLOURS[method],
                )
            if row == 0:
                axes.set_title(
                    method, fontsize=12, fontweight="bold", color=COLOURS.get(method, INK), pad=8
                )
            if column == 0:
                axes.set_ylabel(
                    problem,
                    fontsize=12,
                    fontweight="bold",
                    color=INK,
                    rotation=0,
                    ha="right",
                    labelpad=10,
                )
    return figure


def _panel(axes: Axes, density: np.ndarray, problem: str) -> None:
    cells = cells_for(problem)
    truth = cells.density(cells.masses)
    up, across = (
        low + (high - low) * (np.arange(count) + 0.5) / count
        for low, high, count in zip(*cells[:3], strict=True)
    )
    # the second coordinate across, so that the banana stands on its bend
    axes.pcolormesh(
        across, up, density, cmap="Blues", vmin=0.0, vmax=1.25 * truth.max(), rasterized=True
    )
    axes.contour(
        across,
        up,
        truth,
        levels=[level * truth.max() for level in LEVELS],
        colors=INK,
        linewidths=0.8,
    )
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
