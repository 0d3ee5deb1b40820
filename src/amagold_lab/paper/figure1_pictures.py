"""Pictures of the double well: densities of both methods, the tuned chain, and KL against step
size.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amagold.models._double_well import double_well_density
from amagold.report._picture_style import COLOURS, INK, QUIET, TRUTH_FILL, bare, new_figure
from amagold_lab.paper.curves import curve_of_means, framed, name_ends, rounded
from amagold_lab.paper.experiment import Numbers
from amagold_lab.paper.synthetic_chains import cells_for

SHOWN = (0.05, 0.15, 0.25)
GRID = np.linspace(-6.0, 5.0, 551)
KEY = "Grey: the true density. KL is the symmetric divergence."


def densities(numbers: Numbers) -> Figure:
    """Two rows of panels, SGHMC and AMAGOLD, and a column per step size."""
    steps = [step for step in SHOWN if step in numbers["step_sizes"]]
    last = {
        method: np.mean(numbers["methods"][method]["kl"][-1]) for method in ("SGHMC", "AMAGOLD")
    }
    ratio = last["SGHMC"] / last["AMAGOLD"]
    title = (
        f"At step size {numbers['step_sizes'][-1]:g} SGHMC's divergence from the truth is "
        f"{rounded(ratio)} times AMAGOLD's"
    )
    subtitle = (
        f"The double well, noisy gradients: one chain of {numbers['num_samples']:,} draws in each "
        "panel, as published; the title has "
        f"the mean of {numbers['num_chains']}.\n{KEY}"
    )
    figure = new_figure(10.0, 5.8, title, subtitle)
    grid = figure.add_gridspec(
        2, len(steps), left=0.125, right=0.985, bottom=0.06, top=0.8, wspace=0.07, hspace=0.1
    )
    for row, method in enumerate(("SGHMC", "AMAGOLD")):
        for column, step in enumerate(steps):
            axes = figure.add_subplot(grid[row, column])
            found = numbers["methods"][method]
            at = numbers["step_sizes"].index(step)
            _panel(axes, found["first_chain"][at], found["kl"][at][0], COLOURS[method])
            if row == 0:
                axes.set_title(f"step size {step:g}", fontsize=11, color=INK, pad=8)
                axes.set_xticklabels([])
            if column == 0:
                axes.text(
                    -0.05,
                    0.5,
                    method,
                    transform=axes.transAxes,
                    fontsize=13,
                    fontweight="bold",
                    color=COLOURS[method],
                    ha="right",
                )
    return figure


def tuned(numbers: Numbers) -> Figure:
    """Both methods fixed at 0.01, and AMAGOLD tuned from there."""
    methods = numbers["methods"]
    small = numbers["step_sizes"].index(0.01)
    best = methods["tuned AMAGOLD"]
    fixed = {method: methods[method] for method in ("SGHMC", "AMAGOLD")}
    ratio = min(np.mean(found["kl"][small]) for found in fixed.values()) / np.mean(best["kl"])
    title = (
        f"Fixed at 0.01, chains diverge {rounded(ratio)} times as much as AMAGOLD tuned from there"
    )
    subtitle = (
        f"Step sizes on the double well. Each chain drops {numbers['num_burn_in']:,} draws and "
        f"keeps {numbers['num_samples']:,}; the first "
        f"chains are shown, and means compared.\n{KEY}"
    )
    figure = new_figure(10.0, 4.0, title, subtitle)
    grid = figure.add_gridspec(1, 3, left=0.02, right=0.985, bottom=0.09, top=0.68, wspace=0.06)
    panels = [
        (f"{method}, fixed at 0.01", found["first_chain"][small], found["kl"][small][0], method)
        for method, found in fixed.items()
    ]
    reached = f"AMAGOLD, tuned to {best['acceptance']:.0%}: {best['step_sizes'][0]:.3f}"
    panels.append((reached, best["first_chain"], best["kl"][0], "AMAGOLD"))
    for column, (name, counts, divergence, method) in enumerate(panels):
        axes = figure.add_subplot(grid[0, column])
        _panel(axes, counts, divergence, COLOURS[method])
        axes.set_title(name, fontsize=11, color=COLOURS[method], fontweight="bold", pad=8)
    return figure


def _panel(axes: Axes, counts: list[int], divergence: float, colour: str) -> None:
    cells = cells_for("double well")
    edges = np.linspace(cells.low[0], cells.high[0], cells.shape[0] + 1)
    truth = double_well_density(GRID)
    axes.fill_between(GRID, truth, color=TRUTH_FILL, linewidth=0)
    axes.stairs(cells.density(np.array(counts)), edges, color=colour, linewidth=1.7)
    axes.set(xlim=(-5.6, 4.4), ylim=(0.0, 1.35 * truth.max()), xticks=[-4, -2, 0, 2, 4])
    axes.text(
        0.97,
        0.95,
        f"KL {divergence:.4f}",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=11,
        color=colour,
    )
    bare(axes)


def divergences(numbers: Numbers) -> Figure:
    """KL against step size, with the tuned chains beside."""
    methods, steps = numbers["methods"], numbers["step_sizes"]
    mean = {
        method: [float(np.mean(values)) for values in methods[method]["kl"]]
        for method in ("AMAGOLD", "SGHMC")
    }
    growth = {method: rounded(values[-1] / min(values)) for method, values in mean.items()}
    title = (
        f"Up to step size {steps[-1]:g} SGHMC's divergence grows {growth['SGHMC']}-fold, "
        f"AMAGOLD's {growth['AMAGOLD']}-fold"
    )
    subtitle = (
        f"Symmetric KL of one chain of {numbers['num_samples']:,} draws: mean and range over "
        f"{numbers['num_chains']} chains. "
        "Growth is from each\nmethod's best step size; smaller steps are slow for both."
    )
    figure = new_figure(10.0, 4.8, title, subtitle)
    axes = figure.add_axes((0.09, 0.13, 0.78, 0.66))
    framed(axes, "step size")
    for method in mean:
        curve_of_means(axes, steps, methods[method]["kl"], method)
    tuned_steps = methods["tuned AMAGOLD"]["step_sizes"]
    axes.plot(
        tuned_steps,
        methods["tuned AMAGOLD"]["kl"],
        "*",
        color=COLOURS["AMAGOLD"],
        markersize=11,
        markeredgecolor="white",
    )
    place = (float(np.mean(tuned_steps)), 0.72 * min(methods["tuned AMAGOLD"]["kl"]))
    axes.annotate(
        "tuned to 85%",
        place,
        xytext=(0, -12),
        textcoords="offset points",
        ha="center",
        fontsize=10,
        color=QUIET,
    )
    axes.set_ylim(axes.get_ylim()[0] / 2, None)
    axes.set_xticks(steps, [f"{step:g}" for step in steps])
    name_ends(axes, {method: values[-1] for method, values in mean.items()})
    return figure
