"""URDF export: Pinocchio loads it, and finds the same poses, mass matrix and bias forces."""

import dataclasses
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats.urdf.writer import to_urdf
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Joint,
    JointAxis,
    Link,
    Mesh,
    Plane,
    Sphere,
    Visual,
)
from cards_core.robot.model import Robot
from cards_core.spatial import axis_rotation, matrix_quaternion, quaternion_matrix
from random_robots import KINDS, random_inertia, random_robot


def urdf_positions(tree, q):
    """The position of every URDF joint that moves, by name; near ry = +-pi/2 rz is zero."""
    result = {}
    for node in tree.nodes:
        if node.kind == "ball":
            r = quaternion_matrix(q[node.q : node.q + 4])
            cosine = np.hypot(r[0, 0], r[0, 1])
            if cosine < 1e-9:
                outer = np.arctan2(r[2, 1], r[1, 1]), 0.0
            else:
                outer = np.arctan2(-r[1, 2], r[2, 2]), np.arctan2(-r[0, 1], r[0, 0])
            angles = outer[0], np.arctan2(r[0, 2], cosine), outer[1]
            for suffix, angle in zip(("_rx", "_ry", "_rz"), angles, strict=True):
                result[node.name + suffix] = float(angle)
        else:
            result[node.name] = float(q[node.q])
    return result


SCALAR = ("fixed", "revolute", "prismatic", "universal", "planar")
X, Y, Z = np.eye(3)


class Loaded:
    """A robot read back by Pinocchio, at given URDF joint positions."""

    def __init__(self, robot, positions):
        pin = pytest.importorskip("pinocchio")
        self.pin = pin
        self.model = pin.buildModelFromXML(to_urdf(robot))
        self.model.gravity.linear = robot.gravity
        self.data = self.model.createData()
        self.q = pin.neutral(self.model)
        self.columns = []
        for name, value in positions.items():
            joint = self.model.joints[self.model.getJointId(name)]
            # Pinocchio keeps continuous joints as cosine and sine
            entry = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            self.q[joint.idx_q : joint.idx_q + joint.nq] = entry
            self.columns.append(joint.idx_v)
        pin.framesForwardKinematics(self.model, self.data, self.q)

    def pose(self, link):
        return self.data.oMf[self.model.getFrameId(link)].homogeneous


@pytest.mark.parametrize("seed", range(30))
def test_link_poses_are_those_of_the_core(seed):
    robot = random_robot(seed, n_links=6, kinds=KINDS)
    dynamics = make_dynamics(robot, "numeric")
    q = dynamics.tree.random(np.random.default_rng(seed))
    loaded = Loaded(robot, urdf_positions(dynamics.tree, q))
    assert len(loaded.columns) == loaded.model.nv
    for link, pose in zip(robot.links, dynamics.link_poses(q), strict=True):
        np.testing.assert_allclose(loaded.pose(link.name), pose, atol=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_dynamics_are_those_of_the_core(seed):
    robot = random_robot(seed, n_links=6, kinds=SCALAR)
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    rng = np.random.default_rng(seed)
    q, qd = tree.random(rng), rng.normal(size=tree.nv)
    loaded = Loaded(robot, urdf_positions(tree, q))
    columns = loaded.columns
    state = dynamics.update(q, qd)
    upper = loaded.pin.crba(loaded.model, loaded.data, loaded.q)
    mass_matrix = np.triu(upper) + np.triu(upper, 1).T
    velocity = np.zeros(tree.nv)
    velocity[columns] = qd
    bias = loaded.pin.nonLinearEffects(loaded.model, loaded.data, loaded.q, velocity)
    np.testing.assert_allclose(
        mass_matrix[np.ix_(columns, columns)], state.mass_matrix, atol=1e-10
    )
    np.testing.assert_allclose(bias[columns], state.coriolis + state.gravity, atol=1e-9)


def test_joint_names_are_those_of_joint_states_as_far_as_urdf_allows():
    for seed in range(10):
        tree = random_robot(seed, n_links=6, kinds=SCALAR).tree
        positions = urdf_positions(tree, tree.neutral())
        assert tuple(positions) == tree.position_names
        joints = ET.fromstring(to_urdf(tree.robot)).findall("joint")
        moving = {joint.get("name") for joint in joints if joint.get("type") != "fixed"}
        assert moving == set(tree.position_names)
    joint = Joint("base", "free", WORLD, "body")
    free = Robot("f", (Link("body", random_inertia(np.random.default_rng(0))),), (joint,))
    tree = free.tree
    expected = {f"base_{c}" for c in ("x", "y", "z", "rx", "ry", "rz")}
    assert set(urdf_positions(tree, tree.neutral())) == expected


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-8, 2.5])
def test_angles_of_a_ball_joint_give_its_rotation_also_at_the_singularity(pitch):
    robot = Robot("b", (Link("body"),), (Joint("ball", "ball", WORLD, "body"),))
    rotation = axis_rotation(X, 0.7) @ axis_rotation(Y, pitch) @ axis_rotation(Z, -1.1)
    angles = urdf_positions(robot.tree, matrix_quaternion(rotation))
    again = (
        axis_rotation(X, angles["ball_rx"])
        @ axis_rotation(Y, angles["ball_ry"])
        @ axis_rotation(Z, angles["ball_rz"])
    )
    np.testing.assert_allclose(again, rotation, atol=1e-7)


def test_limits_and_types():
    axes = (
        JointAxis(X, lower=-1.0, upper=2.0, effort=30.0, velocity=4.0, damping=0.1, friction=0.2),
        JointAxis(Y),
    )
    robot = Robot("u", (Link("arm"),), (Joint("j", "universal", WORLD, "arm", axes=axes),))
    root = ET.fromstring(to_urdf(robot))
    first, second = root.findall("joint")
    assert (first.get("type"), second.get("type")) == ("revolute", "continuous")
    limit = {key: float(value) for key, value in first.find("limit").attrib.items()}
    assert limit == {"lower": -1.0, "upper": 2.0, "effort": 30.0, "velocity": 4.0}
    assert first.find("dynamics").attrib == {"damping": "0.1", "friction": "0.2"}
    assert "lower" not in second.find("limit").attrib
    assert [link.get("name") for link in root.findall("link")] == [WORLD, "arm", "j_1_link"]


def test_shapes():
    rgba = (0.1, 0.2, 0.3, 1.0)
    shapes = {
        "box": Box(np.array([1.0, 2.0, 3.0])),
        "sphere": Sphere(0.5),
        "cylinder": Cylinder(0.5, 2.0),
        "capsule": Capsule(0.5, 2.0),
        "ellipsoid": Ellipsoid(np.array([1.0, 2.0, 4.0])),
        "plane": Plane(Y, (2.0, 3.0)),
        "mesh": Mesh("meshes/a.stl", np.array([1.0, 1.0, 2.0])),
    }
    visuals = tuple(Visual(name, shape, rgba=rgba) for name, shape in shapes.items())
    link = Link("arm", visuals=visuals, collisions=(Collision("hull", Sphere(0.4)),))
    robot = Robot("r", (link,), (Joint("j", "fixed", WORLD, "arm"),), source="/data/arm/model.sdf")
    element = ET.fromstring(to_urdf(robot)).find("link[@name='arm']")
    found = {v.get("name"): v.find("geometry")[0] for v in element.findall("visual")}
    assert found["box"].attrib == {"size": "1 2 3"}
    assert found["sphere"].attrib == {"radius": "0.5"}
    assert found["cylinder"].attrib == {"radius": "0.5", "length": "2"}
    assert [found[f"capsule_{i}"].tag for i in (1, 2, 3)] == ["cylinder", "sphere", "sphere"]
    assert float(found["ellipsoid"].get("radius")) == pytest.approx(2.0)
    assert found["plane"].get("size").split()[:2] == ["2", "3"]
    expected = {"filename": "file:///data/arm/meshes/a.stl", "scale": "1 1 2"}
    assert found["mesh"].attrib == expected
    assert element.find("collision/geometry/sphere").get("radius") == "0.4"
    materials = [m.get("name") for m in element.iter("material")]
    assert len(set(materials)) == len(materials)
    assert element.find("visual/material/color").get("rgba") == "0.1 0.2 0.3 1"


def test_mesh_uris():
    def filename(uri):
        link = Link("a", visuals=(Visual("v", Mesh(uri)),))
        robot = Robot("r", (link,), (Joint("j", "fixed", WORLD, "a"),), source="/m/arm/model.sdf")
        return ET.fromstring(to_urdf(robot)).find(".//mesh").get("filename")

    assert filename("model://hand/x.stl") == "file:///m/hand/x.stl"
    assert filename("file:///abs/x.stl") == "file:///abs/x.stl"
    assert filename("/abs/x.stl") == "file:///abs/x.stl"
    for uri in ("package://pkg/x.stl", "https://example.org/x.stl"):
        assert filename(uri) == uri


def test_massless_links_have_no_inertial():
    robot = random_robot(3)
    bare = dataclasses.replace(robot, links=tuple(Link(link.name) for link in robot.links))
    assert "<inertial>" not in to_urdf(bare)
    assert to_urdf(robot).count("<inertial>") == len(robot.links)
