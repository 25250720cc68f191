"""A tendon with stiffness and without an actuator is a passive spring, without a command."""

import mujoco
import numpy as np
import pytest

from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.robot_check import check_robot
from cards_core.analysis.workspace.points import Samples
from cards_core.control.model import ControlModel, PassiveLoad
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.imports.model import write_imported
from cards_core.robot.actuators import Ligament
from cards_sim.mjcf.importer import import_mjcf

DOOR = """<mujoco model="door">
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <site name="a" pos="0.3 0 0.05"/><site name="b" pos="-0.3 0 0.05"/>
    <body name="flap">
      <inertial pos="0 0 -0.2" mass="1" diaginertia="0.02 0.02 0.001"/>
      <joint name="hinge" type="hinge" axis="0 1 0" range="-1 1"/>
      <site name="c" pos="0 0 -0.25"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="pull"><site site="a"/><site site="c"/></spatial>
    <spatial name="spring" {spring}><site site="b"/><site site="c"/></spatial>
  </tendon>
  <actuator><motor name="pull" tendon="pull" ctrlrange="-2000 0"/></actuator>
</mujoco>
"""


def imported(folder, spring='stiffness="4000" springlength="0 0.30"'):
    """Return the robot as it is read back from its SDF, MuJoCo's model, and the findings."""
    file = folder / "door.xml"
    file.write_text(DOOR.format(spring=spring))
    found = import_mjcf(file, tension_max=5.0)  # of a spring it would be no limit
    robot = load(write_imported(found, folder / "out"))
    return robot, mujoco.MjModel.from_xml_path(str(file)), found.findings


def spring_torque(model, q):
    """MuJoCo's passive torque at rest, [Nm]."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    return float(data.qfrc_spring[0])


@pytest.mark.parametrize(
    "spring",
    [
        'stiffness="4000" springlength="0 0.30"',
        'stiffness="20" springlength="0 0.44"',  # slack at one side
        'stiffness="300" springlength="0"',  # it pulls at any length
    ],
)
def test_its_force_is_mujocos_and_the_muscle_must_carry_it(tmp_path, spring):
    robot, model, findings = imported(tmp_path, spring)
    assert not [f for f in findings if f.code == "tendon-spring"]
    pull, passive = robot.muscles
    assert isinstance(passive.actuator, Ligament)
    assert [m.name for m in robot.commanded().muscles] == ["pull"]
    assert pull.takes_tension
    dynamics = make_dynamics(robot, "numeric")
    inverse = InverseDynamics(dynamics, "least_norm")
    torques = []
    for q in np.linspace(-0.9, 0.9, 19):
        state = dynamics.update(np.array([q]), np.zeros(1))
        torques.append(spring_torque(model, q))
        result = inverse.step(np.array([q]), np.zeros(1), np.zeros(1))
        # torque of a tension f: -L'f
        np.testing.assert_allclose(
            -state.muscle_jacobian[1] @ result.tensions[1:], torques[-1], rtol=2e-9, atol=1e-6
        )
        needed = float(state.gravity[0]) - torques[-1]
        expected = max(0.0, needed / -float(state.muscle_jacobian[0, 0]))
        assert float(result.tensions[0]) == pytest.approx(expected, rel=1e-6, abs=1e-5)
    assert np.ptp(torques) > 0.1


def test_check_and_controllers_do_not_command_it(tmp_path):
    robot, model, _ = imported(tmp_path)
    result = check_robot(make_dynamics(robot, "numeric"), Samples(50))
    assert result.commanded.tolist() == [True, False]
    assert result.closure_share == 0.0  # one muscle pulls one way
    control = ControlModel(robot, "numeric")
    assert [m.name for m in control.commanded.muscles] == ["pull"]
    for q in np.linspace(-0.9, 0.9, 7):  # the toe: 5e-10 K l0 = 6e-7 N at 0.25 m
        load = PassiveLoad(robot, "numeric")(np.array([q]), np.zeros(1))
        np.testing.assert_allclose(load, [-spring_torque(model, q)], atol=2e-7, rtol=0.0)


@pytest.mark.parametrize(
    ("spring", "words"),
    [
        ('stiffness="40" springlength="0.2 0.3"', "below 0.2 m it pushes"),
        ('stiffness="40" springlength="0 0.3" damping="2"', "damping acts while it is taut"),
        ('stiffness="40 0.5" springlength="0 0.3"', "only its linear stiffness"),
    ],
)
def test_what_is_not_the_same_is_said(tmp_path, spring, words):
    _, _, findings = imported(tmp_path, spring)
    (said,) = [f for f in findings if f.code == "tendon-spring"]
    assert said.level == "warning"
    assert said.message.startswith(words)


def test_a_damper_alone_is_left_out_by_name(tmp_path):
    robot, _, findings = imported(tmp_path, 'damping="3"')
    assert [m.name for m in robot.muscles] == ["pull"]
    assert [f.message for f in findings if f.code == "tendon-spring"] == ["its damper is left out"]


def test_springs_that_are_switched_off(tmp_path):
    file = tmp_path / "door.xml"
    text = DOOR.format(spring='stiffness="4"').replace(
        "<worldbody>", '<option><flag spring="disable"/></option><worldbody>', 1
    )
    file.write_text(text)
    said = [f.message for f in import_mjcf(file).findings if f.code == "flag"]
    assert said == ["springs switched off there, not here"]
