"""The robot as data, and its kinematic tree of elementary joints.

Universal, planar and free joints become sequences of revolute, prismatic and ball nodes with
massless bodies between them; fixed joints merge their links. Both dynamics backends, the muscle
paths and the exporters work on this tree, so the layout of q and qd is decided here only.

Layout: nodes in depth-first order of the joints as declared; per node

========= ======= ======= ==============================================================
node      nq      nv      coordinates
========= ======= ======= ==============================================================
revolute  1       1       angle [rad]
prismatic 1       1       displacement [m]
ball      4       3       quaternion (w, x, y, z); angular velocity in node axes [rad/s]
========= ======= ======= ==============================================================

The layout of a free joint (x y z, then w x y z; linear velocity in parent axes, then angular
velocity in body axes) is that of MuJoCo.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from cards_core.checks import by_name, check_choice, real_array
from cards_core.errors import DescriptionError, ShapeError, UnknownNameError
from cards_core.names import EXPECTED, name_problem
from cards_core.robot.elements import (
    AXES_PER_KIND,
    WORLD,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    WrapSurface,
    path_links,
)
from cards_core.spatial import (
    Pose,
    quaternion_log,
    quaternion_product,
    rotation_exp,
)
from cards_core.typing import Array, Vector3

WORLD_NODE = -1
"""Index of the fixed world in `Tree.link_node` and `Node.parent`."""

QUATERNION_TOLERANCE = 1e-3
"""Deviation of a quaternion's length from 1 that is rounding of the user's, not a mistake."""


@dataclass(frozen=True, eq=False)
class Robot:
    """A tree of links with muscles.

    Attributes:
        name: Model name.
        links: All links, without the world.
        joints: Every link is the child of exactly one joint; parents may be ``world``.
        muscles: In the order of the tension vector.
        wrap_surfaces: What muscles may wrap over.
        frames: Named frames on links.
        operational_frame: Name of the frame that operational-space control moves, if any.
        gravity: In world axes, shape (3,), [m/s^2].
        home: Joint name to initial joint coordinates; joints not listed start at zero (identity).
        source: File it was read from.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    muscles: tuple[Muscle, ...] = ()
    frames: tuple[Frame, ...] = ()
    operational_frame: str | None = None
    gravity: Vector3 = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    home: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    source: str | None = None
    wrap_surfaces: tuple[WrapSurface, ...] = ()

    @cached_property
    def tree(self) -> Tree:
        """Its kinematic tree, made when it is first asked for. Raises `DescriptionError`."""
        return Tree(self)

    def commanded(self) -> Robot:
        """Return the robot with only those muscles that take a tension command.

        Ligaments act on the robot, but a controller cannot command them: it counts their tension
        as a load (`cards_core.control.model`).
        """
        active = tuple(m for m in self.muscles if m.takes_tension)
        return self if len(active) == len(self.muscles) else replace(self, muscles=active)

    def wrap_surface(self, name: str) -> WrapSurface:
        """Return a wrap surface by name. Raises `UnknownNameError`."""
        return by_name(self.wrap_surfaces, name, "wrap surface")

    def link(self, name: str) -> Link:
        """Return a link by name. Raises `UnknownNameError`."""
        return by_name(self.links, name, "link")

    def joint(self, name: str) -> Joint:
        """Return a joint by name. Raises `UnknownNameError`."""
        return by_name(self.joints, name, "joint")

    def muscle(self, name: str) -> Muscle:
        """Return a muscle by name. Raises `UnknownNameError`."""
        return by_name(self.muscles, name, "muscle")

    def error(
        self, item: Link | Joint | Muscle | Frame, problem: str, expected: str | None = None
    ) -> DescriptionError:
        """Return (not raise) an error about a part of the robot, at its place in the file.

        Args:
            item: The part.
            problem: What is wrong.
            expected: What would be right.
        """
        element = f"{type(item).__name__.lower()} '{item.name}'"
        return DescriptionError(
            problem, source=self.source, line=item.line, element=element, expected=expected
        )

    def frame_name(self, name: str | None = None) -> str:
        """Return the name itself, or without one that of the operational frame.

        Raises:
            UnknownNameError: Neither is given.
        """
        found = name or self.operational_frame
        if found is None:
            raise UnknownNameError("operational frame", "", (f.name for f in self.frames))
        return found

    def frame(self, name: str) -> Frame:
        """Return a frame by name; a link's name is the frame at its origin."""
        for item in self.frames:
            if item.name == name:
                return item
        for link in self.links:
            if link.name == name:
                return Frame(name, name)
        known = [f.name for f in self.frames] + [item.name for item in self.links]
        raise UnknownNameError("frame or link", name, known)


NodeKind: TypeAlias = Literal["revolute", "prismatic", "ball"]
"""Kinds of elementary joints; all others are made of these."""


@dataclass(frozen=True, eq=False)
class Node:
    """One elementary joint and the body that moves with it.

    Attributes:
        name: Joint name, with a suffix for joints of several nodes.
        kind: ``revolute``, ``prismatic`` or ``ball``.
        parent: Index of the parent node, `WORLD_NODE` for the world.
        placement: Joint frame in the parent node's frame at zero coordinates.
        axis: Unit axis in the joint frame, shape (3,); unused for ``ball``.
        inertia: Of everything rigidly attached, in node coordinates.
        q, v: First index of the node's coordinates and velocities.

    Raises:
        UnknownNameError: No such kind.
    """

    name: str
    kind: NodeKind
    parent: int
    placement: Pose
    axis: Vector3
    inertia: Inertia
    q: int
    v: int

    def __post_init__(self) -> None:
        # here, once: what calculates with nodes need not ask again
        check_choice(self.kind, "kind of elementary joint", get_args(NodeKind))

    @property
    def nv(self) -> int:
        """Number of velocities of the node."""
        return 3 if self.kind == "ball" else 1

    @property
    def nq(self) -> int:
        """Number of coordinates of the node."""
        return 4 if self.kind == "ball" else 1


def add_inertia(a: Inertia, b: Inertia) -> Inertia:
    """Return the inertia of two rigidly joined bodies given in the same frame."""
    mass = a.mass + b.mass
    if mass == 0.0:
        return Inertia(0.0, np.zeros(3), a.tensor + b.tensor)
    com = (a.mass * a.com + b.mass * b.com) / mass
    tensor = np.zeros((3, 3))
    for part in (a, b):
        d = part.com - com
        tensor += part.tensor + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertia(mass, com, tensor)


def move_inertia(inertia: Inertia, pose: Pose) -> Inertia:
    """Return ``inertia`` of a child frame in coordinates of the parent frame."""
    r = pose.rotation
    return Inertia(inertia.mass, pose.apply(inertia.com), r @ inertia.tensor @ r.T)


def _elementary(joint: Joint) -> list[tuple[str, NodeKind, JointAxis | None]]:
    """Split a joint into (suffix, kind, axis) of elementary joints."""
    a = joint.axes
    match joint.kind:
        case "revolute" | "prismatic":
            return [("", joint.kind, a[0])]
        case "universal":
            return [("_1", "revolute", a[0]), ("_2", "revolute", a[1])]
        case "planar":
            return [("_1", "prismatic", a[0]), ("_2", "prismatic", a[1]), ("_3", "revolute", a[2])]
        case "ball":
            return [("", "ball", None)]
        case "free":
            units = [JointAxis(axis) for axis in np.eye(3)]
            names = ("_x", "_y", "_z")
            parts: list[tuple[str, NodeKind, JointAxis | None]] = [("", "ball", None)]
            return [(s, "prismatic", u) for s, u in zip(names, units, strict=True)] + parts
        case "fixed":
            return []
        case _:
            raise UnknownNameError("joint kind", joint.kind, AXES_PER_KIND)


class Tree:
    """Kinematic tree of a robot.

    Attributes:
        robot: The description it was made from.
        nodes: Elementary joints, parents before children.
        nq, nv: Number of coordinates and of velocities (degrees of freedom).
        position_names: Name of every entry of q, shape (nq,).
        velocity_names: Name of every entry of qd, shape (nv,).
        velocity_slots: Entry of q that belongs to each entry of qd, shape (nv,); used to put qd
            beside q in a message of nq names (the slot of a quaternion's w stays empty).
        lower, upper: Joint limits per entry of q, shape (nq,); infinite for quaternions.
        home: Initial coordinates, shape (nq,).
        link_node: Link name to (node index, pose of the link in node coordinates); contains
            ``world``.

    Raises:
        DescriptionError: The joints do not form a tree over the links.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        _check_names(robot)
        self.nodes: tuple[Node, ...]
        self.link_node: dict[str, tuple[int, Pose]] = {WORLD: (WORLD_NODE, Pose())}
        self.nq = 0
        self.nv = 0
        nodes: list[Node] = []
        lower: list[float] = []
        upper: list[float] = []
        home: list[float] = []
        names_q: list[str] = []
        names_v: list[str] = []
        slots: list[int] = []
        for joint in _depth_first(robot):
            node, offset = self.link_node[joint.parent]
            placement = offset @ joint.parent_to_joint
            initial = _home_of(robot, joint)
            for suffix, kind, axis in _elementary(joint):
                name = joint.name + suffix
                unit = np.zeros(3) if axis is None else _unit(axis.axis, robot, joint)
                nodes.append(Node(name, kind, node, placement, unit, Inertia(), self.nq, self.nv))
                if kind == "ball":
                    names_q += [f"{name}.{c}" for c in "wxyz"]
                    names_v += [f"{name}.{c}" for c in "xyz"]
                    slots += [self.nq + 1, self.nq + 2, self.nq + 3]
                    lower += [-math.inf] * 4
                    upper += [math.inf] * 4
                    home += _unit_quaternion(np.array(initial[:4]), robot, joint).tolist()
                    initial = initial[4:]
                else:
                    assert axis is not None
                    names_q.append(name)
                    names_v.append(name)
                    slots.append(self.nq)
                    lower.append(axis.lower)
                    upper.append(axis.upper)
                    home.append(initial[0])
                    initial = initial[1:]
                self.nq += nodes[-1].nq
                self.nv += nodes[-1].nv
                node, placement = len(nodes) - 1, Pose()
            self.link_node[joint.child] = (node, placement @ joint.joint_to_child)
        self._lump(nodes, robot)
        self.position_names = tuple(names_q)
        self.velocity_names = tuple(names_v)
        self.velocity_slots = np.array(slots, dtype=np.intp)
        self.lower = np.array(lower)
        self.upper = np.array(upper)
        self.home = np.array(home)
        self._chains = _ancestor_chains(self.nodes)

    def _lump(self, nodes: list[Node], robot: Robot) -> None:
        """Add every link's inertia to the node that carries it."""
        totals = [Inertia() for _ in nodes]
        for link in robot.links:
            index, pose = self.link_node[link.name]
            if index != WORLD_NODE:
                totals[index] = add_inertia(totals[index], move_inertia(link.inertia, pose))
        self.nodes = tuple(
            Node(n.name, n.kind, n.parent, n.placement, n.axis, total, n.q, n.v)
            for n, total in zip(nodes, totals, strict=True)
        )

    @property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """For every node the indices of itself and its ancestors, root first."""
        return self._chains

    def locate(self, frame: str) -> tuple[int, Pose]:
        """Return (node index, pose in node coordinates) of a frame, link or ``world``.

        Raises:
            UnknownNameError: There is no such frame; the message lists all.
        """
        if frame in self.link_node:
            return self.link_node[frame]
        item = self.robot.frame(frame)
        node, pose = self.link_node[item.link]
        return node, pose @ item.pose

    def check_q(self, q: Array) -> Array:
        """Return ``q`` as a new float array of shape (nq,), with quaternions of unit length.

        Raises:
            ShapeError: Wrong size, a value that is not finite, or a quaternion whose length is
                not 1 to within 1e-3.
        """
        out = _checked(q, self.nq, "q", self.position_names).copy()
        for node in self.nodes:
            if node.kind == "ball":
                quaternion = out[node.q : node.q + 4]
                length = float(np.linalg.norm(quaternion))
                if abs(length - 1.0) > QUATERNION_TOLERANCE:
                    raise ShapeError(
                        f"the quaternion of '{node.name}' is {quaternion} with length "
                        f"{length:.6g}, expected (w, x, y, z) of length 1"
                    )
                quaternion /= length
        return out

    def check_qd(self, qd: Array) -> Array:
        """Return ``qd`` as a float array of shape (nv,). Raises `ShapeError`."""
        return _checked(qd, self.nv, "qd", self.velocity_names)

    def integrate(self, q: Array, v: Array) -> Array:
        """Move ``q`` along the tangent vector ``v`` (velocity times time), shape (nq,).

        Quaternions: ``quat * exp(v)`` with the angular velocity in node axes.
        """
        out = np.array(q, dtype=float)
        for node in self.nodes:
            if node.kind == "ball":
                rotation = rotation_exp(v[node.v : node.v + 3])
                product = quaternion_product(q[node.q : node.q + 4], rotation)
                out[node.q : node.q + 4] = product / np.linalg.norm(product)
            else:
                out[node.q] += v[node.v]
        return out

    def difference(self, q1: Array, q0: Array) -> Array:
        """Return the tangent vector from ``q0`` to ``q1``: ``integrate(q0, v) == q1``."""
        if self.nq == self.nv:  # no quaternions
            return np.subtract(q1, q0, dtype=float)
        out = np.empty(self.nv)
        for node in self.nodes:
            if node.kind == "ball":
                w, x, y, z = q0[node.q : node.q + 4]
                relative = quaternion_product((w, -x, -y, -z), q1[node.q : node.q + 4])
                out[node.v : node.v + 3] = quaternion_log(relative)
            else:
                out[node.v] = q1[node.q] - q0[node.q]
        return out

    def neutral(self) -> Array:
        """Return zero coordinates with identity quaternions, shape (nq,)."""
        q = np.zeros(self.nq)
        for node in self.nodes:
            if node.kind == "ball":
                q[node.q] = 1.0
        return q

    def random(self, rng: np.random.Generator, *, span: float = 1.0) -> Array:
        """Return random coordinates, uniform within the limits.

        Where there are no limits, within +-``span``; quaternions uniform on the rotation group.
        """
        low = np.where(np.isfinite(self.lower), self.lower, -span)
        high = np.where(np.isfinite(self.upper), self.upper, span)
        q = rng.uniform(low, np.maximum(low, high))
        for node in self.nodes:
            if node.kind == "ball":
                quaternion = rng.normal(size=4)
                q[node.q : node.q + 4] = quaternion / np.linalg.norm(quaternion)
        return q


def _checked(values: Array, size: int, name: str, names: tuple[str, ...]) -> Array:
    array = real_array(values, name)
    if array.shape != (size,):
        raise ShapeError(
            f"{name} has shape {array.shape}, expected ({size},): one value for each of "
            f"{', '.join(names)}"
        )
    if not np.all(np.isfinite(array)):
        bad = names[int(np.argmin(np.isfinite(array)))]
        raise ShapeError(f"{name} of '{bad}' is not finite: {array}")
    return array


def _unit(axis: Vector3, robot: Robot, joint: Joint) -> Vector3:
    norm = float(np.linalg.norm(axis))
    if not math.isfinite(norm) or norm < 1e-9:
        raise robot.error(
            joint, f"axis {axis} has no direction", "a vector of three numbers that is not zero"
        )
    return np.asarray(axis, dtype=float) / norm


def _unit_quaternion(quaternion: Array, robot: Robot, joint: Joint) -> Array:
    length = float(np.linalg.norm(quaternion))
    if not math.isfinite(length) or length < 1e-9:
        raise robot.error(
            joint, f"home quaternion {quaternion} is no rotation", "w x y z of length 1"
        )
    return np.asarray(quaternion / length)


def _home_of(robot: Robot, joint: Joint) -> list[float]:
    """Initial coordinates of a joint, checked for their number."""
    kinds = [kind for _, kind, _ in _elementary(joint)]
    neutral: list[float] = []
    for kind in kinds:
        neutral += [1.0, 0.0, 0.0, 0.0] if kind == "ball" else [0.0]
    values = robot.home.get(joint.name)
    if values is None:
        return neutral
    if len(values) != len(neutral):
        raise DescriptionError(
            f"home position has {len(values)} values",
            source=robot.source,
            element=f"joint '{joint.name}'",
            expected=f"{len(neutral)} for a {joint.kind} joint",
        )
    return [float(x) for x in values]


def _check_name(robot: Robot, kind: str, name: str, line: int | None) -> None:
    for part in name.split("::"):  # of nested models
        if problem := name_problem(part):
            raise DescriptionError(
                problem,
                source=robot.source,
                line=line,
                element=f"{kind} '{name}'",
                expected=EXPECTED,
            )


def _check_names(robot: Robot) -> None:
    """Refuse what is no name, duplicate names and references to links that do not exist."""
    where = robot.source
    _check_name(robot, "model", robot.name, None)
    for kind, items in (
        ("link", robot.links),
        ("joint", robot.joints),
        ("muscle", robot.muscles),
        ("frame", robot.frames),
    ):
        for item in items:
            _check_name(robot, kind, item.name, item.line)
        for name, count in Counter(item.name for item in items).items():
            if count > 1:
                lines = [item.line for item in items if item.name == name]
                raise DescriptionError(
                    f"{count} {kind}s have this name",
                    source=where,
                    line=lines[-1],
                    element=f"{kind} '{name}'",
                    expected="unique names",
                )
    links = {link.name for link in robot.links} | {WORLD}
    for joint in robot.joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            check_choice(name, f"link ({role} of joint '{joint.name}')", links)
        if joint.kind not in AXES_PER_KIND:
            problem = f"'{joint.kind}' is no kind of joint"
            raise robot.error(joint, problem, ", ".join(AXES_PER_KIND))
        if len(joint.axes) != AXES_PER_KIND[joint.kind]:
            problem = f"{len(joint.axes)} axes for a {joint.kind} joint"
            raise robot.error(joint, problem, f"{AXES_PER_KIND[joint.kind]}")
    for name in robot.home:
        robot.joint(name)
    for frame in robot.frames:
        if frame.name in links:
            problem = "a link has this name, or it is the world"
            raise robot.error(frame, problem, "a name of its own")
        check_choice(frame.link, f"link (of frame '{frame.name}')", links)
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    for surface in robot.wrap_surfaces:
        check_choice(surface.link, f"link (of wrap surface '{surface.name}')", links)
    for muscle in robot.muscles:
        for link in path_links(muscle.path, surfaces):
            check_choice(link, f"link (of muscle '{muscle.name}')", links)


def _depth_first(robot: Robot) -> Iterator[Joint]:
    """Yield the joints parents first; refuse loops, orphans and links with two parents."""
    parents: dict[str, Joint] = {}
    children: dict[str, list[Joint]] = {}
    for joint in robot.joints:
        if joint.child == WORLD:
            raise robot.error(joint, "its child is the world", "a link as child")
        if joint.child in parents:
            other = parents[joint.child].name
            raise robot.error(
                joint,
                f"link '{joint.child}' is already the child of joint '{other}'",
                "a tree: every link is the child of one joint (closed loops are not supported)",
            )
        parents[joint.child] = joint
        children.setdefault(joint.parent, []).append(joint)
    seen: set[str] = set()
    stack = list(reversed(children.get(WORLD, [])))
    while stack:
        joint = stack.pop()
        seen.add(joint.child)
        yield joint
        stack += reversed(children.get(joint.child, []))
    lost = [link for link in robot.links if link.name not in seen]
    if lost:
        raise robot.error(
            lost[0],
            "not connected to the world by joints",
            "a chain of joints from the world to every link (a loop of joints has none)",
        )


def _ancestor_chains(nodes: tuple[Node, ...]) -> tuple[tuple[int, ...], ...]:
    chains: list[tuple[int, ...]] = []
    for index, node in enumerate(nodes):
        above = () if node.parent == WORLD_NODE else chains[node.parent]
        chains.append((*above, index))
    return tuple(chains)
