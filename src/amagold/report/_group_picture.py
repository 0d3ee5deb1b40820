"""The levels of a group in a picture: their effects in order, and how much of each its rows
decide.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from amagold.report._picture_style import COLOURS, HAIRLINE, INK, QUIET, new_figure

INTERVAL = 0.9
MOST_LINES = 300  # levels that have a line each; more become a band
MOST_NAMES = 40  # levels that are named
ACCENT = COLOURS["AMAGOLD"]


def draw(run: Any, group: str | None, effect: str | None) -> Figure:
    """Two panels, of one effect of one group."""
    table = run.group_effects(group, interval=INTERVAL)
    known = list(dict.fromkeys(table["effect"]))
    effect = known[0] if effect is None else effect
    if effect not in known:
        told = ", ".join(map(repr, known))
        raise ValueError(f"effect must be one that varies by the group, {told}, got {effect!r}")
    chosen = table[table["effect"] == effect].sort_values("mean", kind="stable")
    groups = [term.group for term in run.model.terms.groups]
    name = groups[0] if group is None else group
    what = "intercept" if effect == "1" else f"coefficient of {effect}"
    clear = int(((chosen["lower"] > 0) | (chosen["upper"] < 0)).sum())
    figure = new_figure(
        10.0,
        5.2,
        "",
        f"90% intervals of what each level adds to the {what}; {clear:,} of {len(chosen):,} leave "
        "out zero.",
    )
    figure.texts[0].set_parse_math(False)  # names may hold dollars
    figure.texts[0].set_text(f"{len(chosen):,} levels of {name}")
    figure.texts[1].set_parse_math(False)
    _effects(figure.add_axes((0.085, 0.12, 0.50, 0.68)), chosen)
    _shrinkage(figure.add_axes((0.67, 0.12, 0.30, 0.68)), chosen)
    return figure


def _effects(axes: Axes, table: Any) -> None:
    """In the order of their means; a band where there are too many for lines."""
    number = np.arange(len(table))
    mean, lower, upper = (table[name].to_numpy() for name in ("mean", "lower", "upper"))
    if len(table) <= MOST_LINES:
        axes.vlines(number, lower, upper, color=ACCENT, linewidth=1.0, alpha=0.7)
        axes.plot(number, mean, "o", color=ACCENT, markersize=2.5)
    else:
        axes.fill_between(number, lower, upper, color=ACCENT, alpha=0.25, linewidth=0)
        axes.plot(number, mean, color=ACCENT, linewidth=1.6)
    axes.axhline(0.0, color=QUIET, linewidth=0.8, linestyle=(0, (3, 3)))
    axes.margins(x=0.01)
    _styled(axes, "Effects in order", "level, from the smallest to the largest")
    if len(table) <= MOST_NAMES:
        axes.set_xticks(number, [str(level)[:12] for level in table["level"]], rotation=90)
        for label in axes.get_xticklabels():
            label.set_parse_math(False)
            label.set_fontsize(7)
        axes.set_xlabel("")


def _shrinkage(axes: Axes, table: Any) -> None:
    """var(u | y) / sigma^2 against the number of rows."""
    alpha = float(np.clip(200.0 / len(table), 0.08, 0.8))
    axes.plot(
        table["rows"],
        table["shrinkage"],
        "o",
        color=ACCENT,
        markersize=3,
        alpha=alpha,
        markeredgewidth=0,
    )
    if table["rows"].max() > 10 * max(1, table["rows"].min()):
        axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.05)
    _styled(axes, "Shrinkage (1: only its group is known)", "rows of the level")


def _styled(axes: Axes, title: str, unit: str) -> None:
    axes.set_title(title, fontsize=10.5, color=INK, loc="left", pad=6)
    axes.set_xlabel(unit, fontsize=8.5, color=QUIET, labelpad=2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(HAIRLINE)
    axes.tick_params(colors=QUIET, labelsize=8, length=3, width=0.8)
