"""The box of ``worlds/table.sdf`` can be carried: the scene and its reference, in MuJoCo."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from cards_core.formats import load
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import load_parameters
from cards_core.robot.state import RobotState
from cards_core.shared_files import shared_folder
from cards_sim.simulator import Simulator


def pose(element):
    return [float(x) for x in element.findtext("pose", "0 0 0 0 0 0").split()]


def body(model):
    """Return a model of boxes as an MJCF body."""
    mujoco = pytest.importorskip("mujoco")
    x, y, z, roll, pitch, yaw = pose(model)
    assert roll == pitch == yaw == 0.0
    out = ET.Element("body", name=model.get("name"), pos=f"{x} {y} {z}")
    for collision in model.iter("collision"):
        x, y, z, *angles = pose(collision)
        quaternion = np.zeros(4)
        mujoco.mju_euler2Quat(quaternion, np.array(angles), "XYZ")
        size = [0.5 * float(a) for a in collision.findtext("geometry/box/size").split()]
        ET.SubElement(
            out,
            "geom",
            type="box",
            mass="0",
            pos=f"{x} {y} {z}",
            quat=" ".join(map(str, quaternion)),
            size=" ".join(map(str, size)),
        )
    return out


def scene():
    """Return desk and box as MJCF."""
    world = ET.parse(shared_folder() / "worlds" / "table.sdf").getroot().find("world")
    models = {model.get("name"): model for model in world.iter("model")}
    box = body(models["box"])
    inertial = models["box"].find("link/inertial")
    moment = inertial.findtext("inertia/ixx")
    ET.SubElement(
        box,
        "inertial",
        pos=" ".join(inertial.findtext("pose").split()[:3]),
        mass=inertial.findtext("mass"),
        diaginertia=f"{moment} {moment} {moment}",
    )
    ET.SubElement(box, "freejoint")
    parts = [body(models["desk"]), box]
    return "".join(ET.tostring(part, encoding="unicode") for part in parts)


def test_box_is_lifted_carried_and_put_down():
    robot = load("roboy_arm")
    simulator = Simulator(robot, 0.001, world_xml=scene())
    file = shared_folder() / "config" / "roboy_arm.yaml"
    given = load_parameters(file, "ctc_operational") | {"reference": "carry"}
    session = make_control_loop("ctc_operational", ParameterSet(given))
    box = simulator.model.body("box").id
    simulator.reset(simulator.tree.home)
    places = []
    try:
        for step in range(13_000):
            state = simulator.state
            session.step(RobotState(step * 1e-3, state.q, state.qd))
            out = session.controller.output
            simulator.step(out.tensions)
            if step % 1000 == 0:
                places.append(simulator.data.xpos[box].copy())
    finally:
        session.close()
    begin, lifted, end = places[0], places[6], places[-1]
    np.testing.assert_allclose(begin, [0.48, -0.45, 0.25], atol=1e-3)
    assert lifted[2] - begin[2] > 0.06
    # it stands again, 0.1 m aside
    np.testing.assert_allclose(end - begin, [-0.1, 0.0, 0.0], atol=8e-3)
    assert simulator.data.xmat[box][8] > 0.9999
