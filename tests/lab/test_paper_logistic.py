"""The experiments on logistic regression, small, and the checks with SGHMC's numbers in AMAGOLD's
place.
"""

import json

import numpy as np
import pytest

from amagold import datasets
from amagold_lab.paper import appendix_acceptance, figure4_logistic
from amagold_lab.paper.experiment import judge
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.logistic_findings import compared, ratios, times


def test_the_credit_data_is_whole():
    table = datasets.australian(standardise=False)
    assert table.X.shape == (690, 14)
    assert np.bincount(table.y).tolist() == [383, 307]
    assert np.isfinite(table.X).all()
    assert len(set(table.names)) == 14
    # means that the repository's description gives, which misplaced decimal points would change
    np.testing.assert_allclose(table.X.mean(axis=0)[[1, 2, 6]], [31.57, 4.76, 2.22], atol=0.005)
    np.testing.assert_allclose(datasets.australian().X.std(axis=0), 1.0, rtol=1e-4)


def quick_truth(table, num_chains, num_samples, seed):
    """In the place of a long run, whose planning alone takes longer than these tests."""
    del table, seed
    return {
        "mean": [0.1] * 14,
        "sd": [0.2] * 14,
        "variance": [1e-6] * 14,
        "draws": num_chains * num_samples,
        "label": "exact",
    }


def quick_plan(table, truth, num_chains, num_samples, seed):
    del table, truth, num_chains, num_samples, seed
    return {"seconds": [0.1, 0.2, 0.3], "error": [0.01, 0.005, 0.001], "acceptance": 0.9}


@pytest.fixture(params=["logistic", "acceptance"])
def finished(request, tmp_path, monkeypatch):
    """A tiny run of an experiment, with the folder of its parts."""
    monkeypatch.setattr(figure4_logistic, "find_truth", quick_truth)
    monkeypatch.setattr(figure4_logistic, "race_planned", quick_plan)
    experiment = {"logistic": figure4_logistic, "acceptance": appendix_acceptance}[
        request.param
    ].EXPERIMENT
    said: list[str] = []
    numbers = experiment.compute(
        experiment.settings["tiny"],
        FinishedParts(tmp_path, experiment.name, seed=0, say=said.append),
    )
    assert len(said) == len(set(said)) == experiment.num_parts(experiment.settings["tiny"])
    return experiment, numbers, tmp_path


@pytest.mark.slow
def test_a_tiny_run_has_everything(finished):
    experiment, numbers, folder = finished
    text = json.dumps(numbers)
    assert judge(experiment, json.loads(text)).word in ("holds", "does not hold", "cannot be told")
    for name, figure in experiment.pictures(numbers).items():
        figure.savefig(folder / f"{name}.png")
    for table in experiment.tables(numbers):
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)
    # a second run reads the parts and computes nothing
    assert (
        json.dumps(
            experiment.compute(
                experiment.settings["tiny"], FinishedParts(folder, experiment.name, seed=0)
            )
        )
        == text
    )


def made_up_numbers():
    """Numbers as a long run gives them, made by hand."""

    def sweep(error, noise, rates):
        words = ("error", "spread", "noise", "excess", "widening", "acceptance", "seconds")
        return [
            dict(zip(words, (error, noise, noise, error / noise, 1.0, rate, 1.0), strict=True))
            for rate in rates
        ]

    def race(per_draw, floor):
        seconds = [per_draw * 1e4 * count for count in range(1, 21)]
        return {
            "0.0001": {
                "seconds": seconds,
                "error": [floor + 1.0 / count for count in range(1, 21)],
                "acceptance": 1.0,
                "per_draw": per_draw,
            }
        }

    costs = {"AMAGOLD": 7e-6, "SGHMC": 4e-6, "HMC": 29e-6, "L2MC": 29e-6}
    methods = {
        name: {"sweep": {}, "race": {"heart": race(cost, 0.2 if name == "SGHMC" else 0.0)}}
        for name, cost in costs.items()
    }
    methods["AMAGOLD"]["sweep"]["heart"] = sweep(1e-5, 1e-5, (1.0, 0.9, 0.5, 0.0))
    methods["SGHMC"]["sweep"]["heart"] = sweep(1e-4, 1e-5, (1.0, 1.0, 1.0, 1.0))
    methods["tuned HMC"] = {"sweep": {}, "race": {"heart": race(29e-6, 0.0)["0.0001"]}}
    settings = figure4_logistic.LogisticSettings(
        (1e-6, 1e-3, 5e-3, 7e-2), tables=("heart",)
    )._asdict()
    return settings | {
        "races": [{"step_size": 1e-4}],
        "problems": {"heart": {"widest": 0.25}},
        "methods": methods,
    }


def test_errors_are_compared_where_chains_converge_and_the_test_accepts():
    numbers = made_up_numbers()
    assert compared(numbers, "heart") == [1, 2]
    assert ratios(numbers) == pytest.approx({("heart", 1e-3): 10.0, ("heart", 5e-3): 10.0})


def test_seconds_are_for_the_same_error():
    level, needed = times(made_up_numbers(), "heart", 1e-4)
    assert level == pytest.approx(0.05)
    assert needed["HMC"] / needed["AMAGOLD"] == pytest.approx(29 / 7)
    assert needed["SGHMC"] == float("inf")


def test_the_claim_on_errors_holds_for_amagold_and_fails_for_sghmc():
    verdict = judge(figure4_logistic.EXPERIMENT, made_up_numbers())
    assert verdict.word == "holds"
    assert [check.holds for check in verdict.control] == [False, False, False, True]


def test_the_claim_on_acceptance_holds_for_amagold_and_fails_for_sghmc():
    rates = [1.0, 0.9, 0.52, 0.0]
    methods = {"AMAGOLD": {"acceptance": rates}, "SGHMC": {"acceptance": [1.0] * 4}}
    numbers = {"step_sizes": [1e-6, 1e-3, 5e-3, 7e-2], "predicted": rates, "methods": methods}
    verdict = judge(appendix_acceptance.EXPERIMENT, numbers)
    assert verdict.word == "holds"
    assert [check.holds for check in verdict.control] == [True, False, False, False]
