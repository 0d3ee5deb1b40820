"""Every experiment of the paper from end to end, in sizes too small for a verdict, and the page in
a browser.
"""

import json

import pytest
from browser import look_at

from amagold_lab.cli import main
from amagold_lab.paper.experiment import judge
from amagold_lab.paper.experiment_list import MODULES, experiments_named


def check_experiment(name, folder, found):
    (experiment,) = experiments_named([name])
    assert "unavailable" not in found[name]
    verdict = judge(experiment, found[name]["numbers"])
    assert len(verdict.checks) == len(found[name]["checks"]) > 0
    assert {"AMAGOLD", "SGHMC"} <= found[name]["numbers"]["methods"].keys()
    assert found[name]["pictures"]
    assert all((folder / picture).stat().st_size > 5_000 for picture in found[name]["pictures"])
    tables = experiment.tables(found[name]["numbers"])
    assert tables
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)
    assert experiment.num_parts(experiment.settings["tiny"]) == len(
        list((folder / "parts" / name).glob("*.json"))
    )


@pytest.mark.slow
def test_every_experiment_and_the_page(tmp_path):
    """One test, so that the run is made once; a claim may fail at this size."""
    command = ["reproduce", "--preset", "tiny", "--output", str(tmp_path)]
    assert main(command) in (0, 1)
    found = json.loads((tmp_path / "numbers.json").read_text())["items"]
    for name in MODULES:
        check_experiment(name, tmp_path, found)

    # the same command again computes nothing
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.json")}
    assert main(command) in (0, 1)
    assert {
        path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.json")
    } == before

    for width in (1200, 390):
        seen = look_at(tmp_path / "report.html", width)
        assert seen.complaints == []
        assert len(seen.image_widths) == sum(
            len(experiment["pictures"]) for experiment in found.values()
        )
        assert min(seen.image_widths) > 0
        assert seen.overflow <= 0, "the page scrolls sideways"
