"""What is formally right in the description of a rod robot, but looks like a slip.

Wrong units mostly: millimetres for metres, degrees for radians. Nothing here is refused; the
sentences go to `RodRobot.notes`, which ``./cards models`` and the nodes show.
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.formats.xml_lines import XmlElement
from cards_core.rods.robots.robot import BaseKind, RodRobot, rod_starts
from cards_core.typing import Array

TURN = 2.0 * math.pi + 1e-3
"""More than a whole turn, [rad]: an angle beyond it is probably in degrees."""

SLACK = 4.0
"""A rod that is longer than this many times its way at home is doubted."""

BACKWARDS = -0.7
"""Cosine of the angle between rod and way from which on a rod leaves backwards (135 deg)."""

SAMPLES = 33
"""Positions of the base joints between their limits, to see how near a start comes to a tip."""


def robot_doubts(robot: RodRobot, tips: list[Array]) -> list[str]:
    """Return doubts about lengths, directions and limits.

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
            doubt = (
                f"{longest:g} m long, but the way with the plate at home is {near:.4g} m: too "
                "short, or not in metres?"
            )
            found.setdefault(doubt, []).append(limb.name)
        elif shortest > SLACK * far > 0.0:
            doubt = (
                f"{shortest:g} m long, but the way with the plate at home is {far:.4g} m at most: "
                "millimetres?"
            )
            found.setdefault(doubt, []).append(limb.name)
        way = ways[-1, i]
        if float(home[i][:3, 2] @ way) < BACKWARDS * float(np.linalg.norm(way)):
            doubt = (
                "leaves away from its tip; z of the start frame is the direction in which a rod "
                "leaves"
            )
            found.setdefault(doubt, []).append(limb.name)
        if limb.base.kind is BaseKind.REVOLUTE:
            bounds = [b for b in (limb.base.lower, limb.base.upper) if TURN < abs(b) < 1e4]
            if bounds:
                doubt = f"limit of the base joint {bounds[0]:g} rad, more than a turn: degrees?"
                found.setdefault(doubt, []).append(limb.name)
    return [f"rods {', '.join(names)}: {doubt}" for doubt, names in found.items()]


def document_doubts(root: XmlElement, moving: set[str]) -> list[str]:
    """Return doubts about the elements of an SDF.

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
    """Return the greatest of roll, pitch, yaw; 0 for what is no pose, as plugins may have."""
    try:
        return max(abs(float(word)) for word in pose.split()[3:])
    except ValueError:
        return 0.0


def _place(element: XmlElement) -> str:
    return f"{element.source}:{element.line}: {element.label}"
