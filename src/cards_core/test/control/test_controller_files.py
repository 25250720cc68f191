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


# What is no controller ---------------------------------------------------------------------------


def test_the_controllers_of_cards_come_first():
    own = ["ctc_joint", "ctc_operational", "mrc", "impedance", "cpg"]
    assert controller_kinds()[:5] == own
    controller_file(SPRINGS)
    assert controller_kinds()[:6] == [*own, "springs"]
    assert len(set(controller_kinds())) == len(controller_kinds())
    for kind in own:
        assert controller_class(kind).kind == kind


def test_a_constructor_that_forgets_something_is_told_what():
    robot = cards.load("planar_2r")
    whole = registry.make_controller("ctc_joint", robot)
    registry.check_controller(whole)
    for name, remedy in (("output", "all"), ("relaxed", "all"), ("reference_names", "all")):
        broken = registry.make_controller("ctc_joint", robot)
        del broken.__dict__[name]
        with pytest.raises(CardsError, match=rf"'ctc_joint' has no {name} .expected: {remedy}"):
            registry.check_controller(broken)
    del broken.__dict__["model"]
    words = r"has no model, reference_names .expected: super\(\).__init__\(model\)"
    with pytest.raises(CardsError, match=words):
        registry.check_controller(broken)
    for wrong in (None, type(whole), "ctc_joint"):
        with pytest.raises(CardsError, match="an instance of Controller"):
            registry.check_controller(wrong)
    whole.command = 3
    with pytest.raises(CardsError, match="command of controller 'ctc_joint'"):
        registry.check_controller(whole)


def test_a_class_says_spaces_and_commands_that_there_are(tmp_path):
    text = SPRINGS.read_text()
    for old, new, words in (
        ('space = "joint"', 'space = "polar"', "has the space 'polar' .expected: joint or oper"),
        ('commands = ("force",)', 'commands = ("push",)', "commands of the kind 'push'"),
        ('kind = "springs"', 'kind = "a/b"', "the kind of Springs is 'a/b'"),
    ):
        assert old in text
        (tmp_path / "mine.py").write_text(text.replace(old, new))
        with pytest.raises(CardsError, match=words):
            controller_file(tmp_path / "mine.py")
    (tmp_path / "mine.txt").write_text(text)
    with pytest.raises(CardsError, match=r"is no Python file .expected: a name that ends in \.py"):
        controller_file(tmp_path / "mine.txt")
    # what a file imports from elsewhere is none of its own
    imported = "from cards_core.control.ctc_joint import CtcJoint\n"
    (tmp_path / "mine.py").write_text(imported + text)
    assert controller_file(tmp_path / "mine.py") == "springs"


def test_those_that_suit_a_robot():
    robot = cards.load("planar_2r")
    suited = registry.suited_controllers(robot)
    assert {"ctc_joint", "ctc_operational", "impedance", "cpg"} <= set(suited)
    assert "mrc" not in suited
    registry.check_suited("ctc_joint", robot)
    with pytest.raises(CardsError, match="controller 'mrc' cannot drive planar_2r: muscle 'cable"):
        registry.check_suited("mrc", robot)
    with pytest.raises(CardsError, match="the robot"):
        registry.make_controller("ctc_joint", "planar_2r")


def test_one_that_fails_to_say_whether_it_suits_is_left_out_with_a_warning(monkeypatch):
    robot = cards.load("planar_2r")
    controller_file(SPRINGS)

    def broken(_robot):
        raise RuntimeError("no")

    monkeypatch.setattr(controller_class("springs"), "unsuited", broken)
    with pytest.warns(UserWarning, match=r"'springs' is left out: RuntimeError\('no'\)"):
        assert "springs" not in registry.suited_controllers(robot)
    monkeypatch.setattr(controller_class("ctc_joint"), "unsuited", broken)
    with pytest.raises(RuntimeError, match="no"):
        registry.suited_controllers(robot)
