"""The rigid side of a rod robot: which bodies of the SDF are base, plate and joints of limbs.

The rods are not in the SDF, so its bodies form separate trees. The plate is the root of one of
them (a link without a joint to the world), and everything that hangs on it moves with it. A rod
starts at the frame ``<limb>_start`` and ends at the frame ``<limb>_tip``, both with z along the
rod. What lies between the plate and the link of the tip frame is the limb's plate joint, what
lies between the world and the link of the start frame is its base joint.

SDFormat has no cylindrical and no planar joint. Chains of joints stand for them, recognised by
their axes: prismatic + revolute on one line, two prismatic + revolute normal to them; two
revolute joints that cross at a right angle are a universal joint, three that cross a spherical
one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.sdf.reader import SdfDocument
from cards_core.robot.elements import WORLD, Frame, Inertia, Joint
from cards_core.robot.model import Robot
from cards_core.rods.robots.robot import Base, BaseKind, Plate, Tip, TipKind
from cards_core.spatial import Pose, quaternion_matrix
from cards_core.typing import Array, Matrix3, Vector3

PARALLEL = 1e-6
"""How far axes may be from one line or from a right angle: sine of the angle, or [m]."""


@dataclass(frozen=True, eq=False)
class Composite:
    """A joint made of one or several joints of the SDF.

    Attributes:
        kind: What it is.
        point: Its origin.
        axes: Its frame, shape (3, 3); z is the joint axis. Of a universal joint x is the axis
            fixed to the plate and y the axis fixed to the rod.
    """

    kind: TipKind
    point: Vector3
    axes: Matrix3


def composite(kinds: list[str], axes: list[tuple[Vector3, list[Vector3]]]) -> Composite | None:
    """Return the joint that joints in a row make; None if it is not a known one.

    Args:
        kinds: SDF kinds, from the plate on.
        axes: Point and axes of each, in one frame.
    """
    if not kinds:
        return Composite(TipKind.FIXED, np.zeros(3), np.eye(3))
    point = axes[0][0]
    if kinds == ["ball"]:
        return Composite(TipKind.SPHERICAL, point, np.eye(3))
    if kinds == ["universal"]:
        return _cardan(point, *axes[0][1])
    lines = [(p, a[0]) for p, a in axes if len(a) == 1]
    slides = [line for kind, line in zip(kinds, lines, strict=False) if kind == "prismatic"]
    hinges = [line for kind, line in zip(kinds, lines, strict=False) if kind == "revolute"]
    if len(slides) + len(hinges) < len(kinds):
        return None
    found: tuple[TipKind, tuple[Vector3, Vector3]] | None = None
    match len(slides), len(hinges):
        case 1, 0:
            found = TipKind.PRISMATIC, slides[0]
        case 0, 1:
            found = TipKind.REVOLUTE, hinges[0]
        case 1, 1:
            if _parallel(slides[0][1], hinges[0][1]):
                found = TipKind.CYLINDRICAL, hinges[0]
        case 2, 1:
            normal = np.cross(slides[0][1], slides[1][1])
            if np.linalg.norm(normal) > PARALLEL and _parallel(normal, hinges[0][1]):
                found = TipKind.PLANAR, hinges[0]
        case 0, 2:
            meeting = _crossing(hinges)
            return None if meeting is None else _cardan(meeting, hinges[0][1], hinges[1][1])
        case 0, 3:
            meeting = _crossing(hinges)
            if meeting is not None:
                return Composite(TipKind.SPHERICAL, meeting, np.eye(3))
    return None if found is None else Composite(found[0], found[1][0], axis_frame(found[1][1]))


def _cardan(point: Vector3, first: Vector3, second: Vector3) -> Composite | None:
    """Return a universal joint, None if its axes are not at a right angle."""
    if abs(first @ second) > PARALLEL:
        return None
    axes = np.column_stack([first, second, np.cross(first, second)])
    return Composite(TipKind.UNIVERSAL, point, axes)


def _crossing(lines: list[tuple[Vector3, Vector3]]) -> Vector3 | None:
    """Return the point that lines (point, direction) have in common.

    None if there is none, or if the lines lie in one plane (three) or are parallel (two).
    """
    spread = np.linalg.svd(np.array([axis for _, axis in lines]))[1]
    if spread[-1] < 1e-3:
        return None
    normal: Matrix3 = np.zeros((3, 3))
    right: Vector3 = np.zeros(3)
    for point, axis in lines:
        across = np.asarray(np.eye(3) - np.outer(axis, axis))
        normal += across
        right += across.dot(point)
    meeting = np.asarray(np.linalg.solve(normal, right), dtype=float)
    away = [np.linalg.norm(np.cross(meeting - point, axis)) for point, axis in lines]
    return meeting if max(away) < PARALLEL else None


def _parallel(a: Vector3, b: Vector3) -> bool:
    return bool(np.linalg.norm(np.cross(_unit(a), _unit(b))) < PARALLEL)


def _unit(vector: Vector3) -> Vector3:
    return np.asarray(vector / np.linalg.norm(vector))


def axis_frame(axis: Vector3) -> Matrix3:
    """Return a rotation that turns z into a unit ``axis``."""
    x, y, z = axis
    if z < 0.0:  # the formula below divides by 1 + z: turn the other way round, then over
        return np.asarray(axis_frame(-axis) @ np.diag([1.0, -1.0, -1.0]))
    k = 1.0 / (1.0 + z)
    return np.array([[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]])


class Mechanism:
    """The bodies of a rod robot at zero joint coordinates.

    Args:
        document: The SDF as it was read.

    All methods raise `DescriptionError` with the file and the line of the element concerned.
    """

    def __init__(self, document: SdfDocument) -> None:
        self.robot: Robot = document.robot
        self.parents: dict[str, Joint] = {joint.child: joint for joint in self.robot.joints}
        self.frames: dict[str, Frame] = {frame.name: frame for frame in self.robot.frames}
        self._poses: dict[str, Pose] = {WORLD: Pose()}

    def error(
        self, problem: str, element: str, expected: str, *, line: int | None = None
    ) -> DescriptionError:
        """Return an error that names a place in the SDF.

        Args:
            problem: What is wrong.
            element: Element that it is about.
            expected: What would be right.
            line: Line of the file, if known.
        """
        return DescriptionError(
            problem, source=self.robot.source, line=line, element=element, expected=expected
        )

    # Poses and chains ------------------------------------------------------------------------

    def chain(self, link: str) -> list[Joint]:
        """Return the joints from the root of a link's tree down to the link."""
        joints: list[Joint] = []
        while link != WORLD:
            joint = self.parents[link]
            joints.append(joint)
            link = joint.parent
        return joints[::-1]

    def pose(self, link: str) -> Pose:
        """Return the pose of a link in the frame of the file, at zero joint coordinates."""
        for joint in self.chain(link):
            if joint.child not in self._poses:
                above = self._poses[joint.parent] @ joint.parent_to_joint
                if joint.kind == "free":
                    home = self.robot.home[joint.name]
                    above = above @ Pose(quaternion_matrix(home[3:]), np.array(home[:3]))
                self._poses[joint.child] = above @ joint.joint_to_child
        return self._poses[link]

    def joint_pose(self, joint: Joint) -> Pose:
        """Return the pose of a joint's own frame in the frame of the file."""
        return self.pose(joint.parent) @ joint.parent_to_joint

    def root(self, link: str) -> str:
        """Return the first link of the tree that a link belongs to; ``world`` if it is fixed."""
        first = self.chain(link)[0] if link != WORLD else None
        return first.child if first is not None and first.kind == "free" else WORLD

    def end(self, name: str) -> Frame:
        """Return a frame that a rod starts or ends at.

        Raises:
            DescriptionError: There is none.
        """
        if name in self.frames:
            return self.frames[name]
        known = ", ".join(sorted(self.frames)) or "none"
        raise self.error(
            f"has no frame '{name}'",
            f"model '{self.robot.name}'",
            f'<frame name="{name}" attached_to="..."> with z along the rod; frames: {known}',
        )

    def limb_names(self) -> list[str]:
        """Return the limbs that the SDF has frames for, in the order of the file."""
        found: dict[str, None] = {}
        for name in self.frames:
            for ending in ("_start", "_tip"):
                if name.endswith(ending):
                    found[name[: -len(ending)]] = None
        return list(found)

    # Plate -----------------------------------------------------------------------------------

    def plate_link(self, tips: list[Frame]) -> str:
        """Return the link that all rods end on: the root of the tree of the tip frames."""
        roots = {tip.name: self.root(tip.link) for tip in tips}
        for tip in tips:
            if roots[tip.name] == WORLD:
                raise self.error(
                    f"the rod ends on '{tip.link}', which is fixed or jointed to the world",
                    f"frame '{tip.name}'",
                    "a tip on the plate or on a body jointed to it; the plate is a link without "
                    "a joint to the world",
                    line=tip.line,
                )
        found = set(roots.values())
        if len(found) > 1:
            bodies = ", ".join(sorted(found))
            raise self.error(
                f"the rods end on several bodies that are not connected: {bodies}",
                f"model '{self.robot.name}'",
                "one plate that all tip frames are attached to, directly or through joints",
            )
        return found.pop()

    def plate(self, link: str) -> Plate:
        """Return the plate with all bodies that hang on it, at zero joint coordinates."""
        origin = self.pose(link)
        names = self.moved_with(link)
        below = [item for item in self.robot.links if item.name in names]
        mass, com, inertia = lump(
            [(origin.inverse() @ self.pose(item.name), item.inertia) for item in below]
        )
        return Plate(link, mass, com, inertia, origin.matrix)

    def moved_with(self, link: str) -> set[str]:
        """Return the names of a link and of all that hang on it."""
        return {item.name for item in self.robot.links if self.root(item.name) == link}

    # Limbs -----------------------------------------------------------------------------------

    def base(self, start: Frame, plate: str, kind: BaseKind | None) -> Base:
        """Return the base of a limb.

        Args:
            start: Frame that the rod starts at.
            plate: Link of the plate.
            kind: What the YAML says, None if it says nothing.

        Raises:
            DescriptionError: The rod starts on the plate, on something with more joints than a
                base has, or on another base than the YAML says.
        """
        if self.root(start.link) == plate:
            raise self.error(
                f"the rod starts on '{start.link}', which moves with the plate",
                f"frame '{start.name}'",
                "a start on the base or on a body jointed to it",
                line=start.line,
            )
        moving = [joint for joint in self.chain(start.link) if joint.kind not in ("fixed", "free")]
        start_pose = self.pose(start.link) @ start.pose
        found = _base_kind(moving)
        if found is None or len(moving) > 1:
            raise self.error(
                f"its link is moved by {_listed(moving)}",
                f"frame '{start.name}'",
                "one revolute or prismatic joint, or none, between the world and the rod's start",
                line=start.line,
            )
        if kind is not None and kind is not found:
            if kind is not BaseKind.EXTENSIBLE or moving:
                raise self.error(
                    f"the YAML says base: {kind}, but the link '{start.link}' is moved by "
                    f"{_listed(moving)}",
                    f"frame '{start.name}'",
                    f"base: {found}, or another joint in the SDF",
                    line=start.line,
                )
            found = kind
        if not moving:
            limit = 0.0 if found is BaseKind.FIXED else math.inf
            return Base(found, start_pose.matrix, np.eye(4), -limit, limit, link=start.link)
        joint = moving[0]
        axis = joint.axes[0]
        frame = self.joint_pose(joint) @ Pose(axis_frame(axis.axis))
        attach = (frame.inverse() @ start_pose).matrix
        return Base(found, frame.matrix, attach, axis.lower, axis.upper, joint.name, start.link)

    def tip(self, end: Frame, plate: str, kind: TipKind | None, *, planar: bool) -> Tip:
        """Return the plate joint of a limb.

        Args:
            end: Frame that the rod ends at.
            plate: Link of the plate.
            kind: What the YAML says, None if it says nothing.
            planar: Whether the robot moves in the plane.

        Raises:
            DescriptionError: The joints make no known plate joint, or another one than the YAML
                says.
        """
        # below the plate every joint counts, the first one is the plate's own free joint
        moving = [joint for joint in self.chain(end.link)[1:] if joint.kind != "fixed"]
        origin = self.pose(plate)
        tip_pose = origin.inverse() @ self.pose(end.link) @ end.pose
        lines = [self._axes(joint, origin) for joint in moving]
        found = composite([joint.kind for joint in moving], lines)
        if found is None:
            raise self.error(
                f"between the plate, taken to be link '{plate}', and the rod are "
                f"{_listed(moving)}, which make no joint that is known",
                f"frame '{end.name}'",
                ", ".join(TipKind) + "; cylindrical and planar joints are made of prismatic and "
                "revolute ones (see docs/rod_robots.md). The plate is the link that is no joint's "
                "child: parents are on the plate's side",
                line=end.line,
            )
        if kind is not None and kind is not found.kind:
            raise self.error(
                f"the YAML says plate: {kind}, but the SDF has {_listed(moving)} between plate "
                f"and rod: {found.kind}",
                f"frame '{end.name}'",
                f"plate: {found.kind}, or another joint in the SDF",
                line=end.line,
            )
        if found.kind is TipKind.FIXED:
            # the axes of the plate, whose z is the normal of a planar robot
            frame = Pose(translation=tip_pose.translation)
            attach = Pose(tip_pose.rotation)
            return Tip(found.kind, frame.matrix, attach.matrix, link=end.link)
        axes = found.axes
        if planar and axes[2, 2] < 0:
            axes = axis_frame(-axes[:, 2])  # the same hinge, with z as that of the plane
        frame = Pose(axes, found.point)
        return Tip(
            found.kind,
            frame.matrix,
            (frame.inverse() @ tip_pose).matrix,
            joint=moving[0].name,
            link=end.link,
        )

    def _axes(self, joint: Joint, origin: Pose) -> tuple[Vector3, list[Vector3]]:
        """Return a joint's point and its axes in the frame of the plate."""
        frame = origin.inverse() @ self.joint_pose(joint)
        return frame.translation, [frame.rotation @ axis.axis for axis in joint.axes]


def _base_kind(moving: list[Joint]) -> BaseKind | None:
    if not moving:
        return BaseKind.FIXED
    kind = moving[0].kind
    return {"revolute": BaseKind.REVOLUTE, "prismatic": BaseKind.PRISMATIC}.get(kind)


def _listed(joints: list[Joint]) -> str:
    if not joints:
        return "no joint"
    return ", ".join(f"{joint.kind} joint '{joint.name}'" for joint in joints)


def lump(bodies: list[tuple[Pose, Inertia]]) -> tuple[float, Vector3, Matrix3]:
    """Return mass, centre of mass, and inertia about it, of bodies that move as one.

    Args:
        bodies: Pose of each body in a common frame, and its inertia in its own.
    """
    mass = sum(inertia.mass for _, inertia in bodies)
    if mass <= 0.0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    points = [pose.apply(inertia.com) for pose, inertia in bodies]
    com = sum((p * b.mass for p, (_, b) in zip(points, bodies, strict=True)), np.zeros(3)) / mass
    tensor: Array = np.zeros((3, 3))
    for point, (pose, inertia) in zip(points, bodies, strict=True):
        arm = point - com
        turned = pose.rotation @ inertia.tensor @ pose.rotation.T
        tensor += turned + inertia.mass * ((arm @ arm) * np.eye(3) - np.outer(arm, arm))
    return mass, com, tensor
