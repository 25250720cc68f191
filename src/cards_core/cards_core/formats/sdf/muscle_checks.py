"""Check the muscles of a whole robot at its home pose: ends of wraps against surfaces, pulleys."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cards_core.formats.sdf.muscle_path import (
    inside_problem,
    path_elements,
    pulley_problem,
    spans,
)
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import Muscle, PathElement, Pulley, Wrap, WrapSurface
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_core.typing import Vector3


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
