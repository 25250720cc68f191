"""Controllers from Python files: found, run, and refused with a reason."""

from pathlib import Path

import numpy as np
import pytest

import cards
from cards_core.control import registry
from cards_core.control.registry import controller_class, controller_file, controller_kinds
from cards_core.errors import CardsError

SPRINGS = Path(__file__).resolve().parents[4] / "examples" / "springs.py"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Nothing of a test is known to the next one."""
    monkeypatch.setattr(registry, "_of_files", {})


def test_a_file_makes_a_controller_known():
    assert controller_file(SPRINGS) == "springs"
    assert "springs" in controller_kinds()
    assert controller_class("springs").__name__ == "Springs"
    robot = cards.load("planar_2r")
    run = cards.simulate(
        cards.Simulator(robot), cards.Controller("springs", robot, stiffness=300.0), duration=0.2
    )
    commanded, lengths = run["command_tensions"], run["muscle_lengths"]
    np.testing.assert_allclose(commanded[0], 50.0)  # at the first lengths
    # a command is the answer to the state before it
    within = ((commanded > 10.0) & (commanded < 100.0))[1:]
    both = within[1:] & within[:-1]
    slope, rate = np.diff(commanded[1:], axis=0), np.diff(lengths[:-1], axis=0)
    np.testing.assert_allclose(slope[both], 300.0 * rate[both], atol=1e-9)
    assert both.sum() > 100


def test_it_may_be_read_again_after_a_change(tmp_path):
    file = tmp_path / "mine.py"
    text = SPRINGS.read_text()
    for summary in ("one", "another"):
        file.write_text(
            text.replace('muscles as springs about their first lengths"', summary + '"')
        )
        assert controller_class(controller_file(file)).summary.startswith(summary)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has 0 controllers: none"),
        ("def f(:\n", "cannot be run: SyntaxError"),
        ("raise RuntimeError('no')\n", "cannot be run: RuntimeError: no"),
        ("from cards_core.control.interface import Controller\n", "has 0 controllers"),
        (
            "from cards_core.control.interface import Controller\n"
            "class A(Controller): kind = 'a'\n",
            "A lacks ",
        ),
        (
            "from cards_core.control.interface import Controller\nclass A(Controller): kind = 3\n",
            "the kind of A is 3",
        ),
        (
            "from cards_core.control.interface import Controller\n"
            "class A(Controller): kind = 'a'\nclass B(Controller): kind = 'b'\n",
            "has 2 controllers: A, B",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, text, message):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(CardsError, match=message):
        controller_file(file)
    assert "a" not in controller_kinds()


def test_a_kind_that_is_taken_and_a_file_that_is_not_there(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(SPRINGS.read_text().replace('kind = "springs"', 'kind = "mrc"'))
    with pytest.raises(CardsError, match="the kind 'mrc' is taken"):
        controller_file(file)
    with pytest.raises(CardsError, match="no such file"):
        controller_file(tmp_path / "nothing.py")
