"""The paper's figures on densities without data: they run end to end, their divergence is right,
and their checks can say no.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amagold_lab.paper import (
    appendix_runtime,
    figure1_double_well,
    figure2_dist1_dist2,
    figure3_convergence,
)
from amagold_lab.paper.experiment import Experiment, impostor, judge
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.histograms import Cells, cells_of
from amagold_lab.paper.kl_over_draws import places, reached
from amagold_lab.paper.synthetic_chains import cells_for, count_draws, make_sampler

EXPERIMENTS = [
    figure1_double_well.EXPERIMENT,
    figure2_dist1_dist2.EXPERIMENT,
    figure3_convergence.EXPERIMENT,
    appendix_runtime.EXPERIMENT,
]


def normal_cells(low: float = -5.0, high: float = 5.0) -> Cells:
    return cells_of(lambda at: -0.5 * at**2, (low,), (high,), (100,))


def test_divergence_of_a_shifted_normal() -> None:
    """KL(p, q) + KL(q, p) of N(0, 1) and N(0.5, 1) is 0.25."""
    cells, shifted = (
        normal_cells(),
        cells_of(lambda at: -0.5 * (at - 0.5) ** 2, (-5.0,), (5.0,), (100,)),
    )
    assert cells.symmetric_kl(1e12 * shifted.masses) == pytest.approx(0.25, rel=0.02)
    assert cells.symmetric_kl(1e12 * cells.masses) == pytest.approx(0.0, abs=1e-9)


def test_divergence_of_exact_draws_is_cells_over_draws() -> None:
    """For exact draws n KL is nearly a chi-square with one degree of freedom less than there are
    cells.
    """
    cells = normal_cells()
    draws = np.random.default_rng(0).normal(size=(20_000, 20, 1))
    freedom = cells.is_kept.sum()
    scaled = 20_000 * cells.symmetric_kl(cells.count_draws(draws))
    assert scaled.mean() == pytest.approx(freedom, abs=5 * np.sqrt(2 * freedom / 20))
    # a density that is wrong by a tenth of its width is found out
    assert 20_000 * cells.symmetric_kl(cells.count_draws(1.1 * draws)).mean() > 3 * freedom


def test_cells_keep_the_axes_apart() -> None:
    """Dist1 with its coordinates exchanged is another density."""
    generator = np.random.default_rng(0)
    second = generator.normal(0.0, 2.0, 100_000)
    exact = np.stack([second**2 / 4.0 + generator.normal(size=second.size), second], axis=-1)[
        :, None
    ]
    cells = cells_for("Dist1")
    assert cells.symmetric_kl(cells.count_draws(exact))[0] == pytest.approx(
        cells.is_kept.sum() / second.size, rel=0.3
    )
    assert cells.symmetric_kl(cells.count_draws(exact[..., ::-1]))[0] > 1.0


def test_draws_outside_and_not_a_number_are_counted_outside() -> None:
    counts = normal_cells(-1.0, 1.0).count_draws(
        np.array([[0.0], [9.0], [-9.0], [np.nan], [np.inf]])
    )
    assert counts.sum() == 5
    assert counts[0, -1] == 4


def test_masses_are_those_of_the_density() -> None:
    assert normal_cells(-2.0, 2.0).masses[:-1].sum() == pytest.approx(0.9544997, abs=1e-6)
    assert cells_for("Dist1").masses.sum() == pytest.approx(1.0)


def test_counted_draws_are_all_there() -> None:
    counts, rate = count_draws(
        make_sampler("AMAGOLD", "Dist1", 0.15),
        "Dist1",
        FinishedParts(Path(), "x").key("y"),
        1,
        400,
        200,
        200,
    )
    assert counts.sum() == 400
    assert 0.5 < rate < 1.0


def test_iterations_to_a_level() -> None:
    iterations = places(100, 10_000)
    assert iterations[0] == 100
    assert iterations[-1] == 10_000
    falling = [[1.0 / count] for count in iterations]
    assert reached(iterations, falling, 1 / 1234) == pytest.approx(1234)
    assert reached(iterations, falling, 1e-9) == 10_000


def falling(iterations: list[int], factor: float, bias: float) -> list[list[float]]:
    return [[factor / count + bias, 1.1 * factor / count + bias] for count in iterations]


def ideal(name: str) -> dict[str, Any]:
    """Numbers as they should come out: Monte Carlo error for exact methods, a bias for SGHMC."""
    steps = [0.01, 0.05, 0.15, 0.25]
    iterations = places(100, 100_000)
    if name == "double-well":
        exact = {"kl": [[0.2, 0.1], *3 * [[0.002, 0.003]]], "joint_kl": [0.08, 3e-4, 3e-4, 3e-4]}
        biased = {
            "kl": [[0.2, 0.1], [0.01, 0.01], [0.02, 0.02], [0.06, 0.06]],
            "joint_kl": [0.08, 0.01, 0.02, 0.06],
        }
        tuned = {"kl": [0.002, 0.004], "acceptance": 0.86}
        return {
            "step_sizes": steps,
            "methods": {"AMAGOLD": exact, "SGHMC": biased, "tuned AMAGOLD": tuned},
        }
    if name == "dist":
        exact = {
            problem: {"kl": [0.02, 1e-3, 1e-3, 1e-3], "group_kl": [[0.1] * 5, *3 * [[5e-3] * 5]]}
            for problem in figure2_dist1_dist2.PROBLEMS
        }
        biased = {
            problem: {"kl": [0.02, 0.01, 0.02, 0.05], "group_kl": [[0.1] * 5] * 4}
            for problem in figure2_dist1_dist2.PROBLEMS
        }
        biased = {
            problem: found | {"group_kl": [[value + 4e-3] * 5 for value in found["kl"]]}
            for problem, found in biased.items()
        }
        return {
            "step_sizes": steps,
            "methods": {"AMAGOLD": exact, "HMC": exact, "L2MC": exact, "SGHMC": biased},
        }
    curves = {
        "AMAGOLD": falling(iterations, 600.0, 0.0),
        "L2MC": falling(iterations, 400.0, 0.0),
        "SGHMC": falling(iterations, 500.0, 0.05),
    }
    if name == "convergence":
        rates = {"AMAGOLD": 0.76, "L2MC": 1.0, "SGHMC": 1.0}
        methods = {
            method: {"kl": curve, "acceptance": rates[method]} for method, curve in curves.items()
        }
        return {
            "iterations": iterations,
            "num_samples": 100_000,
            "bound": {"gap_ratio": 1.6e-3},
            "methods": methods,
        }
    seconds = {"AMAGOLD": 1.3e-6, "SGHMC": 1e-6}
    methods = {
        method: {
            problem: {"kl": curves[method], "seconds_per_draw": seconds[method]}
            for problem in appendix_runtime.PROBLEMS
        }
        for method in seconds
    }
    return {"iterations": iterations, "methods": methods}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_verdict_needs_amagold(experiment: Experiment) -> None:
    """The claim holds for ideal numbers, and not when AMAGOLD's are SGHMC's."""
    numbers = ideal(experiment.name)
    verdict = judge(experiment, numbers)
    assert verdict.word == "holds", [check for check in verdict.checks if not check.holds]
    assert judge(experiment, impostor(numbers)).word == "does not hold"


@pytest.mark.slow
def test_bias_of_sghmc_is_seen_in_real_draws() -> None:
    """Of draws that are together twenty times as many, AMAGOLD's divergence falls, and SGHMC's
    stays.
    """
    cells = cells_for("double well")
    left = {}
    for method in ("AMAGOLD", "SGHMC"):
        counts = count_draws(
            make_sampler(method, "double well", 0.25),
            "double well",
            FinishedParts(Path(), "x").key(method),
            20,
            8000,
            1000,
            1000,
        ).counts
        left[method] = cells.symmetric_kl(counts.sum(axis=0)) / cells.symmetric_kl(counts).mean()
    assert left["AMAGOLD"] < 0.2
    assert left["SGHMC"] > 0.5
