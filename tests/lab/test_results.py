"""The results that the documents show follow from the numbers beside them, and would not follow
from SGHMC's draws.
"""

import json
from pathlib import Path

import pytest

from amagold_lab.paper.experiment import judge
from amagold_lab.paper.experiment_list import MODULES, experiments_named

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"
STORED = json.loads((RESULTS / "numbers.json").read_text())["items"]


def test_every_experiment_is_there():
    assert list(STORED) == list(MODULES)


@pytest.mark.parametrize("name", STORED)
def test_the_verdict_follows_from_the_numbers(name):
    (experiment,) = experiments_named([name])
    verdict = judge(experiment, STORED[name]["numbers"])
    assert verdict.word == STORED[name]["verdict"]
    assert [check.sentence for check in verdict.checks] == [
        check["sentence"] for check in STORED[name]["checks"]
    ]
    assert not all(check.holds for check in verdict.control), (
        "SGHMC's draws must not pass as AMAGOLD's"
    )


@pytest.mark.parametrize("name", STORED)
def test_figures_and_tables_can_be_made_again(name):
    (experiment,) = experiments_named([name])
    numbers = STORED[name]["numbers"]
    made = {
        f"{experiment.name}-{picture}.png" if picture else f"{experiment.name}.png"
        for picture in experiment.pictures(numbers)
    }
    assert made == set(STORED[name]["pictures"])
    assert all((RESULTS / picture).is_file() for picture in made)
    assert all(
        len(row) == len(table.header) for table in experiment.tables(numbers) for row in table.rows
    )
