"""Curves of a divergence for several methods: a line for the mean, a band for the spread, the name
at its end.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from amagold.report._picture_style import COLOURS, HAIRLINE, INK, QUIET

Values = Sequence[float] | np.ndarray

MARKERS = {"AMAGOLD": "o", "SGHMC": "s", "HMC": "^", "L2MC": "D"}
LINES = {"AMAGOLD": "-", "SGHMC": "-", "HMC": (0, (2, 2)), "L2MC": (0, (5, 2))}


def rounded(factor: float) -> str:
    """A factor for a title: whole from 10 on."""
    return f"{factor:.1f}" if factor < 10.0 else f"{factor:,.0f}"


def framed(axes: Axes, across: str, title: str = "", up: str = "symmetric KL divergence") -> None:
    """Two quiet axes, faint lines at the ticks of a logarithmic upright one."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(HAIRLINE)
    axes.set_yscale("log")
    axes.grid(axis="y", color=HAIRLINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=QUIET, labelsize=10, length=3, width=0.8, which="major")
    axes.tick_params(length=0, which="minor")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(across, fontsize=11, color=QUIET)
    axes.set_ylabel(up, fontsize=11, color=QUIET)
    if title:
        axes.set_title(title, fontsize=12, color=INK, loc="left", pad=8)


def curve(
    axes: Axes,
    across: Values,
    line: Values,
    low: Values,
    high: Values,
    method: str,
    markers: bool = True,
) -> None:
    """A line in the method's colour within a band."""
    colour = COLOURS[method]
    axes.fill_between(across, low, high, color=colour, alpha=0.18, linewidth=0)
    marker = MARKERS[method] if markers else ""
    axes.plot(
        across,
        line,
        color=colour,
        linewidth=2.0,
        linestyle=LINES[method],
        marker=marker,
        markersize=5.5,
    )


def curve_of_means(
    axes: Axes, across: Values, values: Sequence[Sequence[float]], method: str, markers: bool = True
) -> None:
    """The mean of the values at each place, and a band from the lowest to the highest of them."""
    curve(
        axes,
        across,
        np.mean(values, axis=1),
        np.min(values, axis=1),
        np.max(values, axis=1),
        method,
        markers,
    )


def name_ends(axes: Axes, ends: dict[str, float], least: float = 0.075) -> None:
    """The methods' names right of their curves' ends, moved apart where they would touch; `least`
    is a part of the height.
    """
    low, high = np.log(axes.get_ylim())
    order = sorted(ends, key=lambda method: ends[method])
    heights = [float((np.log(ends[method]) - low) / (high - low)) for method in order]
    for _ in range(100):  # push neighbours apart, a little to each side
        for at in range(len(heights) - 1):
            short = least - (heights[at + 1] - heights[at])
            if short > 1e-9:
                heights[at] -= short / 2
                heights[at + 1] += short / 2
    for method, height in zip(order, heights, strict=True):
        axes.text(
            1.02,
            height,
            method,
            transform=axes.transAxes,
            color=COLOURS[method],
            fontsize=11,
            fontweight="bold",
            va="center",
        )
