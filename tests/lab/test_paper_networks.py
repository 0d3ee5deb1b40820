"""The network experiments: their chains are kept and gone on with, their checks can fail, and
scores are what they say.
"""

from functools import partial

import numpy as np
import pytest

import amagold
from amagold.datasets._download import DataMissingError
from amagold_lab.paper import figure5_uncertainty, images, network_chains, table2_network_error
from amagold_lab.paper.experiment import UnavailableError, judge
from amagold_lab.paper.finished_parts import FinishedParts
from amagold_lab.paper.network_chains import BIASED, EXACT, NetworkChain, StoredNetworkChains
from amagold_lab.paper.network_settings import TINY
from amagold_lab.paper.predictions import (
    ENTROPIES,
    SURE,
    averaged,
    percent_wrong,
)

PLACES = [
    NetworkChain(EXACT, decay, rate).place for decay in (5e-6, 0.01) for rate in (0.0005, 0.001)
]


def table_of(exact, biased):
    """Numbers of bnn with these test errors."""

    def chain(error):
        return {"ensemble_error": error, "start_error": 3.8}

    methods = {EXACT: exact, BIASED: biased}
    return {
        "methods": {
            name: {place: [chain(error)] for place, error in zip(PLACES, errors, strict=True)}
            for name, errors in methods.items()
        }
    }


def test_table_as_printed_holds():
    assert (
        judge(
            table2_network_error.EXPERIMENT,
            table_of((3.65, 3.63, 3.63, 3.65), (89.95, 89.70, 3.69, 3.77)),
        ).word
        == "holds"
    )


@pytest.mark.parametrize(
    ("exact", "biased"),
    [
        ((89.9, 3.6, 3.6, 3.6), (89.9, 89.9, 3.7, 3.7)),  # AMAGOLD collapses too
        ((90.0, 90.0, 90.0, 90.0), (89.9, 89.9, 3.7, 3.7)),  # everywhere
        ((3.6, 3.6, 3.6, 3.6), (89.9, 3.6, 3.7, 3.7)),  # SGHMC does not
        ((float("nan"), 3.6, 3.6, 3.6), (89.9, 89.9, 3.7, 3.7)),
    ],
)
def test_table_that_does_not_hold(exact, biased):
    assert judge(table2_network_error.EXPERIMENT, table_of(exact, biased)).word == "does not hold"


def sureness(exact, biased):
    """Numbers of uncertainty with all letters at these entropies."""

    def chain(entropy):
        return {
            "letters": {
                "below": (entropy <= ENTROPIES).astype(float).tolist(),
                "sure_of_draws": 0.9 if entropy < SURE else 0.1,
            }
        }

    methods = {EXACT: exact, BIASED: biased}
    return {
        "methods": {
            name: {place: [chain(value)] for place, value in zip(PLACES, values, strict=True)}
            for name, values in methods.items()
        }
    }


def test_uncertainty():
    assert (
        judge(
            figure5_uncertainty.EXPERIMENT, sureness((1.0, 1.0, 1.0, 1.0), (0.01, 0.01, 1.0, 1.0))
        ).word
        == "holds"
    )
    assert (
        judge(
            figure5_uncertainty.EXPERIMENT, sureness((1.0, 0.1, 1.0, 1.0), (0.01, 0.01, 1.0, 1.0))
        ).word
        == "does not hold"
    )
    assert (
        judge(
            figure5_uncertainty.EXPERIMENT, sureness((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0))
        ).word
        == "does not hold"
    )


@pytest.mark.slow
def test_a_chain_is_kept_and_gone_on_with(monkeypatch, tmp_path):
    train, test = images.digits("synthetic", TINY.problem.num_examples, TINY.problem.num_test)
    chain = TINY.chains[0]._replace(num_warmup=40, target_acceptance=0.8)
    networks = StoredNetworkChains(TINY.problem, train, tmp_path)
    with monkeypatch.context() as stopped:
        stopped.setattr(network_chains, "sample", partial(amagold.sample, max_time=1e-6))
        assert networks.run(chain).is_partial
    whole = networks.run(chain)
    assert not whole.is_partial
    assert [path.name for path in sorted(networks.folder.iterdir())] == [
        f"{chain.name}.zarr",
        "start-repeat0.npz",
    ]
    again = StoredNetworkChains(TINY.problem, train, tmp_path)
    predicted = averaged(whole, networks.target, test.X)
    assert np.array_equal(averaged(again.run(chain), again.target, test.X), predicted)
    other = StoredNetworkChains(TINY.problem, train, tmp_path, seed=1)
    assert other.folder != networks.folder
    assert not np.array_equal(other.start(0)[0]["weights"], networks.start(0)[0]["weights"])


def test_without_digits(monkeypatch, tmp_path):
    def missing():
        raise DataMissingError("mnist was not found; set AMAGOLD_DATA")

    monkeypatch.setattr(images, "mnist", missing)
    with pytest.raises(UnavailableError, match="AMAGOLD_DATA"):
        table2_network_error.EXPERIMENT.compute(
            table2_network_error.EXPERIMENT.settings["quick"], FinishedParts(tmp_path, "bnn")
        )


def test_percent_wrong():
    predicted = np.array([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1], [np.nan, np.nan]])
    assert percent_wrong(predicted, np.array([0, 0, 0, 0])) == 50.0
