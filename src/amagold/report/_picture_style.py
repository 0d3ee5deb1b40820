"""The pictures' common look: colours, text sizes, a smooth density, a bare pair of axes."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter1d

INK = "#1f2933"
QUIET = "#6b7785"
HAIRLINE = "#d5dbe1"
TRUTH_FILL = "#dfe4ea"
COLOURS = {"AMAGOLD": "#0b7a75", "SGHMC": "#d9622b", "HMC": "#8a6fc0", "L2MC": "#3b4a5c"}


def new_figure(width: float, height: float, title: str, subtitle: str) -> Figure:
    """A white figure whose title says what was found and whose subtitle says how."""
    figure = Figure(figsize=(width, height), facecolor="white")
    figure.text(
        0.022, 1.0 - 0.17 / height, title, fontsize=15, fontweight="bold", color=INK, va="top"
    )
    figure.text(
        0.022, 1.0 - 0.52 / height, subtitle, fontsize=10, color=QUIET, va="top", linespacing=1.4
    )
    return figure


def bare(axes: Axes) -> None:
    """Only the horizontal axis, thin and quiet."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(HAIRLINE)
    axes.set_yticks([])
    axes.tick_params(axis="x", colors=QUIET, labelsize=9, length=3, width=0.8)


def smooth_density(draws: np.ndarray, grid: np.ndarray, bandwidth: float) -> np.ndarray:
    """A normal kernel estimate on an even grid, from a histogram as fine as the grid."""
    spacing = grid[1] - grid[0]
    edges = np.append(grid - spacing / 2.0, grid[-1] + spacing / 2.0)
    counts = np.histogram(draws, edges)[0].astype(np.float64)
    return gaussian_filter1d(counts / (draws.size * spacing), bandwidth / spacing, mode="constant")
