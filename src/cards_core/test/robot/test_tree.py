"""The flattened tree: layout, names, tangent space, refusals."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.paths.layout import robot_hash
from cards_core.robot import Tree
from cards_core.robot.elements import (
    WORLD,
    Capsule,
    Collision,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Mesh,
    Muscle,
    Sphere,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from random_robots import random_robot

Z = JointAxis(np.array([0.0, 0.0, 1.0]), -1.0, 2.0)


def chain(*kinds: str, **options) -> Robot:
    """Links a, b, c... in a row, joint i of kind i."""
    axes = {"revolute": 1, "prismatic": 1, "universal": 2, "planar": 3}
    body = Inertia(1.0, np.zeros(3), np.eye(3))
    names = [chr(ord("a") + i) for i in range(len(kinds))]
    joints = tuple(
        Joint(f"j{n}", kind, p, n, axes=(Z,) * axes.get(kind, 0))
        for n, p, kind in zip(names, [WORLD, *names], kinds, strict=False)
    )
    return Robot("chain", tuple(Link(n, body) for n in names), joints, **options)


def test_layout_of_every_joint_kind():
    tree = Tree(
        chain("revolute", "prismatic", "universal", "ball", "planar", "free", "fixed", "revolute")
    )
    assert tree.nq == 1 + 1 + 2 + 4 + 3 + 7 + 0 + 1
    assert tree.nv == 1 + 1 + 2 + 3 + 3 + 6 + 0 + 1
    assert tree.position_names[4:8] == ("jd.w", "jd.x", "jd.y", "jd.z")
    assert tree.position_names[11:18] == ("jf_x", "jf_y", "jf_z", "jf.w", "jf.x", "jf.y", "jf.z")
    names_by_slot = [tree.position_names[slot] for slot in tree.velocity_slots]
    assert tuple(names_by_slot) == tree.velocity_names
    assert tree.link_node["g"][0] == tree.link_node["f"][0]
    assert np.isinf(tree.lower[4])
    assert tree.lower[0] == -1.0


@pytest.mark.parametrize("seed", range(8))
def test_integrate_and_difference_are_inverse(seed):
    tree = random_robot(seed, n_links=8).tree
    rng = np.random.default_rng(seed)
    q, v = tree.random(rng), rng.normal(size=tree.nv)
    moved = tree.integrate(q, v)
    np.testing.assert_allclose(tree.difference(moved, q), v, atol=1e-9)
    np.testing.assert_allclose(tree.difference(q, q), 0.0, atol=1e-12)


def test_fixed_links_are_lumped():
    arm = Pose(np.eye(3), np.array([0.0, 0.0, 2.0]))
    body = Inertia(1.0, np.zeros(3), np.eye(3))
    robot = Robot(
        "dumbbell",
        (Link("a", body), Link("b", body)),
        (
            Joint("turn", "revolute", WORLD, "a", axes=(Z,)),
            Joint("weld", "fixed", "a", "b", joint_to_child=arm),
        ),
    )
    (node,) = robot.tree.nodes
    assert node.inertia.mass == 2.0
    np.testing.assert_allclose(node.inertia.com, [0, 0, 1])
    np.testing.assert_allclose(node.inertia.tensor, np.diag([4.0, 4.0, 2.0]))


def test_home_is_read_and_checked():
    robot = chain("revolute", "free", home={"ja": (0.5,), "jb": (1, 2, 3, 2, 0, 0, 0)})
    np.testing.assert_allclose(robot.tree.home, [0.5, 1, 2, 3, 1, 0, 0, 0])
    with pytest.raises(DescriptionError, match="expected: 7 for a free joint"):
        Tree(replace(robot, home={"jb": (1.0,)}))
    with pytest.raises(UnknownNameError, match="did you mean 'ja'"):
        Tree(replace(robot, home={"jaa": (1.0,)}))


def refused(robot: Robot, message: str) -> None:
    with pytest.raises(CardsError, match=message):
        Tree(robot)


def test_structures_that_are_not_trees():
    robot = chain("revolute", "revolute")
    a, b = robot.joints
    refused(replace(robot, joints=(a,)), "link 'b': not connected to the world")
    refused(replace(robot, joints=(replace(a, parent="b"), b)), "not connected to the world")
    refused(
        replace(robot, joints=(a, b, replace(b, name="j2"))), "already the child of joint 'jb'"
    )
    refused(replace(robot, joints=(a, replace(b, child=WORLD))), "its child is the world")
    refused(replace(robot, joints=(a, replace(b, parent="aa"))), "did you mean 'a'")
    refused(replace(robot, joints=(a, replace(b, axes=()))), "0 axes for a revolute joint")
    zero = JointAxis(np.zeros(3))
    refused(replace(robot, joints=(a, replace(b, axes=(zero,)))), "has no direction")


def test_names_must_be_unique_and_known():
    robot = chain("revolute")
    point = ViaPoint("a", np.zeros(3))
    muscle = Muscle("m", (point, ViaPoint("nowhere", np.zeros(3))))
    refused(replace(robot, muscles=(muscle,)), "muscle 'm'.*nowhere")
    refused(replace(robot, links=robot.links * 2), "2 links have this name")
    refused(replace(robot, frames=(Frame("f", "x"),)), "frame 'f'")


def test_fingerprint_tells_equations_apart():
    robot = random_robot(4)
    again = robot_hash(random_robot(4).tree)
    assert robot_hash(robot.tree) == again
    heavier = replace(robot.links[0], inertia=replace(robot.links[0].inertia, mass=9.0))
    assert robot_hash(replace(robot, links=(heavier, *robot.links[1:])).tree) != again
    limits = tuple(replace(m, tension_max=1e6) for m in robot.muscles)
    assert robot_hash(replace(robot, muscles=limits).tree) == again


def test_the_hash_knows_what_cables_touch(tmp_path):
    """Shapes and friction of cables with contact change lengths and forces; others do not."""
    (tmp_path / "shape.stl").write_bytes(b"one")
    source = str(tmp_path / "model.sdf")
    ends = (ViaPoint("a", np.zeros(3)), ViaPoint("b", np.ones(3)))

    def hash_of(shape, *, pose=None, **attributes):
        collision = Collision("c", shape, pose or Pose())
        mass = Inertia(1.0, np.zeros(3), np.eye(3))
        links = (Link("a", mass), Link("b", mass), Link("c", mass, collisions=(collision,)))
        joints = tuple(Joint(f"{link.name}_free", "free", WORLD, link.name) for link in links)
        muscle = Muscle("m", ends, **attributes)
        return robot_hash(Robot("r", links, joints, muscles=(muscle,), source=source).tree)

    plain = hash_of(Sphere(0.1))
    assert plain == hash_of(Sphere(0.2))
    found = [
        plain,
        hash_of(Sphere(0.1), contact=True),
        hash_of(Sphere(0.2), contact=True),
        hash_of(Capsule(0.1, 0.2), contact=True),
        hash_of(Capsule(0.1, 0.3), contact=True),
        hash_of(Sphere(0.1), pose=Pose(translation=np.ones(3)), contact=True),
        hash_of(Sphere(0.1), contact=True, friction=0.2),
        hash_of(Mesh("shape.stl"), contact=True),
    ]
    (tmp_path / "shape.stl").write_bytes(b"two")
    found.append(hash_of(Mesh("shape.stl"), contact=True))
    assert len(set(found)) == len(found)
    assert hash_of(Sphere(0.1), contact=True) == found[1]


def test_every_error_is_a_cards_error():
    assert issubclass(DescriptionError, CardsError)
    message = str(DescriptionError("too big", source="m.sdf", line=3, element="link 'a'"))
    assert message == "m.sdf:3: link 'a': too big"


def test_quaternions_have_unit_length():
    tree = chain("ball").tree
    np.testing.assert_allclose(np.linalg.norm(tree.check_q([1.0001, 0, 0, 0])), 1.0, atol=1e-15)
    with pytest.raises(CardsError, match=r"quaternion of 'ja'.*length 2"):
        tree.check_q([2.0, 0, 0, 0])
    with pytest.raises(DescriptionError, match="no rotation"):
        Tree(chain("ball", home={"ja": (0, 0, 0, 0)}))


def test_a_frame_must_not_have_the_name_of_a_link():
    refused(chain("revolute", frames=(Frame("a", "a"),)), "a link has this name")
