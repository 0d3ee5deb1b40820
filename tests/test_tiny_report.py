"""Every item of the paper from end to end, in sizes too small for a verdict, and the page in a browser."""

import json

import pytest
from browser import look_at

from amagold.cli import main
from amagold.paper.item import judge
from amagold.paper.items import MODULES, items_named


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `amagold reproduce --preset tiny` leaves; a claim may fail at this size."""
    folder = tmp_path_factory.mktemp("tiny")
    assert main(["reproduce", "--preset", "tiny", "--output", str(folder)]) in (0, 1)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return json.loads((folder / "numbers.json").read_text())["items"]


@pytest.mark.xdist_group("tiny report")
@pytest.mark.parametrize("name", MODULES)
def test_the_item_is_whole(name, folder, found):
    (item,) = items_named([name])
    assert "unavailable" not in found[name]
    verdict = judge(item, found[name]["numbers"])
    assert len(verdict.checks) == len(found[name]["checks"]) > 0
    assert {"AMAGOLD", "SGHMC"} <= found[name]["numbers"]["methods"].keys()
    assert found[name]["pictures"]
    assert all((folder / picture).stat().st_size > 5_000 for picture in found[name]["pictures"])
    tables = item.tables(found[name]["numbers"])
    assert tables
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)
    assert item.num_parts(item.settings["tiny"]) == len(list((folder / "parts" / name).glob("*.json")))


@pytest.mark.xdist_group("tiny report")
def test_the_same_command_again_computes_nothing(folder, found):
    before = {path: path.stat().st_mtime_ns for path in (folder / "parts").rglob("*.json")}
    assert main(["reproduce", "--preset", "tiny", "--output", str(folder)]) in (0, 1)
    assert {path: path.stat().st_mtime_ns for path in (folder / "parts").rglob("*.json")} == before
    again = json.loads((folder / "numbers.json").read_text())["items"]
    assert {name: item["numbers"] for name, item in again.items()} == {name: item["numbers"] for name, item in found.items()}


@pytest.mark.xdist_group("tiny report")
@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_shows_every_figure(folder, found, width):
    seen = look_at(folder / "report.html", width)
    assert seen.complaints == []
    assert len(seen.image_widths) == sum(len(item["pictures"]) for item in found.values())
    assert min(seen.image_widths) > 0
    assert seen.overflow <= 0, "the page scrolls sideways"
