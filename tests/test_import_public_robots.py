"""Public robots of CARDSflow and Roboy, where `CARDS_PUBLIC_ROBOTS` names a folder with them.

They are ``CARDSflow/robots`` and ``Roboy/ros2_roboy3_models`` on GitHub, in folders whose names
end in ``robots`` and ``ros2_roboy3_models``.
"""

from __future__ import annotations

import os
import resource
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import cards
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.cardsflow.importer import import_cardsflow
from cards_core.formats.imports.model import write_imported
from cards_core.formats.urdf.importer import import_urdf
from cards_core.muscles.command import command_of
from cards_core.robot.forward_kinematics import forward_kinematics

VARIABLE = "CARDS_PUBLIC_ROBOTS"
ROBOTS = {
    "musc-le": "robots/musc-le",
    "shoulder_testbed": "robots/shoulder_testbed",
    "roboy3_arm_right": "robots/roboy3_arm_right",
    "roboy_upper_body": "robots/roboy_upper_body",
    "ros2_roboy3_models": "ros2_roboy3_models/urdf",
}
GIGABYTE = 1 << 20  # in the unit of ru_maxrss, kB


def place(name):
    """Return the folder of a robot, or skip."""
    top = os.environ.get(VARIABLE)
    if not top:
        pytest.skip(f"{VARIABLE} names no folder with the public robots")
    head, _, tail = ROBOTS[name].partition("/")
    for folder in sorted(Path(top).iterdir()):
        if folder.name.endswith(head) and (folder / tail).is_dir():
            return folder / tail
    pytest.skip(f"{ROBOTS[name]} is not below {top}")


@pytest.fixture(scope="module", params=ROBOTS)
def imported(request, tmp_path_factory):
    source = place(request.param)
    model = import_cardsflow(source, tension=(0.0, 500.0))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < GIGABYTE
    return source, model, load(write_imported(model, tmp_path_factory.mktemp("robots")))


def rest_points(source):
    """Return the points of every muscle in the world, from the numbers of the files alone."""
    places = {}
    for link in ET.parse(source / "model.sdf").getroot().iter("link"):
        pose = [float(x) for x in link.findtext("pose").split()]
        assert not any(pose[3:]), "the links of these files are not rotated"
        places[link.get("name")] = np.array(pose[:3])
    for muscle in ET.parse(source / "cardsflow.xml").getroot().iter("myoMuscle"):
        yield (
            muscle.get("name"),
            [
                (point.get("type"), point.get("radius"), places[link.get("name")] + xyz)
                for link in muscle.iter("link")
                for point in link.iter("viaPoint")
                for xyz in [[float(x) for x in point.text.split()]]
            ],
        )


def rest_length(points):
    """Return straight pieces, and over spheres two tangents and an arc if they are in the way."""
    total, k = 0.0, 0
    while k < len(points) - 1:
        (_, _, a), (kind, radius, b) = points[k], points[k + 1]
        if kind != "SPHERICAL":
            total, k = total + np.linalg.norm(b - a), k + 1
            continue
        c = points[k + 2][2]
        r, u, v = float(radius), a - b, c - b
        du, dv = np.linalg.norm(u), np.linalg.norm(v)
        angle = np.arccos(u @ v / du / dv) - np.arccos(r / du) - np.arccos(r / dv)
        wrapped = np.sqrt(du**2 - r**2) + np.sqrt(dv**2 - r**2) + r * angle
        total, k = total + (wrapped if angle > 0.0 else np.linalg.norm(c - a)), k + 2
    return total


def test_lengths_at_rest_are_those_of_the_points(imported):
    source, _, robot = imported
    dynamics = make_dynamics(robot, "numeric")
    found = dynamics.update(np.zeros(dynamics.tree.nq), np.zeros(dynamics.tree.nv)).muscle_lengths
    expected = dict(rest_points(source))
    assert len(expected) == len(robot.muscles)
    for muscle, length in zip(robot.muscles, found, strict=True):
        assert length == pytest.approx(rest_length(expected[muscle.name]), abs=1e-12)


def energy(robot, dynamics, q, qd, tension):
    """Return kinetic energy, that of gravity, and that of constant tensions, T l."""
    state = dynamics.update(q, qd)
    total = 0.5 * qd @ state.mass_matrix @ qd + tension * np.sum(state.muscle_lengths)
    motion = forward_kinematics(robot.tree, q, np.zeros(robot.tree.nv))
    for link in robot.links:
        node, pose = robot.tree.link_node[link.name]
        com = pose.apply(link.inertia.com)
        if node >= 0:
            com = motion.position[node] + motion.rotation[node] @ com
        total -= link.inertia.mass * robot.gravity @ com
    return total


@pytest.mark.parametrize("tension", [0.0, 5.0])
def test_five_seconds_without_energy_from_nowhere(imported, tension):
    _, _, robot = imported
    sim = cards.Simulator(robot)
    dynamics = make_dynamics(robot, "numeric")
    names = [muscle.name for muscle in robot.muscles]
    found, due = [], 0.0
    while sim.state.time < 5.0:
        sim.submit(command_of(names, [tension] * len(names)))
        sim.step()
        if sim.state.time >= due:
            state = sim.state
            assert np.isfinite(state.q).all()
            np.testing.assert_allclose(state.tensions, tension)
            found.append(energy(robot, dynamics, state.q, state.qd, tension))
            due += 0.05
    found = np.array(found)
    scale = np.ptp(found) + abs(found[0])
    # limits of joints take energy; friction and damping there are none
    assert found.max() - found[0] < 0.02 * scale, found


@pytest.mark.parametrize(
    ("name", "file", "rounded"),
    [
        ("musc-le", "model.urdf", 2e-5),
        ("shoulder_testbed", "model.urdf", 5e-5),
        ("roboy_upper_body", "model.urdf", 5e-5),
        ("ros2_roboy3_models", "robody.urdf", 5e-3),
    ],
)
def test_urdf_with_muscles_of_cardsflow(name, file, rounded, tmp_path):
    """The lengths at rest are those of the SDF, but for the rounding of the URDF's positions."""
    source = place(name)
    model = import_urdf(source / file, muscles=source / "cardsflow.xml")
    robot = load(write_imported(model, tmp_path))
    if name == "ros2_roboy3_models":
        codes = [item.code for item in model.warnings]
        assert "inertia-about-origin" in codes
        assert codes.count("joint-locked") == 6  # wrists, whose limits are 0 and 0
        assert (len(robot.links), robot.tree.nv) == (20, 19 - 6)
    dynamics = make_dynamics(robot, "numeric")
    found = dynamics.update(np.zeros(dynamics.tree.nq), np.zeros(dynamics.tree.nv)).muscle_lengths
    expected = dict(rest_points(source))
    for muscle, length in zip(robot.muscles, found, strict=True):
        assert length == pytest.approx(rest_length(expected[muscle.name]), abs=rounded)
