"""The paper's Figure 2: Dist1 and Dist2 by four methods at step sizes from 0.01 to 0.25."""

from typing import Any, NamedTuple

import numpy as np

from amagold_lab.paper.experiment import Check, Experiment, Numbers, ResultTable
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.synthetic_chains import cells_for, count_draws, described, make_sampler

METHODS = ("HMC", "L2MC", "AMAGOLD", "SGHMC")
PROBLEMS = ("Dist1", "Dist2")
SETTLED = 0.1  # from this step size on, the draws of a preset suffice for every exact method


class DistSettings(NamedTuple):
    step_sizes: tuple[float, ...] = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25)
    num_groups: int = 5  # of chains, compared with each other
    num_chains: int = 10  # in a group
    num_samples: int = 100_000  # of each chain; all together the paper's 5,000,000
    num_burn_in: int = 1000
    segment: int = 1000


def compute(settings: DistSettings, finished: FinishedParts) -> Numbers:
    methods: dict[str, dict[str, Any]] = {method: {} for method in METHODS}
    for problem in PROBLEMS:
        for method in METHODS:
            parts = [
                _part(problem, method, step_size, settings, finished)
                for step_size in settings.step_sizes
            ]
            found = {
                name: [part[name] for part in parts] for name in ("kl", "group_kl", "acceptance")
            }
            methods[method][problem] = found | {"counts": parts[-1]["counts"]}
    return {**settings._asdict(), "methods": methods}


def _part(
    problem: str, method: str, step_size: float, settings: DistSettings, finished: FinishedParts
) -> dict[str, Any]:
    name = f"{problem}-{method}-{step_size:g}"
    sizes = {word: value for word, value in settings._asdict().items() if word != "step_sizes"}

    def run() -> dict[str, Any]:
        cells = cells_for(problem)
        chains = settings.num_groups * settings.num_chains
        limits = (settings.num_samples, settings.num_burn_in, settings.segment)
        drawn = count_draws(
            make_sampler(method, problem, step_size), problem, finished.key(name), chains, *limits
        )
        groups = drawn.counts.reshape(settings.num_groups, settings.num_chains, -1).sum(axis=1)
        counts = groups.sum(axis=0)
        return {
            "kl": float(cells.symmetric_kl(counts)),  # of all draws
            "group_kl": cells.symmetric_kl(groups).tolist(),
            "acceptance": drawn.acceptance,
            "counts": counts.tolist(),
        }

    return finished.part(name, {**sizes, "step_size": step_size, **described(problem)}, run)


def kl_of(numbers: Numbers, method: str, problem: str) -> np.ndarray:
    """Of all draws, at each step size."""
    return np.array(numbers["methods"][method][problem]["kl"])


def error_of(numbers: Numbers, method: str, problem: str) -> np.ndarray:
    """The standard deviation of the KL of all draws, as large a part of it as of a group's: too
    wide only where there is a bias.
    """
    groups = np.array(numbers["methods"][method][problem]["group_kl"])
    return kl_of(numbers, method, problem) * groups.std(axis=1) / groups.mean(axis=1)


def checks(numbers: Numbers) -> list[Check]:
    found = []
    settled = np.array(numbers["step_sizes"]) >= SETTLED
    for problem in PROBLEMS:
        kl = {method: kl_of(numbers, method, problem) for method in METHODS}
        full = max(kl["HMC"][-1], kl["L2MC"][-1])
        way = (kl["AMAGOLD"][-1] - full) / (kl["SGHMC"][-1] - full)
        left = kl["AMAGOLD"] / np.mean(numbers["methods"]["AMAGOLD"][problem]["group_kl"], axis=1)
        found += [
            Check(
                f"{problem}: how far AMAGOLD's KL has gone from the full-batch methods' (0) to "
                "SGHMC's (1), at the largest step size",
                float(way),
                "<=",
                0.1,
            ),
            Check(
                f"{problem}: AMAGOLD's KL of all draws over that of one of the groups they come "
                f"in, at worst from step size {SETTLED:g} on "
                "(about one over the number of groups for exact draws, 1 for a bias)",
                float(left[settled].max()),
                "<=",
                0.5,
            ),
            Check(
                f"{problem}: SGHMC's KL at the largest step size over its lowest at any",
                float(kl["SGHMC"][-1] / kl["SGHMC"].min()),
                ">=",
                2.0,
            ),
        ]
    return found


def pictures(numbers: Numbers) -> dict[str, Any]:
    from amagold_lab.paper import figure2_pictures

    return {
        "kl": figure2_pictures.divergences(numbers),
        "densities": figure2_pictures.densities(numbers),
    }


def tables(numbers: Numbers) -> list[ResultTable]:
    header = (
        "step size",
        *(f"{method} KL" for method in METHODS),
        "AMAGOLD / L2MC",
        "SGHMC / AMAGOLD",
        "AMAGOLD accepts",
    )
    made = []
    for problem in PROBLEMS:
        kl = {method: kl_of(numbers, method, problem) for method in METHODS}
        error = {method: error_of(numbers, method, problem) for method in METHODS}
        rates = numbers["methods"]["AMAGOLD"][problem]["acceptance"]
        rows = []
        for at, step in enumerate(numbers["step_sizes"]):
            values = [f"{kl[method][at]:.5f} ± {error[method][at]:.5f}" for method in METHODS]
            ratios = (
                f"{kl['AMAGOLD'][at] / kl['L2MC'][at]:.2f}",
                f"{kl['SGHMC'][at] / kl['AMAGOLD'][at]:.2f}",
            )
            rows.append((f"{step:g}", *values, *ratios, f"{rates[at]:.3f}"))
        title = (
            f"{problem}: symmetric KL of {num_draws(numbers):,} draws ± standard deviation. The "
            "paper draws it and prints no number."
        )
        made.append(ResultTable(title, header, rows))
    return made


def num_draws(numbers: Numbers) -> int:
    return numbers["num_groups"] * numbers["num_chains"] * numbers["num_samples"]


EXPERIMENT = Experiment(
    name="dist",
    title="Figure 2: Dist1 and Dist2 at step sizes from 0.01 to 0.25",
    claim="On both densities AMAGOLD's divergence stays near that of the full-batch methods HMC "
    "and L2MC, while SGHMC's grows with the "
    "step size.",
    choices=(
        "The KL is KL(p, q) + KL(q, p) between the histogram and the density integrated over the "
        "same cells: 0.4 by 0.4 on [-4, 14] x "
        "[-8, 8] for Dist1, 0.3 by 0.3 on [-6, 6] x [-6, 6] for Dist2; cells of less than 1e-4 of "
        "the mass and everything outside count as "
        "one; half a count is added to each. The paper does not say how it computes it.",
        "The draws come from many chains side by side, each from 0 and after a burn-in of 1000, "
        "in groups whose differences give the "
        "spread; the paper does not say how many chains, where they start, or what is dropped.",
        "The paper's step sizes go from 0.01 to 0.25; which ones lie between is not given. HMC is "
        "L2MC without friction.",
        "The authors' code has nothing on these two densities.",
    ),
    settings={
        "tiny": DistSettings((0.01, 0.25), 1, 1, 1000, 200, 200),
        "quick": DistSettings((0.01, 0.05, 0.15, 0.25), num_samples=20_000),
        "paper": DistSettings(),
    },
    duration={"tiny": "10 seconds", "quick": "a minute", "paper": "5 minutes"},
    num_parts=lambda settings: len(PROBLEMS) * len(METHODS) * len(settings.step_sizes),
    compute=compute,
    checks=checks,
    pictures=pictures,
    tables=tables,
)
