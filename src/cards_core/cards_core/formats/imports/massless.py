"""Links without mass and shape that only stand between joints, taken out.

Formats with joints of one degree of freedom state others as chains through such links, put the
frame of a link where its joint is, and name frames by links of their own. Here joints have several
degrees of freedom and a frame of their own, and frames are no links:

* a link without children that is fixed to another one becomes a frame of that one;
* a link that moves and carries nothing but one link fixed to it becomes the frame of the joint;
* chains with the names that `cards_core.formats.urdf.writer` gives become one joint again.

Others keep their link; simulators need a little mass there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cards_core.robot.elements import WORLD, Frame, Joint, JointAxis, JointKind, Link
from cards_core.robot.model import Robot

_CHAINS: tuple[tuple[tuple[str, ...], str, JointKind], ...] = (
    (("_x", "_y", "_z", "_rx", "_ry", "_rz"), "PPPRRR", "free"),
    (("_rx", "_ry", "_rz"), "RRR", "ball"),
    (("_1", "_2", "_3"), "PPR", "planar"),
    (("_1", "_2"), "RR", "universal"),
)
"""Endings of the names, kinds of the joints, and the joint that they make."""

_LETTERS = {"prismatic": "P", "revolute": "R"}


@dataclass(frozen=True)
class Merged:
    """What was taken out.

    Attributes:
        frames: Links that are frames now.
        joints: Joints that several were before.
        links: Links that are gone.
    """

    frames: tuple[str, ...]
    joints: tuple[str, ...]
    links: tuple[str, ...]


def merge_massless(robot: Robot, keep: Collection[str] = ()) -> tuple[Robot, Merged]:
    """Return the robot without links that only stand between joints, and what was taken out.

    Positions and velocities of all other links stay the same functions of the coordinates; those
    of ball and free joints become quaternions.

    Args:
        robot: The robot.
        keep: Links that stay, because something is attached to them.
    """
    work = _Work(robot, set(keep))
    work.fixed_behind_moving()
    work.chains()
    work.leaves()
    return work.result()


class _Work:
    def __init__(self, robot: Robot, keep: set[str]) -> None:
        self.robot = robot
        self.links = {link.name: link for link in robot.links}
        self.joints = {joint.name: joint for joint in robot.joints}
        self.frames = list(robot.frames)
        self.keep = keep | {frame.link for frame in robot.frames}
        self.new_frames: list[str] = []
        self.new_joints: list[str] = []
        self.gone: list[str] = []

    def bare(self, name: str) -> bool:
        link = self.links.get(name)
        return link is not None and name not in self.keep and _is_bare(link)

    def children(self) -> dict[str, list[Joint]]:
        out: dict[str, list[Joint]] = {}
        for joint in self.joints.values():
            out.setdefault(joint.parent, []).append(joint)
        return out

    def replace(self, old: tuple[Joint, ...], new: Joint, links: tuple[str, ...]) -> None:
        """Put a joint in the place of the first of several."""
        names = {joint.name for joint in old}
        joints = []
        for joint in self.joints.values():
            if joint.name == old[0].name:
                joints.append(new)
            elif joint.name not in names:
                joints.append(joint)
        self.joints = {joint.name: joint for joint in joints}
        for link in links:
            del self.links[link]
        self.gone += links

    def fixed_behind_moving(self) -> None:
        """Merge a moving joint, a bare link and the only joint behind it, which is fixed."""
        children = self.children()
        for joint in list(self.joints.values()):
            behind = children.get(joint.child, [])
            if joint.kind == "fixed" or len(behind) != 1 or behind[0].kind != "fixed":
                continue
            if not self.bare(joint.child):
                continue
            offset = behind[0].parent_to_joint @ behind[0].joint_to_child
            new = dataclasses.replace(
                joint, child=behind[0].child, joint_to_child=joint.joint_to_child @ offset
            )
            self.replace((joint, behind[0]), new, (joint.child,))

    def chains(self) -> None:
        """Merge chains of joints by their names."""
        for endings, letters, kind in _CHAINS:
            for joint in list(self.joints.values()):
                if joint.name.endswith(endings[0]) and joint.name in self.joints:
                    self._chain(joint.name.removesuffix(endings[0]), endings, letters, kind)

    def _chain(self, stem: str, endings: tuple[str, ...], letters: str, kind: JointKind) -> None:
        names = [stem + ending for ending in endings]
        if not stem or any(name not in self.joints for name in names):
            return
        steps = tuple(self.joints[name] for name in names)
        taken = {*self.links, *self.joints, *(frame.name for frame in self.frames)} - set(names)
        if "".join(_LETTERS.get(step.kind, "-") for step in steps) != letters or stem in taken:
            return
        children = self.children()
        for first, second in pairwise(steps):
            only = children.get(first.child, []) == [second]
            if first.child != second.parent or not only or not self.bare(first.child):
                return
            if not (first.joint_to_child.is_identity and second.parent_to_joint.is_identity):
                return
        axes = tuple(step.axes[0] for step in steps)
        if kind in ("ball", "free") and not _units(axes):
            return
        new = dataclasses.replace(
            steps[0],
            name=stem,
            kind=kind,
            child=steps[-1].child,
            joint_to_child=steps[-1].joint_to_child,
            axes=() if kind in ("ball", "free") else axes,
            motor=any(step.motor for step in steps),
        )
        self.replace(steps, new, tuple(step.child for step in steps[:-1]))
        self.new_joints.append(stem)

    def leaves(self) -> None:
        """Make frames of bare links at the ends that are fixed to another link."""
        holder = {joint.child: joint for joint in self.joints.values()}
        behind = {name: len(joints) for name, joints in self.children().items()}
        ends = [name for name in reversed(self.links) if not behind.get(name)]
        made: dict[str, Frame] = {}
        for end in ends:
            name = end
            while name in holder and not behind.get(name):
                joint = holder[name]
                bare = self.bare(name)
                if joint.kind != "fixed" or joint.parent == WORLD or not bare:
                    break
                pose = joint.parent_to_joint @ joint.joint_to_child
                made[name] = Frame(name, joint.parent, pose, joint.line)
                del self.joints[joint.name], self.links[name], holder[name]
                behind[joint.parent] -= 1
                name = joint.parent
        placed: dict[str, Frame] = {}
        for name, frame in reversed(made.items()):  # a link is made after those behind it
            above = placed.get(frame.link)
            placed[name] = (
                frame
                if above is None
                else dataclasses.replace(frame, link=above.link, pose=above.pose @ frame.pose)
            )
        self.frames += (placed[name] for name in made)
        self.new_frames += made

    def result(self) -> tuple[Robot, Merged]:
        merged = Merged(tuple(self.new_frames), tuple(self.new_joints), tuple(self.gone))
        if len(self.links) == len(self.robot.links):
            return self.robot, merged
        home = {name: value for name, value in self.robot.home.items() if name in self.joints}
        for name in self.new_joints:
            joint = self.joints[name]
            values = [self.robot.home.get(f"{name}_{i + 1}") for i in range(len(joint.axes))]
            if joint.axes and any(value is not None for value in values):
                home[name] = tuple(0.0 if value is None else value[0] for value in values)
        robot = dataclasses.replace(
            self.robot,
            links=tuple(self.links.values()),
            joints=tuple(self.joints.values()),
            frames=tuple(self.frames),
            home=home,
        )
        return robot, merged


def _is_bare(link: Link) -> bool:
    return link.inertia.is_massless and not link.visuals and not link.collisions


def _units(axes: tuple[JointAxis, ...]) -> bool:
    """Tell whether axes are x, y, z, x, y, z without limits, damping and friction."""
    for index, axis in enumerate(axes):
        free = math.isinf(axis.lower) and math.isinf(axis.upper)
        if not free or axis.damping or axis.friction:
            return False
        if not np.array_equal(axis.axis, np.eye(3)[index % 3]):
            return False
    return True
