"""Pictures of the network's chains: error and energy on the way, and the entropy of predictions for
letters.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from amagold.report._picture_style import COLOURS, INK, QUIET, new_figure
from amagold_lab.paper.curves import framed
from amagold_lab.paper.experiment import Numbers
from amagold_lab.paper.network_chains import BIASED, EXACT, TUNED, WHOLE_EPOCHS

LOOKS = {
    EXACT: {"color": COLOURS["AMAGOLD"], "linewidth": 2.2},
    BIASED: {"color": COLOURS["SGHMC"], "linewidth": 2.2},
    WHOLE_EPOCHS: {"color": COLOURS["AMAGOLD"], "linewidth": 1.6, "linestyle": (0, (4, 1.5))},
    TUNED: {"color": COLOURS["AMAGOLD"], "linewidth": 1.6, "linestyle": (0, (1, 1))},
}


DECAYS = ("#8a6fc0", "#3b4a5c")  # colours of the smaller and the larger b
NUM_SMOOTHED = 10


def progress(numbers: Numbers) -> Figure:
    """A column for each place of the table: the test error of single draws above, the
    energy below.
    """
    methods = numbers["methods"]
    places = list(methods[EXACT])
    worst = {
        method: max(
            np.mean([chain["ensemble_error"] for chain in chains])
            for chains in methods[method].values()
        )
        for method in LOOKS
        if method in methods
    }
    figure = new_figure(
        11.0,
        6.8,
        f"At worst SGHMC's test error is {worst[BIASED]:.0f}%, AMAGOLD's {worst[EXACT]:.1f}%",
        "Single draws of chains from the same start (dot), against gradient evaluations. The "
        "energy is that of the images learnt from,\n"
        "per image; it tells of SGHMC's divergence long before the test error does.",
    )
    grid = figure.add_gridspec(
        2, len(places), left=0.075, right=0.985, bottom=0.15, top=0.775, wspace=0.12, hspace=0.12
    )
    longest = max(
        chain["gradients"][-1]
        for found in methods.values()
        for chains in found.values()
        for chain in chains
    )
    first: dict[str, Axes] = {}
    for column, place in enumerate(places):
        for row, (word, up) in enumerate(
            (("test_error", "test error, %"), ("energy", "energy per image, U / N"))
        ):
            axes = figure.add_subplot(grid[row, column], sharey=first.get(word))
            first.setdefault(word, axes)
            framed(axes, "gradient evaluations" if row else "", "", "" if column else up)
            if row == 0:
                axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            _lines(axes, methods, place, word)
            axes.tick_params(labelleft=column == 0, labelbottom=row == 1)
            axes.set_xlim(-0.03 * longest, 1.03 * longest)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")
        share = np.mean([chain["acceptance"] for chain in methods[EXACT][place]])
        top = figure.axes[-2]
        top.text(0.0, 1.14, place, transform=top.transAxes, fontsize=12, color=INK)
        top.text(
            0.0,
            1.05,
            f"AMAGOLD accepts {100 * share:.0f}%",
            transform=top.transAxes,
            fontsize=9.5,
            color=QUIET,
        )
    shown = [method for method in LOOKS if set(places) & set(methods.get(method, {}))]
    handles = [first["energy"].plot([], [], **LOOKS[method], label=method)[0] for method in shown]
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=len(shown),
        frameon=False,
        fontsize=10.5,
        labelcolor=INK,
    )
    return figure


def acceptance(numbers: Numbers) -> Figure:
    """The share of accepted proposals over the run, of every chain with a test."""
    chains = {
        (method, place): chain
        for method, places in numbers["methods"].items()
        if method != BIASED
        for place, (chain, *_) in places.items()
    }
    means = {of: 100.0 * float(np.mean(chain["acceptance"])) for of, chain in chains.items()}
    published = [mean for (method, _), mean in means.items() if method == EXACT]
    others = [mean for (method, _), mean in means.items() if method == WHOLE_EPOCHS]
    best = f"; once an epoch, {max(others):.0f}%" if others else ""
    figure = new_figure(
        10.0,
        4.9,
        f"As published AMAGOLD accepts {min(published):.0f} to {max(published):.0f}% of its "
        f"proposals{best}",
        f"Mean acceptance over {NUM_SMOOTHED} kept draws, against gradient evaluations; the whole "
        "run's mean is on the right.",
    )
    axes = figure.add_axes((0.075, 0.13, 0.53, 0.68))
    framed(axes, "gradient evaluations", "", "accepted, %")
    axes.set_yscale("linear")
    axes.set_ylim(0.0, 102.0)
    lines = {}
    for at, (of, chain) in enumerate(chains.items()):
        method, place = of
        colour = DECAYS[at // 2 % 2] if method == EXACT else COLOURS["AMAGOLD"]
        window = min(NUM_SMOOTHED, len(chain["acceptance"]))
        smooth = 100.0 * np.convolve(chain["acceptance"], np.ones(window) / window, mode="valid")
        style = ("-", (0, (4, 1.5)))[at % 2]
        if method == TUNED:
            rate = chain["step_size"] ** 2 * numbers["problem"]["num_examples"]
            place = f"{place.split(',')[0]}, h adapted: {rate:.2g}"
        words = f"{means[of]:.0f}%  {place}, T = {chain['num_steps']}"
        (lines[of],) = axes.plot(
            chain["gradients"][window - 1 :],
            smooth,
            color=colour,
            linewidth=2.0,
            linestyle=style,
            label=words,
        )
    handles = [lines[of] for of in sorted(means, key=lambda of: -means[of])]
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        frameon=False,
        fontsize=10,
        labelcolor=INK,
        labelspacing=1.0,
    )
    return figure


def _lines(axes: Axes, methods: dict[str, Any], place: str, word: str) -> None:
    start = {"test_error": "start_error", "energy": "start_energy"}[word]
    for method, look in LOOKS.items():
        for chain in methods.get(method, {}).get(place, []):
            axes.plot([0, *chain["gradients"]], [chain[start], *chain[word]], **look)
            axes.plot(0, chain[start], "o", color=INK, markersize=4, zorder=3)


def entropies(numbers: Numbers) -> Figure:
    """A panel for each method, a line for each setting: the share of letters below an entropy."""
    from amagold_lab.paper.figure5_uncertainty import below, widest

    figure = new_figure(
        10.0,
        4.9,
        f"Over b and h AMAGOLD's distributions differ by at most {widest(numbers, EXACT):.2f}, "
        f"SGHMC's by {widest(numbers, BIASED):.2f}",
        "Share of letters for which the mean prediction of the last 20 draws has less than an "
        "entropy. The network has learnt digits: on\n"
        "the left of a panel it is sure of what it cannot know.",
    )
    grid = figure.add_gridspec(1, 2, left=0.075, right=0.985, bottom=0.13, top=0.73, wspace=0.1)
    largest = numbers["entropies"][-1]
    for column, method in enumerate((EXACT, BIASED)):
        axes = figure.add_subplot(grid[0, column])
        framed(
            axes,
            "entropy of the prediction, nats",
            method,
            "" if column else "share of letters below",
        )
        axes.set_yscale("linear")
        for at, (place, shares) in enumerate(below(numbers, method).items()):
            colour = DECAYS[at // 2 % 2]
            axes.plot(
                numbers["entropies"],
                shares,
                color=colour,
                linewidth=2.0,
                linestyle=("-", (0, (4, 1.5)))[at % 2],
                label=place,
            )
        axes.axvline(largest, color=QUIET, linewidth=0.8, linestyle=":")
        axes.set(xlim=(0.0, 1.03 * largest), ylim=(0.0, 1.02))
        axes.text(
            largest - 0.02,
            0.02,
            "knows nothing",
            rotation=90,
            ha="right",
            va="bottom",
            fontsize=9,
            color=QUIET,
        )
        if column == 0:
            axes.legend(frameon=False, fontsize=10, labelcolor=INK, loc="upper left")
        else:
            axes.tick_params(labelleft=False)
    return figure
