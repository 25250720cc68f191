"""Checks of an imported robot: what no parser sees.

Inertias that belong to no rigid body, coordinates that nothing drives, cables without effect,
frames and cables that coincide, links that nothing refers to. The repair of inertias is
`cards_core.formats.imports.inertias`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.caspr.bodies import Body, coordinate_names
from cards_core.formats.caspr.cables import CableFile, CableSet
from cards_core.formats.caspr.operational_spaces import OperationalFile
from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.imports.inertias import (
    home_within_limits,
    mass_matrix_change,
    repair_inertias,
)
from cards_core.formats.imports.units import CODE, doubtful_units
from cards_core.formats.sdf.checks import unit_warning
from cards_core.formats.sdf.writer import prepare_for_sdf
from cards_core.robot.elements import Pulley, ViaPoint
from cards_core.robot.inertia import InertiaRepair
from cards_core.robot.model import Robot
from cards_core.typing import Array

# Checks ----------------------------------------------------------------------------------------


SINGULAR = 1e-12
"""M counts as singular if its smallest eigenvalue, scaled to unit diagonal, is below this."""

POSES = 5
"""Number of poses, the home position and random ones, at which M and L are looked at."""


@dataclass(frozen=True, eq=False)
class InertiaCheck:
    """Validity of the inertias and what the repair does.

    Attributes:
        repairs: One entry per link whose tensor no rigid body has.
        mass_matrix_change: The largest ``|M'_ij - M_ij| / sqrt(M_ii M_jj)`` that was found, of
            the robot for SDF against CASPR's numbers (`mass_matrix_change`); infinite if the
            file's numbers make M singular, NaN if they cannot be repaired.
        singular: True if M is singular at the home position with the numbers of the file.
        problem: Why the inertias cannot be repaired; empty if they can.
    """

    repairs: tuple[InertiaRepair, ...]
    mass_matrix_change: float
    singular: bool
    problem: str = ""


def check_inertia(
    robot: Robot, dynamics: Dynamics, bodies: Sequence[Body], findings: FindingList
) -> tuple[Robot | None, InertiaCheck]:
    """Check the inertias; return the robot for SDF (None if impossible) and the result.

    The robot for SDF has valid inertias, small ones where CASPR has none (`prepare_for_sdf`), and
    a home position within the limits.

    Args:
        robot: The robot with CASPR's inertias.
        dynamics: Its dynamics.
        bodies: The bodies of the file.
        findings: Takes remarks.
    """
    names = {body.link: body for body in bodies}
    singular = _singular(dynamics)
    try:
        repaired, repairs = repair_inertias(robot)
        ready = prepare_for_sdf(home_within_limits(repaired))
    except DescriptionError as error:
        findings.warn("inertia-not-repairable", "inertias", f"no SDF can be written: {error}")
        return None, InertiaCheck((), math.nan, singular, str(error))
    change = math.inf
    if not singular:
        change = mass_matrix_change(robot, ready)
    for item in repairs:
        body = names[item.link]
        findings.warn(
            "inertia-repaired",
            f"link '{body.original_name}'",
            f"{item.problem}; kept in the robot for M, C, G as in CASPR, repaired in the SDF",
            at=FilePlace(robot.source, body.line),
        )
    if singular:
        findings.warn(
            "mass-matrix-singular",
            "mass matrix",
            "M is singular at the home position: some motion has no inertia, forward dynamics "
            "needs the repaired inertias of the SDF",
            at=FilePlace(robot.source),
        )
    return ready, InertiaCheck(repairs, change, singular)


def _singular(dynamics: Dynamics) -> bool:
    tree = dynamics.tree
    state = dynamics.update(tree.home, np.zeros(tree.nv))
    diagonal = np.diag(state.mass_matrix)
    if np.any(diagonal <= 0.0):
        return True
    scale = 1.0 / np.sqrt(diagonal)
    scaled = state.mass_matrix * np.outer(scale, scale)
    return bool(np.linalg.eigvalsh(scaled)[0] < SINGULAR)


def check_actuation(
    dynamics: Dynamics, bodies: Sequence[Body], cables: CableFile, findings: FindingList
) -> None:
    """Warn of coordinates that neither a cable nor a motor moves, and of cables without effect.

    Args:
        dynamics: Dynamics of the robot.
        bodies: The bodies of the file.
        cables: The cables of the file.
        findings: Takes remarks.
    """
    robot, tree = dynamics.robot, dynamics.tree
    jacobian = _jacobian_scale(dynamics)
    motors = {joint.name for joint in robot.joints if joint.motor}
    driven = np.array([bool(muscle.actuator.commands) for muscle in robot.muscles], dtype=bool)
    place = {name: i for i, name in enumerate(tree.velocity_names)}
    largest = max(float(jacobian.max(initial=0.0)), 1e-12)
    for body in bodies:
        if body.actuated:
            findings.note(
                "joint-motor",
                f"link '{body.original_name}'",
                f"the joint has a motor of its own ({', '.join(body.joints)}); CASPR files give "
                "no limit for its torque",
                at=FilePlace(robot.source, body.line),
            )
        idle = ""
        for letter, (joint, slot) in zip(body.joint_type.coordinates, body.slots, strict=True):
            column = place[coordinate_names(robot.joint(joint))[slot]]
            moved = jacobian[driven, column].max(initial=0.0) > 1e-9 * largest
            if not moved and joint not in motors:
                idle += letter
        if idle:
            findings.warn(
                "coordinate-not-driven",
                f"link '{body.original_name}'",
                f"no cable and no motor moves {' '.join(idle)}",
                at=FilePlace(robot.source, body.line),
            )
    for muscle, row in zip(robot.muscles, jacobian, strict=True):
        if row.max(initial=0.0) <= 1e-9 * largest:
            findings.warn(
                "cable-without-effect",
                f"cable '{muscle.name}'",
                "its length does not depend on any coordinate",
                at=FilePlace(cables.source, muscle.line),
            )


def check_units(robot: Robot, cables: CableFile, findings: FindingList) -> None:
    """Warn of points of cables, joints and masses that look as if they were in other units.

    Args:
        robot: The robot.
        cables: The cables of the file, for the place.
        findings: Takes remarks.
    """
    doubtful_units(robot, findings, points=False)
    warning = unit_warning(robot)
    if warning is not None:
        findings.warn(
            CODE,
            f"cable '{warning.muscle}'",
            warning.text,
            at=FilePlace(cables.source, warning.line),
        )


def _jacobian_scale(dynamics: Dynamics) -> Array:
    """Return the largest |L| at the home position and some random poses, shape (m, n)."""
    tree = dynamics.tree
    rng = np.random.default_rng(0)
    poses = [tree.home, *(tree.random(rng) for _ in range(POSES - 1))]
    out = np.zeros((len(dynamics.robot.muscles), tree.nv))
    for q in poses:
        np.maximum(out, np.abs(dynamics.update(q, np.zeros(tree.nv)).muscle_jacobian), out=out)
    return out


def check_references(
    robot: Robot,
    bodies: Sequence[Body],
    chosen: CableSet,
    *,
    cables: CableFile,
    operational: OperationalFile,
    findings: FindingList,
) -> None:
    """Note frames and cables that coincide, links nothing refers to, and other cable sets.

    Args:
        robot: The robot.
        bodies: The bodies of the file.
        chosen: The cable set of the robot.
        cables: All cable sets of the file.
        operational: The operational spaces of the file.
        findings: Takes remarks.
    """
    for i, frame in enumerate(robot.frames):
        for other in robot.frames[:i]:
            if frame.link == other.link and np.array_equal(
                frame.pose.translation, other.pose.translation
            ):
                findings.note(
                    "duplicate-frame",
                    f"frame '{frame.name}'",
                    f"the same point of link '{frame.link}' as frame '{other.name}'",
                    at=FilePlace(operational.source, frame.line),
                )
                break
    seen: dict[tuple[tuple[str | float, ...], ...], str] = {}
    for cable in chosen.cables:
        path = tuple(_place(item) for item in cable.path)
        if path in seen:
            findings.warn(
                "duplicate-cable",
                f"cable '{cable.original_name}'",
                f"the same path as cable '{seen[path]}'",
                at=FilePlace(cables.source, cable.line),
            )
        seen.setdefault(path, cable.original_name)
    used = {via.link for cable in chosen.cables for via in cable.path}
    used |= {frame.link for frame in robot.frames}
    parents = {body.parent for body in bodies}
    for body in bodies:
        if body.link not in used and body.number not in parents and not body.actuated:
            findings.note(
                "link-unreferenced",
                f"link '{body.original_name}'",
                "no cable of the chosen set, no operational space and no other link refers to it",
                at=FilePlace(robot.source, body.line),
            )
    others = [item.name for item in cables.sets if item is not chosen]
    if others:
        findings.note(
            "other-cable-sets",
            "<cables>",
            f"not attached: {', '.join(others)} (choose with --cable-set or cable_set=)",
            at=cables,
        )


def _place(item: ViaPoint | Pulley) -> tuple[str | float, ...]:
    wheel = (*item.axis.tolist(), item.radius) if isinstance(item, Pulley) else ()
    return (item.link, *item.position.tolist(), *wheel)
