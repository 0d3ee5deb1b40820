"""No file and no class of the two packages shares its name with another, so that a name leads to
one place.
"""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent.parent / "src"


def shared_names(folder):
    """Names that several files or several classes have, and where. Leading underscores and a plural
    s tell no two names apart.
    """
    places = defaultdict(list)
    for file in sorted(folder.rglob("*.py")):
        found = [
            ("class", node.name)
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.ClassDef)
        ]
        if file.stem not in ("__init__", "__main__"):
            found.append(("file", file.stem))
        for kind, name in found:
            places[kind, name.lstrip("_").rstrip("s")].append(str(file))
    return {name: where for name, where in places.items() if len(where) > 1}


def test_every_file_and_class_has_a_name_of_its_own():
    assert len(list(SOURCE.rglob("*.py"))) > 100
    assert not shared_names(SOURCE)


def test_a_name_given_twice_is_found(tmp_path):
    for place, text in {
        "one/__init__.py": "",
        "two/__init__.py": "",
        "one/_chain.py": "class Settings: ...",
        "two/chain_picture.py": "class DemoSettings: ...",
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    assert not shared_names(tmp_path)
    (tmp_path / "two" / "chains.py").write_text("def build():\n    class _Setting: ...")
    assert set(shared_names(tmp_path)) == {("file", "chain"), ("class", "Setting")}
