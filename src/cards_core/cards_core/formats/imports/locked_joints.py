"""Joints of imported robots that their limits hold at one place: they are fixed there.

Other programs write ``lower = upper`` for a joint that shall not move. Here such a joint is of
kind ``fixed``: simulators have no joint whose limits leave no motion, and a coordinate that cannot
move is none.
"""

from __future__ import annotations

from dataclasses import replace

from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.robot.elements import Joint, JointAxis
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, axis_rotation


def fix_locked_joints(robot: Robot, findings: FindingList) -> Robot:
    """Return the robot with a fixed joint where limits leave no motion; warn of each.

    A revolute or prismatic joint with ``lower == upper == v`` becomes the fixed joint with
    ``parent_to_joint @ motion(v)``. A universal joint with one such axis becomes the revolute
    joint about the other one. Links, and with them muscles, stay where they were.

    Args:
        robot: As the file says; read before chains of joints are merged.
        findings: Takes a warning ``joint-locked`` for every axis.

    Raises:
        DescriptionError: A limit is above the other one, or both are infinite.
    """
    joints, home = [], dict(robot.home)
    for joint in robot.joints:
        made = joint
        for index in reversed(range(len(joint.axes))):
            axis = joint.axes[index]
            if axis.lower < axis.upper:
                continue
            _check(robot, joint, axis)
            made = _without_axis(made, index)
            values = home.pop(joint.name, ())
            if made.axes and values:
                home[joint.name] = (*values[:index], *values[index + 1 :])
            _warn(robot, joint, made, axis, findings)
        joints.append(made)
    return replace(robot, joints=tuple(joints), home=home)


def _check(robot: Robot, joint: Joint, axis: JointAxis) -> None:
    problem, expected = "", "lower < upper, or equal ones for a joint that shall not move"
    if axis.lower != axis.upper or abs(axis.lower) == float("inf"):
        problem = f"limits {axis.lower:g} .. {axis.upper:g}"
    elif joint.kind not in ("revolute", "prismatic", "universal"):
        problem = f"limits {axis.lower:g} .. {axis.upper:g} of one axis"
        expected = f"lower < upper for all axes of a {joint.kind} joint, or another kind"
    if problem:
        raise robot.error(joint, problem, expected)


def _without_axis(joint: Joint, index: int) -> Joint:
    """Return a joint whose axis stands still at its limit."""
    axis = joint.axes[index]
    if joint.kind == "prismatic":
        held = Pose(translation=axis.lower * axis.axis)
    else:
        held = Pose(axis_rotation(axis.axis, axis.lower))
    rest = (*joint.axes[:index], *joint.axes[index + 1 :])
    # R1(a) R2(v) = the second rotation stands behind what still moves
    before, after = (held, Pose()) if index == 0 else (Pose(), held)
    return replace(
        joint,
        kind="revolute" if rest else "fixed",
        parent_to_joint=joint.parent_to_joint @ before,
        joint_to_child=after @ joint.joint_to_child,
        axes=rest,
        motor=joint.motor and bool(rest),
    )


def _warn(robot: Robot, joint: Joint, made: Joint, axis: JointAxis, findings: FindingList) -> None:
    unit = "m" if joint.kind == "prismatic" else "rad"
    what = f"it is a {made.kind} joint here" if made.axes else "it is a fixed joint here"
    if joint.motor and not made.motor:
        what += ", without its motor"
    findings.warn(
        "joint-locked",
        f"joint '{joint.name}'",
        f"lower and upper limit are both {axis.lower:g} {unit}: {what}",
        at=FilePlace(robot.source, joint.line),
    )
