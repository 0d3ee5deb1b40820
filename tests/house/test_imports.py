"""The rooms stand in a row, and imports only point to the left."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent / "src"
ROOMS = (
    *(
        "core",
        "processes",
        "data",
        "target",
        "energy",
        "mode",
        "batches",
        "gradients",
        "trajectory",
    ),
    *("acceptance", "samplers", "runner", "planning", "adaptation", "store", "priors", "models"),
    *("datasets", "diagnose", "report", "sampling", "tables", "interop", "cli"),
)


def imports_of(file):
    """The amagold modules that a file imports when it is imported; functions may import late."""
    late = {
        inner
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        for inner in map(ast.dump, ast.walk(node))
    }
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and ast.dump(node) not in late:
            yield str(node.module), [alias.name for alias in node.names]


def test_every_room_has_its_place():
    found = {
        path.name for path in (SOURCE / "amagold").iterdir() if (path / "__init__.py").exists()
    }
    assert found == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_to_the_left(room):
    files = list((SOURCE / "amagold" / room).rglob("*.py"))
    assert files
    for file in files:
        for module, names in imports_of(file):
            others = {module.split(".")[1]} if module.startswith("amagold.") else set()
            if module == "amagold":
                others = set(names) & set(ROOMS)
            for other in others:
                assert ROOMS.index(other) <= ROOMS.index(room), f"{file.name} imports {module}"
            assert not module.startswith("amagold_lab"), f"{file.name} imports the laboratory"
