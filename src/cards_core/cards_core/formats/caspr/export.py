"""Write a `Robot` as the XML files of CASPR, which `import_caspr` reads back to the same numbers.

=================================== ===========================================================
CARDS                               CASPR
=================================== ===========================================================
links, joints, inertias             ``link_rigid``, see `cards_core.formats.caspr.export_bodies`
ideal cable, any source of tension  ``cable_ideal``
elastic cable k                     ``cable_linear_spring`` with K = k l at home, for its
                                    stiffness is K/l
ligament k, l0, toe strain e        ``cable_passive_linear_spring`` with rest length
                                    l0' = l0 (1 + e/2) and K = k/l0: the same linear region
pulley on the ground                ``base_rotating_pulley``
frame                               operational set of its name, position x y z
=================================== ===========================================================

A robot that CASPR cannot have (quaternion joints, wrap surfaces, cables that touch what is in
their way, pulleys that move, another gravity) is refused; what only loses a property, or differs
little from CASPR's constant of gravity, is noted.
CASPR's ``id`` are declared in the files themselves, so they need no DTD beside them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import CardsError, DescriptionError
from cards_core.files import check_new, write_atomically, writing_together
from cards_core.formats.caspr.cables import PASSIVE
from cards_core.formats.caspr.export_bodies import (
    ExportedBody,
    ExportedSystem,
    export_bodies,
)
from cards_core.formats.caspr.files import PARTS
from cards_core.formats.caspr.importer import GRAVITY, import_caspr
from cards_core.formats.caspr.muscles import SPRING, TOE_STRAIN
from cards_core.formats.imports.findings import safe_name
from cards_core.formats.sdf.checks import home_poses
from cards_core.formats.sdf.elements import numbers
from cards_core.formats.sdf.muscle_path import SAME_PLACE
from cards_core.parameters.declaration import groups_of, parameters_of
from cards_core.robot.actuators import Cable, Ligament
from cards_core.robot.elements import Inertia, Muscle, Pulley, ViaPoint
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_core.typing import Vector3

NEAR = 5e-3
"""Part by which gravity may differ from CASPR's constant: on the Earth it does by 0.3 %."""

CABLE_SET = "cables"
"""Id of the only set of cables."""


@dataclass(frozen=True)
class CasprExport:
    """The files of a robot.

    Attributes:
        name: Of the robot, safe as a file name; the stem of the files.
        files: XML text by the names in `PARTS`.
        row: Its row of a list of models, for a folder of its name beside the list.
        notes: What CASPR cannot say and got lost, one sentence each.
    """

    name: str
    files: Mapping[str, str]
    row: str
    notes: tuple[str, ...]


def to_caspr(robot: Robot) -> CasprExport:
    """Return a robot as CASPR files.

    Trajectories are none of a `Robot`: their file is there, because CASPR wants one, and empty.

    Raises:
        DescriptionError: CASPR cannot have this robot; the message names the element.
    """
    name = safe_name(robot.name, "robot")
    difference = float(np.linalg.norm(robot.gravity - (0.0, 0.0, -GRAVITY)))
    if not difference <= NEAR * GRAVITY:
        raise DescriptionError(
            f"gravity {numbers(*robot.gravity)} m/s^2; no file of CASPR states it",
            source=robot.source,
            expected=f"0 0 {-GRAVITY:g}, to {100 * NEAR:g} %",
        )
    system = export_bodies(robot)
    notes = list(system.notes)
    if difference > 1e-12 * GRAVITY:
        notes.append(
            f"gravity {numbers(*robot.gravity)} m/s^2 becomes 0 0 {-GRAVITY:g}, CASPR's constant"
        )
    files = {
        "bodies": _bodies(robot, system),
        "cables": _cables(robot, system, notes),
        "trajectories": _trajectories(),
        "operational_spaces": _operational_spaces(robot, system, notes),
    }
    shapes = sum(len(link.visuals) + len(link.collisions) for link in robot.links)
    if shapes:
        notes.append(f"{shapes} shapes of links left out: CASPR draws lines")
    row = ",".join((name, name, *(f"{name}_{part}.xml" for part in PARTS)))
    return CasprExport(name, files, row + "\n", tuple(notes))


def write_caspr(export: CasprExport, out_dir: str | Path, *, force: bool = False) -> Path:
    """Write ``<out_dir>/<name>/`` with the four files, and ``<out_dir>/<name>_list.csv``.

    The files are read back before they are put in place.

    Args:
        export: From `to_caspr`.
        out_dir: Made if need be.
        force: Replace files of the same names.

    Returns:
        The folder of the robot.

    Raises:
        DescriptionError: The importer cannot read what was written.
        CardsError: A file exists, or cannot be written.
    """
    parent = Path(out_dir)
    folder = parent / export.name
    rows = parent / f"{export.name}_list.csv"
    names = {part: f"{export.name}_{part}.xml" for part in PARTS}
    for file in (*(folder / name for name in names.values()), rows):
        check_new(file, force=force)
    try:
        with writing_together(folder) as work:
            for part, text in export.files.items():
                (work / names[part]).write_text(text, encoding="utf-8")
            import_caspr(work, feasibility=False)
        write_atomically(rows, export.row)
    except OSError as error:
        raise CardsError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return folder


# XML -------------------------------------------------------------------------------------------


def _text(root: ET.Element, ids: str = "") -> str:
    """Return a file; ``ids`` are the elements whose ``id`` MATLAB is to find."""
    declared = " ".join(f"<!ATTLIST {tag} id ID #REQUIRED>" for tag in ids.split())
    doctype = f"<!DOCTYPE {root.tag} [{declared}]>\n" if declared else ""
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{doctype}{body}\n'


def _sub(parent: ET.Element, tag: str, *values: float) -> None:
    ET.SubElement(parent, tag).text = numbers(*values)


def _trajectories() -> str:
    root = ET.Element("trajectories")
    ET.SubElement(root, "joint_trajectories")
    ET.SubElement(root, "operational_trajectories")
    return _text(root)


# Bodies ----------------------------------------------------------------------------------------


def _bodies(robot: Robot, system: ExportedSystem) -> str:
    root = ET.Element("bodies_system")
    links = ET.SubElement(
        root, "links", display_range=numbers(*_display_range(robot)), view_angle="-37 32"
    )
    for body in system.bodies:
        element = ET.SubElement(links, "link_rigid", num=str(body.number), name=body.name)
        motions = body.ordered
        joint = ET.SubElement(
            element,
            "joint",
            type=body.kind.name,
            q_initial=numbers(*(motion.home for motion in motions)),
            q_min=numbers(*(motion.axis.lower for motion in motions)),
            q_max=numbers(*(motion.axis.upper for motion in motions)),
        )
        if any(motion.axis is None for motion in body.kind.motions):
            joint.set("axis", numbers(*motions[0].direction))
        if body.motor:
            joint.set("actuated", "true")
        inertia = body.inertia or Inertia()
        physical = ET.SubElement(element, "physical")
        _sub(physical, "mass", inertia.mass)
        _sub(physical, "com_location", *inertia.com)
        _sub(physical, "end_location", *_end(body, system))
        tensor = ET.SubElement(physical, "inertia", ref="com")
        for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            _sub(tensor, f"I{'xyz'[i]}{'xyz'[j]}", inertia.tensor[i, j])
        parent = ET.SubElement(element, "parent")
        _sub(parent, "num", 0 if body.parent is None else body.parent.number)
        _sub(parent, "location", *body.location)
    return _text(root)


def _end(body: ExportedBody, system: ExportedSystem) -> Vector3:
    """Return the point up to which the link is drawn: its first child, else its centre of mass."""
    for child in system.bodies:
        if child.parent is body and np.any(child.location):
            return child.location
    return np.zeros(3) if body.inertia is None else body.inertia.com


def _display_range(robot: Robot) -> list[float]:
    """Return x, y, z ranges around links and via points at home, [m]."""
    poses = home_poses(robot)
    points = [pose.translation for pose in poses.values()]
    points += [poses[p.link].apply(p.position) for m in robot.muscles for p in m.via_points]
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    margin = max(0.2 * float(np.max(high - low)), 0.1)
    # drawing only: two digits read better than sixteen
    ranges = np.stack((low - margin, high + margin), axis=1).ravel()
    return [round(float(value), 2) for value in ranges]


# Cables ----------------------------------------------------------------------------------------


def _cables(robot: Robot, system: ExportedSystem, notes: list[str]) -> str:
    for muscle in robot.muscles:
        _check_path(robot, muscle, system)
    dynamics = make_dynamics(robot, "numeric")
    lengths = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv)).muscle_lengths
    lost: dict[str, list[str]] = {}
    root = ET.Element("cables", default_cable_set=CABLE_SET)
    cables = ET.SubElement(root, "cable_set", id=CABLE_SET)
    for muscle, length in zip(robot.muscles, lengths, strict=True):
        tag, values, remarks = _properties(muscle, float(length))
        for remark in remarks:
            lost.setdefault(remark, []).append(f"'{muscle.name}'")
        element = ET.SubElement(cables, tag, name=muscle.name, attachment_reference="joint")
        properties = ET.SubElement(element, "properties")
        for key, value in values.items():
            _sub(properties, key, value)
        attachments = ET.SubElement(element, "attachments")
        for item in muscle.path:
            assert isinstance(item, ViaPoint | Pulley)
            body, pose = system.places[item.link]
            if isinstance(item, Pulley):
                pulley = ET.SubElement(attachments, "base_rotating_pulley")
                _sub(pulley, "fixed_location", *pose.apply(item.position))
                _sub(pulley, "pulley_radius", item.radius)
                _sub(pulley, "cable_entry_vector", *(pose.rotation @ item.axis))
            else:
                attachment = ET.SubElement(attachments, "attachment")
                _sub(attachment, "link", 0 if body is None else body.number)
                _sub(attachment, "location", *pose.apply(item.position))
    for remark, muscles in lost.items():
        notes.append(f"muscle{'s' * (len(muscles) > 1)} {', '.join(muscles)}: {remark}")
    return _text(root, "cable_set")


def _check_path(robot: Robot, muscle: Muscle, system: ExportedSystem) -> None:
    """Raise `DescriptionError` for a path that CASPR cannot have."""

    def refuse(problem: str, expected: str, line: int | None = None) -> DescriptionError:
        return DescriptionError(
            problem,
            source=robot.source,
            line=line or muscle.line,
            element=f"muscle '{muscle.name}'",
            expected=expected,
        )

    points: list[tuple[ExportedBody | None, Vector3]] = []
    for item in muscle.path:
        if not isinstance(item, ViaPoint | Pulley):
            raise refuse(
                f"wraps over '{item.surface}'; CASPR's cables are straight between their points",
                "via points",
                item.line,
            )
        body, pose = system.places[item.link]
        if isinstance(item, Pulley) and body is not None:
            raise refuse(
                f"has a pulley on link '{item.link}', which moves",
                "pulleys on the ground",
                item.line,
            )
        points.append((body, pose.apply(item.position)))
    if muscle.contact:
        raise refuse(
            "touches what is in its way (contact); CASPR's cables pass through links",
            "a muscle without contact",
        )
    (first, a), *others = points
    if all(body is first and np.linalg.norm(b - a) < SAME_PLACE for body, b in others):
        raise refuse("all its points are one point of CASPR's link", "two different points")


def _properties(muscle: Muscle, length: float) -> tuple[str, dict[str, float], list[str]]:
    """Return tag and properties of a cable, and what gets lost.

    Args:
        muscle: The muscle.
        length: At home, [m].
    """
    actuator, remarks = muscle.actuator, []
    if muscle.control.stiffness or muscle.control.damping:
        remarks.append("impedance law left out")
    if muscle.friction or any(getattr(item, "friction", 0.0) for item in muscle.path):
        remarks.append("friction along the path left out")
    if isinstance(actuator, Ligament):
        toe = actuator.toe_strain
        rest = actuator.slack_length
        if toe != TOE_STRAIN:
            rest *= 1.0 + 0.5 * toe
            most = actuator.stiffness * toe / 8.0
            remarks.append(f"toe region of the ligament left out (at most {most:.3g} N)")
        if actuator.damping:
            remarks.append(f"damping {actuator.damping:g} N s of the ligament left out")
        remarks.append("CASPR's passive spring also pushes, when it is shorter than l0")
        values = {"K": actuator.stiffness / actuator.slack_length, "l0": rest}
        return PASSIVE, values, remarks
    limits = {"force_min": muscle.tension_min, "force_max": muscle.tension_max}
    if not isinstance(actuator, Cable):
        remarks.append(f"{actuator.kind} becomes an ideal cable with the muscle's tension limits")
        return "cable_ideal", limits, remarks
    lost = [
        spec.name
        for spec in parameters_of(Cable)
        if spec.name != "stiffness" and getattr(actuator, spec.name) != spec.default
    ]
    lost += [group.name for group in groups_of(Cable) if getattr(actuator, group.name) is not None]
    if lost:
        remarks.append(f"{', '.join(lost)} of the cable left out")
    if actuator.stiffness is None:
        return "cable_ideal", limits, remarks
    remarks.append("the stiffness is that of CASPR's cable, K/l, at home only")
    return SPRING, {"K": actuator.stiffness * length, **limits}, remarks


# Operational spaces ----------------------------------------------------------------------------


def _operational_spaces(robot: Robot, system: ExportedSystem, notes: list[str]) -> str:
    frames = {frame.name: frame for frame in robot.frames}
    default = robot.operational_frame
    if default is not None and default not in frames:
        # the origin of a link; an element of the link's own name would be renamed by an import
        frames[f"{default}_origin"] = replace(robot.frame(default), name=f"{default}_origin")
        default = f"{default}_origin"
    root = ET.Element("operational_spaces", default_operational_set="")
    for name, frame in frames.items():
        body, pose = system.places[frame.link]
        placed = pose @ frame.pose
        if body is None:
            notes.append(f"frame '{name}' left out: it is fixed to the world")
            continue
        if not np.allclose(placed.rotation, Pose().rotation, rtol=0.0, atol=1e-12):
            notes.append(f"frame '{name}': its axes are left out, CASPR's marker has its link's")
        if name == default:
            root.set("default_operational_set", name)
        space = ET.SubElement(root, "operational_set", id=name)
        marker = ET.SubElement(space, "position", marker_id="1", name=name)
        _sub(marker, "link", body.number)
        _sub(marker, "offset", *placed.translation)
        ET.SubElement(marker, "axes", active_axes="xyz")
    return _text(root, "operational_set")
