"""One run at a glance: how it was tuned, what it accepted, the energy errors behind that, and the
slowest parameter.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from amagold.core.arviz import arviz_stats
from amagold.report._picture_style import COLOURS, HAIRLINE, INK, QUIET, TRUTH_FILL, new_figure

NUM_BINS = 120  # acceptance and energy errors are averaged in as many stretches
MOST_POINTS = 1_000  # of a trace
MOST_CHAINS = 4  # shown in a trace
ACCENT, SECOND = COLOURS["AMAGOLD"], COLOURS["SGHMC"]


def draw(run: Any) -> Figure:
    """Four panels."""
    sizes = run.posterior.sizes
    state = "partial run" if run.is_partial else "run"
    acceptance = (
        float(run.sample_stats["acceptance_rate"].mean()) if sizes["draw"] else float("nan")
    )
    figure = new_figure(
        10.0,
        6.4,
        f"{run.label.capitalize()} {state}: {sizes['chain']} chains of {sizes['draw']:,} draws, "
        f"{acceptance:.0%} accepted",
        f"{run.sampling_seconds:.2f} s of sampling, {run.warmup_seconds:.2f} s of warm-up, "
        f"{run.compile_seconds:.1f} s of compilation."
        + (
            f"  {len(run.warnings)} warning(s): see run.warnings."
            if run.warnings
            else "  No warnings."
        ),
    )
    places = [(0.075, 0.52), (0.575, 0.52), (0.075, 0.08), (0.575, 0.08)]
    panels = (_step_size, _acceptance, _energy_error, _trace)
    for (left, bottom), panel in zip(places, panels, strict=True):
        axes = figure.add_axes((left, bottom, 0.40, 0.30))
        panel(axes, run)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["bottom", "left"]].set_color(HAIRLINE)
        axes.tick_params(colors=QUIET, labelsize=8, length=3, width=0.8)
    return figure


def _title(axes: Axes, title: str, unit: str) -> None:
    # a name is a name: dollars in it are no mathematics
    axes.set_title(title, fontsize=10.5, color=INK, loc="left", pad=6, parse_math=False)
    axes.set_xlabel(unit, fontsize=8.5, color=QUIET, labelpad=2)


def _nothing(axes: Axes, why: str) -> None:
    axes.text(
        0.5, 0.5, why, fontsize=9, color=QUIET, ha="center", va="center", transform=axes.transAxes
    )
    axes.set(xticks=[], yticks=[])


def _step_size(axes: Axes, run: Any) -> None:
    history = run.warmup_sample_stats
    if "step_size" not in history or not history.sizes["draw"]:
        _title(axes, "Step size", "")
        return _nothing(axes, "no step size was adapted")
    _title(axes, "Step size in warm-up, and as it was frozen", "transition of warm-up")
    steps = history["step_size"].values[0]
    axes.plot(steps, color=ACCENT, linewidth=1.0)
    changes = (
        np.flatnonzero(np.diff(history["mass_scale"].values[0])) + 1
        if "mass_scale" in history
        else []
    )
    for change in changes:
        axes.axvline(float(change), color=SECOND, linewidth=0.8, linestyle=(0, (3, 3)))
    if len(changes):
        axes.text(
            float(changes[-1]), axes.get_ylim()[1], " new mass", fontsize=8, color=SECOND, va="top"
        )
    if run.sample_stats.sizes["draw"]:
        axes.axhline(float(run.sample_stats["step_size"][0, 0]), color=INK, linewidth=0.9)
    # the first tries span orders of magnitude
    axes.set_yscale("log")
    if steps.max() < 30.0 * steps.min():  # too few powers of ten to read a scale by
        # neighbours in this series are far enough apart for their labels
        axes.yaxis.set_minor_locator(LogLocator(subs=(0.2, 0.3, 0.5, 0.7)))
        axes.yaxis.set_major_formatter("{x:.2g}")
        axes.yaxis.set_minor_formatter("{x:.2g}")
    axes.tick_params(axis="y", which="both", labelsize=8, labelcolor=QUIET)


def _acceptance(axes: Axes, run: Any) -> None:
    _title(axes, "Acceptance", "transition: warm-up, then kept draws")
    warmup, kept = run.warmup_sample_stats["acceptance_rate"], run.sample_stats["acceptance_rate"]
    thin = run.attributes["settings"]["thin"]
    # as many stretches for each part as its length deserves
    share = warmup.sizes["draw"] / max(1, warmup.sizes["draw"] + thin * kept.sizes["draw"])
    axes.plot(*_binned(warmup, 0, 1, round(NUM_BINS * share)), color=QUIET, linewidth=1.2)
    axes.plot(
        *_binned(kept, warmup.sizes["draw"], thin, round(NUM_BINS * (1.0 - share))),
        color=ACCENT,
        linewidth=1.4,
    )
    wanted = getattr(run.plan, "target_acceptance", None)
    if wanted is not None:
        axes.axhline(wanted, color=INK, linewidth=0.9, linestyle=(0, (3, 3)))
        # a quarter turn is shortened below it and left alone above
        word = (
            "dashed: the least"
            if getattr(run.plan, "integrator", None) == "rotation"
            else "dashed: aimed for"
        )
        axes.text(
            0.99,
            wanted - 0.05,
            word,
            fontsize=8,
            color=INK,
            va="top",
            ha="right",
            transform=axes.get_yaxis_transform(),
        )
    axes.set_ylim(-0.02, 1.04)


def _binned(rates: Any, first: int, thin: int, num_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Means over chains and stretches, and the transitions in their middle."""
    num_draws = rates.sizes["draw"]
    edges = np.unique(
        np.linspace(0, num_draws, min(max(2, num_bins), max(1, num_draws)) + 1).astype(int)
    )
    means = [float(rates.isel(draw=slice(low, high)).mean()) for low, high in pairwise(edges)]
    return first + thin * 0.5 * (edges[1:] + edges[:-1])[: len(means)], np.asarray(means)


def _energy_error(axes: Axes, run: Any) -> None:
    _title(axes, "Energy error -log a: median and middle 90%", "kept draw")
    if "energy_error" not in run.sample_stats or not run.sample_stats.sizes["draw"]:
        return _nothing(axes, "this sampler has no test")
    errors = run.sample_stats["energy_error"]
    num_draws = errors.sizes["draw"]
    edges = np.unique(np.linspace(0, num_draws, min(NUM_BINS, num_draws) + 1).astype(int))
    bands = []
    for low, high in pairwise(edges):
        values = errors.isel(draw=slice(low, min(high, low + MOST_POINTS))).to_numpy()
        finite = values[np.isfinite(values)]
        bands.append(np.quantile(finite, [0.05, 0.5, 0.95]) if finite.size else [np.nan] * 3)
    lower, middle, upper = np.asarray(bands).T
    centres = 0.5 * (edges[1:] + edges[:-1])
    axes.fill_between(centres, lower, upper, color=TRUTH_FILL, linewidth=0)
    axes.plot(centres, middle, color=ACCENT, linewidth=1.3)
    axes.axhline(0.0, color=HAIRLINE, linewidth=0.9)


def _trace(axes: Axes, run: Any) -> None:
    if run.posterior.sizes["draw"] < 4:
        _title(axes, "Slowest parameter", "")
        return _nothing(axes, "too few draws")
    name, values = _slowest(run)
    _title(axes, f"Slowest parameter: {name}", "kept draw")
    stride = max(1, values.shape[1] // MOST_POINTS)
    draws = np.linspace(0, run.posterior.sizes["draw"], values.shape[1])[::stride]
    for chain, colour in zip(
        range(min(MOST_CHAINS, len(values))), (ACCENT, SECOND, INK, QUIET), strict=False
    ):
        axes.plot(draws, values[chain, ::stride], linewidth=0.6, alpha=0.7, color=colour)


def _slowest(run: Any) -> tuple[str, np.ndarray]:
    """The parameter with the fewest effective draws, among those that the advice looks at too."""
    ess = arviz_stats().ess

    from amagold.sampling._advice import reduced

    few = reduced(run.posterior)
    sizes = {name: np.asarray(found) for name, found in ess(few).data_vars.items()}
    name = min(
        sizes,
        key=lambda key: float(np.nanmin(sizes[key])) if np.isfinite(sizes[key]).any() else np.inf,
    )
    # a parameter that is not finite has no size
    known = np.where(np.isfinite(sizes[name]), sizes[name], np.inf)
    place = np.unravel_index(np.argmin(known), known.shape) if known.ndim else ()
    label = f"{name}[{', '.join(map(str, place))}]" if place else str(name)
    variable = few[name]
    return label, variable.to_numpy()[(slice(None), slice(None), *place)]
