"""The parts of a robot as data: links, joints, muscles, wrap surfaces, frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import UnknownNameError
from cards_core.robot.actuators import Actuator, Cable, ImpedanceControl
from cards_core.spatial import Pose
from cards_core.typing import Array, Matrix3, Vector3

WORLD = "world"
"""Name of the fixed frame; a valid parent link and a valid link of a via point."""

JointKind: TypeAlias = Literal[
    "fixed", "revolute", "prismatic", "universal", "ball", "planar", "free"
]

AXES_PER_KIND: Mapping[str, int] = {
    "fixed": 0,
    "revolute": 1,
    "prismatic": 1,
    "universal": 2,
    "ball": 0,
    "planar": 3,
    "free": 0,
}
"""Number of `JointAxis` entries that a joint of each kind carries."""


def _zero3() -> Vector3:
    return np.zeros(3)


# Geometry ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Box:
    """Box centred at its frame; `size` are the full edge lengths x, y, z, [m]."""

    size: Vector3


@dataclass(frozen=True)
class Sphere:
    """Sphere centred at its frame; radius in [m]."""

    radius: float


@dataclass(frozen=True)
class Cylinder:
    """Cylinder along z, centred at its frame; radius and full length in [m]."""

    radius: float
    length: float


@dataclass(frozen=True)
class Capsule:
    """Capsule along z, centred; radius and length of the cylindrical part in [m]."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Ellipsoid centred at its frame; `radii` are the semi-axes x, y, z, [m]."""

    radii: Vector3


@dataclass(frozen=True, eq=False)
class Plane:
    """Plane through its frame's origin; unit normal and drawn size x, y [m]."""

    normal: Vector3
    size: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Mesh file; `scale` multiplies the coordinates in the file to give [m]."""

    uri: str
    scale: Vector3 = field(default_factory=lambda: np.ones(3))


@dataclass(frozen=True)
class Torus:
    """Torus around z, centred at its frame; wrap surfaces only.

    Attributes:
        radius: Distance of the tube's centre line from the axis, [m].
        tube_radius: Of the tube, smaller than `radius`, [m].
    """

    radius: float
    tube_radius: float


@dataclass(frozen=True, eq=False)
class HeightField:
    """Surface of heights above the x-y plane of its frame, on a grid centred there; ground only.

    Attributes:
        heights: Shape (rows, columns), rows along y, columns along x, both ascending, [m].
        size: From the first to the last column, and row, [m].
    """

    heights: Array
    size: tuple[float, float]


Geometry: TypeAlias = Box | Sphere | Cylinder | Capsule | Ellipsoid | Plane | Mesh | HeightField


@dataclass(frozen=True, eq=False)
class Visual:
    """A drawn shape of a link.

    `pose` maps shape to link; `rgba` in 0..1; `line` is as of `Link`.
    """

    name: str
    geometry: Geometry
    pose: Pose = field(default_factory=Pose)
    rgba: tuple[float, float, float, float] = (0.7, 0.7, 0.7, 1.0)
    line: int | None = None


@dataclass(frozen=True, eq=False)
class Collision:
    """A shape of a link that can touch others.

    `friction` is the sliding coefficient mu; `line` is as of `Link`.
    """

    name: str
    geometry: Geometry
    pose: Pose = field(default_factory=Pose)
    friction: float = 1.0
    line: int | None = None


# Links and joints ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass distribution of a link.

    Attributes:
        mass: [kg].
        com: Centre of mass in link coordinates, shape (3,), [m].
        tensor: Inertia about the centre of mass in link axes, shape (3, 3), [kg m^2]; the
            off-diagonal entries are the tensor's own (``Ixy = -sum m x y``).
    """

    mass: float = 0.0
    com: Vector3 = field(default_factory=_zero3)
    tensor: Matrix3 = field(default_factory=lambda: np.zeros((3, 3)))

    @property
    def is_massless(self) -> bool:
        """Whether there is neither mass nor tensor, as in a frame between joints."""
        return self.mass == 0.0 and not np.any(self.tensor)


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body. `line` is the line of the file that declares it, for messages."""

    name: str
    inertia: Inertia = field(default_factory=Inertia)
    visuals: tuple[Visual, ...] = ()
    collisions: tuple[Collision, ...] = ()
    line: int | None = None


@dataclass(frozen=True, eq=False)
class JointAxis:
    """One scalar degree of freedom of a joint.

    Attributes:
        axis: Unit vector in the joint frame, shape (3,).
        lower, upper: Position limits, [rad] or [m]; infinite where there are none.
        effort, velocity: Limits, [Nm] or [N] and [rad/s] or [m/s].
        damping: Viscous coefficient, [Nms/rad] or [Ns/m]; simulators apply it, M, C, G do not
            contain it.
        friction: Dry friction, [Nm] or [N]; as damping.
    """

    axis: Vector3
    lower: float = -math.inf
    upper: float = math.inf
    effort: float = math.inf
    velocity: float = math.inf
    damping: float = 0.0
    friction: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """Connection of a parent link to a child link.

    ``T_parent_child(q) = parent_to_joint @ motion(q) @ joint_to_child``; the joint frame moves
    with the child. Coordinates per kind:

    ========== ==================================================================================
    fixed      none
    revolute   angle about ``axes[0]``
    prismatic  displacement along ``axes[0]``
    universal  angle about ``axes[0]``, then about ``axes[1]`` (moved by the first)
    planar     displacements along ``axes[0]`` and ``axes[1]``, then angle about ``axes[2]``
    ball       quaternion (w, x, y, z); velocity is the angular velocity in joint (child) axes
    free       position (x, y, z) and quaternion; velocity is the linear velocity of the joint
               origin in parent_to_joint axes, then the angular velocity in joint (child) axes
    ========== ==================================================================================

    Attributes:
        motor: True if an actuator of its own drives the joint (CASPR: ``actuated``).
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    parent_to_joint: Pose = field(default_factory=Pose)
    joint_to_child: Pose = field(default_factory=Pose)
    axes: tuple[JointAxis, ...] = ()
    motor: bool = False
    line: int | None = None


# Muscles -------------------------------------------------------------------------------------


WrapGeometry: TypeAlias = Sphere | Cylinder | Ellipsoid | Torus | Mesh
"""Shapes that muscles wrap over. An infinite cylinder has ``length = inf``; of a mesh the convex
hull counts."""


@dataclass(frozen=True, eq=False)
class WrapSurface:
    """A smooth surface of a link that muscles wrap over. `pose` maps surface to link."""

    name: str
    link: str
    geometry: WrapGeometry
    pose: Pose = field(default_factory=Pose)
    line: int | None = None


@dataclass(frozen=True, eq=False)
class ViaPoint:
    """A point of a link that the muscle passes through.

    Attributes:
        link: Link or ``world``.
        position: In link coordinates, shape (3,), [m].
        friction: Capstan coefficient mu of the muscle against the point.
        line: Line of the file that declares it.
    """

    link: str
    position: Vector3
    friction: float = 0.0
    line: int | None = None


@dataclass(frozen=True, eq=False)
class Wrap:
    """A surface that the muscle may wrap over between the elements before and after it.

    Attributes:
        surface: Name of a `WrapSurface` of the robot.
        side: A point in coordinates of the surface's link, [m]: the muscle passes the surface on
            this side. Without it, it takes the shorter way.
        inside: True if the muscle runs through the surface (a cylinder's bore, a sphere, a torus'
            hole) and touches it from within.
        friction: Capstan coefficient mu of the muscle against the surface.
        line: Line of the file that declares it.
        free_ends: Whether its ends may be within the surface at home, where it does not wrap.
    """

    surface: str
    side: Vector3 | None = None
    inside: bool = False
    friction: float = 0.0
    line: int | None = None
    free_ends: bool = False

    def goes_through(self, surface: WrapSurface) -> bool:
        """Return whether the muscle goes through the surface: also if ``side`` is in its hole.

        Args:
            surface: The surface of this name.
        """
        if not isinstance(surface.geometry, Torus) or self.inside:
            return self.inside
        if self.side is None:
            return False
        side = surface.pose.inverse().apply(self.side)
        return float(np.hypot(side[0], side[1])) < surface.geometry.radius


@dataclass(frozen=True, eq=False)
class Pulley:
    """A caster pulley at the origin of a muscle; only as first element of a path.

    The cable comes along the swivel axis, enters the wheel at `position`, and leaves it tangent
    towards the next point; the wheel swivels about `axis` so that it lies in the plane of both.

    Attributes:
        link: Link or ``world``.
        position: Where the cable enters, in link coordinates, shape (3,), [m].
        axis: Direction in which the cable enters, unit vector in link axes.
        radius: Of the wheel, [m].
        line: Line of the file that declares it.
    """

    link: str
    position: Vector3
    axis: Vector3
    radius: float
    line: int | None = None


PathElement: TypeAlias = ViaPoint | Wrap | Pulley


def path_links(path: Iterable[PathElement], surfaces: Mapping[str, WrapSurface]) -> list[str]:
    """Return the link that each path element sits on.

    Raises:
        UnknownNameError: A wrap surface that does not exist, or no such type of path element.
    """
    links = []
    for item in path:
        match item:
            case ViaPoint() | Pulley():
                links.append(item.link)
            case Wrap():
                check_choice(item.surface, "wrap surface", surfaces)
                links.append(surfaces[item.surface].link)
            case _:
                raise UnknownNameError.of_type("path element", item, get_args(PathElement))
    return links


@dataclass(frozen=True, eq=False)
class Muscle:
    """A massless, tension-only actuator along a path.

    Attributes:
        name: Unique name.
        path: From origin (where the actuator sits) to insertion. The first element is a via
            point or a pulley, the last a via point.
        tension_min, tension_max: Limits of the commanded tension, [N].
        actuator: What makes the tension; its class is the type, its fields the parameters.
        friction_speed: Sliding speed v0 at which capstan friction is three quarters of its full
            value (``tanh(v / v0)``), [m/s].
        contact: Whether it touches what is in its way: collision shapes of all links but those
            of its ends; see `cards_core.paths.contacts`. Its path is two via points.
        friction: Capstan coefficient mu against all that it touches by ``contact``.
        control: Its impedance law; without stiffness and damping by default.
    """

    name: str
    path: tuple[PathElement, ...]
    tension_min: float = 0.0
    tension_max: float = math.inf
    actuator: Actuator = field(default_factory=Cable)
    friction_speed: float = 0.01
    contact: bool = False
    friction: float = 0.0
    control: ImpedanceControl = field(default_factory=ImpedanceControl)
    line: int | None = None

    @property
    def kind(self) -> str:
        """Type of the actuator as it is written in files."""
        return self.actuator.kind

    @property
    def takes_tension(self) -> bool:
        """Whether it takes a tension command; a ligament takes none."""
        return "force" in self.actuator.accepted_commands

    @property
    def via_points(self) -> tuple[ViaPoint, ...]:
        """The via points among the path elements."""
        return tuple(item for item in self.path if isinstance(item, ViaPoint))

    @property
    def end_links(self) -> tuple[str, str]:
        """Links of its origin and of its insertion."""
        links = [item.link for item in self.path if not isinstance(item, Wrap)]
        return links[0], links[-1]


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a link, e.g. the hand. `pose` maps frame to link."""

    name: str
    link: str
    pose: Pose = field(default_factory=Pose)
    line: int | None = None
