"""Every example and notebook runs as it is, in a folder of its own."""

import ast
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load

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


KERNEL = """
import ast, contextlib, io, json, sys
import matplotlib
matplotlib.use("Agg")
names = {"__name__": "__main__"}
for line in sys.stdin:
    cell = json.loads(line)
    body = ast.parse(cell)
    shown = body.body and isinstance(body.body[-1], ast.Expr) and not cell.rstrip().endswith(";")
    last = ast.Expression(body.body.pop().value) if shown else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(body, "cell", "exec"), names)
        value = eval(compile(last, "cell", "eval"), names) if shown else None
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    print(json.dumps({"said": said.getvalue(), "text": repr(value), "html": html}), flush=True)
"""
"""Runs cells as a kernel of Jupyter does: the last expression of a cell is its output."""


class Notebook:
    """A process that runs cells."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-c", KERNEL], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, cell):
        """Return what a cell says, and its output as text and HTML."""
        self._process.stdin.write(json.dumps(cell) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1][-2000:]
        return json.loads(line)

    def value(self, expression):
        return ast.literal_eval(self.run(expression)["text"])

    def close(self):
        self._process.communicate(timeout=60)


@pytest.fixture
def notebook(tmp_path):
    made = Notebook(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_notebooks_run(file, notebook):
    cells = json.loads(file.read_text())["cells"]
    pages = []
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        source = "".join(cell["source"])
        made = notebook.run(source)
        if made["html"]:
            pages.append(page_of(made["html"]))
    assert len(pages) == sum("cards.show(" in "".join(cell["source"]) for cell in cells)


def page_of(html):
    """Return the address of the page that an output embeds, which must answer."""
    (address,) = re.findall('<iframe src="([^"]+)"', html)
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert answer.status == 200
        assert b"<!doctype html>" in answer.read(1000)
    return address


def test_a_view_in_a_notebook_shows_the_values_of_the_run(notebook):
    """The hand in the page is where forward kinematics have it at the time that is shown."""
    notebook.run("import cards\nimport numpy as np\nrobot = cards.load('planar_2r')")
    assert page_of(notebook.run("still = cards.show(robot, port=0, block=False)\nstill")["html"])
    tip = "[float(x) for x in {}.page.server.scene._handle_from_node_name['/path/tip'].position]"
    dynamics = make_dynamics(load("planar_2r"), "numeric")

    def hand(q):
        q = np.array(q)
        return dynamics.operational(q, np.zeros_like(q)).position

    def check(view, wanted, when):
        for _ in range(600):  # the page follows at its next frame
            found = np.array(notebook.value(tip.format(view)))
            if np.abs(found - wanted).max() < 1e-6:
                break
            notebook.run("import time; time.sleep(0.1)")
        np.testing.assert_allclose(found, wanted, atol=1e-6, err_msg=when)

    check("still", hand(dynamics.tree.home), "at home")
    notebook.run("run = cards.simulate(cards.Simulator(robot), duration=0.3)")
    notebook.run("view = cards.show(run, port=0, block=False)")
    page = page_of(notebook.run("view")["html"])
    places = []
    for time in (0.05, 0.25, 0.15):
        notebook.run(f"view.seek({time})")
        row = f"run.q[int(np.searchsorted(run.time, {time}, side='right')) - 1].tolist()"
        wanted = hand(notebook.value(row))
        check("view", wanted, f"at {time} s")
        places.append(wanted)
    assert np.ptp(places, axis=0).max() > 0.05  # it moved
    notebook.run("view.close(), still.close()")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page, timeout=60)
