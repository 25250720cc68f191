"""Layouts of boards: every file of the repository, and what a wrong one says."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hybrid_robots import platform_arm

from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.locate import known_models
from cards_core.robot.actuators import ImpedanceControl
from cards_hardware.boards.handshake import limits_message
from cards_hardware.boards.layout import (
    SUFFIX,
    BoardLayout,
    MuscleImpedance,
    MuscleLimits,
    Unattended,
    find_layout,
    layout_folders,
    length_windows,
    read_layout,
)

FOLDER = layout_folders()[0]
TENSEGRITIES = {file.parent.name for file in FOLDER.parent.glob("models/*/structure.yaml")}
"""Nobody has built these with our boards."""

ROBOTS = sorted(
    {file.name.removesuffix(".nodes.yaml") for file in FOLDER.glob("*.nodes.yaml")}
    - set(known_models(rods=True))
    - TENSEGRITIES
)


def model_of(robot):
    return load("roboy_arm" if robot == "two_arms" else robot)


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_robot_has_boards_for_all_muscles_and_limits_that_fit_the_protocol(robot):
    from cards_hardware.protocol.codec import pack

    model = model_of(robot)
    namespaces = ("left_arm", "right_arm") if robot == "two_arms" else ("",)
    for namespace in namespaces:
        port = "/dev/a,/dev/b" if robot in {"two_arms", "musashi_like"} else "/dev/a"
        layout = read_layout(robot, model, port=port, namespace=namespace)
        placed = [name for board in layout.boards for name in board.muscles]
        active = [m.name for m in model.muscles if m.actuator.accepted_commands]
        assert sorted(placed) == sorted(active)
        for board in layout.boards:
            assert [model.muscles[i].name for i in board.muscle_rows] == list(board.muscles)
            assert pack("LIMITS", limits_message(board.limits))


def test_boards_of_one_file_have_addresses_of_their_own():
    arms = [
        read_layout("two_arms", load("roboy_arm"), port="/dev/a,/dev/b", namespace=name)
        for name in ("left_arm", "/right_arm/")
    ]
    assert [arm.boards[0].node for arm in arms] == [1, 2]
    assert [arm.boards[0].port for arm in arms] == ["/dev/a", "/dev/b"]


def test_the_window_of_lengths_is_what_the_joint_limits_allow():
    robot = load("planar_2r")
    dynamics = make_dynamics(robot)
    windows = length_windows(dynamics, margin=0.0)
    tree = dynamics.tree
    rng = np.random.default_rng(7)
    for _ in range(200):
        lengths = dynamics.update(tree.random(rng), np.zeros(tree.nv)).muscle_lengths
        assert (lengths >= windows[:, 0] - 1e-3).all()
        assert (lengths <= windows[:, 1] + 1e-3).all()
    np.testing.assert_allclose(
        length_windows(dynamics, margin=0.01) - windows, np.tile([-0.01, 0.01], (4, 1))
    )


def test_the_gate_gets_the_narrower_of_both_limits():
    robot = load("roboy_arm")
    layout = read_layout("roboy_arm", robot, port="/dev/a")
    limited = layout.limited(robot)
    assert [m.name for m in limited.muscles] == [m.name for m in robot.muscles]
    assert {m.tension_max for m in limited.muscles} == {800.0}
    assert {m.tension_min for m in limited.muscles} == {10.0}  # the model's


GOOD = """
robot: planar_2r
boards:
  - name: one
    node: 1
    port: "{port}"
    muscles: [cable_2, cable_1, cable_4, cable_3]
    joints: [joint_2, joint_1]
"""


def alone(unattended):
    return GOOD.replace("boards:", f"unattended: {{{unattended}}}\nboards:", 1)


def write(tmp_path, text):
    file = tmp_path / f"planar_2r{SUFFIX}"
    file.write_text(text.lstrip())
    return file


def read(tmp_path, text, **arguments):
    robot = load("planar_2r")
    return read_layout(
        write(tmp_path, text),
        robot,
        **{"port": "/dev/x", "dynamics": make_dynamics(robot)} | arguments,
    )


def test_order_of_channels(tmp_path):
    board = read(tmp_path, GOOD).boards[0]
    np.testing.assert_array_equal(board.muscle_rows, [1, 0, 3, 2])
    np.testing.assert_array_equal(board.position_rows, [1, 0])
    np.testing.assert_array_equal(board.velocity_rows, [1, 0])
    assert board.baudrate == 1_000_000
    assert board.port == "/dev/x"


def test_limits_of_all_and_of_single_muscles(tmp_path):
    text = GOOD + (
        "    limits: {tension_max: 90.0, length_min: 0.1, length_max: 4.0, slew: 500.0}\n"
        "    muscle_limits: {cable_4: {tension_max: 50.0, hard: 70.0}}\n"
        "    baudrate: 2000000\n"
    )
    board = read(tmp_path, text).boards[0]
    expected = MuscleLimits(90.0, 10.0, 10.0, 0.1, 4.0, slew=500.0)
    assert board.limits[0] == expected
    assert board.limits[2].tension_max == 50.0
    assert board.limits[2].hard == 70.0
    assert board.baudrate == 2_000_000


def test_impedance_of_all_and_of_single_muscles(tmp_path):
    board = read(tmp_path, GOOD).boards[0]
    assert board.impedance == (MuscleImpedance(0.0, 0.0, 10.0),) * 4  # the model's minimum tension
    robot = load("planar_2r")
    control = ImpedanceControl(stiffness=300.0, tension_floor=15.0)
    muscles = (replace(robot.muscles[0], control=control), *robot.muscles[1:])
    changed = replace(robot, muscles=muscles)
    dynamics = make_dynamics(robot)
    layout = read_layout(write(tmp_path, GOOD), changed, port="/dev/x", dynamics=dynamics)
    board = layout.boards[0]
    assert board.impedance[board.muscles.index("cable_1")] == MuscleImpedance(300.0, 0.0, 15.0)
    assert layout.limited(robot).muscles[0].control == control  # what acts is the board's
    text = GOOD + (
        "    limits: {tension_min: 5.0}\n"
        "    impedance: {stiffness: 5000.0, damping: 20.0}\n"
        "    muscle_impedance: {cable_4: {stiffness: 0, tension_floor: 12.0}}\n"
    )
    board = read(tmp_path, text).boards[0]
    assert board.impedance[0] == MuscleImpedance(5000.0, 20.0, 5.0)
    assert board.impedance[board.muscles.index("cable_4")] == MuscleImpedance(0.0, 20.0, 12.0)


def test_what_boards_do_without_the_host_that_armed(tmp_path):
    layout = read(tmp_path, GOOD)
    assert layout.boards[0].unattended == Unattended(hold=10.0, ramp=5.0, lowering_rate=0.1)
    board = read(tmp_path, alone("ramp: 60, lowering_rate: 0")).boards[0]
    assert board.unattended == Unattended(hold=10.0, ramp=60.0, lowering_rate=0.0)


def test_ports_and_rates_from_arguments(tmp_path):
    text = GOOD.replace("{port}", "{port_2}") + '    baudrate: "{baudrate}"\n'
    board = read(tmp_path, text, port="/dev/a, /dev/b", baudrate=500_000).boards[0]
    assert (board.port, board.baudrate) == ("/dev/b", 500_000)
    fixed = read(tmp_path, GOOD.replace("{port}", "/dev/serial/by-id/usb-1"), port="")
    assert fixed.boards[0].port == "/dev/serial/by-id/usb-1"


def two(first="[cable_1, cable_2]", second="[cable_3, cable_4]", **other):
    values = {"node": 2, "name": "two", "port": "/dev/two", "joints": "[]"} | other
    return f"""
robot: planar_2r
boards:
  - {{name: one, node: 1, port: /dev/one, muscles: {first}, joints: [joint_1, joint_2]}}
  - {{name: {values["name"]}, node: {values["node"]}, port: {values["port"]},
     muscles: {second}, joints: {values["joints"]}}}
"""


def test_two_boards(tmp_path):
    layout = read(tmp_path, two())
    assert [board.muscles for board in layout.boards] == [
        ("cable_1", "cable_2"),
        ("cable_3", "cable_4"),
    ]
    assert layout.has_joints


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("planar_2r", "planar"), "robot: is 'planar'.*'planar_2r', as the file"),
        (GOOD.replace("cable_3", "cable_9"), "'cable_9', did you mean 'cable_"),
        (GOOD.replace(", cable_3", ""), "no board has the muscles cable_3"),
        (GOOD.replace("cable_3", "cable_1"), "'cable_1' appears twice"),
        (GOOD.replace(", joint_1", ""), "no board has the joints joint_1.*all joints, or none"),
        (GOOD.replace("node: 1", "node: 127"), r"boards\[0\].node: is 127 .*1 .. 126"),
        (GOOD.replace("node: 1", "node: 0"), "whole number >= 1"),
        (GOOD.replace("{port}", "{prot}"), "{prot} stands for no port; given: /dev/x"),
        (GOOD.replace("name: one", "nmae: one"), "unknown key 'nmae', did you mean 'name'"),
        (
            GOOD.replace("boards:", "unattended: {hold: 1801}\nboards:", 1),
            "hold: is 1801 s .*: 0 .. 1800",
        ),
        (
            GOOD.replace("boards:", "unattended: {ramp: 0.05}\nboards:", 1),
            "ramp: is 0.05 s .*: 0.1 .. 600",
        ),
        (alone("drop: 1"), "unknown key 'drop'"),
        (GOOD + "    limits: {tension: 5.0}\n", "unknown key 'tension'"),
        (
            GOOD + "    limits: {tension_max: 5.0}\n",
            "limits of muscle 'cable_2': tension_safe is 10, expected at most tension_max",
        ),
        (
            GOOD + "    limits: {tension_max: 4000.0}\n",
            "tension_max is 4000, expected 0 .. 3276",
        ),
        (GOOD + "    limits: {slew: 0.0}\n", "slew is 0, expected more"),
        (GOOD + "    limits: {soft: 90.0}\n", "soft is 90, expected at most hard, which is 80"),
        (GOOD + "    impedance: {stifness: 5.0}\n", "'stifness', did you mean 'stiffness'"),
        (GOOD + "    impedance: {damping: -1.0}\n", "damping: is -1 .*>= 0"),
        (
            GOOD + "    impedance: {stiffness: 2.0e+7}\n",
            r"impedance of muscle 'cable_2': stiffness is 2e\+07, expected 0 .. 1e\+07",
        ),
        (
            GOOD + "    muscle_impedance: {cable_1: {tension_floor: 9.0}}\n",
            "impedance of muscle 'cable_1': tension_floor is 9, expected tension_min .. "
            "tension_max, which are 10 and",
        ),
        (GOOD + "    muscle_impedance: {cable_9: {damping: 9.0}}\n", "unknown key 'cable_9'"),
        (GOOD + "    baudrate: 12\n", "baudrate: is 12 .*>= 9600"),
        (GOOD + "    namespace: left\n", "no board has the namespace '' .*one of left"),
        (two(first="[cable_1, cable_3, cable_2]"), "muscle 'cable_3' is on two boards"),
        (two(joints="[joint_1]"), "joint 'joint_1' is on two boards"),
        (two(node=1), "1 appears twice .*a node of its own"),
        (two(name="one"), "'one' appears twice .*a name of its own"),
        (two(port="/dev/one"), "is '/dev/one', which another board has too"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, text, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        read(tmp_path, text)
    assert re.match(r".*planar_2r\.boards\.yaml:\d+: ", str(caught.value))


def test_no_port_given(tmp_path):
    with pytest.raises(DescriptionError, match=r"given: none .*port:=/dev/ttyACM0"):
        read(tmp_path, GOOD, port="")


def test_passive_muscles_are_on_no_board(tmp_path):
    robot = load("wrap_elbow")
    file = tmp_path / f"wrap_elbow{SUFFIX}"
    file.write_text(
        "robot: wrap_elbow\nboards:\n  - {name: a, node: 1, port: /dev/x, "
        "muscles: [biceps, triceps, capsule], joints: [elbow]}\n"
    )
    with pytest.raises(DescriptionError, match="muscle 'capsule' is passive"):
        read_layout(file, robot)


def test_a_robot_without_layout():
    with pytest.raises(UnknownNameError, match=r"'spider'.*roboy_arm"):
        find_layout("spider")


def test_limits_that_only_the_model_breaks(tmp_path):
    robot = load("roboy_arm")  # says 5000 N, more than a message holds
    file = tmp_path / f"roboy_arm{SUFFIX}"
    text = (FOLDER / f"roboy_arm{SUFFIX}").read_text()
    file.write_text("\n".join(line for line in text.splitlines() if "limits:" not in line))
    with pytest.raises(CardsError, match="limits of muscle 'motor0': tension_max is 5000"):
        read_layout(file, robot, port="/dev/x")


def test_a_robot_with_joint_motors_is_refused_with_their_names():
    """Whatever its boards: nobody would hold these joints."""
    with pytest.raises(
        DescriptionError,
        match=r"robot 'platform_arm': joints shoulder, elbow with a <motor>, which muscle boards "
        r"do not drive \(expected: a robot whose joints are moved by its muscles alone",
    ):
        read_layout("roboy_arm", platform_arm(), port="/dev/a")


def test_boards_are_told_apart_as_objects():
    """Their rows are arrays, which have no single answer to whether they are equal."""
    one, two = (BoardLayout("arm", 1, "/dev/arm", muscle_rows=np.arange(3)) for _ in range(2))
    assert one == one  # noqa: PLR0124
    assert one != two
    assert len({one, two}) == 2


@pytest.mark.parametrize(("named", "key"), [("cable_1", "impedance"), ("cable_2", "cable_2")])
def test_an_impedance_that_does_not_fit_is_told_where_it_was_said(tmp_path, named, key):
    """cable_2 is the first muscle; it has the numbers of all, unless some are its own."""
    text = GOOD + "    impedance:\n      stiffness: 2.0e+7\n"
    text += f"    muscle_impedance:\n      {named}:\n        damping: 1.0\n"
    with pytest.raises(DescriptionError, match="impedance of muscle 'cable_2'") as caught:
        read(tmp_path, text)
    number = int(re.search(r"boards\.yaml:(\d+): ", str(caught.value))[1])
    (file,) = tmp_path.rglob("*.boards.yaml")
    lines = [line.strip() for line in file.read_text().splitlines()]
    assert number - 1 - lines.index(f"{key}:") in (0, 1)
