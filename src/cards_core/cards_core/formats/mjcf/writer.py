"""Write a `Robot` as MuJoCo XML (MJCF). Text only: MuJoCo itself is not imported here.

The coordinates of the MuJoCo model are those of `cards_core.robot.Tree`, entry by entry:
joints are written in the tree's depth-first order, quaternions are (w, x, y, z) in both, and the
velocity of a free joint is linear in world (parent) axes, angular in body axes in both.

How a robot becomes bodies:

- Every link is a body of the same name whose frame is the link frame.
- A massless link that only joins two joints (nothing drawn, touching or attached, one child) is
  no body: MuJoCo takes several joints per body, so its joints go into the body of its child.
  `merged_links` tells which.
- Universal, planar and free joints are several MuJoCo joints of one body, named as the nodes of
  the tree. A free joint that starts in the world's own frame is MuJoCo's ``freejoint``.
- A moving massless link that cannot be merged gets `NEGLIGIBLE_INERTIA`, because MuJoCo refuses
  moving bodies without mass.

Simulation needs no MuJoCo tendons: CARDS applies the forces of the muscles itself, as one wrench
per link, and via points appear as sites, for drawing only. Tendons are written on demand, see
`cards_core.formats.mjcf.scene`.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats.mjcf.friction import FrictionRule
from cards_core.formats.mjcf.scene import (
    add_actuators,
    add_constraint_sites,
    add_constraints,
    add_contacts,
    add_frames,
    add_geoms,
    add_ground,
    add_posed,
    add_sensors,
    add_sites,
    add_tendons,
    add_wrap_geoms,
    has_joint,
    parse_world,
)
from cards_core.formats.sdf.elements import numbers
from cards_core.robot.elements import (
    AXES_PER_KIND,
    WORLD,
    Inertia,
    Joint,
    JointAxis,
    Link,
    path_links,
)
from cards_core.robot.inertia import TOLERANCE, inertia_problem
from cards_core.robot.model import WORLD_NODE, Robot
from cards_core.robot.world import ModelJoint
from cards_core.spatial import Pose
from cards_core.typing import Matrix3

Integrator: TypeAlias = Literal["Euler", "implicit", "implicitfast"]

NEGLIGIBLE_INERTIA = 1e-12
"""Mass [kg] and principal moments [kg m^2] of a moving massless link that has to be a body."""

FRICTION_IMPEDANCE = 100.0
"""Of friction over that of normal forces: bodies that should stick creep a hundred times less.
A hand of `musashi_like` that rests on a desk turns by 1.2 mrad/s with 10 and by 0.15 with
100; the solver takes 3 % longer."""

LIMIT_TIME_CONSTANT = 0.005
"""Time constant [s] of the joint limits and of `joints` and `grasps`, at least two time steps.
MuJoCo's default of 0.02 s lets an arm that a muscle pulls against its limit sink in by degrees;
its stiffness grows with 1/t^2."""

CONSTRAINT_IMPEDANCE = (0.99, 0.9999, 0.001)
"""Impedance of `joints` and `grasps`: at no violation, at the width of it, width [m or rad]."""

_MERGEABLE = ("revolute", "prismatic", "universal", "planar")
_DEGREES = {
    "fixed": 0,
    "revolute": 1,
    "prismatic": 1,
    "universal": 2,
    "ball": 3,
    "planar": 3,
    "free": 6,
}
_DEGREES_PER_BODY = 6  # of MuJoCo


def merged_links(robot: Robot) -> frozenset[str]:
    """Return the names of the links that become no body of their own.

    These carry no mass, visual, collision, via point or surface that a muscle wraps over, move by
    a revolute, prismatic, universal or planar joint, and have one child, which moves too. Their
    joints are written into the body of the child, as far as its six degrees of freedom go.
    """
    children: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(joint)
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    pulled = {link for muscle in robot.muscles for link in path_links(muscle.path, surfaces)}

    def is_candidate(joint: Joint) -> bool:
        link = robot.link(joint.child)
        empty = link.inertia.is_massless and not link.visuals and not link.collisions
        below = children.get(link.name, [])
        carries_one = len(below) == 1 and below[0].kind != "fixed"
        # MuJoCo takes no joint after a ball in the same body
        return empty and link.name not in pulled and joint.kind in _MERGEABLE and carries_one

    joint_of = {joint.child: joint for joint in robot.joints}
    candidates = {joint.child for joint in robot.joints if is_candidate(joint)}
    result = set()
    for joint in robot.joints:
        if joint.child in candidates:
            continue
        used = _DEGREES[joint.kind]
        name = joint.parent
        while name in candidates:
            count = _DEGREES[joint_of[name].kind]
            if used + count <= _DEGREES_PER_BODY:
                result.add(name)
                used += count
            else:  # stays a body, and takes the joints above it
                used = count
            name = joint_of[name].parent
    return frozenset(result)


def to_mjcf(
    robot: Robot,
    *,
    timestep: float = 1e-3,
    integrator: Integrator = "Euler",
    ground: float | None = None,
    world_xml: str = "",
    exclude: Collection[tuple[str, str]] = (),
    joints: Sequence[ModelJoint] = (),
    grasps: Sequence[tuple[str, str]] = (),
    link_sensors: bool = False,
    tendons: bool = False,
    actuators: bool = False,
    visuals: bool = True,
    tendon_comments: Mapping[str, str] | None = None,
) -> str:
    """Return the robot as MJCF text.

    Args:
        robot: The description.
        timestep: [s].
        integrator: ``Euler`` is MuJoCo's semi-implicit Euler with joint damping taken implicitly:
            the scheme Gazebo's engines use, of first order, without energy drift for
            conservative systems, and the cheapest. The others treat velocity-dependent forces
            of joints and actuators implicitly, which muscles as external forces do not profit
            from. Runge-Kutta is not offered: it would evaluate the forces between steps, where
            no muscle wrench is known.
        ground: Height of a horizontal ground plane, [m]; none if `None`.
        world_xml: MJCF elements to put into ``<worldbody>``, e.g. obstacles and loose objects;
            the coordinates of joints in there follow those of the robot.
        exclude: Pairs of links that shall not collide with each other. Links joined by a joint
            never do.
        joints: Joints that close loops, written as equality constraints: a weld, a connect, or
            for an axis two connects.
        grasps: Pairs of links to weld together, named ``first>second``; not active at first. Who
            activates a weld says at which relative pose.
        link_sensors: Add frame sensors, in world axes and in the order of ``robot.links``:
            first for every link the three columns of its rotation and the position of its
            centre of mass (12 numbers), then for every link the velocity of its centre of mass
            and its angular velocity (6). Merged links have the values of the world frame there.
        tendons: Write the muscles as spatial tendons, for other programs that read MJCF. They
            have lengths and, without ``actuators``, no forces.
        actuators: Write an actuator on the tendon of every muscle that takes a tension, whose
            control is that tension, and one for every motor of a joint; only with ``tendons``.
        visuals: Write what is only seen, too. It touches nothing, but is moved in every step.
        tendon_comments: Muscle to a comment in its tendon.

    Raises:
        UnknownNameError: A muscle names a link or wrap surface that does not exist, or no such
            integrator.
        DescriptionError: An inertia MuJoCo refuses, a joint that closes a loop at a link that is
            no body, a moving link without mass, a mesh format
            MuJoCo cannot read, a moving plane, or ``world_xml`` that is not well-formed.
    """
    check_choice(integrator, "integrator", get_args(Integrator))
    if actuators and not tendons:
        raise CardsError("actuators without tendons (expected: both, or none)")
    tree = robot.tree
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", fusestatic="false")
    option = ET.SubElement(
        root,
        "option",
        timestep=numbers(timestep),
        integrator=integrator,
        gravity=numbers(*robot.gravity),
        # the pyramid of four edges brakes with 0.7 mu on its diagonals
        cone="elliptic",
        impratio=numbers(FRICTION_IMPEDANCE),
    )
    # a silent reset after a divergence would hide it; the simulator stops and reports instead
    ET.SubElement(option, "flag", autoreset="disable")
    limit_time = max(LIMIT_TIME_CONSTANT, 2.0 * timestep)
    default = ET.SubElement(root, "default")
    ET.SubElement(default, "joint", solreflimit=numbers(limit_time, 1.0))
    if joints or grasps:
        stiff = {"solref": numbers(limit_time, 1.0), "solimp": numbers(*CONSTRAINT_IMPEDANCE)}
        ET.SubElement(default, "equality", stiff)
    assets = ET.SubElement(root, "asset")
    world = ET.SubElement(root, "worldbody")
    friction = FrictionRule(robot, ground=ground is not None)
    if ground is not None:
        add_ground(world, ground, friction.of_ground())

    merged = merged_links(robot)
    joint_of = {joint.child: joint for joint in robot.joints}
    bodies: dict[str, ET.Element] = {WORLD: world}
    add_sites(world, robot, WORLD, sides=tendons)
    if tendons:
        add_wrap_geoms(world, robot, WORLD)
    for name in tree.link_node:
        if name == WORLD or name in merged:
            continue
        link = robot.link(name)
        chain = [joint_of[name]]
        while chain[0].parent in merged:
            chain.insert(0, joint_of[chain[0].parent])
        parent = bodies[chain[0].parent]
        bodies[name] = _add_body(parent, robot, chain, link)
        _add_inertial(bodies[name], robot, link, joint_of[name])
        moving = tree.link_node[name][0] != WORLD_NODE
        add_geoms(bodies[name], assets, robot, link, friction, moving=moving, visuals=visuals)
        add_sites(bodies[name], robot, name, sides=tendons)
        if tendons:
            add_wrap_geoms(bodies[name], robot, name)
            add_frames(bodies[name], robot, name)
    # after the links, so that coordinates of moving objects come after those of the robot
    objects = parse_world(robot, world_xml)
    world.extend(objects)
    add_contacts(root, robot, merged, exclude, friction)
    if joints or grasps:
        add_constraint_sites(bodies, robot, joints)
        add_constraints(root, joints, grasps)
    if tendons:
        add_tendons(root, robot, tendon_comments or {})
        if actuators:
            add_actuators(root, robot)
    if link_sensors:
        add_sensors(root, robot, merged)
    if tree.nq and not any(has_joint(item) for item in objects):
        keys = ET.SubElement(root, "keyframe")
        ET.SubElement(keys, "key", name="home", qpos=numbers(*tree.home))
    if len(assets) == 0:
        root.remove(assets)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


# Bodies and joints ---------------------------------------------------------------------------


def _add_body(parent: ET.Element, robot: Robot, chain: list[Joint], link: Link) -> ET.Element:
    """Add the body of a link with all joints of `chain`, root-most joint first."""
    pose = Pose()
    for joint in chain:
        pose = pose @ joint.parent_to_joint @ joint.joint_to_child
    last = chain[-1]
    carrier = last.kind in ("ball", "free") and not last.joint_to_child.is_identity
    if carrier:
        # MuJoCo's quaternion turns the body frame, ours the joint frame: a body at the joint
        # frame carries the coordinates and the link is welded to it
        pose = pose @ last.joint_to_child.inverse()
        body = add_posed(parent, "body", f"{last.name} frame", pose)
        offset = Pose()
    else:
        body = add_posed(parent, "body", link.name, pose)
        offset = last.joint_to_child
    for index, joint in enumerate(chain):
        # from the link frame, at zero coordinates, to the frame of this joint
        to_joint = offset if joint is last else joint.joint_to_child
        for later in chain[index + 1 :]:
            to_joint = to_joint @ later.parent_to_joint
            to_joint = to_joint @ (offset if later is last else later.joint_to_child)
        at_root = chain[0].parent == WORLD and len(chain) == 1
        _add_joints(body, robot, joint, to_joint.inverse(), at_root)
    if carrier:
        return add_posed(body, "body", link.name, last.joint_to_child)
    return body


def _add_joints(body: ET.Element, robot: Robot, joint: Joint, frame: Pose, at_root: bool) -> None:
    """Write the elementary joints of a joint; `frame` maps its joint frame to the body frame."""
    position = numbers(*frame.translation)
    a = joint.axes
    hinges: list[tuple[str, str, JointAxis]] = []
    match joint.kind:
        case "revolute":
            hinges = [(joint.name, "hinge", a[0])]
        case "prismatic":
            hinges = [(joint.name, "slide", a[0])]
        case "universal":
            hinges = [(f"{joint.name}_1", "hinge", a[0]), (f"{joint.name}_2", "hinge", a[1])]
        case "planar":
            kinds = ("slide", "slide", "hinge")
            hinges = [(f"{joint.name}_{i + 1}", k, a[i]) for i, k in enumerate(kinds)]
        case "ball":
            ET.SubElement(body, "joint", name=joint.name, type="ball", pos=position)
        case "free" if at_root and joint.parent_to_joint.is_identity:
            ET.SubElement(body, "freejoint", name=joint.name)
        case "free":
            for name, unit in zip("xyz", np.eye(3), strict=True):
                hinges.append((f"{joint.name}_{name}", "slide", JointAxis(unit)))
        case "fixed":
            pass
        case _:
            raise UnknownNameError("joint kind", joint.kind, AXES_PER_KIND)
    for name, kind, axis in hinges:
        if not axis.lower < axis.upper:
            raise robot.error(
                joint,
                f"limits {axis.lower:g} .. {axis.upper:g}",
                "lower < upper; a joint that shall not move is of kind fixed",
            )
        element = ET.SubElement(body, "joint", name=name, type=kind)
        if kind == "hinge":
            element.set("pos", position)
        element.set("axis", numbers(*(frame.rotation @ axis.axis)))
        if math.isfinite(axis.lower) or math.isfinite(axis.upper):
            # MuJoCo needs both ends: an open one is put out of reach
            element.set("limited", "true")
            element.set("range", numbers(max(axis.lower, -1e9), min(axis.upper, 1e9)))
        else:
            element.set("limited", "false")
        if axis.damping:
            element.set("damping", numbers(axis.damping))
        if axis.friction:
            element.set("frictionloss", numbers(axis.friction))
    if joint.kind == "free" and hinges:
        ET.SubElement(body, "joint", name=joint.name, type="ball", pos=position)


# Inertia -------------------------------------------------------------------------------------


def _add_inertial(body: ET.Element, robot: Robot, link: Link, joint: Joint) -> None:
    inertia = link.inertia
    if inertia.is_massless:
        if joint.kind == "fixed":
            return
        if not _carries_mass(robot, link.name):
            problem = "moves but neither it nor a link it carries has mass"
            raise robot.error(link, problem, "a mass > 0")
        tiny = NEGLIGIBLE_INERTIA
        inertia = Inertia(tiny, np.zeros(3), tiny * np.eye(3))
    tensor = _checked_tensor(robot, link, inertia)
    full = numbers(
        tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2]
    )
    com, mass = numbers(*inertia.com), numbers(inertia.mass)
    ET.SubElement(body, "inertial", pos=com, mass=mass, fullinertia=full)


def _checked_tensor(robot: Robot, link: Link, inertia: Inertia) -> Matrix3:
    """Return the tensor, with room for the rounding of MuJoCo's own check."""
    problem = inertia_problem(inertia)
    if problem is not None:
        expected = "a rigid body; cards_core.robot.inertia.repair_robot makes it one"
        raise robot.error(link, problem, expected)
    tensor = np.asarray(inertia.tensor, dtype=float)
    low, middle, high = np.linalg.eigvalsh(tensor)
    # A + B = C, a plate: adding the same to all moments raises A + B - C by as much
    missing = high - low - middle + TOLERANCE * high
    return tensor + missing * np.eye(3) if missing > 0.0 else tensor


def _carries_mass(robot: Robot, name: str) -> bool:
    below = [joint.child for joint in robot.joints if joint.parent == name]
    return any(
        robot.link(child).inertia.mass > 0 or _carries_mass(robot, child) for child in below
    )
