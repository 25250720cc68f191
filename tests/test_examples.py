"""Every example and notebook runs as it is, in a folder of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"

SAYS = {
    "hill_elbow": "flexed",
    "load_and_evaluate": "dl/dq against L",
    "model_errors": "0 diverged",
    "own_loop": "tensions [N]",
    "own_robot": "tracking error at most",
    "plate_on_rods": "stiffness [N/m]",
    "record_and_replay": "quantity='tension'",
    "simulate": "ok error",
    "tensegrity": "3 bodies, 9 cables",
    "workspace": "of the grid",
}
"""What each script says at its end."""

ELSEWHERE = {"springs", "train_cma", "train_ppo"}
"""A controller that is no script, and those that train: they have tests of their own."""


def run(arguments, folder):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_none_is_left_out():
    found = {file.stem for file in FOLDER.glob("*.py")}
    assert found - ELSEWHERE == set(SAYS)
    listed = (FOLDER / "README.md").read_text()
    for file in [*FOLDER.glob("*.py"), *FOLDER.glob("*.ipynb")]:
        assert f"({file.name})" in listed


@pytest.mark.parametrize("name", SAYS)
def test_scripts_run(name, tmp_path):
    assert SAYS[name] in run([str(FOLDER / f"{name}.py")], tmp_path)


@pytest.mark.parametrize("name", SAYS)
def test_scripts_are_short(name):
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 45


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_notebooks_run(file, tmp_path):
    """Their cells one after the other, as in a kernel."""
    cells = json.loads(file.read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    script = tmp_path / "cells.py"
    script.write_text("import matplotlib\nmatplotlib.use('Agg')\n" + code + "\n")
    run([str(script)], tmp_path)
