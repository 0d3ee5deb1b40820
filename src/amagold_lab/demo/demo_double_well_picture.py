"""The double well: draws of both samplers against the true density, a column per step size."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amagold.models._double_well import double_well_density
from amagold.report._picture_style import (
    COLOURS,
    INK,
    QUIET,
    TRUTH_FILL,
    bare,
    new_figure,
    smooth_density,
)
from amagold_lab.demo.demo_double_well import STEP_SIZES, Well

GRID = np.linspace(-6.0, 5.0, 551)
ROWS = ("SGHMC", "AMAGOLD")


def draw(wells: list[Well]) -> Figure:
    """Two rows of panels, one per sampler, and a column per step size."""
    figure = new_figure(
        10.0,
        5.6,
        "As the step size grows, SGHMC drifts from the truth; AMAGOLD stays on it",
        f"The paper's double well with noisy gradients, {wells[0].draws.size:,} draws per panel. "
        "KL is the symmetric divergence "
        "from the truth.",
    )
    grid = figure.add_gridspec(
        2, len(STEP_SIZES), left=0.135, right=0.985, bottom=0.06, top=0.81, wspace=0.07, hspace=0.12
    )
    for well in wells:
        row, column = ROWS.index(well.sampler), STEP_SIZES.index(well.step_size)
        axes = figure.add_subplot(grid[row, column])
        _panel(axes, well)
        if row == 0:
            axes.set_title(f"step size {well.step_size:g}", fontsize=11, color=INK, pad=8)
            axes.set_xticklabels([])
        if column == 0:
            _name(axes, well)
        if row == column == 0:
            axes.text(-1.75, 0.36, "true density", fontsize=10, color=QUIET, va="center")
            axes.plot(
                [-2.75, -1.82],
                [0.29, 0.36],
                color=QUIET,
                linewidth=0.8,
                marker="o",
                markersize=3,
                markevery=[0],
            )
    return figure


def _panel(axes: Axes, well: Well) -> None:
    colour = COLOURS[well.sampler]
    truth = double_well_density(GRID)
    found = smooth_density(well.draws, GRID, bandwidth=0.09)
    axes.fill_between(GRID, np.minimum(truth, found), color=TRUTH_FILL, linewidth=0)
    # what the sampler has wrong
    axes.fill_between(GRID, truth, found, color=colour, alpha=0.35, linewidth=0)
    axes.plot(GRID, found, color=colour, linewidth=2.0)
    axes.set(xlim=(-5.6, 4.4), ylim=(0.0, 1.08 * truth.max()), xticks=[-4, -2, 0, 2, 4])
    axes.text(
        0.97,
        0.90,
        f"KL {well.symmetric_kl:.3f}",
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=11,
        color=colour,
    )
    bare(axes)


def _name(axes: Axes, well: Well) -> None:
    """The sampler's name beside its row."""
    label = {"transform": axes.transAxes, "ha": "right"}
    axes.text(
        -0.06,
        0.52,
        well.sampler,
        fontsize=13,
        fontweight="bold",
        color=COLOURS[well.sampler],
        va="bottom",
        **label,
    )
    axes.text(-0.06, 0.48, well.label, fontsize=10, color=QUIET, va="top", **label)
