"""Whether a robot with muscles can be controlled: its description, and L over a range.

At many poses q of the working range:

- *rank* of L over the coordinates that muscles alone move: below nv, some joint forces cannot be
  made. The smallest singular value of L is the moment arm in the weakest direction;
- *wrench closure*: ``rank L = nv`` and there is f > 0 with ``L'f = 0``, so tensions without upper
  limit resist any small push, whatever gravity does;
- *static*: there are tensions within their limits with ``-L'f = G`` (and ligaments in G);
- moment arms ``r = -L`` of every muscle about every coordinate, lengths and paths;
- *impedance*: whether muscle boards can close the loop of the impedance law, with the gains of the
  description (`cards_core.analysis.impedance_loop`), at some of the poses.

Only muscles that take a tension command are rows of L there; passive ones load the robot. Joints
with a motor of their own are left out of rank and closure, and a motor's effort limit counts in
*static* (`cards_core.analysis.conditions.actuation`).

The description by itself: inertias, limits of joints, tensions and motors, the home position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.analysis.arm_jumps import arm_jumps
from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.kernels import RANK_TOLERANCE, RequiredWrenches, distances
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.impedance_loop import gains_of, growth_text, slowest_motion
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.coordinates import Coordinates
from cards_core.analysis.workspace.points import PointSet, Samples
from cards_core.checks import finite_number
from cards_core.dynamics import Dynamics
from cards_core.errors import DescriptionError
from cards_core.json_values import json_value
from cards_core.robot.elements import WORLD, Muscle, path_links
from cards_core.robot.inertia import inertia_problem
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_core.robot.motors import motors_of
from cards_core.typing import Array

Severity: TypeAlias = Literal["unfit", "warning"]

Codes: TypeAlias = npt.NDArray[np.uint8]

CHUNK = 200
"""Poses between two reports of progress."""

LEAST_SHARE = 0.5
"""Share of the poses that must be in closure, and held statically, unless told otherwise."""

NO_ARM = 1e-6
"""Moment arm that counts as none, [m] or [1]."""

LOOP_POSES = 50
"""Poses at which the loop of the impedance law is looked at; each costs some 10 ms."""

NO_INERTIA = 1e-14
"""Smallest over largest eigenvalue of M from which on it is not positive definite."""

NO_LENGTH = 1e-6
"""Length of a muscle that counts as none, [m]: its direction is lost."""

WEAK = 1e-2
"""Ratio of the singular values of L, columns scaled to 1, below which it is nearly singular."""

UNLIMITED = 1.0
"""Working range on either side of home where a coordinate has no limits, [rad] or [m]."""

PART = 1e-3
"""Component of a unit vector from which on a coordinate has a part in it."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a robot.

    Attributes:
        part: ``rank``, ``closure``, ``static``, ``moment_arms``, ``paths``, ``inertia``,
            ``joint_limits``, ``muscle_limits``, ``motors`` or ``impedance``.
        severity: ``unfit``: a controller will fail; ``warning``: look at it.
        subject: Muscle, link or joint; empty for the robot as a whole.
        text: What is wrong.
        pose: The worst pose, coordinate to value; None where it is not a matter of poses.
    """

    part: str
    severity: Severity
    subject: str
    text: str
    pose: Mapping[str, float] | None = None


@dataclass(frozen=True, eq=False)
class RobotCheck:
    """Result of `check_robot`, with n poses, m muscles and nv coordinates.

    Attributes:
        robot: Its name.
        coordinates: Names of the velocities, shape (nv,).
        by_muscles: Which of them have no motor, shape (nv,), bool.
        muscles: Names of all muscles.
        commanded: Which of them take a tension command, shape (m,), bool.
        motors: Names of the coordinates with a motor.
        mass: Of everything that moves, [kg].
        q: Poses, shape (n, nq).
        rank: Of L (commanded muscles, coordinates without motor), shape (n,); -1 where a muscle
            has no path.
        singular_value: Least singular value of that L, shape (n,), [m/rad] or [1]; NaN there.
        closure: Outcome of the condition ``wrench_closure``, shape (n,), values of `PointStatus`;
            None if every coordinate has a motor.
        static: Outcome of ``static``, shape (n,); None if every coordinate has a motor without
            effort limit, or limits of tensions make no sense.
        arm_least, arm_most: Minimum and maximum moment arm r = -L, shape (m, nv), [m] or [1]; NaN
            if no pose has a path.
        findings: What is wrong.
    """

    robot: str
    coordinates: tuple[str, ...]
    by_muscles: npt.NDArray[np.bool_]
    muscles: tuple[str, ...]
    commanded: npt.NDArray[np.bool_]
    motors: tuple[str, ...]
    mass: float
    q: Array
    rank: npt.NDArray[np.intp]
    singular_value: Array
    closure: Codes | None
    static: Codes | None
    arm_least: Array
    arm_most: Array
    findings: tuple[Finding, ...]

    @property
    def fit(self) -> bool:
        """Whether nothing was found that makes it unfit."""
        return all(finding.severity != "unfit" for finding in self.findings)

    @property
    def closure_share(self) -> float | None:
        """Share of the poses in wrench closure, 0 to 1."""
        return None if self.closure is None else _share(self.closure)

    @property
    def static_share(self) -> float | None:
        """Share of the poses that can be held within the limits of the tensions, 0 to 1."""
        return None if self.static is None else _share(self.static)

    @property
    def sign_changes(self) -> npt.NDArray[np.bool_]:
        """Where a moment arm has both signs, shape (m, nv)."""
        return (self.arm_least < -NO_ARM) & (self.arm_most > NO_ARM)

    @property
    def does_nothing(self) -> npt.NDArray[np.bool_]:
        """Muscles without any moment arm at any pose, shape (m,)."""
        size = np.maximum(np.abs(self.arm_least), np.abs(self.arm_most))
        return np.asarray((size <= NO_ARM).all(axis=1))

    def to_json(self) -> dict[str, Any]:
        """Return plain data, without the single poses; what does not exist is None."""
        changes = self.sign_changes
        arms = {
            muscle: {
                coordinate: {
                    "least": json_value(self.arm_least[i, j]),
                    "most": json_value(self.arm_most[i, j]),
                    "sign_changes": bool(changes[i, j]),
                }
                for j, coordinate in enumerate(self.coordinates)
            }
            for i, muscle in enumerate(self.muscles)
        }
        known = self.rank[self.rank >= 0]
        return {
            "robot": self.robot,
            "fit": self.fit,
            "poses": len(self.q),
            "coordinates": list(self.coordinates),
            "moved_by_muscles": _named(self.coordinates, self.by_muscles),
            "commanded_muscles": _named(self.muscles, self.commanded),
            "passive_muscles": _named(self.muscles, ~self.commanded),
            "motors": list(self.motors),
            "mass": self.mass,
            "rank": {
                "full": int(np.count_nonzero(self.by_muscles)),
                "least": int(known.min()) if len(known) else None,
                "least_singular_value": _least(self.singular_value),
            },
            "closure_share": self.closure_share,
            "static_share": self.static_share,
            "moment_arms": arms,
            "do_nothing": _named(self.muscles, self.does_nothing),
            "findings": [
                {
                    "part": finding.part,
                    "severity": finding.severity,
                    "subject": finding.subject,
                    "text": finding.text,
                    "pose": None if finding.pose is None else dict(finding.pose),
                }
                for finding in self.findings
            ],
        }


def check_robot(
    dynamics: Dynamics,
    points: PointSet | None = None,
    *,
    least_closure: float = LEAST_SHARE,
    least_static: float = LEAST_SHARE,
    progress: Callable[[int, int], None] | None = None,
) -> RobotCheck:
    """Return whether a robot is fit to be controlled, and what is wrong.

    Unfit: L is rank-deficient at some pose; fewer poses than asked for are in closure, or can be
    held; a muscle that takes commands does nothing; a path is not found; a muscle has no length;
    an inertia of no rigid body; limits that make no sense; home outside the joint limits.

    Args:
        dynamics: Of the robot; its result buffers are overwritten.
        points: The working range; 1,000 random poses within the joint limits without it. Random
            poses reach 1 rad or 1 m from home along coordinates without limits.
        least_closure: Share of the poses that must be in closure, 0 to 1.
        least_static: Share of the poses that must be held within the limits of tensions, 0 to 1.
        progress: Called with the numbers of poses that are done, and of all.

    Raises:
        CardsError: A share outside 0 to 1.
        PointSetError: There is no pose, or the points do not fit the robot.
        UnknownNameError: The robot has no such coordinate.
        CompilationError: There is no C compiler, and the library is not in the cache.
        DescriptionError: Nothing connects a body to the world, as in a tensegrity: no tension
            moves such a structure as a whole.
    """
    _require_support(dynamics.robot)
    for name, share in (("least_closure", least_closure), ("least_static", least_static)):
        finite_number(share, name, at_least=0.0, at_most=1.0)
    tree = dynamics.tree
    bound = within_range(tree, points or Samples(1000)).bind(tree)
    q = bound.q(bound.values(0, bound.count))
    description = _Description(dynamics)
    poses = _Poses(dynamics, limits_make_sense=description.limits_make_sense)
    for start in range(0, len(q), CHUNK):
        poses.add(q[start : start + CHUNK])
        if progress is not None:
            progress(min(start + CHUNK, len(q)), len(q))
    findings = [*poses.findings(least_closure, least_static), *description.findings]
    return poses.result(tuple(sorted(findings, key=lambda finding: finding.severity != "unfit")))


def _require_support(robot: Robot) -> None:
    """Raise `DescriptionError` unless joints and muscles connect every body to the world."""
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    pairs = [(joint.parent, joint.child) for joint in robot.joints if joint.kind != "free"]
    for muscle in robot.muscles:
        links = path_links(muscle.path, surfaces)
        pairs += [(links[0], link) for link in links[1:]]
    held, before = {WORLD}, 0
    while len(held) > before:
        before = len(held)
        held |= {end for pair in pairs if held & set(pair) for end in pair}
    if loose := [link.name for link in robot.links if link.name not in held]:
        shown = ", ".join(loose[:3]) + (" ..." if len(loose) > 3 else "")
        raise DescriptionError(
            f"nothing connects {shown} to the world: no tension moves such a structure as a whole",
            source=robot.name,
            expected="a muscle or joint from each body to the world; a tensegrity is checked with "
            f"./cards analyse prestress {robot.name} and ./cards analyse modes {robot.name}",
        )


def within_range(tree: Tree, points: PointSet) -> PointSet:
    """Give random coordinates without sensible limits a range."""
    if not isinstance(points, Samples):
        return points
    coordinates = Coordinates(tree)
    given = {coordinates.find(name) for name in (*points.ranges, *points.fixed)}
    held = {coordinates.find(name) for name in points.at_home if name not in coordinates.balls}
    ranges = dict(points.ranges)
    for one in coordinates.all:
        if one.component >= 0 or one in given or one in held:
            continue
        low, high, home = tree.lower[one.q], tree.upper[one.q], float(tree.home[one.q])
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            ranges[one.name] = (home - UNLIMITED, home + UNLIMITED)
    return replace(points, ranges=ranges)


class _Poses:
    """What is seen at poses, and what is wrong there."""

    def __init__(self, dynamics: Dynamics, *, limits_make_sense: bool) -> None:
        robot, tree = dynamics.robot, dynamics.tree
        self._dynamics = dynamics
        self._actuation = Actuation(dynamics, motors=False)
        self._commanded = np.array([muscle.takes_tension for muscle in robot.muscles], dtype=bool)
        moved = np.zeros(tree.nv, dtype=bool)
        moved[self._actuation.coordinates] = True
        self._moved = moved
        self._closure = make_condition(dynamics, "wrench_closure") if moved.any() else None
        asked = len(Actuation(dynamics).coordinates) > 0 and limits_make_sense
        self._static = make_condition(dynamics, "static") if asked else None
        shape = (len(robot.muscles), tree.nv)
        self._least, self._most = np.full(shape, np.inf), np.full(shape, -np.inf)
        self._parts: dict[str, list[Array]] = {}

    def add(self, q: Array) -> None:
        """Look at poses, shape (n, nq)."""
        state = self._dynamics.batch(q)
        lengths = state.muscle_lengths.copy()
        jacobian = self._actuation.jacobian(state).copy()
        paths = np.isfinite(state.muscle_jacobian).all(axis=(1, 2)) & np.isfinite(lengths).all(1)
        there: npt.NDArray[np.bool_] = np.asarray(paths)
        arms = -state.muscle_jacobian[there]
        self._least = np.minimum(self._least, arms.min(axis=0, initial=np.inf))
        self._most = np.maximum(self._most, arms.max(axis=0, initial=-np.inf))
        inertia = np.where(there[:, None, None], state.mass_matrix, np.eye(self._dynamics.tree.nv))
        moments = np.linalg.eigvalsh(inertia)
        n, rows, k = jacobian.shape
        rank, value, ratio = np.full(n, -1), np.full(n, np.nan), np.full(n, np.nan)
        if k:
            part = jacobian[there]
            rank[there], value[there], ratio[there] = singular_values_of(part)
        self._keep("q", q)
        self._keep("lengths", lengths)
        self._keep("rank", rank)
        self._keep("value", value)
        self._keep("ratio", ratio)
        self._keep("inertia", moments[:, 0] / np.maximum(moments[:, -1], 1e-300))
        if self._closure is not None:
            closure = self._closure.evaluate(q)["status"]
            self._keep("closure", closure)
            imbalance = np.full(n, np.inf)
            ask = there & (closure != PointStatus.FEASIBLE)
            if rows and ask.any():
                _, imbalance[ask] = distances(
                    jacobian[ask],
                    np.ones(rows),
                    np.full(rows, np.inf),
                    RequiredWrenches(np.zeros((1, k))),
                    np.ones(k),
                )
            self._keep("imbalance", imbalance)
        if self._static is not None:
            answer = self._static.evaluate(q)
            self._keep("static", answer["status"])
            self._keep("residual", answer["residual"])

    def _keep(self, name: str, values: Any) -> None:
        self._parts.setdefault(name, []).append(np.array(values))

    def _all(self, name: str) -> Any:
        return np.concatenate(self._parts[name])

    def _pose(self, index: int) -> dict[str, float]:
        row = self._all("q")[index].tolist()
        return dict(zip(self._dynamics.tree.position_names, row, strict=True))

    def result(self, findings: tuple[Finding, ...]) -> RobotCheck:
        """Return everything that was seen."""
        robot, tree = self._dynamics.robot, self._dynamics.tree
        seen = np.isfinite(self._least)
        return RobotCheck(
            robot=robot.name,
            coordinates=tree.velocity_names,
            by_muscles=self._moved,
            muscles=tuple(muscle.name for muscle in robot.muscles),
            commanded=self._commanded,
            motors=motors_of(tree).names,
            mass=sum(node.inertia.mass for node in tree.nodes),
            q=self._all("q"),
            rank=self._all("rank"),
            singular_value=self._all("value"),
            closure=None if self._closure is None else self._all("closure"),
            static=None if self._static is None else self._all("static"),
            arm_least=np.where(seen, self._least, np.nan),
            arm_most=np.where(seen, self._most, np.nan),
            findings=findings,
        )

    def findings(self, least_closure: float, least_static: float) -> list[Finding]:
        """Return what is wrong at poses."""
        out = [*self._paths(), *self._rank()]
        if self._closure is not None:
            out += self._shares(
                "closure",
                least_closure,
                self._all("closure"),
                self._all("imbalance"),
                "wrench closure (any small push can be resisted)",
            )
        if self._static is not None:
            out += self._shares(
                "static",
                least_static,
                self._all("static"),
                self._all("residual"),
                "reach of tensions within their limits (gravity is held)",
            )
        if (self._all("inertia") <= NO_INERTIA).any():
            worst = int(np.argmin(self._all("inertia")))
            text = "the mass matrix is not positive definite"
            out.append(Finding("inertia", "unfit", "", text, self._pose(worst)))
        return [*out, *self._idle(), *self._jumps(), *self._loop()]

    def _jumps(self) -> list[Finding]:
        q, tree = self._all("q"), self._dynamics.tree
        out = []
        for jump in arm_jumps(self._dynamics, q.min(axis=0), q.max(axis=0)):
            text = (
                f"its moment arm about {tree.velocity_names[jump.coordinate]} jumps by "
                f"{1e3 * abs(jump.arm):.3g} mm, or 1/1000, its length by {1e3 * jump.length:.3g} "
                "mm: the path takes another way round its surface"
            )
            name = self._dynamics.robot.muscles[jump.muscle].name
            pose = dict(zip(tree.position_names, jump.q.tolist(), strict=True))
            out.append(Finding("moment_arms", "warning", name, text, pose))
        return out

    def _loop(self) -> list[Finding]:
        dynamics, poses = self._dynamics, self._all("q")[self._sound()][:LOOP_POSES]
        gains = gains_of(dynamics.robot)
        found = [slowest_motion(dynamics, q, *gains) for q in poses]
        motions = [motion for motion in found if motion is not None]
        if not motions:
            return []
        swings = np.array([not motion.stable for motion in motions])
        if not swings.any():
            return []
        worst = int(np.argmax([motion.growth for motion in motions]))
        text = growth_text(motions[worst], *gains)
        name = dynamics.robot.muscles[motions[worst].muscle].name
        pose = dict(zip(dynamics.tree.position_names, poses[worst].tolist(), strict=True))
        text = f"boards would shake it at {_count(swings)}: {text}"
        return [Finding("impedance", "warning", name, text, pose)]

    def _sound(self) -> npt.NDArray[np.bool_]:
        """Return at which poses all paths are there and the mass matrix is positive definite."""
        paths = np.isfinite(self._all("lengths")).all(axis=1)
        sound: npt.NDArray[np.bool_] = paths & (self._all("inertia") > NO_INERTIA)
        return sound

    def _paths(self) -> list[Finding]:
        lengths, muscles = self._all("lengths"), self._dynamics.robot.muscles
        out = []
        for i, muscle in enumerate(muscles):
            lost = ~np.isfinite(lengths[:, i])
            if lost.any():
                text = f"its path is not found at {_count(lost)}"
                pose = self._pose(int(np.argmax(lost)))
                out.append(Finding("paths", "unfit", muscle.name, text, pose))
            short = lengths[:, i] <= NO_LENGTH
            if short.any():
                text = f"it has no length, and so no direction, at {_count(short)}"
                pose = self._pose(int(np.argmax(short)))
                out.append(Finding("paths", "unfit", muscle.name, text, pose))
        return out

    def _rank(self) -> list[Finding]:
        names = np.array(self._dynamics.tree.velocity_names)[self._moved]
        if not len(names):
            return []
        rank, value, ratio = self._all("rank"), self._all("value"), self._all("ratio")
        low = (rank >= 0) & (rank < len(names))
        if low.any():
            worst = int(np.nanargmin(np.where(low, rank + ratio, np.nan)))
            state = self._dynamics.batch(self._all("q")[worst : worst + 1])
            hidden = _hidden(self._actuation.jacobian(state)[0], names)
            text = (
                f"rank of L is {rank[worst]} of {len(names)} at {_count(low)}: no tension moves "
                f"{', '.join(hidden)} by itself"
            )
            return [Finding("rank", "unfit", "", text, self._pose(worst))]
        weak = ratio < WEAK
        if not weak.any():
            return []
        worst = int(np.nanargmin(ratio))
        text = (
            f"L is nearly singular at {_count(weak)}: its smallest singular value is "
            f"{value[worst]:.3g}"
        )
        return [Finding("rank", "warning", "", text, self._pose(worst))]

    def _shares(
        self, part: str, least: float, status: Codes, size: Array, what: str
    ) -> list[Finding]:
        bad = status != PointStatus.FEASIBLE
        if not bad.any():
            return []
        worst = int(np.argmax(np.where(bad, np.where(np.isnan(size), np.inf, size), -1.0)))
        share = _share(status)
        text = f"{_count(bad)} outside {what}"
        if share < least:
            text += f"; {100.0 * least:.4g} % must be inside"
        if (status == PointStatus.TOO_FEW_MUSCLES).all():
            text += f"; at least {np.count_nonzero(self._moved) + 1} muscles are needed"
        if (status == PointStatus.NO_MUSCLES).all():
            text += "; no muscle takes a command"
        severity: Severity = "unfit" if share < least else "warning"
        return [Finding(part, severity, "", text, self._pose(worst))]

    def _idle(self) -> list[Finding]:
        out = []
        size = np.maximum(np.abs(self._least), np.abs(self._most))
        for i, muscle in enumerate(self._dynamics.robot.muscles):
            if not np.isfinite(size[i]).all():
                continue
            if (size[i] <= NO_ARM).all():
                text = "it does nothing: no moment arm about any coordinate at any pose"
                severity: Severity = "unfit" if self._commanded[i] else "warning"
                out.append(Finding("moment_arms", severity, muscle.name, text))
            elif (
                self._commanded[i] and self._moved.any() and (size[i][self._moved] <= NO_ARM).all()
            ):
                text = "it moves only joints that have motors"
                out.append(Finding("moment_arms", "warning", muscle.name, text))
        return out


class _Description:
    """What is wrong with a description, whatever the pose.

    Attributes:
        findings: What is wrong.
        limits_make_sense: Whether questions about tensions within their limits can be asked.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics
        muscles = [muscle for muscle in dynamics.robot.muscles if muscle.takes_tension]
        limits = [finding for muscle in muscles for finding in _tension_limits(muscle)]
        motors = self._motors()
        self.limits_make_sense = all(f.severity != "unfit" for f in (*limits, *motors))
        self.findings = [*self._inertias(), *self._joints(), *limits, *motors]

    def _motors(self) -> list[Finding]:
        found = motors_of(self._dynamics.tree)
        return [
            Finding("motors", "unfit", name, f"its effort limit is {effort:g} (expected: > 0)")
            for name, effort in zip(found.names, found.efforts.tolist(), strict=True)
            if not effort > 0.0
        ]

    def _inertias(self) -> list[Finding]:
        out, extent, tree = [], self._extent(), self._dynamics.tree
        for link in self._dynamics.robot.links:
            inertia = link.inertia
            if inertia.is_massless:
                continue  # an intermediate frame of joints
            if problem := inertia_problem(inertia):
                out.append(Finding("inertia", "unfit", link.name, problem))
                continue
            if tree.link_node[link.name][0] == WORLD_NODE:
                continue  # it never moves
            radius = math.sqrt(float(np.linalg.eigvalsh(inertia.tensor)[-1]) / inertia.mass)
            distance = float(np.linalg.norm(inertia.com))
            for what, size in (("radius of gyration", radius), ("centre of mass", distance)):
                if size > extent > 0.0:
                    text = f"{what} {size:.3g} m, beyond the whole robot ({extent:.3g} m)"
                    out.append(Finding("inertia", "warning", link.name, text))
        return out

    def _extent(self) -> float:
        """Return the size of the robot at home: between origins of links and points of muscles."""
        robot, home = self._dynamics.robot, self._dynamics.tree.home
        poses = dict(
            zip((link.name for link in robot.links), self._dynamics.link_poses(home), strict=True)
        )
        points = [pose[:3, 3].copy() for pose in poses.values()]
        for muscle in robot.muscles:
            for via in muscle.via_points:
                pose = poses.get(via.link, np.eye(4))
                points.append(pose[:3, :3] @ via.position + pose[:3, 3])
        if not points:
            return 0.0
        cloud = np.array(points)
        return float(np.linalg.norm(cloud.max(axis=0) - cloud.min(axis=0)))

    def _joints(self) -> list[Finding]:
        tree, out = self._dynamics.tree, []
        for node in tree.nodes:
            if node.kind == "ball":
                continue
            low, high = float(tree.lower[node.q]), float(tree.upper[node.q])
            home = float(tree.home[node.q])
            span = f"{low:g} .. {high:g}"
            if math.isnan(low) or math.isnan(high) or low > high:
                out.append(Finding("joint_limits", "unfit", node.name, f"limits {span}"))
            elif not low <= home <= high:
                text = f"home {home:g} is outside its limits {span}"
                out.append(Finding("joint_limits", "unfit", node.name, text))
            elif not (math.isfinite(low) and math.isfinite(high)):
                text = f"it has no limits: random poses within {UNLIMITED:g} of home stand for all"
                out.append(Finding("joint_limits", "warning", node.name, text))
        return out


def _tension_limits(muscle: Muscle) -> list[Finding]:
    low, high = muscle.tension_min, muscle.tension_max
    span = f"tension {low:g} .. {high:g} N"
    if not (math.isfinite(low) and low >= 0.0):
        return [Finding("muscle_limits", "unfit", muscle.name, f"{span} (expected: minimum >= 0)")]
    if not high > low:
        text = f"{span} (expected: the maximum above the minimum)"
        return [Finding("muscle_limits", "unfit", muscle.name, text)]
    if math.isinf(high):
        text = "no maximum tension: static poses are judged with any tension"
        return [Finding("muscle_limits", "warning", muscle.name, text)]
    return []


def singular_values_of(jacobian: Array) -> tuple[npt.NDArray[np.intp], Array, Array]:
    """Return rank, smallest singular value, and smallest over largest with columns scaled to 1.

    Args:
        jacobian: L, shape (n, rows, k) with k >= 1.
    """
    n, rows, k = jacobian.shape
    if rows < k:  # the missing singular values are zero
        jacobian = np.concatenate([jacobian, np.zeros((n, k - rows, k))], axis=1)
    norms = np.linalg.norm(jacobian, axis=1, keepdims=True)
    scaled = np.linalg.svd(jacobian / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    greatest = np.maximum(scaled[:, :1], 1e-300)
    rank = np.asarray(np.count_nonzero(scaled > RANK_TOLERANCE * greatest, axis=1))
    value: Array = np.asarray(np.linalg.svd(jacobian, compute_uv=False)[:, -1], dtype=float)
    ratio: Array = scaled[:, -1] / greatest[:, 0]
    return rank, value, ratio


def _hidden(jacobian: Array, names: npt.NDArray[np.str_]) -> list[str]:
    """Return coordinates with a part in a motion that changes no length of a commanded muscle."""
    k = len(names)
    full = np.concatenate([jacobian, np.zeros((k, k))])  # a full set of right singular vectors
    norms = np.linalg.norm(full, axis=0)
    _, values, rows = np.linalg.svd(full / np.where(norms > 0.0, norms, 1.0))
    null = rows[values <= RANK_TOLERANCE * max(float(values[0]), 1e-300)]
    parts = np.linalg.norm(null, axis=0) > PART
    return [str(name) for name in names[parts]]


def _share(status: Codes) -> float:
    return float(np.mean(status == PointStatus.FEASIBLE))


def _count(bad: npt.NDArray[np.bool_]) -> str:
    return f"{np.count_nonzero(bad)} of {len(bad)} poses"


def _named(names: tuple[str, ...], which: npt.NDArray[np.bool_]) -> list[str]:
    return [name for name, there in zip(names, which, strict=True) if there]


def _least(values: Array) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.min()) if len(there) else None
