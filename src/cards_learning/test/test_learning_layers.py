"""What the package imports: core and simulator; its environments the front door, too."""

import ast
from pathlib import Path

import cards
import cards_learning

FOLDER = Path(cards_learning.__file__).parent

ALLOWED = {"cards_core", "cards_sim", "cards_learning"}

OF_ENVIRONMENTS = {"cards"}
"""What ``environments`` may import beside them, for `cards.Batch`."""


def imported(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_it_imports_core_and_simulator_only():
    files = [file for file in FOLDER.rglob("*.py") if "__pycache__" not in file.parts]
    assert files
    for file in files:
        inside = file.parent == FOLDER / "environments"
        allowed = ALLOWED | (OF_ENVIRONMENTS if inside else set())
        for name in imported(file):
            top = name.split(".")[0]
            ours = top.startswith("cards") or top in ("controllers", "rclpy")
            assert not ours or top in allowed, f"{file} imports {name}"
            assert inside or not name.startswith("cards_learning.environments")
            assert top != "gymnasium" or inside


def test_the_front_door_does_not_import_it():
    """Else both would be parts of a circle."""
    files = Path(cards.__file__).parent.rglob("*.py")
    for file in files:
        assert not any(name.split(".")[0] == "cards_learning" for name in imported(file)), file
