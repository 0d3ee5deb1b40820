"""The results that the documents show follow from the numbers beside them, and would not follow
from SGHMC's draws.
"""

import json
from pathlib import Path

import pytest

from amagold_lab.paper.item import judge
from amagold_lab.paper.items import MODULES, items_named

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"
STORED = json.loads((RESULTS / "numbers.json").read_text())["items"]


def test_every_item_is_there():
    assert list(STORED) == list(MODULES)


@pytest.mark.parametrize("name", STORED)
def test_the_verdict_follows_from_the_numbers(name):
    (item,) = items_named([name])
    verdict = judge(item, STORED[name]["numbers"])
    assert verdict.word == STORED[name]["verdict"]
    assert [check.sentence for check in verdict.checks] == [
        check["sentence"] for check in STORED[name]["checks"]
    ]
    assert not all(check.holds for check in verdict.control), (
        "SGHMC's draws must not pass as AMAGOLD's"
    )


@pytest.mark.parametrize("name", STORED)
def test_figures_and_tables_can_be_made_again(name):
    (item,) = items_named([name])
    numbers = STORED[name]["numbers"]
    made = {
        f"{item.name}-{picture}.png" if picture else f"{item.name}.png"
        for picture in item.pictures(numbers)
    }
    assert made == set(STORED[name]["pictures"])
    assert all((RESULTS / picture).is_file() for picture in made)
    assert all(
        len(row) == len(table.header) for table in item.tables(numbers) for row in table.rows
    )
