"""The report's errors of lengths are those of the worst pose, which is said; M beside armature."""

import re
from itertools import product

import mujoco
import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_sim.mjcf.agreement import EXACT
from cards_sim.mjcf.importer import import_mjcf

MOVING_SIDE = """<mujoco model="side">
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <site name="a" pos="-0.2 0.01 0.02"/><site name="s" pos="0 0 0.1"/>
    <body name="u">
      <inertial pos="0 0 0" mass="1" diaginertia="1e-2 1e-2 1e-2"/>
      <joint name="j1" axis="0 1 0" range="-{range} {range}"/>
      <geom name="pad" type="sphere" size="0.03" pos="0.01 0 0"/>
      <body name="v" pos="0.1 0 0">
        <inertial pos="0 0 0" mass="1" diaginertia="1e-2 1e-2 1e-2"/>
        <joint name="j2" axis="0 1 0" range="-2 2"/><joint name="j3" axis="1 0 0" range="-1 1"/>
        <site name="b" pos="0.1 0 0"/>
      </body>
    </body>
    <body name="w" pos="0 1 0">
      <inertial pos="0 0 0" mass="1" diaginertia="1e-2 1e-2 1e-2"/>
      <joint name="other" axis="0 1 0" range="-1 1"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="t"><site site="a"/><geom geom="pad" sidesite="s"/><site site="b"/></spatial>
    <spatial name="plain"><site site="a"/><site site="b"/></spatial>
  </tendon>
  <actuator><motor name="t" tendon="t" ctrlrange="-50 0"/>
    <motor name="plain" tendon="plain" ctrlrange="-50 0"/></actuator>
</mujoco>
"""


def lengths(model, robot, pose):
    """MuJoCo's and ours, [m]."""
    data = mujoco.MjData(model)
    for name, value in pose.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_forward(model, data)
    state = make_dynamics(robot, "numeric").update(data.qpos, np.zeros(model.nv))
    return data.ten_length[0], state.muscle_lengths[0]


@pytest.mark.parametrize("reach", [1.9, 2.2, 2.5, 2.8])
def test_the_worst_pose_is_found_and_said(tmp_path, reach):
    file = tmp_path / "side.xml"
    file.write_text(MOVING_SIDE.format(range=reach))
    model, imported = mujoco.MjModel.from_xml_path(str(file)), import_mjcf(file)
    (said,) = [f for f in imported.findings if f.code == "length"]
    found = re.search(r"by up to (\S+) mm \(at (.*)\) from", said.message)
    error = 1e-3 * float(found[1])
    pose = {k: float(v) for k, v in (item.split() for item in found[2].split(", "))}
    assert {"j1", "j2"} <= set(pose) <= {"j1", "j2", "j3"}
    theirs, ours = lengths(model, imported.robot, pose)
    assert abs(theirs - ours) == pytest.approx(error, rel=0.02)
    grid = product(np.linspace(-reach, reach, 21), np.linspace(-2.0, 2.0, 21))
    pairs = [lengths(model, imported.robot, {"j1": a, "j2": b}) for a, b in grid]
    assert error > 0.7 * max(abs(a - b) for a, b in pairs)
    (rows,) = [section.data for section in imported.sections if section.key == "muscles"]
    assert rows[0]["errors"]["length"] == pytest.approx(error, rel=0.01)
    assert found[0].removesuffix(" from") in rows[0]["error"]
    assert rows[1]["errors"]["length"] < EXACT


def test_mass_matrix_of_a_link_that_weighs_nothing_beside_its_armature(tmp_path):
    """2 + 6e-13 - 2 is not 6e-13: MuJoCo's M is to be taken without armature, not less it."""
    file = tmp_path / "light.xml"
    file.write_text(
        '<mujoco><compiler angle="radian"/><worldbody><body name="a">'
        '<inertial pos="0 0.01 0.1" mass="0.2" diaginertia="1e-4 1e-4 1e-4"/>'
        '<joint name="j1" axis="0 1 0" armature="2"/><body name="b" pos="0 0 0.2">'
        '<inertial pos="0 0 0" mass="1e-9" diaginertia="3.3325e-13 3.3325e-13 6.125e-13"/>'
        '<joint name="j2" axis="0 0 1" armature="2"/></body></body></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_path(str(file))
    dynamics = make_dynamics(import_mjcf(file).robot, "numeric")
    data, matrix = mujoco.MjData(model), np.zeros((2, 2))
    for q in np.random.default_rng(0).uniform(-1.0, 1.0, (20, 2)):
        data.qpos[:] = q
        errors = []
        for armature in (2.0, 0.0):
            model.dof_armature[:] = armature
            mujoco.mj_forward(model, data)
            mujoco.mj_fullM(model, data, matrix)
            theirs = matrix - np.diag(model.dof_armature)
            scale = np.sqrt(np.diag(dynamics.update(q, np.zeros(2)).mass_matrix))
            ours = dynamics.update(q, np.zeros(2)).mass_matrix
            errors.append(np.abs((ours - theirs) / np.outer(scale, scale)).max())
        assert errors[1] < 1e-12
        assert errors[0] > 1e-5  # rounding of the difference alone
