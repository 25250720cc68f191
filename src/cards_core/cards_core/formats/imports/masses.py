"""Masses and inertias of an imported robot that are about the wrong point, or of no rigid body.

CAD programs state tensors about the origin of the drawing, and exporters copy them where the
format wants them about the centre of mass (Autodesk Fusion's, CARDSflow's): a hand then turns as
heavily as if it were as far away as the origin. `tensors_about_origin` tells from the numbers.
A density that was never set gives torsos of 400 kg: `doubtful_masses` compares with the shapes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.imports.inertias import mass_matrix_change, repair_inertias
from cards_core.formats.imports.model import Section, table
from cards_core.formats.sdf.checks import home_poses
from cards_core.formats.sdf.writer import prepare_for_sdf
from cards_core.paths.wrapping.mesh import mesh_vertices
from cards_core.robot.elements import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    Inertia,
    Link,
    Mesh,
    Sphere,
)
from cards_core.robot.inertia import InertiaRepair
from cards_core.robot.model import Robot
from cards_core.typing import Array, Vector3

# About which point -----------------------------------------------------------------------------


_ROUNDED = 1e-2  # part of a tensor that rounded positions may leave or take
_FAR = 2.0  # radii of gyration; a body this far from the origin tells which point is meant


def about_com(inertia: Inertia, com: Vector3) -> Inertia:
    """Return an inertia whose tensor was about the origin: ``I - m (|c|^2 1 - c c')``.

    Args:
        inertia: With the tensor about the origin.
        com: Centre of mass c seen from the origin, in the axes of the tensor, shape (3,), [m].
    """
    shift = inertia.mass * (float(com @ com) * np.eye(3) - np.outer(com, com))
    return dataclasses.replace(inertia, tensor=inertia.tensor - shift)


def tensors_about_origin(inertias: Mapping[str, Inertia], coms: Mapping[str, Vector3]) -> bool:
    """Tell whether the tensors of a file are about the origin of the model.

    They are if all are those of rigid bodies when `about_com` has moved them, up to a hundredth of
    what was moved (positions may be rounded), and at least half of the bodies are farther from
    the origin than twice their radius of gyration. A tensor that was about the centre of mass
    leaves negative moments there.

    Args:
        inertias: Of every link, as the file has them.
        coms: Centres of mass seen from the origin, in the axes of the tensors, [m].
    """
    far = 0
    for name, inertia in inertias.items():
        moved = about_com(inertia, coms[name])
        low, middle, high = np.linalg.eigvalsh(moved.tensor).tolist()
        margin = _ROUNDED * float(np.linalg.eigvalsh(inertia.tensor)[2])
        if low < -margin or low + middle < high - margin:
            return False
        radius = np.sqrt(max(high, 0.0) / moved.mass)
        far += float(np.linalg.norm(coms[name])) > _FAR * radius
    return far > 0 and 2 * far >= len(inertias)


InertiaPoint: TypeAlias = Literal["auto", "com", "origin"]
"""What the inertia tensors of a file are about."""


def restate_about_com(
    robot: Robot, inertias: Collection[str], about: InertiaPoint, findings: FindingList
) -> Robot:
    """Return the robot with tensors about the centres of mass.

    Args:
        robot: With the tensors of the file.
        inertias: Links whose tensor the file states.
        about: What they are about: centres of mass, the origin of the model at the home position,
            or what the numbers say (`tensors_about_origin`).
        findings: Takes a warning where ``auto`` finds the origin.
    """
    links = [
        dataclasses.replace(link, inertia=Inertia()) if link.inertia.mass == 0.0 else link
        for link in robot.links
    ]
    robot = dataclasses.replace(robot, links=tuple(links))
    stated = {
        link.name: link.inertia for link in links if link.name in inertias and link.inertia.mass
    }
    if about == "com" or not stated:
        return robot
    poses = home_poses(robot)
    # in the axes of the link, as the tensor is
    coms = {
        name: inertia.com + poses[name].rotation.T @ poses[name].translation
        for name, inertia in stated.items()
    }
    if about == "auto":
        if not tensors_about_origin(stated, coms):
            return robot
        findings.warn(
            "inertia-about-origin",
            "inertias",
            "the tensors of this file are about the origin of the model: moved to the centres of "
            "mass (see --inertia-about)",
            at=FilePlace(robot.source),
        )
    links = [
        dataclasses.replace(link, inertia=about_com(link.inertia, coms[link.name]))
        if link.name in stated
        else link
        for link in links
    ]
    return dataclasses.replace(robot, links=tuple(links))


# Repair ----------------------------------------------------------------------------------------


def repair_and_report(robot: Robot, findings: FindingList) -> tuple[Robot, Section]:
    """Return the robot with inertias of rigid bodies, and what the report says of its masses.

    Args:
        robot: With the inertias of the file; links without mass and inertia stay.
        findings: Takes a warning for every link that was changed.

    Raises:
        DescriptionError: A mass is negative, or there is inertia without mass.
    """
    repaired, repairs = repair_inertias(robot)
    lines = {link.name: link.line for link in robot.links}
    for item in repairs:
        findings.warn(
            "inertia-repaired",
            f"link '{item.link}'",
            f"{item.problem}; repaired, {_moments(item)}",
            at=FilePlace(robot.source, lines[item.link]),
        )
    massless = [link.name for link in repaired.links if link.inertia.is_massless]
    moving = {joint.child for joint in repaired.joints if joint.kind != "fixed"}
    for name in massless:
        if name in moving:
            findings.warn(
                "link-without-mass",
                f"link '{name}'",
                "it moves and has no mass: it gets a millionth of what it carries",
                at=FilePlace(robot.source, lines[name]),
            )
    return repaired, _section(robot, repaired, repairs)


def _moments(item: InertiaRepair) -> str:
    after = ", ".join(f"{m:.6g}" for m in np.linalg.eigvalsh(item.after))
    return f"principal moments now {after} kg m^2"


def _section(robot: Robot, repaired: Robot, repairs: tuple[InertiaRepair, ...]) -> Section:
    changed = {item.link: item for item in repairs}
    rows, data = [], []
    for link in repaired.links:
        moments = np.linalg.eigvalsh(link.inertia.tensor).tolist()
        item = changed.get(link.name)
        rows.append(
            [
                f"`{link.name}`",
                f"{link.inertia.mass:.6g}",
                " ".join(f"{x:.4g}" for x in link.inertia.com),
                " ".join(f"{x:.4g}" for x in moments),
                "" if item is None else item.problem,
            ]
        )
        data.append(
            {
                "link": link.name,
                "mass": link.inertia.mass,
                "com": link.inertia.com.tolist(),
                "principal_moments": moments,
                "problem": None if item is None else item.problem,
            }
        )
    total = sum(link.inertia.mass for link in repaired.links)
    text = f"{total:.6g} kg in all, tensors about the centres of mass.\n\n"
    head = ["link", "mass, kg", "centre of mass, m", "principal moments, kg m^2", "repaired"]
    change = _change(robot, repaired) if repairs else 0.0
    if repairs:
        text += (
            "Largest relative change of the mass matrix by the repairs that was found: "
            f"{'infinite' if change is None else f'{change:.2g}'}.\n\n"
        )
    return Section(
        "masses",
        "Masses",
        {"links": data, "mass_matrix_change": change},
        text + table(head, rows),
    )


def _change(robot: Robot, repaired: Robot) -> float | None:
    """Return `mass_matrix_change`; None where the file's numbers make M useless."""
    try:
        value = mass_matrix_change(
            robot,
            prepare_for_sdf(repaired) if _same(robot, repaired) else repaired,
            samples=10,
            steps=20,
        )
    except (DescriptionError, ArithmeticError, np.linalg.LinAlgError):
        return None
    return value if np.isfinite(value) else None


def _same(robot: Robot, repaired: Robot) -> bool:
    """Tell whether SDF has the same coordinates."""
    return all(joint.kind not in ("planar", "free") for joint in robot.joints)


# Against the shapes ----------------------------------------------------------------------------


DENSE = 4000.0
"""Mass per volume of the box around a link from which it is doubted, [kg/m^3]. A solid block of
steel has 7850, one of aluminium 2700; links are hollow and do not fill their box."""

LARGEST_MESH = 32_000_000
"""Mesh files beyond this size are not looked at, [bytes]."""

_BEYOND = 1.05  # a radius of gyration longer than the shape is doubted from this ratio on


def doubtful_masses(robot: Robot, findings: FindingList) -> None:
    """Warn of masses and inertias that the shapes of their links cannot have.

    No radius of gyration exceeds the distance of the farthest point from the centre of mass, no
    centre of mass is outside of the box around the body.

    Args:
        robot: Mesh files have absolute paths; those that cannot be read are passed over.
        findings: Takes the warnings.
    """
    cache: dict[str, Array | None] = {}
    for link in robot.links:
        box = _box(link, cache)
        if box is None or link.inertia.mass <= 0.0:
            continue
        low, high = box
        subject = f"link '{link.name}'"
        warn = partial(findings.warn, at=FilePlace(robot.source, link.line))
        mass, com = link.inertia.mass, link.inertia.com
        volume = float(np.prod(high - low))
        if volume > 0.0 and mass / volume > DENSE:
            warn(
                "mass-doubtful",
                subject,
                f"{mass:.4g} kg in a box of {1e3 * volume:.3g} litres around its shapes: "
                f"{mass / volume:.0f} kg/m^3 (was a density set in the CAD program?)",
            )
        corner = np.maximum(np.abs(low - com), np.abs(high - com))
        reach = float(np.linalg.norm(corner))
        largest = float(np.linalg.eigvalsh(link.inertia.tensor)[2])
        radius = float(np.sqrt(max(largest, 0.0) / mass))
        if radius > _BEYOND * reach:
            warn(
                "inertia-doubtful",
                subject,
                f"radius of gyration {radius:.3g} m, but no point of its shapes is farther than "
                f"{reach:.3g} m from its centre of mass (a tensor about another point?)",
            )
        margin = 0.1 * float(np.linalg.norm(high - low))
        if np.any(com < low - margin) or np.any(com > high + margin):
            warn(
                "com-doubtful",
                subject,
                f"its centre of mass {' '.join(f'{x:.3g}' for x in com)} is outside of its shapes",
            )


def _box(link: Link, cache: dict[str, Array | None]) -> tuple[Vector3, Vector3] | None:
    """Return the corners of the box around the shapes of a link; None if a shape is unknown."""
    points = []
    for item in link.visuals or link.collisions:
        found = _corners(item.geometry, cache)
        if found is None:
            return None
        points.append(found @ item.pose.rotation.T + item.pose.translation)
    if not points:
        return None
    stacked = np.vstack(points)
    return stacked.min(axis=0), stacked.max(axis=0)


def _corners(geometry: Geometry, cache: dict[str, Array | None]) -> Array | None:
    match geometry:
        case Box(size):
            half = 0.5 * size
        case Sphere(radius):
            half = np.full(3, radius)
        case Cylinder(radius, length):
            half = np.array([radius, radius, 0.5 * length])
        case Capsule(radius, length):
            half = np.array([radius, radius, 0.5 * length + radius])
        case Ellipsoid(radii):
            half = np.asarray(radii, dtype=float)
        case Mesh(uri, scale):
            if uri not in cache:
                cache[uri] = _mesh_box(uri)
            found = cache[uri]
            return None if found is None else found * scale
        case _:
            return None
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return np.asarray(signs * half, dtype=float)


def _mesh_box(uri: str) -> Array | None:
    """Return the corners of the box around a mesh, in the file's unit, shape (8, 3)."""
    path = Path(uri)
    try:
        if path.stat().st_size > LARGEST_MESH:
            return None
        data = path.read_bytes()
        vertices = mesh_vertices(data, uri)
    except (OSError, ValueError):
        return None
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return np.array(np.meshgrid(*np.stack([low, high], axis=1))).reshape(3, -1).T
