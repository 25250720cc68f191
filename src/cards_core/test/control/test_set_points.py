"""Controllers that lead set-points: whom they tell something, what, and what they refuse."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.control import ControlModel, make_controller
from cards_core.control.set_points import group_members, home_lengths, told_muscles
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError
from cards_core.formats import load
from cards_core.muscles.impedance import SLACK
from cards_core.robot.state import RobotState
from cards_core.trajectories import PointToPoint

ROBOT = load("tetraspine_hardware")
MODEL = ControlModel(ROBOT, "numeric")
NAMES = tuple(muscle.name for muscle in ROBOT.muscles)


def test_groups_are_those_that_a_pattern_fits():
    names = ("a.left", "a.right", "b.left")
    assert group_members(names, "g", {"g": ("*left",)}, {}).tolist() == [1.0, 0.0, 1.0]
    assert group_members(names, "g", {"g": ("b*", "a.r*")}, {}).tolist() == [0.0, 1.0, 1.0]
    assert group_members(names, "g", {"g": ()}, {}).tolist() == [0.0, 0.0, 0.0]
    # letters count
    with pytest.raises(ParameterError, match=r"g: no muscle is called 'A\.\*'.*a\.left, a\.right"):
        group_members(names, "g", {"g": ("A.*",)}, {})


def test_a_default_may_fit_no_muscle_and_a_pattern_of_a_user_may_not():
    patterns = {"g": ("*top*",)}
    assert group_members(("a",), "g", patterns, {"g": ("*top*",)}).tolist() == [0.0]
    for defaults in ({}, {"g": ("*bottom*",)}, {"g": ("*top*", "x")}):
        with pytest.raises(ParameterError, match=r"'\*top\*'"):
            group_members(("a",), "g", patterns, defaults)
    # one that fits does not excuse one that does not
    with pytest.raises(ParameterError, match="'b'"):
        group_members(("a",), "g", {"g": ("a", "b")}, {"g": ("a",)})


def test_muscles_that_take_no_set_points_are_not_told_any():
    mixed = load("wrap_elbow")
    takes = [m.name for m in mixed.muscles if "impedance" in m.actuator.accepted_commands]
    assert [m.name for m in told_muscles(mixed, ("*",))] == takes
    some = [m.name for m in told_muscles(ROBOT, ("v0-v1.*", NAMES[-1]))]
    assert some == [*(name for name in NAMES if name.startswith("v0-v1.")), NAMES[-1]]
    with pytest.raises(ParameterError, match="muscles: no muscle is called 'x'"):
        told_muscles(ROBOT, ("x",))


def test_lengths_at_home_are_those_of_the_paths():
    dynamics = make_dynamics(ROBOT, "numeric")
    tree = dynamics.tree
    lengths = dynamics.update(tree.home, np.zeros(tree.nv)).muscle_lengths
    backwards = NAMES[::-1]
    assert home_lengths(MODEL, backwards) == pytest.approx(lengths[::-1])


def test_what_a_controller_of_set_points_begins_with():
    item = make_controller("impedance", MODEL, tension=5.0, refresh_rate=40.0)
    parts = item.set_point_parts
    assert parts.period == 0.025
    assert parts.tension.tolist() == [5.0] * len(NAMES)
    assert parts.rest_length == pytest.approx(home_lengths(MODEL, NAMES))
    assert parts.home == pytest.approx(home_lengths(MODEL, NAMES))
    assert tuple(muscle.name for muscle in parts.muscles) == item.names == NAMES
    assert (item.reference_names, item.error_names) == ((), ())
    assert item.output.tensions.shape == (len(NAMES),)
    # they are its own
    parts.tension[:] = parts.rest_length[:] = parts.home[:] = 7.0
    assert item.set_point_parts.tension.tolist() == [5.0] * len(NAMES)
    assert item.set_point_parts.home.max() < 1.0


def test_an_emergency_stop_lets_all_muscles_go():
    item = make_controller("impedance", MODEL, tension=5.0)
    (part,) = item.relaxed
    assert (part.kind, tuple(part.names)) == ("impedance", NAMES)
    assert part.values.tolist() == part.rest_rates.tolist() == [0.0] * len(NAMES)
    assert part.rest_lengths.tolist() == [SLACK] * len(NAMES)


def test_tensions_of_the_output_are_of_all_muscles():
    item = make_controller("impedance", MODEL, tension=[3.0], groups={"muscles": (NAMES[4],)})
    nothing = np.full(ROBOT.tree.nq, np.nan)
    item.step(RobotState(0.0, nothing, nothing[: ROBOT.tree.nv]))
    assert item.output.tensions.tolist() == [3.0 * (name == NAMES[4]) for name in NAMES]


def test_references_have_no_coordinates():
    item = make_controller("impedance", MODEL)
    assert item.place(np.zeros(3), np.zeros(3)).shape == (0,)
    item.set_reference(None)
    with pytest.raises(ParameterError, match="the reference has 2 coordinates; expected 0"):
        item.set_reference(PointToPoint(np.zeros(2), np.ones(2), 1.0))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_makes_no_sense_is_refused(rate):
    with pytest.raises(ParameterError, match="refresh_rate"):
        make_controller("impedance", MODEL, refresh_rate=rate)


def test_the_largest_tension_itself_is_allowed():
    most = np.array([muscle.tension_max for muscle in ROBOT.muscles])
    item = make_controller("impedance", MODEL, tension=most)
    assert np.array_equal(item.set_point_parts.tension, most)
    over = most.copy()
    over[2] = np.nextafter(most[2], np.inf)
    weaker = (*ROBOT.muscles[:3], replace(ROBOT.muscles[3], tension_max=20.0), *ROBOT.muscles[4:])
    for robot, tension, name in (
        (ROBOT, over, NAMES[2]),
        (replace(ROBOT, muscles=weaker), np.full(len(NAMES), 21.0), NAMES[3]),
    ):
        with pytest.raises(ParameterError, match=f"T0 of '{name}' is .* largest tension"):
            make_controller("impedance", ControlModel(robot, "numeric"), tension=tension)
