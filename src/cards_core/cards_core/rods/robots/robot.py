"""A continuum parallel robot as data: a rigid plate on flexible rods.

Limb i is a rod that starts at a base joint and ends at a joint of the plate. With the poses
``T_x`` (plate in the world), ``T_L`` (rod tip) and the 4x4 matrices below::

    rod start         T_0   = Base.joint_pose @ motion(q) @ Base.attach
    joint of plate    T_J   = T_x @ Tip.joint_pose
    the same by rod   T_bar = T_L @ inverse(Tip.attach)
    condition         T_J and T_bar agree in the directions that the joint does not leave free

A rod leaves its start along the z axis of ``T_0`` and arrives at its tip along the z axis of
``T_L``. The axis of a joint is the z axis of its frame. All lengths in [m], angles in [rad],
forces in [N]; poses are homogeneous matrices in the frame of the model file.
`read_rod_robot` makes these objects from files; `cards_core.rods.robots.solver` solves them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from cards_core.checks import by_name
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.robot.model import Robot
from cards_core.rods.native_library import NativeRod
from cards_core.rods.rod import Rod
from cards_core.typing import Array, Matrix3, Vector3

DIRECTIONS = ("tx", "ty", "tz", "rx", "ry", "rz")
"""Names of the six directions of a joint frame: translations, then rotations."""

PLATE_COORDINATES = ("x", "y", "z", "rx", "ry", "rz")
"""Names of the six plate coordinates: position, then rotation vector, in world axes."""

PLANAR_COORDINATES = ("x", "y", "rz")
"""The plate coordinates of a robot that stays in the plane XY."""


class BaseKind(StrEnum):
    """What a limb's coordinate q does at the start of the rod."""

    FIXED = "fixed"
    """Nothing: the limb has no actuator; its entry of q is 0 and its limits are 0 and 0."""
    PRISMATIC = "prismatic"
    """Moves the start along the joint axis, [m]."""
    REVOLUTE = "revolute"
    """Turns the start about the joint axis, [rad]."""
    EXTENSIBLE = "extensible"
    """Feeds the rod out of a fixed guide: q is the unstrained length, [m]."""


class TipKind(StrEnum):
    """Joint between rod tip and plate; `free` tells the directions that it leaves free."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"
    SPHERICAL = "spherical"
    UNIVERSAL = "universal"
    CYLINDRICAL = "cylindrical"
    PLANAR = "planar"

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Mask, shape (6,), over `DIRECTIONS` in the joint frame, whose z is the joint axis."""
        return np.array([mark == "1" for mark in _FREE[self]])


_FREE = {
    TipKind.FIXED: "000000",
    TipKind.REVOLUTE: "000001",
    TipKind.PRISMATIC: "001000",
    TipKind.SPHERICAL: "000111",
    TipKind.UNIVERSAL: "000110",
    TipKind.CYLINDRICAL: "001001",
    TipKind.PLANAR: "110001",
}


@dataclass(frozen=True, eq=False)
class Base:
    """Where a limb starts.

    Attributes:
        kind: What q does.
        joint_pose: Joint frame in the model, shape (4, 4); z is the axis of q.
        attach: Rod start in the joint frame at q = 0, shape (4, 4); z is the rod's tangent.
        lower, upper: Limits of q, [m] or [rad]; of the length for an extensible limb.
        joint: Name of q: the SDF joint, or ``<limb>_length`` of an extensible limb.
        link: SDF link that the rod starts on.
    """

    kind: BaseKind
    joint_pose: Array
    attach: Array
    lower: float = -math.inf
    upper: float = math.inf
    joint: str = ""
    link: str = ""


@dataclass(frozen=True, eq=False)
class Tip:
    """Where a limb holds the plate.

    Attributes:
        kind: Kind of the joint.
        joint_pose: Joint frame in the plate's frame, shape (4, 4); z is the joint axis.
        attach: Rod tip in the joint frame (of the rod's side), shape (4, 4); z is the rod's
            tangent at its tip.
        joint: Name of the SDF joint; empty if the file has none.
        link: SDF link that the rod ends on; the plate itself if there is no body between.
    """

    kind: TipKind
    joint_pose: Array
    attach: Array
    joint: str = ""
    link: str = ""


@dataclass(frozen=True, eq=False)
class Limb:
    """One rod between base and plate.

    Attributes:
        name: Unique name.
        rod: Section, material and shape at rest.
        length: Unstrained length, [m]; of an extensible limb the length it starts with.
        bulge: Direction, shape (3,), in which the rod buckles where it is longer than the way;
            without it the first one that is found is taken.
        force: Dead load per unstrained length beside the weight, along the whole rod, in world
            axes, shape (3,), [N/m].
        moment: The same for moments, shape (3,), [N]. Without a potential in space: the stiffness
            of the plate is not symmetric then.
    """

    name: str
    rod: Rod
    length: float
    base: Base
    tip: Tip
    bulge: Vector3 | None = None
    force: Vector3 = field(default_factory=lambda: np.zeros(3))
    moment: Vector3 = field(default_factory=lambda: np.zeros(3))

    def force_per_length(self, gravity: Array) -> Vector3:
        """Return weight, in a gravity [m/s^2], and `force` per unstrained length, (3,), [N/m]."""
        return self.rod.weight(gravity) + self.force

    def native(self, gravity: Array) -> NativeRod:
        """Return the rod with its loads as the C functions take it, in this gravity [m/s^2]."""
        return self.rod.native(self.force_per_length(gravity), self.moment)

    def turned_loads(self, rotation: Matrix3) -> Limb:
        """Return the limb with its loads in other axes: ``rotation @ force``, likewise moments."""
        if not (self.force.any() or self.moment.any()):
            return self
        return replace(self, force=rotation @ self.force, moment=rotation @ self.moment)


@dataclass(frozen=True, eq=False)
class Plate:
    """The rigid platform, with all bodies that move with it lumped in.

    Attributes:
        link: SDF link of the plate.
        mass: [kg]; may be 0.
        com: Centre of mass in the plate's frame, shape (3,), [m].
        inertia: About the centre of mass in the plate's axes, shape (3, 3), [kg m^2].
        pose: Pose in the file, shape (4, 4).
    """

    link: str
    mass: float
    com: Vector3
    inertia: Matrix3
    pose: Array


@dataclass(frozen=True)
class SolverSettings:
    """What the file says about the solver (``solver:``); see docs/rod_robots.md.

    Attributes:
        steps: Steps of order 8 along each rod (or segment).
        tolerance: Maximum scaled residual.
        segments: Segments of multiple shooting; None chooses them by load and slenderness.
        policy: ``fresh`` (a new Jacobian at every step) or ``chord`` (kept while it is good).
        max_iterations: Newton iterations per solve.
    """

    steps: int = 3
    tolerance: float = 1e-6
    segments: int | None = None
    policy: str = "fresh"
    max_iterations: int = 12


@dataclass(frozen=True, eq=False)
class RodRobot:
    """A plate on rods.

    Attributes:
        name: Name of the model.
        limbs: In the order of the file; q has one entry per limb.
        plate: The platform.
        gravity: In world axes, shape (3,), [m/s^2]; acts on plate and rods. Of a planar robot
            the part in its plane.
        planar: True if the robot stays in the plane XY; only `PLANAR_COORDINATES` count then.
        controlled: Plate coordinates that the inverse model prescribes, of `PLATE_COORDINATES`;
            the others follow from equilibrium.
        initial_pose: Plate pose to start from, shape (4, 4), or None.
        initial_q: Joint coordinates to start from, shape (n,), or None.
        settings: Of the solver.
        wrench: Wrench on the plate to start with, shape (6,): force and moment about the
            plate's origin.
        wrench_frame: Axes of `wrench`: ``world`` (a dead load) or ``plate`` (it follows).
        description: The rigid bodies with their visuals, as `read_sdf` returns them.
        source: SDF file.
        rods_source: YAML file.
        notes: What the reader wants the user to know, in plain words.
    """

    name: str
    limbs: tuple[Limb, ...]
    plate: Plate
    gravity: Vector3
    planar: bool = False
    controlled: tuple[str, ...] = PLATE_COORDINATES
    initial_pose: Array | None = None
    initial_q: Array | None = None
    settings: SolverSettings = field(default_factory=SolverSettings)
    wrench: Array = field(default_factory=lambda: np.zeros(6))
    wrench_frame: str = "world"
    description: Robot | None = None
    source: str | None = None
    rods_source: str | None = None
    notes: tuple[str, ...] = ()

    def turned_loads(self, rotation: Matrix3) -> RodRobot:
        """Return the robot with the loads of its rods in other axes, see `Limb.turned_loads`."""
        return replace(self, limbs=tuple(limb.turned_loads(rotation) for limb in self.limbs))

    @property
    def n_limbs(self) -> int:
        """Number of limbs."""
        return len(self.limbs)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Plate coordinates that the robot has: six, or three in the plane."""
        return PLANAR_COORDINATES if self.planar else PLATE_COORDINATES

    @property
    def actuated(self) -> npt.NDArray[np.bool_]:
        """Mask of the limbs with an actuator, shape (n,)."""
        return np.array([limb.base.kind is not BaseKind.FIXED for limb in self.limbs])

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the entries of q, one per limb."""
        return tuple(limb.base.joint or limb.name for limb in self.limbs)

    @property
    def q_lower(self) -> Array:
        """Lower limits of q, shape (n,), [m] or [rad]."""
        return np.array([limb.base.lower for limb in self.limbs])

    @property
    def q_upper(self) -> Array:
        """Upper limits of q, shape (n,), [m] or [rad]."""
        return np.array([limb.base.upper for limb in self.limbs])

    @property
    def lengths(self) -> Array:
        """Unstrained lengths of the rods at the start, shape (n,), [m]."""
        return np.array([limb.length for limb in self.limbs])

    @property
    def home_q(self) -> Array:
        """`initial_q`, or lengths and zeros within the limits, shape (n,)."""
        if self.initial_q is not None:
            return self.initial_q.copy()
        extensible = [limb.base.kind is BaseKind.EXTENSIBLE for limb in self.limbs]
        return np.clip(np.where(extensible, self.lengths, 0.0), self.q_lower, self.q_upper)

    @property
    def home(self) -> dict[str, float]:
        """`home_q` by the name of the joint."""
        return dict(zip(self.joint_names, self.home_q.tolist(), strict=True))

    @property
    def home_pose(self) -> Array:
        """`initial_pose`, or the pose of the plate in the file, shape (4, 4)."""
        return (self.plate.pose if self.initial_pose is None else self.initial_pose).copy()

    def limb(self, name: str) -> Limb:
        """Return a limb by name. Raises `UnknownNameError`."""
        return by_name(self.limbs, name, "limb")

    def joint_index(self, name: str) -> int:
        """Return the entry of q with a name (of the joint or of the limb)."""
        for index, limb in enumerate(self.limbs):
            if name in (limb.base.joint, limb.name):
                return index
        raise UnknownNameError("joint", name, self.joint_names)


def base_motion(kind: BaseKind, q: float) -> Array:
    """Return the motion of a base joint about or along the z axis of its frame, shape (4, 4)."""
    motion = np.eye(4)
    if kind is BaseKind.PRISMATIC:
        motion[2, 3] = q
    elif kind is BaseKind.REVOLUTE:
        c, s = math.cos(q), math.sin(q)
        motion[:2, :2] = [[c, -s], [s, c]]
    return motion


def rod_starts(robot: RodRobot, q: Array) -> Array:
    """Return the poses of the rod starts, shape (n, 4, 4), and thereby ``T_0`` of each limb.

    Raises:
        ShapeError: q has not one entry per limb.
    """
    if np.shape(q) != (robot.n_limbs,):
        raise ShapeError(f"q has shape {np.shape(q)}; expected ({robot.n_limbs},), one per limb")
    return np.stack(
        [
            limb.base.joint_pose @ base_motion(limb.base.kind, float(value)) @ limb.base.attach
            for limb, value in zip(robot.limbs, q, strict=True)
        ]
    )


def rod_lengths(robot: RodRobot, q: Array) -> Array:
    """Return the unstrained rod lengths at q, shape (n,), [m]."""
    extensible = [limb.base.kind is BaseKind.EXTENSIBLE for limb in robot.limbs]
    return np.where(extensible, q, robot.lengths)
