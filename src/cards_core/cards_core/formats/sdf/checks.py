"""Checks of the muscles of a whole robot: paths at its home pose, and points in millimetres.

`check_home` refuses ends of wraps inside of surfaces and of wheels. `unit_warning` tells of points
that look as if they were in millimetres.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cards_core.formats.sdf.muscle_path import inside_problem, path_elements, pulley_problem, spans
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import (
    WORLD,
    Joint,
    Muscle,
    PathElement,
    Pulley,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_core.typing import Vector3

# Paths at the home pose ------------------------------------------------------------------------


def check_home(robot: Robot, elements: Mapping[str, XmlElement]) -> None:
    """Refuse paths that cannot be at the home pose.

    Args:
        robot: The robot.
        elements: ``<muscle>`` of every muscle, for messages.

    Raises:
        DescriptionError: A via point lies inside a surface that its muscle wraps over between it
            and the next point, or inside the wheel of a pulley.
    """
    bent = [m for m in robot.muscles if any(isinstance(i, Wrap | Pulley) for i in m.path)]
    if not bent:
        return
    poses = home_poses(robot)
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    for muscle in bent:
        _check_muscle(muscle, path_elements(elements[muscle.name]), surfaces, poses)


def home_poses(robot: Robot) -> dict[str, Pose]:
    """Return the pose of every link, and of ``world``, in the world at the home position."""
    tree = robot.tree
    motion = forward_kinematics(tree, tree.home, np.zeros(tree.nv))
    return {
        name: Pose(motion.rotation[node], motion.position[node]) @ pose
        for name, (node, pose) in tree.link_node.items()
    }


def _check_muscle(
    muscle: Muscle,
    elements: list[XmlElement],
    surfaces: Mapping[str, WrapSurface],
    poses: Mapping[str, Pose],
) -> None:
    for span in spans(muscle.path):
        first = muscle.path[span[0]]
        for end in (span[0], span[-1]):
            point = _place(muscle.path[end], poses)
            for wrap in (muscle.path[i] for i in span[1:-1]):
                assert isinstance(wrap, Wrap)
                if wrap.free_ends:
                    continue
                surface = surfaces[wrap.surface]
                local = poses[surface.link].inverse().apply(point)
                _report(inside_problem(wrap, surface, local), elements[end])
        if isinstance(first, Pulley):
            local = poses[first.link].inverse().apply(_place(muscle.path[span[-1]], poses))
            _report(pulley_problem(first, local), elements[span[-1]])


def _place(item: PathElement, poses: Mapping[str, Pose]) -> Vector3:
    assert not isinstance(item, Wrap)
    return poses[item.link].apply(item.position)


def _report(problem: tuple[str, str] | None, element: XmlElement) -> None:
    if problem is not None:
        raise element.error(f"at the home pose {problem[0]}", problem[1])


# Units -----------------------------------------------------------------------------------------


FAR = 10.0
"""A point of a moving link this many sizes of the robot from the link's origin is suspect. Of the
robots of CASPR and ours none has more than 2.5, in millimetres none would have less than 38."""

FAR_FIXED = 100.0
"""The same for points of what does not move: a frame may be much larger than what hangs in it."""

LEAST = 2.0
LEAST_FIXED = 50.0
"""Nearer points are not suspect, [m]: sizes from inertias that were made up say little."""

LARGE = 1000.0
"""Beyond this every point is suspect, [m]."""


@dataclass(frozen=True)
class UnitWarning:
    """The first point that looks as if it were in millimetres.

    Attributes:
        muscle: Its muscle.
        line: Of the file that declares it, if known.
        text: What looks wrong, and what it would be in metres.
    """

    muscle: str
    line: int | None
    text: str


def unit_warning(robot: Robot) -> UnitWarning | None:
    """Return what looks like millimetres in the paths of muscles; None if nothing.

    The size of the robot is the largest of: distances of centres of mass and of joints from the
    origin of their link, radii of gyration, limits of sliding joints. Shapes do not count: they
    are drawn after the points as often as not. Points on links that move are compared with it,
    and points that stand still where the robot cannot slide away from them.
    """
    size = robot_size(robot)
    fixed = _fixed_links(robot)
    free = any(_slides_freely(joint) for joint in robot.joints)
    moving_limit = min(max(FAR * size, LEAST), LARGE)
    fixed_limit = LARGE if free else min(max(FAR_FIXED * size, LEAST_FIXED), LARGE)
    distant: list[tuple[Muscle, int, ViaPoint | Pulley]] = []
    for muscle in robot.muscles:
        for number, item in enumerate(muscle.path, start=1):
            if isinstance(item, ViaPoint | Pulley):
                limit = fixed_limit if item.link in fixed else moving_limit
                if float(np.linalg.norm(item.position)) > limit:
                    distant.append((muscle, number, item))
    if not distant:
        return None
    muscle, number, item = distant[0]
    shown = ", ".join(f"{value:.4g}" for value in item.position / 1000.0)
    text = (
        f"point {number} is {np.linalg.norm(item.position):.4g} m from the origin of "
        f"'{item.link}', of a robot whose links and joints measure {size:.3g} m: in millimetres? "
        f"In metres it would be ({shown})"
    )
    if len(distant) > 1:
        text += f"; {len(distant) - 1} more points are as far"
    return UnitWarning(muscle.name, item.line, text)


def robot_size(robot: Robot) -> float:
    """Return the size of a robot as its links and joints tell it, [m]; 0 if they do not."""
    places = (
        float(np.linalg.norm(pose.translation))
        for joint in robot.joints
        for pose in (joint.parent_to_joint, joint.joint_to_child)
    )
    return longest([*body_lengths(robot), *places])


def longest(lengths: Iterable[float]) -> float:
    """Return the largest finite length, [m]; 0 if there is none."""
    return max((value for value in lengths if math.isfinite(value)), default=0.0)


def body_lengths(robot: Robot) -> Iterator[float]:
    """Yield the lengths that inertias and ways of sliding joints tell, [m]."""
    for link in robot.links:
        inertia = link.inertia
        yield float(np.linalg.norm(inertia.com))
        if inertia.mass > 0.0:
            # of a body with moments I the mean square distance from its centre is tr I / (2 m)
            yield math.sqrt(max(0.0, 0.5 * float(np.trace(inertia.tensor)) / inertia.mass))
    for joint in robot.joints:
        for axis in joint.axes[: sliding(joint)]:
            yield from (abs(axis.lower), abs(axis.upper))


def sliding(joint: Joint) -> int:
    """Return how many of a joint's axes slide."""
    return {"prismatic": 1, "planar": 2}.get(joint.kind, 0)


def _slides_freely(joint: Joint) -> bool:
    axes = joint.axes[: sliding(joint)]
    return joint.kind == "free" or any(
        not (math.isfinite(axis.lower) and math.isfinite(axis.upper)) for axis in axes
    )


def _fixed_links(robot: Robot) -> set[str]:
    """Return the names of the world and of what is fixed to it."""
    out = {WORLD}
    while True:
        more = {
            joint.child
            for joint in robot.joints
            if joint.kind == "fixed" and joint.parent in out and joint.child not in out
        }
        if not more:
            return out
        out |= more
