"""What the package imports: core and simulator, and what draws pictures of environments."""

import ast
from pathlib import Path

import cards_learning

FOLDER = Path(cards_learning.__file__).parent

ALLOWED = {"cards_core", "cards_sim", "cards_learning"}


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
        drawn = {"cards_viz"} if file.name == "rendering.py" else set()
        inside = file.parent == FOLDER / "environments"
        for name in imported(file):
            top = name.split(".")[0]
            ours = top.startswith("cards") or top in ("controllers", "rclpy")
            assert not ours or top in ALLOWED | drawn, f"{file} imports {name}"
            assert inside or not name.startswith("cards_learning.environments")
            assert top != "gymnasium" or inside
