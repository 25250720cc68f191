"""Wraps within spheres, and ends that get within a surface: MuJoCo's lengths and moment arms."""

import mujoco
import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.imports.model import write_imported
from cards_core.robot.elements import Wrap
from cards_sim.export import exported_mjcf
from cards_sim.mjcf.importer import import_mjcf

MODEL = """<mujoco model="toe">
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <site name="origin" pos="{origin}"/>{within}
    <body name="toe">
      <inertial pos="0.03 0 0" mass="0.1" diaginertia="2e-5 4e-5 4e-5"/>
      <joint name="toe" type="hinge" axis="0 1 0.2" range="-1.1 1.4"/>
      {geom}
      <site name="over" pos="0 0 0.05"/>
      <site name="tip" pos="{tip}"/>
    </body>
  </worldbody>
  <tendon><spatial name="extensor"><site site="origin"/>
    <geom geom="pad" sidesite="{side}"/><site site="tip"/></spatial></tendon>
  <actuator><motor name="extensor" tendon="extensor" ctrlrange="-50 0"/></actuator>
</mujoco>
"""

PAD = '<geom name="pad" type="{kind}" size="{size}" pos="0.006 0 0.002" euler="1.5708 0 0"/>'
RING = '<geom name="pad" type="{kind}" size="{size}" pos="0.002 0 0" euler="1.5708 0 0"/>'

END_WITHIN = {"origin": "-0.004 0.003 0.0185", "tip": "0.05 0 -0.012", "side": "over"}
THROUGH = {"origin": "-0.16 0.01 0.012", "tip": "0.07 0 0.014", "side": "within"}


def model(folder, kind, size, through):
    geom = (RING if through else PAD).format(kind=kind, size=size)
    within = f'{geom}<site name="within" pos="0.002 0 0.01"/>' if through else ""
    file = folder / "toe.xml"
    file.write_text(
        MODEL.format(
            geom="" if through else geom, within=within, **(THROUGH if through else END_WITHIN)
        )
    )
    return file


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("through", [True, False])
def test_lengths_and_moment_arms_over_the_range(tmp_path, kind, through, backend):
    radius = "0.017" if through else "0.02"
    file = model(tmp_path, kind, f"{radius} 0.02" if kind == "cylinder" else radius, through)
    imported = import_mjcf(file)
    assert not [f for f in imported.findings if f.level == "warning"]
    robot = load(write_imported(imported, tmp_path / "out"))
    (wrap,) = [item for item in robot.muscles[0].path if isinstance(item, Wrap)]
    assert (wrap.inside, wrap.free_ends) == (through, not through)
    theirs, dynamics = mujoco.MjModel.from_xml_path(str(file)), make_dynamics(robot, backend)
    data = mujoco.MjData(theirs)
    wrapped = straight = 0
    for q in np.linspace(-1.1, 1.4, 101):
        data.qpos[:] = q
        mujoco.mj_forward(theirs, data)
        state = dynamics.update(np.array([q]), np.zeros(1))
        assert state.muscle_lengths[0] == pytest.approx(data.ten_length[0], abs=1e-9)
        # MuJoCo's search for the bend ends early: see test_wrap_mujoco.py
        close = 1e-5 if through else 1e-9
        assert state.muscle_jacobian[0, 0] == pytest.approx(data.ten_J[0], abs=close)
        wrapped += data.ten_wrapnum[0] > 2
        straight += data.ten_wrapnum[0] == 2
    assert min(wrapped, straight) > 10


def test_a_wrap_within_a_sphere_goes_out_and_comes_back(tmp_path):
    robot = import_mjcf(model(tmp_path, "sphere", "0.017", True)).robot
    (tmp_path / "again.xml").write_text(exported_mjcf(robot).text)
    back = import_mjcf(tmp_path / "again.xml").robot
    first, second = make_dynamics(robot, "numeric"), make_dynamics(back, "numeric")
    for q in np.linspace(-1.1, 1.4, 21):
        lengths = [
            dynamics.update(np.array([q]), np.zeros(1)).muscle_lengths[0]
            for dynamics in (first, second)
        ]
        assert lengths[1] == pytest.approx(lengths[0], abs=1e-9)
