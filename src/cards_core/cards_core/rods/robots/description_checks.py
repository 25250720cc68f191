"""Checks of a rod robot's description that need both files, or the mechanism as a whole.

The first ones refuse what is wrong. The warnings are about what is formally correct but looks like
a mistake, wrong units mostly: millimetres for metres, degrees for radians. They go to
`RodRobot.notes`, which ``./cards models`` and the nodes show.
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.formats.sdf.values import numbers
from cards_core.formats.xml_lines import XmlElement
from cards_core.rods.robots.mechanism import Mechanism
from cards_core.rods.robots.robot import (
    PLANAR_COORDINATES,
    PLATE_COORDINATES,
    BaseKind,
    Limb,
    RodRobot,
    TipKind,
    rod_starts,
)
from cards_core.rods.robots.yaml_rods import RodEntry
from cards_core.spatial import hat
from cards_core.typing import Array
from cards_core.yaml_fields import Field

UNIT = 1e-3
"""How far the norm of an axis or quaternion may be from 1 before it is taken for a mistake."""

OPPOSITE = -0.98
"""Cosine of the angle from which on two directions count as opposite (168.5 deg)."""

FLAT = 1e-7
"""How far a planar robot's frames may be out of its plane: sine of the angle, or [m]."""


def check_units_of_frames(root: XmlElement) -> None:
    """Check that axes and quaternions in the SDF are unit vectors, to `UNIT`.

    SDFormat would normalise them; an axis such as ``0 0 2`` in a rod robot is a slip.

    Raises:
        DescriptionError: One is not; the message shows what it would be.
    """
    for joint in root.iter("joint"):
        for tag in ("axis", "axis2"):
            axis = joint.find(tag)
            element = None if axis is None else axis.find("xyz")
            if isinstance(element, XmlElement):
                _check_norm(element, numbers(element, 3), "axis")
    for element in root.iter("pose"):
        if element.get("rotation_format", "").strip() == "quat_xyzw" and isinstance(
            element, XmlElement
        ):
            _check_norm(element, numbers(element, 7)[3:], "quaternion")


def _check_norm(element: XmlElement, values: Array, what: str) -> None:
    norm = float(np.linalg.norm(values))
    if abs(norm - 1.0) > UNIT:
        unit = " ".join(f"{value / norm:.6g}" for value in values) if norm > 0 else "not all zero"
        raise element.error(f"the {what} has the length {norm:g}", f"a unit {what}, {unit}")


def check_limb_sets(mechanism: Mechanism, entries: list[RodEntry], rods: Field) -> None:
    """Check that SDF and YAML speak of the same limbs.

    Args:
        mechanism: The bodies and frames of the SDF.
        entries: The rods of the YAML.
        rods: Field of the YAML that has them, for the error.

    Raises:
        DescriptionError: They do not; the message lists both sets.
    """
    in_yaml = [entry.name for entry in entries]
    # frames that an entry names itself do not have to follow the rule <limb>_start, <limb>_tip
    taken = {name for entry in entries for name in (entry.start, entry.tip)}
    in_sdf = [
        name
        for name in mechanism.limb_names()
        if name in in_yaml or not {f"{name}_start", f"{name}_tip"} & taken
    ]
    known = set(mechanism.frames)
    missing = [e.name for e in entries if e.start not in known or e.tip not in known]
    extra = [name for name in in_sdf if name not in in_yaml]
    if missing or extra:
        frames = [name for e in entries for name in (e.start, e.tip) if name not in known]
        raise rods.error(
            f"the limbs are not those of {mechanism.robot.source}: YAML has {len(in_yaml)} "
            f"({', '.join(in_yaml)}), SDF has {len(in_sdf)} ({', '.join(in_sdf) or 'none'})"
            + (f", but no frame {_quoted(frames)}" if frames else ""),
            "for every rod one entry here and the frames <name>_start and <name>_tip in the SDF",
        )


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def check_tip_direction(robot: RodRobot, limb: Limb, tip: Array, field: Field) -> None:
    """Check that the tip frame's z axis is not turned round: along the rod, not against it.

    Args:
        robot: The robot.
        limb: The limb.
        tip: Pose of its tip with the plate at home, shape (4, 4).
        field: Entry in the YAML file, for the message.

    Raises:
        DescriptionError: It is turned round.
    """
    start = rod_starts(robot, robot.home_q)[robot.limbs.index(limb)]
    way = tip[:3, 3] - start[:3, 3]
    distance = float(np.linalg.norm(way))
    if distance == 0.0:
        return
    ahead = float(tip[:3, 2] @ way) / distance
    if ahead < OPPOSITE and float(tip[:3, 2] @ start[:3, 2]) < OPPOSITE:
        raise field.error(
            f"the tip frame of limb '{limb.name}' points against the rod (180 deg): z axis of the "
            f"start frame {_shown(start[:3, 2])} at {_shown(start[:3, 3])}, of the tip frame "
            f"{_shown(tip[:3, 2])} at {_shown(tip[:3, 3])}",
            "z along the rod, from its start to its tip, in both frames",
        )


def _shown(values: Array) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values + 0.0) + ")"


def check_plane(robot: RodRobot, top: Field) -> None:
    """Check that all frames of a planar robot lie in one plane parallel to XY.

    Raises:
        DescriptionError: One does not, or a joint is none of a planar robot.
    """
    height = robot.home_pose[2, 3]
    if abs(robot.home_pose[2, 2] - 1.0) > FLAT:
        raise top["planar"].error("the plate is tilted", "a pose with rotation about z alone")
    starts = rod_starts(robot, robot.home_q)
    for limb, start in zip(robot.limbs, starts, strict=True):
        if limb.tip.kind not in (TipKind.FIXED, TipKind.REVOLUTE):
            raise top["planar"].error(
                f"limb '{limb.name}' has a {limb.tip.kind} joint at the plate",
                "fixed or revolute joints; 'planar: false' solves any joint in space",
            )
        joint = robot.home_pose @ limb.tip.joint_pose
        tip = joint @ limb.tip.attach
        axis = limb.base.joint_pose[:3, 2]
        checks = {
            "its start is out of the plane": start[2, 3] - height,
            "its tip is out of the plane": tip[2, 3] - height,
            "the z axis of its start frame is out of the plane": start[2, 2],
            "the z axis of its tip frame is out of the plane": tip[2, 2],
        }
        if limb.tip.kind is TipKind.REVOLUTE:
            checks["its hinge at the plate is not normal to the plane"] = joint[2, 2] - 1.0
        if limb.base.kind is BaseKind.REVOLUTE:
            checks["its base joint is not normal to the plane"] = abs(axis[2]) - 1.0
        if limb.base.kind is BaseKind.PRISMATIC:
            checks["its slide leaves the plane"] = axis[2]
        for problem, value in checks.items():
            if abs(value) > FLAT:
                raise top["planar"].error(
                    f"limb '{limb.name}': {problem}",
                    f"all frames at the height of the plate, z = {height:g} m, and rods in the "
                    "plane XY",
                )


def check_free_plate(robot: RodRobot, rods: Field) -> None:
    """Check that the joints at the plate leave it no motion when all rod tips are held.

    Raises:
        DescriptionError: They do; the message names the motion.
    """
    mode = free_motion(robot)
    if mode is None:
        return
    raise rods.error(
        f"the plate can move although all rods are held: {describe_motion(mode)}",
        "joints at the plate that together hold it in all directions (fewer free directions, or "
        "joints at different places)",
    )


def free_motion(robot: RodRobot) -> Array | None:
    """Return a motion (velocity of the plate's origin, angular velocity) that no joint resists.

    Rows ``R_J^T [v + w x r; w]`` of all directions that the joints do not leave free, at home;
    lengths count relative to the largest lever arm. None if there is no such motion.
    """
    pose = robot.home_pose
    arms = [pose[:3, :3] @ limb.tip.joint_pose[:3, 3] for limb in robot.limbs]
    size = max([float(np.linalg.norm(arm)) for arm in arms] + [1e-3])
    rows = []
    for limb, arm in zip(robot.limbs, arms, strict=True):
        turn = (pose @ limb.tip.joint_pose)[:3, :3].T
        block = np.zeros((6, 6))
        block[:3, :3] = turn / size
        block[:3, 3:] = -turn @ hat(arm) / size
        block[3:, 3:] = turn
        rows.append(block[~limb.tip.kind.free])
    matrix = np.concatenate(rows)
    scale = np.array([size, size, size, 1.0, 1.0, 1.0])
    chosen = PLANAR_COORDINATES if robot.planar else PLATE_COORDINATES
    columns = [PLATE_COORDINATES.index(name) for name in chosen]
    _, values, directions = np.linalg.svd((matrix * scale)[:, columns])
    rank = int(np.sum(values > 1e-9 * max(values[0], 1e-300)))
    if rank == len(columns):
        return None
    motion = np.zeros(6)
    motion[columns] = directions[-1]
    return np.asarray(motion * scale)


def describe_motion(motion: Array) -> str:
    """Return a motion in words: a translation, or a rotation about an axis through a point."""
    largest = motion[np.argmax(np.abs(motion) > 0.5 * np.abs(motion).max())]
    motion = np.where(np.abs(motion) < 1e-9, 0.0, motion) * np.sign(largest)
    velocity, spin = motion[:3], motion[3:]
    rate = float(np.linalg.norm(spin))
    if rate < 1e-9 * float(np.linalg.norm(motion)):
        return f"translation along {_shown(velocity / np.linalg.norm(velocity))}"
    point = np.cross(spin, velocity) / rate**2
    return (
        f"rotation about the axis {_shown(spin / rate)} through "
        f"{_shown(np.where(np.abs(point) < 1e-12, 0.0, point))} m from the plate's origin"
    )


TURN = 2.0 * math.pi + 1e-3
"""More than a whole turn, [rad]: an angle beyond it is probably in degrees."""

SLACK = 4.0
"""A rod that is longer than this many times its way at home gets a warning."""

BACKWARDS = -0.7
"""Cosine of the angle between rod and way from which on a rod leaves backwards (135 deg)."""

SAMPLES = 33
"""Positions of the base joints between their limits, to see how near a start comes to a tip."""


def dimension_warnings(robot: RodRobot, tips: list[Array]) -> list[str]:
    """Return warnings about lengths, directions and limits.

    Args:
        robot: The robot.
        tips: Poses of the rods' tips with the plate at its home pose, shape (4, 4) each.
    """
    found: dict[str, list[str]] = {}
    home = rod_starts(robot, robot.home_q)
    low = np.where(np.isfinite(robot.q_lower), robot.q_lower, robot.home_q)
    high = np.where(np.isfinite(robot.q_upper), robot.q_upper, robot.home_q)
    starts = [rod_starts(robot, low + t * (high - low)) for t in np.linspace(0.0, 1.0, SAMPLES)]
    ways = np.array([[tip[:3, 3] for tip in tips]]) - np.array([*starts, home])[:, :, :3, 3]
    distances = np.linalg.norm(ways, axis=2)
    for i, limb in enumerate(robot.limbs):
        extensible = limb.base.kind is BaseKind.EXTENSIBLE
        shortest, longest = (
            (limb.base.lower, limb.base.upper) if extensible else (limb.length, limb.length)
        )
        near, far = float(distances[:, i].min()), float(distances[:, i].max())
        # a joint at the plate may lie off the rod's tip, and turn it nearer
        near -= 2.0 * float(np.linalg.norm(limb.tip.attach[:3, 3]))
        if longest < 0.99 * near:
            warning = (
                f"{longest:g} m long, but the way with the plate at home is {near:.4g} m: too "
                "short, or not in metres?"
            )
            found.setdefault(warning, []).append(limb.name)
        elif shortest > SLACK * far > 0.0:
            warning = (
                f"{shortest:g} m long, but the way with the plate at home is {far:.4g} m at most: "
                "millimetres?"
            )
            found.setdefault(warning, []).append(limb.name)
        way = ways[-1, i]
        if float(home[i][:3, 2] @ way) < BACKWARDS * float(np.linalg.norm(way)):
            warning = (
                "leaves away from its tip; z of the start frame is the direction in which a rod "
                "leaves"
            )
            found.setdefault(warning, []).append(limb.name)
        if limb.base.kind is BaseKind.REVOLUTE:
            bounds = [b for b in (limb.base.lower, limb.base.upper) if TURN < abs(b) < 1e4]
            if bounds:
                warning = f"limit of the base joint {bounds[0]:g} rad, more than a turn: degrees?"
                found.setdefault(warning, []).append(limb.name)
    return [f"rods {', '.join(names)}: {warning}" for warning, names in found.items()]


def document_warnings(root: XmlElement, moving: set[str]) -> list[str]:
    """Return warnings about the elements of an SDF.

    Args:
        root: The ``<sdf>`` element.
        moving: Links that move with the plate, whose masses count.
    """
    found = []
    for element in root.iter("pose"):
        if not isinstance(element, XmlElement):
            continue
        in_radians = element.get("degrees", "false").strip() not in ("true", "1")
        if in_radians and element.get("rotation_format", "euler_rpy").strip() == "euler_rpy":
            angle = _largest_angle(element.text or "")
            if angle > TURN:
                found.append(
                    f"{_place(element)}: an angle of {angle:g} rad is more than a turn: degrees? "
                    '(<pose degrees="true">)'
                )
    for link in root.iter("link"):
        if (
            isinstance(link, XmlElement)
            and link.get("name") in moving
            and link.find("inertial") is None
        ):
            found.append(
                f"{_place(link)}: no <inertial>; it counts with 1 kg, SDFormat's default, in the "
                "plate's weight"
            )
    return found


def _largest_angle(pose: str) -> float:
    """Return the largest of roll, pitch, yaw; 0 for what is no pose, as plugins may have."""
    try:
        return max(abs(float(word)) for word in pose.split()[3:])
    except ValueError:
        return 0.0


def _place(element: XmlElement) -> str:
    return f"{element.source}:{element.line}: {element.label}"
