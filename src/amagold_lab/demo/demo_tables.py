"""The demo's results as tables for the terminal, at most 80 characters wide."""

from rich import box
from rich.table import Table

from amagold.models._double_well import double_well_moments
from amagold_lab.demo import summaries
from amagold_lab.demo.demo_double_well import Well
from amagold_lab.demo.demo_heart import TRUTH, Patients


def _table(title: str, words: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for word in words:
        table.add_column(word, no_wrap=True)
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    return table


def double_well(wells: list[Well]) -> Table:
    """A row per sampler and step size, and one for the truth."""
    figures = ("step size", "symmetric KL", "mean", "variance", "acceptance")
    table = _table("Double well, gradient noise N(0, 1)", ("sampler", "draws"), figures)
    for well in sorted(wells, key=lambda well: (well.sampler, well.step_size)):
        figures = (
            f"{well.step_size:g}",
            f"{well.symmetric_kl:.4f}",
            f"{well.mean:.2f}",
            f"{well.variance:.2f}",
        )
        table.add_row(well.sampler, well.label, *figures, _acceptance(well.label, well.acceptance))
    truth = double_well_moments()
    table.add_section()
    table.add_row("truth", "", "", "", f"{truth.mean:.2f}", f"{truth.variance:.2f}", "")
    return table


def heart(patients: Patients) -> Table:
    """A row per coefficient: AMAGOLD's posterior, and how far each sampler is off."""
    figures = ("mean", "sd", "90% interval", "AMAGOLD\nerrors", "SGHMC\nerrors")
    table = _table(
        "Heart disease: AMAGOLD's posterior, and errors of mean (in sd) and of sd",
        ("coefficient",),
        figures,
    )
    draws = patients.chains["AMAGOLD"].draws
    mean, sd, interval = summaries.mean(draws), summaries.sd(draws), summaries.interval(draws)
    errors = {
        name: (patients.mean_error(name), patients.sd_error(name)) for name in ("AMAGOLD", "SGHMC")
    }
    for at in patients.order:
        low, high = interval[:, at]
        off = [f"{of_mean[at]:+.2f} {of_sd[at]:+4.0%}" for of_mean, of_sd in errors.values()]
        table.add_row(
            patients.names[at], f"{mean[at]:.2f}", f"{sd[at]:.2f}", f"{low:.2f} to {high:.2f}", *off
        )
    return table


def heart_errors(patients: Patients) -> Table:
    """A row per sampler: how well it mixed, and its worst errors."""
    figures = (
        "accept-\nance",
        "largest\nR-hat",
        "effective\ndraws",
        "worst error\nof mean",
        "worst error\nof sd",
    )
    table = _table(
        "Heart disease: minibatches against one call of amagold.sample",
        ("sampler", "draws"),
        figures,
    )
    for name, chains in patients.chains.items():
        r_hat, effective = (
            summaries.r_hat(chains.draws).max(),
            summaries.effective_draws(chains.draws).min(),
        )
        figures = (
            _acceptance(chains.label, chains.acceptance),
            f"{r_hat:.3f}",
            f"{effective:,.0f}",
        )
        worst = (
            f"{abs(patients.mean_error(name)).max():.2f} sd",
            f"{abs(patients.sd_error(name)).max():.0%}",
        )
        table.add_row(
            name, chains.label, *figures, *(("truth", "truth") if name == TRUTH else worst)
        )
    return table


def _acceptance(label: str, rate: float) -> str:
    return "no test" if label == "biased" else f"{rate:.2f}"
