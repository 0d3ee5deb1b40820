"""The paper's Figure 1 and the densities of its appendix: the double well at several step sizes,
and with a tuned one.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np

from amagold.adaptation._warmup import Warmup
from amagold.sampling._advice import SamplingWarning
from amagold.sampling._sample import sample
from amagold_lab.paper.experiment import Check, Experiment, Numbers, ResultTable
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.synthetic_chains import cells_for, count_draws, described, make_sampler

PROBLEM = "double well"
METHODS = ("AMAGOLD", "SGHMC")
TUNED = "tuned AMAGOLD"
SMALL = 0.01  # the step size at which neither fixed chain gets there
TARGET_ACCEPTANCE = 0.85


class DoubleWellSettings(NamedTuple):
    step_sizes: tuple[float, ...] = (SMALL, 0.05, 0.1, 0.15, 0.2, 0.25)
    num_chains: int = 32  # each by itself as long as the paper's one
    num_samples: int = 100_000
    num_burn_in: int = 1000
    segment: int = 1000
    num_tuned: int = 8  # chains, each tuned by itself


def compute(settings: DoubleWellSettings, finished: FinishedParts) -> Numbers:
    methods = {}
    for method in METHODS:
        parts = [_fixed(method, step_size, settings, finished) for step_size in settings.step_sizes]
        methods[method] = {name: [part[name] for part in parts] for name in parts[0]}
    methods[TUNED] = _tuned(settings, finished)
    return {**settings._asdict(), "methods": methods}


def _fixed(
    method: str, step_size: float, settings: DoubleWellSettings, finished: FinishedParts
) -> dict[str, Any]:
    name = f"{method}-{step_size:g}"
    sizes = {
        name: getattr(settings, name)
        for name in ("num_chains", "num_samples", "num_burn_in", "segment")
    }

    def run() -> dict[str, Any]:
        return _summary(
            *count_draws(
                make_sampler(method, PROBLEM, step_size), PROBLEM, finished.key(name), **sizes
            )
        )

    return finished.part(name, {**sizes, "step_size": step_size, **described(PROBLEM)}, run)


def _tuned(settings: DoubleWellSettings, finished: FinishedParts) -> dict[str, Any]:
    sizes = {
        "num_samples": settings.num_samples,
        "num_warmup": settings.num_burn_in,
        "num_chains": 1,
    }

    def run() -> dict[str, Any]:
        counts, rates, step_sizes = [], [], []
        for repeat in range(settings.num_tuned):
            sampler = make_sampler("AMAGOLD", PROBLEM, SMALL)
            with warnings.catch_warnings():
                # one chain, as published: R-hat has nothing to say
                warnings.simplefilter("ignore", SamplingWarning)
                warmup = Warmup(target_acceptance=TARGET_ACCEPTANCE)
                limits = (
                    settings.num_samples,
                    settings.num_burn_in,
                    1,
                    1000 * finished.seed + repeat,
                )
                drawn = sample(sampler, *limits, init=0.0, progress=False, warmup=warmup)
            draws = np.asarray(drawn.posterior["theta"].values)  # (1, draw)
            counts.append(cells_for(PROBLEM).count_draws(draws.T)[0])
            rates.append(float(drawn.sample_stats["acceptance_rate"].mean()))
            step_sizes.append(float(drawn.sample_stats["step_size"].values.ravel()[-1]))
        return _summary(np.array(counts), float(np.mean(rates))) | {"step_sizes": step_sizes}

    known = {"repeats": settings.num_tuned, "from": SMALL, "target": TARGET_ACCEPTANCE}
    return finished.part("tuned", {**sizes, **known, **described(PROBLEM)}, run)


def _summary(counts: np.ndarray, acceptance: float) -> dict[str, Any]:
    cells = cells_for(PROBLEM)
    return {
        "kl": cells.symmetric_kl(counts).tolist(),  # of each chain
        "joint_kl": float(cells.symmetric_kl(counts.sum(axis=0))),  # of all chains' draws together
        "acceptance": acceptance,
        "first_chain": counts[0].tolist(),
    }


def checks(numbers: Numbers) -> list[Check]:
    exact, tuned = (numbers["methods"][method] for method in ("AMAGOLD", TUNED))
    left = [
        joint / np.mean(single) for step, joint, single in _steps(numbers, exact) if step > SMALL
    ]
    means = {
        method: [float(np.mean(single)) for single in numbers["methods"][method]["kl"]]
        for method in METHODS
    }
    failing = min(means[method][numbers["step_sizes"].index(SMALL)] for method in METHODS)
    ratio = means["AMAGOLD"][-1] / means["SGHMC"][-1]
    growth = means["SGHMC"][-1] / min(means["SGHMC"])
    return [
        Check(
            "AMAGOLD: KL of all chains' draws together over that of one chain, at worst from step "
            "size 0.05 on "
            "(about one over the number of chains for exact draws, 1 for a bias)",
            float(max(left)),
            "<=",
            0.5,
        ),
        Check(
            "AMAGOLD's KL over SGHMC's at the largest step size, means over chains",
            ratio,
            "<=",
            0.2,
        ),
        Check("SGHMC's KL at the largest step size over its lowest at any", growth, ">=", 3.0),
        Check(
            "KL of AMAGOLD tuned from 0.01, the worst chain, over the mean KL of the better of "
            "the two methods fixed at 0.01",
            max(tuned["kl"]) / failing,
            "<=",
            0.2,
        ),
        Check(
            "distance of the tuned chains' acceptance from 0.85",
            abs(tuned["acceptance"] - TARGET_ACCEPTANCE),
            "<=",
            0.05,
        ),
    ]


def _steps(numbers: Numbers, method: dict[str, Any]) -> list[tuple[float, float, list[float]]]:
    return list(zip(numbers["step_sizes"], method["joint_kl"], method["kl"], strict=True))


def pictures(numbers: Numbers) -> dict[str, Any]:
    from amagold_lab.paper import figure1_pictures

    return {
        "densities": figure1_pictures.densities(numbers),
        "tuned": figure1_pictures.tuned(numbers),
        "kl": figure1_pictures.divergences(numbers),
    }


def tables(numbers: Numbers) -> list[ResultTable]:
    rows = []
    for method in METHODS:
        found = numbers["methods"][method]
        for (step, joint, single), rate in zip(
            _steps(numbers, found), found["acceptance"], strict=True
        ):
            accepted = "no test" if method == "SGHMC" else f"{rate:.3f}"
            rows.append((method, f"{step:g}", *_spread(single), f"{joint:.5f}", accepted))
    tuned = numbers["methods"][TUNED]
    steps = tuned["step_sizes"]
    reached = f"{min(steps):.3f} to {max(steps):.3f}"
    rows.append(
        (
            TUNED,
            reached,
            *_spread(tuned["kl"]),
            f"{tuned['joint_kl']:.5f}",
            f"{tuned['acceptance']:.3f}",
        )
    )
    header = (
        "method",
        "step size",
        "KL of one chain, mean",
        "lowest",
        "highest",
        "KL of all chains together",
        "acceptance",
    )
    return [
        ResultTable(
            f"Double well: symmetric KL of {numbers['num_samples']:,} draws. The paper draws it "
            "and prints no number.",
            header,
            rows,
        )
    ]


def _spread(values: list[float]) -> tuple[str, str, str]:
    return f"{np.mean(values):.5f}", f"{min(values):.5f}", f"{max(values):.5f}"


EXPERIMENT = Experiment(
    name="double-well",
    title="Figure 1 and the appendix's densities: the double well",
    claim="AMAGOLD draws from the double well at every step size while SGHMC drifts away as it "
    "grows, and AMAGOLD tuned from a step size "
    "of 0.01 to 85% acceptance gets right what no chain fixed at 0.01 does.",
    choices=(
        "The KL is KL(p, q) + KL(q, p) between a chain's histogram and the density integrated "
        "over the same cells: 110 cells of width 0.1 "
        "on [-6, 5]; cells of less than 1e-4 of the mass and everything outside count as one; "
        "half a count is added to each. The paper "
        "does not say how it computes it, and the authors' code holds no KL.",
        "Start at 0, burn-in of 1000, fresh momentum, T = 10: as in the authors' code, whose C = "
        "0.5 is twice the friction. The paper "
        "shows one chain per setting; here each setting has many, and the densities drawn are the "
        "first chain's.",
        "The authors' SGHMC kicks before it drifts; ours drifts first, as the paper's Algorithm 1 "
        "does. In a separate trial the "
        "authors' order had the same course with a smaller bias: a KL of 0.046 instead of 0.064 "
        "at step size 0.25.",
        "With a fresh momentum every T steps, drifting first leaves out one of T kicks. For small "
        "step sizes SGHMC should then draw from "
        "exp(-(1 - 1/T) U), a KL of 0.012 by quadrature; this is argued and not confirmed: the "
        "chains at 0.01 are too slow to tell.",
        "The step sizes of the KL curve are not given in the text; ours are 0.01 and 0.05 to 0.25.",
        "The tuned chain adapts by dual averaging during the 1000 burn-in draws and is frozen "
        "then. The paper does not say how it tunes, "
        "and the authors' code has no tuning.",
    ),
    settings={
        "tiny": DoubleWellSettings((SMALL, 0.25), 1, 1000, 200, 200, 1),
        "quick": DoubleWellSettings(num_chains=16, num_tuned=4),
        "paper": DoubleWellSettings(),
    },
    duration={"tiny": "5 seconds", "quick": "half a minute", "paper": "a minute"},
    num_parts=lambda settings: len(METHODS) * len(settings.step_sizes) + 1,
    compute=compute,
    checks=checks,
    pictures=pictures,
    tables=tables,
)
