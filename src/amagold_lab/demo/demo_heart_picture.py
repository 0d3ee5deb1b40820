"""The heart data: the posterior of every coefficient as a ridge, and how far each sampler's spread
is off.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amagold.report._picture_style import (
    COLOURS,
    HAIRLINE,
    INK,
    QUIET,
    TRUTH_FILL,
    bare,
    new_figure,
    smooth_density,
)
from amagold_lab.demo import summaries
from amagold_lab.demo.demo_heart import BATCH_SIZE, TRUTH, Patients

GRID = np.linspace(-2.0, 3.0, 1001)
RIDGE_HEIGHT = 0.76  # in rows


def draw(patients: Patients) -> Figure:
    """A row per coefficient, ordered by size."""
    most, least = patients.sd_error("SGHMC").max(), abs(patients.sd_error("AMAGOLD")).max()
    figure = new_figure(
        10.0,
        9.0,
        f"SGHMC overstates uncertainty by up to {most:.0%}; AMAGOLD is within {least:.0%}",
        "Bayesian logistic regression of heart disease on 13 standardised measurements of 270 "
        "patients, "
        f"{BATCH_SIZE} at a time.\nGrey: the true posterior (one call of amagold.sample). Bars: "
        "90% intervals; ticks: the true ones.",
    )
    ridges = figure.add_axes((0.175, 0.06, 0.62, 0.80))
    order = patients.order
    for row, at in enumerate(reversed(order)):
        _ridge(ridges, patients, at, float(row))
    ridges.axvline(0.0, color=HAIRLINE, linewidth=1.0, zorder=0)
    ridges.set(xlim=(-1.42, 2.12), ylim=(-0.45, len(order)), xticks=[-1, 0, 1, 2])
    ridges.set_xlabel(
        "coefficient (log odds of disease per standard deviation)", fontsize=10, color=QUIET
    )
    bare(ridges)
    _errors(figure.add_axes((0.80, 0.06, 0.19, 0.80), sharey=ridges), patients, order)
    return figure


def _ridge(axes: Axes, patients: Patients, at: int, base: float) -> None:
    """Densities above the base line, 90% intervals below it."""
    truth = patients.chains[TRUTH].draws
    # one scale for all rows, so that areas compare
    scale = RIDGE_HEIGHT * summaries.sd(truth).min() * np.sqrt(2.0 * np.pi)
    curves = {
        name: base + scale * smooth_density(chains.draws[..., at], GRID, 0.035)
        for name, chains in patients.chains.items()
    }
    shown = curves[TRUTH] > base + 0.015
    axes.fill_between(
        GRID, base, curves[TRUTH], where=shown.tolist(), color=TRUTH_FILL, linewidth=0
    )
    for depth, name in ((0.10, "AMAGOLD"), (0.19, "SGHMC")):
        curve = np.where(curves[name] > base + 0.015, curves[name], np.nan)
        axes.plot(GRID, curve, color=COLOURS[name], linewidth=1.6)
        low, high = summaries.interval(patients.chains[name].draws[..., at])
        axes.plot(
            [low, high],
            [base - depth] * 2,
            color=COLOURS[name],
            linewidth=2.4,
            solid_capstyle="butt",
        )
    axes.vlines(
        summaries.interval(truth[..., at]), base - 0.24, base - 0.05, color=INK, linewidth=0.9
    )
    name = patients.names[at].replace("_", " ")
    axes.text(-1.45, base + 0.08, name, fontsize=10.5, color=INK, ha="right", va="center")


def _errors(axes: Axes, patients: Patients, order: list[int]) -> None:
    """How much too wide or too narrow each sampler is, as dots about zero."""
    rows = np.arange(len(order))[::-1] + 0.08
    axes.plot([0.0, 0.0], [-0.45, len(order) - 0.55], color=INK, linewidth=0.9)
    for name in ("SGHMC", "AMAGOLD"):
        errors = 100.0 * patients.sd_error(name)[order]
        axes.hlines(rows, 0.0, errors, color=COLOURS[name], linewidth=1.6, alpha=0.5)
        axes.plot(errors, rows, "o", color=COLOURS[name], markersize=5.5)
        axes.text(
            errors.mean(),
            len(order) - 0.45,
            name,
            fontsize=10.5,
            fontweight="bold",
            color=COLOURS[name],
            ha="center",
        )
    axes.set_xlim(-11.0, 1.1 * max(20.0, 100.0 * patients.sd_error("SGHMC").max()))
    axes.set_xlabel("error of the posterior sd, %", fontsize=10, color=QUIET)
    bare(axes)
