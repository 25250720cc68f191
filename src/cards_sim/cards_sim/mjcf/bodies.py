"""Links and joints of a MuJoCo model.

A body with several joints becomes a chain of links, those between without mass. Our coordinates
are MuJoCo's ``qpos``, entry by entry: at `ref` a joint is where the file draws it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco
import numpy as np

from cards_core.checks import LARGEST, readable
from cards_core.robot.elements import (
    WORLD,
    Inertia,
    Joint,
    JointAxis,
    JointKind,
    Link,
)
from cards_core.robot.inertia import inertia_problem, repair_inertia
from cards_core.spatial import Pose, axis_rotation
from cards_core.typing import Array
from cards_sim.mjcf.names import Names, pose_of
from cards_sim.mjcf.shapes import Shapes

_KINDS: dict[int, JointKind] = {
    int(mujoco.mjtJoint.mjJNT_HINGE): "revolute",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "prismatic",
    int(mujoco.mjtJoint.mjJNT_BALL): "ball",
    int(mujoco.mjtJoint.mjJNT_FREE): "free",
}


def read_bodies(
    names: Names, shapes: Shapes, locked: dict[int, float]
) -> tuple[list[Link], list[Joint]]:
    """Return the links and joints of all bodies.

    Args:
        names: Gets the names of links and joints.
        shapes: Makes visuals and collisions.
        locked: Joints that a constraint holds, and their coordinate there, [rad] or [m].
    """
    model = names.compiled.model
    links: list[Link] = []
    joints: list[Joint] = []
    world_visuals, world_collisions = shapes.of(0)
    if world_visuals or world_collisions:
        names.surroundings = name = names.table.claim("surroundings")
        links.append(Link(name, Inertia(), world_visuals, world_collisions))
        joints.append(Joint(names.table.claim(f"{name}_fixed"), "fixed", WORLD, name))
    for body in range(1, model.nbody):
        names.links[body] = names.table.claim(names.name("body", body) or f"body_{body}")
    for body in range(1, model.nbody):
        new_links, new_joints = _read_body(names, shapes, body, locked)
        links += new_links
        joints += new_joints
    return links, joints


def _read_body(
    names: Names, shapes: Shapes, body: int, locked: dict[int, float]
) -> tuple[list[Link], list[Joint]]:
    """Return the links of a body, its own the last, and the joints that carry them."""
    model = names.compiled.model
    links: list[Link] = []
    joints: list[Joint] = []
    name = names.links[body]
    parent = names.links[int(model.body_parentid[body])]
    pose = pose_of(model.body_pos[body], model.body_quat[body])
    if model.body_mocapid[body] >= 0:
        names.warn("mocap", "body", body, "follows a motion in MuJoCo; here it is fixed")
    if model.body_gravcomp[body]:
        share = f"{100 * model.body_gravcomp[body]:g} %"
        names.warn("gravcomp", "body", body, f"compensation of {share} of gravity left out")
    first = int(model.body_jntadr[body])
    count = int(model.body_jntnum[body])
    moving = [j for j in range(first, first + count) if j not in locked]
    # what is before the next joint that moves: frame of the body, joints that are locked
    before = pose
    for joint in range(first, first + count):
        at = Pose(translation=np.array(model.jnt_pos[joint]))
        if joint in locked:
            angle = locked[joint] - _reference(model, joint)
            before = before @ at @ _motion(model, joint, angle) @ at.inverse()
            continue
        if joint == moving[-1]:
            child = name
        else:
            child = names.table.claim(f"{_joint_name(names, joint)}_link")
            links.append(Link(child, line=names.line("joint", joint)))
        after = Pose()
        if joint == moving[-1]:  # locked joints after it
            for other in range(joint + 1, first + count):
                place = Pose(translation=np.array(model.jnt_pos[other]))
                angle = locked[other] - _reference(model, other)
                after = after @ place @ _motion(model, other, angle) @ place.inverse()
        joints.append(_read_joint(names, joint, (parent, child), (before, after)))
        parent, before = child, Pose()
    if not moving:
        fixed = names.table.claim(f"{name}_fixed")
        line = names.line("body", body)
        joints.append(Joint(fixed, "fixed", parent, name, parent_to_joint=before, line=line))
    visuals, collisions = shapes.of(body)
    inertia = _read_inertia(names, body)
    links.append(Link(name, inertia, visuals, collisions, line=names.line("body", body)))
    return links, joints


def _joint_name(names: Names, joint: int) -> str:
    """Return a name that no link or joint has yet, without taking it."""
    body = names.links[int(names.compiled.model.jnt_bodyid[joint])]
    return names.name("joint", joint) or f"{body}_joint_{joint}"


def _reference(model: mujoco.MjModel, joint: int) -> float:
    return float(model.qpos0[model.jnt_qposadr[joint]])


def _motion(model: mujoco.MjModel, joint: int, value: float) -> Pose:
    """Return the motion of a hinge or slide, [rad] or [m]."""
    axis = model.jnt_axis[joint]
    if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE:
        return Pose(axis_rotation(axis, value))
    return Pose(translation=value * axis)


def _read_joint(
    names: Names, index: int, ends: tuple[str, str], placed: tuple[Pose, Pose]
) -> Joint:
    """Return a joint.

    Args:
        names: Of the model; gets the joint's name and remarks.
        index: MuJoCo's index.
        ends: Parent and child.
        placed: Body of the joint in the parent, at the reference; child in that body.
    """
    parent, child = ends
    before, after = placed
    model = names.compiled.model
    kind = _KINDS[int(model.jnt_type[index])]
    dof = int(model.jnt_dofadr[index])
    line = names.line("joint", index)
    if kind == "free":
        # a reader of SDF calls it so, see docs/description.md
        name = names.table.claim(f"{child}_free")
        names.joints[index] = name
        _passive_notes(names, index, [dof + k for k in range(6)])
        return Joint(name, "free", parent, child, line=line)
    original = _joint_name(names, index)
    name = names.table.claim(original if original != child else f"{original}_joint")
    names.joints[index] = name
    _range_note(names, index)
    at = Pose(translation=np.array(model.jnt_pos[index]))
    if kind == "ball":
        _passive_notes(names, index, [dof + k for k in range(3)])
        if model.jnt_limited[index]:
            limit = math.degrees(model.jnt_range[index, 1])
            names.warn("ball-limit", "joint", index, f"limit of {limit:g} degrees left out")
        to_child = at.inverse() @ after
        return Joint(name, kind, parent, child, before @ at, to_child, line=line)
    reference = _motion(model, index, -_reference(model, index))
    lower, upper = -math.inf, math.inf
    if model.jnt_limited[index]:
        lower, upper = (
            value if abs(value) < LARGEST else math.copysign(math.inf, value)
            for value in model.jnt_range[index].tolist()
        )
    effort = math.inf
    if model.jnt_actfrclimited[index]:
        effort = float(np.max(np.abs(model.jnt_actfrcrange[index])))
    _passive_notes(names, index, [dof], damping=False)
    axis = JointAxis(
        np.array(model.jnt_axis[index]),
        lower,
        upper,
        effort=effort if effort > 0.0 else math.inf,
        damping=float(model.dof_damping[dof]),
        friction=float(model.dof_frictionloss[dof]),
    )
    to_child = reference @ at.inverse() @ after
    return Joint(name, kind, parent, child, before @ at, to_child, (axis,), line=line)


def _range_note(names: Names, joint: int) -> None:
    """Name a range that MuJoCo takes for none, in silence, as its ends are the wrong way round."""
    item = names.compiled.spec.joints[joint]
    low, high = (float(value) for value in item.range)
    if low > high and item.limited == mujoco.mjtLimited.mjLIMITED_AUTO:
        names.warn(
            "range", "joint", joint,
            f"range {low:g} .. {high:g} is the wrong way round: MuJoCo takes it for no limits, "
            f'and so it is here (expected: range="{high:g} {low:g}")',
        )  # fmt: skip


def _passive_notes(names: Names, joint: int, dofs: Sequence[int], *, damping: bool = True) -> None:
    """Name what a joint has in MuJoCo and not here."""
    model = names.compiled.model
    rotor = float(np.max(model.dof_armature[dofs]))
    if rotor > 0.0:
        share = float(np.max(model.dof_armature[dofs] / model.dof_M0[dofs]))
        names.warn(
            "armature",
            "joint",
            joint,
            f"armature of {rotor:g} left out: that is {readable(100 * share, 2)} % of its inertia "
            "in the reference pose",
        )
    if damping and np.any(model.dof_damping[dofs]):
        value = float(np.max(model.dof_damping[dofs]))
        names.warn("damping", "joint", joint, f"damping of {value:g} left out")
    if damping and np.any(model.dof_frictionloss[dofs]):
        value = float(np.max(model.dof_frictionloss[dofs]))
        names.warn("friction", "joint", joint, f"dry friction of {value:g} left out")
    if np.any(model.dof_dampingpoly[dofs]):
        names.warn("damping", "joint", joint, "nonlinear damping left out; the linear part stays")
    if model.jnt_stiffness[joint] or np.any(model.jnt_stiffnesspoly[joint]):
        stiffness = float(model.jnt_stiffness[joint])
        names.warn("joint-spring", "joint", joint, f"spring of stiffness {stiffness:g} left out")


def _read_inertia(names: Names, body: int) -> Inertia:
    model = names.compiled.model
    mass = float(model.body_mass[body])
    frame = pose_of(model.body_ipos[body], model.body_iquat[body])
    tensor: Array = frame.rotation @ np.diag(model.body_inertia[body]) @ frame.rotation.T
    tensor = 0.5 * (tensor + tensor.T)
    if mass == 0.0 and not np.any(tensor):
        return Inertia()
    inertia = Inertia(mass, frame.translation, tensor)
    problem = inertia_problem(inertia)
    if problem is None:
        return inertia
    fixed = repair_inertia(inertia)
    scale = max(float(np.max(np.abs(tensor))), 1e-300)
    change = float(np.max(np.abs(fixed.tensor - tensor))) / scale
    text = f"{problem}; the nearest valid tensor differs by {change:.2g} of the largest moment"
    names.warn("inertia", "body", body, text)
    return fixed
