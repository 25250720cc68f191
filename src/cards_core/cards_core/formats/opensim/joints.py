"""Joints of an OpenSim model as chains of ours: linear ones exactly, the rest by the best hinge.

A joint whose functions are linear, each coordinate in one axis, is a chain of prismatic and then
revolute joints, exactly. Our joints have no functions of a coordinate, so where a coordinate also
moves other axes (the knee that slides while it turns), it is a hinge whose point in the parent,
p, and in the child, d, fit the translation best over the range of the coordinate,

    min over p, d of  sum over q of |t(q) - p - R(q) d|^2

with the remaining rotations at their defaults. A joint that only follows a coordinate of another
joint (a coupled patella) is fixed as it stands at the defaults.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cards_core.formats.imports.findings import NameTable
from cards_core.formats.opensim.functions import Linear
from cards_core.formats.opensim.kinematics import effective, motion, values
from cards_core.formats.opensim.source import Axis, SourceJoint, SourceModel
from cards_core.robot.elements import Joint, JointAxis, JointKind, Link
from cards_core.spatial import Pose, axis_rotation, matrix_quaternion, rotation_log
from cards_core.typing import Array

SAMPLES = 101
"""Points of a coordinate's range at which a hinge is fitted."""

WIDEST = 2.0 * math.pi
"""Half of the range that a hinge is fitted over where the coordinate has none."""


@dataclass(frozen=True)
class CoordinateMap:
    """Where a coordinate of OpenSim is in ours.

    Attributes:
        joint: Our joint.
        scale: Our coordinate over OpenSim's; 1 except where a function has another slope.
        angle: 0, 1, 2 if it is one of the three angles of a ball joint, else None.
    """

    joint: str
    scale: float = 1.0
    angle: int | None = None


@dataclass(frozen=True)
class Misfit:
    """How far a converted joint is off, over the ranges of its coordinates.

    Attributes:
        position: Largest displacement of the child's joint frame, [m].
        angle: Largest rotation between the two, [rad].
        how: What was made of it.
    """

    position: float
    angle: float
    how: str


@dataclass
class ConvertedJoints:
    """Our joints.

    Attributes:
        joints: In the order of the file.
        links: Massless links between the parts of a joint.
        home: Joint name to coordinates.
        coordinates: OpenSim's coordinate to ours.
        misfits: OpenSim's joint to its error, for joints that are not exact.
    """

    joints: list[Joint] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    home: dict[str, tuple[float, ...]] = field(default_factory=dict)
    coordinates: dict[str, CoordinateMap] = field(default_factory=dict)
    misfits: dict[str, Misfit] = field(default_factory=dict)


def convert_joints(
    model: SourceModel, links: Mapping[str, str], names: NameTable
) -> ConvertedJoints:
    """Return our joints.

    Args:
        model: The model.
        links: Body to name of our link.
        names: Hands out names of joints and links.
    """
    out = ConvertedJoints()
    for joint in model.joints:
        _Chain(model, joint, links, names, out).convert()
    return out


@dataclass(frozen=True)
class _Part:
    """An elementary joint: kind, axis, coordinate, slope."""

    kind: JointKind
    axis: Array
    coordinate: str
    slope: float


class _Chain:
    def __init__(
        self,
        model: SourceModel,
        joint: SourceJoint,
        links: Mapping[str, str],
        names: NameTable,
        out: ConvertedJoints,
    ) -> None:
        self.model, self.joint, self.names, self.out = model, joint, names, out
        self.parent, self.child = links[joint.parent], links[joint.child]

    def convert(self) -> None:
        joint = self.joint
        turns = [effective(self.model, axis) for axis in joint.rotations]
        slides = [effective(self.model, axis) for axis in joint.translations]
        ball = joint.kind in ("BallJoint", "FreeJoint") and all(
            axis.coordinate is not None for axis in turns
        )
        turns, slides, before, after = self._linearised(turns, slides)
        pose = joint.parent_frame @ Pose(np.eye(3), before)
        parts: list[tuple[Pose, _Part]] = []
        for axis in slides:
            slope, offset = _line(axis)
            pose = pose @ Pose(np.eye(3), offset * axis.axis)
            if axis.coordinate is not None and slope != 0.0:
                parts.append((pose, _Part("prismatic", axis.axis, axis.coordinate, slope)))
                pose = Pose()
        if ball:
            self._ball(parts, pose, [str(axis.coordinate) for axis in turns])
            return
        for axis in turns:
            slope, offset = _line(axis)
            pose = pose @ Pose(axis_rotation(axis.axis, offset), np.zeros(3))
            if axis.coordinate is not None and slope != 0.0:
                parts.append((pose, _Part("revolute", axis.axis, axis.coordinate, slope)))
                pose = Pose()
        end = pose @ Pose(np.eye(3), after) @ joint.child_frame.inverse()
        if not parts:
            name = self.names.claim(joint.name)
            self.out.joints.append(
                Joint(name, "fixed", self.parent, self.child, end, line=joint.element.line)
            )
            return
        self._chain(parts, end)

    def _chain(self, parts: Sequence[tuple[Pose, _Part]], end: Pose) -> None:
        above = self.parent
        for index, (pose, part) in enumerate(parts):
            last = index == len(parts) - 1
            name = self.names.claim(part.coordinate)
            below = self.child if last else self.names.claim(f"{self.child}_{part.coordinate}")
            if not last:
                self.out.links.append(Link(below))
            source = self.model.coordinates[part.coordinate]
            scale = abs(part.slope)
            low = min(source.lower, source.default) * scale
            high = max(source.upper, source.default) * scale
            axis = JointAxis(part.axis * math.copysign(1.0, part.slope), low, high)
            self.out.joints.append(
                Joint(
                    name, part.kind, above, below, pose,
                    end if last else Pose(), (axis,), line=source.element.line,
                )
            )  # fmt: skip
            self.out.home[name] = (source.default * scale,)
            self.out.coordinates[part.coordinate] = CoordinateMap(name, scale)
            above = below

    def _ball(self, parts: list[tuple[Pose, _Part]], pose: Pose, angles: list[str]) -> None:
        joint = self.joint
        above = self.parent
        if parts:
            above = self.names.claim(f"{self.child}_translation")
            self.out.links.append(Link(above))
            final, self.child = self.child, above
            self._chain(parts, Pose())
            self.child = final
        name = self.names.claim(joint.name)
        self.out.joints.append(
            Joint(
                name, "ball", above, self.child, pose, joint.child_frame.inverse(),
                line=joint.element.line,
            )
        )  # fmt: skip
        turned = np.eye(3)
        for index, (axis, coordinate) in enumerate(zip(joint.rotations, angles, strict=True)):
            turned = turned @ axis_rotation(axis.axis, self.model.coordinates[coordinate].default)
            self.out.coordinates[coordinate] = CoordinateMap(name, 1.0, index)
        self.out.home[name] = tuple(float(x) for x in matrix_quaternion(turned))

    # What is not linear ------------------------------------------------------------------------

    def _linearised(
        self, turns: list[Axis], slides: list[Axis]
    ) -> tuple[list[Axis], list[Axis], Array, Array]:
        """Return axes with linear functions only, and the points p and d of a fitted hinge."""
        none = np.zeros(3)
        axes = [*turns, *slides]
        own = set(self.joint.coordinates)
        bad: set[str] = set()
        for axis in axes:
            name = axis.coordinate
            if name is None or axis.function.line == (0.0, _at_zero(axis)):
                continue
            used = [a for a in axes if a.coordinate == name and not _constant(a)]
            if name not in own or axis.function.line is None or len(used) > 1:
                bad.add(name)
        # a coordinate that belongs to another joint can move this one only as far as we can say so
        if not bad:
            return turns, slides, none, none
        hinge: int | None = None
        for index, axis in enumerate(turns):
            line = axis.function.line
            if axis.coordinate in bad and axis.coordinate in own and line and line[0] != 0.0:
                hinge = index
                break
        defaults = values(self.model, {})

        def frozen(axis: Axis) -> Axis:
            if axis.coordinate not in bad:
                return axis
            return Axis(axis.axis, None, Linear(0.0, axis.function(defaults[axis.coordinate])))

        new_turns = [a if i == hinge else frozen(a) for i, a in enumerate(turns)]
        before, after = none, none
        new_slides = [frozen(axis) for axis in slides]
        how = "fixed at its default pose"
        if hinge is not None:
            name = str(turns[hinge].coordinate)
            moving = [axis for axis in slides if axis.coordinate == name]
            before, after = self._fit(new_turns, moving, name, defaults)
            new_slides = [
                Axis(a.axis, None, Linear(0.0, 0.0)) if a.coordinate == name else frozen(a)
                for a in slides
            ]
            how = f"the hinge that fits best over the range of '{name}'"
        self._measure(new_turns, new_slides, before, after, names=sorted(bad), how=how)
        return new_turns, new_slides, before, after

    def _fit(
        self, turns: list[Axis], moving: list[Axis], name: str, defaults: Mapping[str, float]
    ) -> tuple[Array, Array]:
        rows, targets = [], []
        for q in self.samples(name):
            at = dict(defaults) | {name: q}
            rows.append(np.hstack([np.eye(3), _turned(turns, at)]))
            targets.append(sum((a.function(q) * a.axis for a in moving), np.zeros(3)))
        solution = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)[0]
        return solution[:3], solution[3:]

    def samples(self, name: str) -> Array:
        """Return values of a coordinate over its range."""
        source = self.model.coordinates[name]
        low = max(source.lower, source.default - WIDEST)
        high = min(source.upper, source.default + WIDEST)
        return np.linspace(low, high, SAMPLES) if low < high else np.array([source.default])

    def _measure(
        self,
        turns: list[Axis],
        slides: list[Axis],
        before: Array,
        after: Array,
        *,
        names: Sequence[str],
        how: str,
    ) -> None:
        worst_position, worst_angle = 0.0, 0.0
        for name in names:
            for q in self.samples(name):
                at = values(self.model, {name: q})
                exact = motion(self.joint, at)
                rotation = _turned(turns, at)
                position = before + rotation @ after
                for axis in slides:
                    position = position + axis.function(_value(at, axis)) * axis.axis
                worst_position = max(
                    worst_position, float(np.linalg.norm(exact.translation - position))
                )
                off = rotation_log(rotation.T @ exact.rotation)
                worst_angle = max(worst_angle, float(np.linalg.norm(off)))
        if worst_position > 1e-12 or worst_angle > 1e-12:
            self.out.misfits[self.joint.name] = Misfit(worst_position, worst_angle, how)


def _turned(turns: Sequence[Axis], at: Mapping[str, float]) -> Array:
    rotation = np.eye(3)
    for axis in turns:
        rotation = rotation @ axis_rotation(axis.axis, axis.function(_value(at, axis)))
    return rotation


def _value(at: Mapping[str, float], axis: Axis) -> float:
    return 0.0 if axis.coordinate is None else at[axis.coordinate]


def _line(axis: Axis) -> tuple[float, float]:
    line = axis.function.line
    assert line is not None  # what is not linear is gone
    return line


def _at_zero(axis: Axis) -> float:
    return axis.function(0.0)


def _constant(axis: Axis) -> bool:
    line = axis.function.line
    return line is not None and line[0] == 0.0
