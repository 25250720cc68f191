"""Make a robot of an OpenSim model."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cards_core.checks import readable
from cards_core.dynamics.interface import make_dynamics
from cards_core.formats.imports.findings import FilePlace, FindingList, NameTable, renamed_robot
from cards_core.formats.imports.model import FIT_TARGETS, ImportedModel, Section, table
from cards_core.formats.imports.units import doubtful_units
from cards_core.formats.opensim.fields import control_range, word
from cards_core.formats.opensim.fit_targets import fit_targets
from cards_core.formats.opensim.joints import ConvertedJoints, CoordinateMap, convert_joints
from cards_core.formats.opensim.kinematics import (
    effective,
    free_coordinates,
    inertia_along,
    length,
    polyline,
    values,
)
from cards_core.formats.opensim.muscles import PathReport, convert_muscle, wrap_surface
from cards_core.formats.opensim.reading import read_osim
from cards_core.formats.opensim.source import (
    GROUND,
    ConditionalPoint,
    Coordinate,
    MovingPoint,
    SourceModel,
    SourceMuscle,
)
from cards_core.formats.opensim.wraps import all_poses, coordinate_range
from cards_core.formats.xml_lines import shorten
from cards_core.robot.actuators import Hill, Ligament
from cards_core.robot.elements import (
    WORLD,
    Capsule,
    Joint,
    Link,
    Muscle,
    Sphere,
    ViaPoint,
    Visual,
    WrapSurface,
)
from cards_core.robot.forward_kinematics import node_poses
from cards_core.robot.inertia import repair_robot
from cards_core.robot.model import Robot
from cards_core.spatial import (
    Pose,
    axis_rotation,
    matrix_quaternion,
    rotation_z_to,
)
from cards_core.typing import Array

UPRIGHT = Pose(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]), np.zeros(3))
"""Ground to world: OpenSim's y axis is up, ours is z."""

INERTIAS = 9
"""Values of a coordinate at which its inertia is compared with the file's."""


@dataclass(frozen=True, eq=False)
class OpenSimImport:
    """What an import gives.

    Attributes:
        model: Robot, findings, report.
        source: The file as data.
        coordinates: OpenSim's coordinate to ours.
        muscles: OpenSim's muscle to our name.
        paths: By OpenSim's muscle.
        errors: Largest error of the length of the polyline by OpenSim's muscle, [m]; of those
            that are not exact.
    """

    model: ImportedModel
    source: SourceModel
    coordinates: Mapping[str, CoordinateMap]
    muscles: Mapping[str, str]
    paths: Mapping[str, PathReport]
    errors: Mapping[str, float] = field(default_factory=dict)


def import_osim(
    path: str | os.PathLike[str],
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> OpenSimImport:
    """Import an OpenSim model.

    Args:
        path: An ``.osim`` file.
        progress: Is told what is being done, and how much of it is done, 0 to 1.

    Raises:
        DescriptionError: It cannot be read, or has a part that cannot be converted.
    """
    progress("reading", 0.0)
    source = read_osim(Path(path))
    findings = FindingList()
    links = NameTable(reserved=(WORLD,))
    names = {GROUND: links.claim(GROUND)}
    for body in source.bodies:
        names[body] = links.claim(body)
    joints = convert_joints(source, names, links)
    _motorize(source, joints, findings)
    wraps = {}
    claim = NameTable()
    for muscle in source.muscles:
        for item in muscle.wraps:
            if item.wrap.name not in wraps:
                wraps[item.wrap.name] = item.wrap
                names[f"wrap:{item.wrap.name}"] = claim.claim(item.wrap.name)
    muscle_names = NameTable()
    for muscle in source.muscles:
        names[f"muscle:{muscle.name}"] = muscle_names.claim(muscle.name)
    progress("looking at paths", 0.1)
    poses = all_poses(source)
    muscles: list[Muscle] = []
    paths: dict[str, PathReport] = {}
    for index, muscle in enumerate(source.muscles):
        made, paths[muscle.name] = convert_muscle(source, muscle, names, poses, findings)
        muscles.append(made)
        progress("looking at paths", 0.1 + 0.8 * index / len(source.muscles))
    robot = _robot(
        source, names, joints, muscles, [wrap_surface(w, names) for w in wraps.values()]
    )
    robot = _repaired(robot, source, findings)
    doubtful_units(robot, findings)
    errors = _errors(source, robot, joints, names=names, paths=paths, poses=poses)
    inertias = _inertia_errors(source, robot, joints)
    _say(source, joints, paths, errors, inertias=inertias, findings=findings)
    _say_slack(source, robot, joints, names=names, poses=poses, findings=findings)
    ours = {m.name: names[f"muscle:{m.name}"] for m in source.muscles}
    crossed = {m.name: crossed_coordinates(source, m) for m in source.muscles if m.name in errors}
    targets, fitted = fit_targets(source, joints.coordinates, ours, errors, crossed)
    if targets:
        findings.note(
            "muscle-fit", "muscles",
            f"{FIT_TARGETS} asks for the file's lengths and moment arms of {len(fitted)} of them: "
            "./cards fit-muscles moves their points",
            at=FilePlace(str(source.path)),
        )  # fmt: skip
    renamed = (
        *renamed_robot(source.name.removesuffix(".osim"), robot.name),
        *links.renamed,
        *claim.renamed,
        *muscle_names.renamed,
    )
    model = ImportedModel(
        robot, "OpenSim", source.path, findings, renamed,
        _sections(source, joints, paths, errors, names),
        files={FIT_TARGETS: targets} if targets else {},
    )  # fmt: skip
    return OpenSimImport(model, source, joints.coordinates, ours, paths, errors)


# Robot -----------------------------------------------------------------------------------------


def _robot(
    source: SourceModel,
    names: Mapping[str, str],
    joints: ConvertedJoints,
    muscles: Sequence[Muscle],
    surfaces: Sequence[WrapSurface],
) -> Robot:
    ground = names[GROUND]
    base = Joint(f"{ground}_upright", "fixed", WORLD, ground, UPRIGHT)
    made = [Link(ground, visuals=_bones(source, GROUND))]
    for body in source.bodies.values():
        made.append(
            Link(names[body.name], body.inertia, _bones(source, body.name), line=body.element.line)
        )
    return Robot(
        NameTable().claim(source.name.removesuffix(".osim"), "opensim_model"),
        (*made, *joints.links),
        (base, *joints.joints),
        tuple(muscles),
        gravity=UPRIGHT.rotation @ source.gravity,
        home=joints.home,
        source=str(source.path),
        wrap_surfaces=tuple(surfaces),
    )


def _motorize(source: SourceModel, joints: ConvertedJoints, findings: FindingList) -> None:
    """Give the joints of driven coordinates motors: tau = F / scale in our coordinate."""
    efforts: dict[str, float] = {}
    for at in source.motors:
        name = word(at, "coordinate").split("/")[-1]
        if name not in source.coordinates:
            raise at.error(f"coordinate '{shorten(name)}' does not exist", "a coordinate")
        ours, subject = joints.coordinates.get(name), f"coordinate '{name}'"
        low, high = control_range(at)
        effort = max(abs(low), abs(high))
        if ours is None or ours.angle is not None or not effort > 0.0:
            # of one that is locked, OpenSim's moves nothing either
            say = findings.note if source.coordinates[name].locked else findings.warn
            why = "no joint here moves along it alone" if effort > 0.0 else "it gives no force"
            say("left-out", subject, f"{at.tag}: {why}: left out", at=at)
            continue
        if low != -high or at.tag != "CoordinateActuator":
            findings.warn(
                "one-sided" if low != -high else "dynamics-not-convertible", subject,
                f"its {at.tag} gives {low:g} to {high:g}; here {-effort:g} to {effort:g}, at once",
                at=at,
            )  # fmt: skip
        efforts[ours.joint] = efforts.get(ours.joint, 0.0) + effort / ours.scale
    for index, joint in enumerate(joints.joints):
        if joint.name in efforts:
            (axis,) = joint.axes
            axes = (replace(axis, effort=efforts[joint.name]),)
            joints.joints[index] = replace(joint, axes=axes, motor=True)


def _bones(source: SourceModel, body: str) -> tuple[Visual, ...]:
    """Return shapes that show a body: from its joint to those of its children."""
    starts = [j.child_frame.translation for j in source.joints if j.child == body]
    start = starts[0] if starts else np.zeros(3)
    ends = [j.parent_frame.translation for j in source.joints if j.parent == body]
    if body in source.bodies:
        ends.append(source.bodies[body].inertia.com)
    out: list[Visual] = []
    for end in ends:
        way = end - start
        size = float(np.linalg.norm(way))
        if 0.01 < size < 2.0 and (body != GROUND or not out):
            pose = Pose(rotation_z_to(way / size), start + way / 2.0)
            radius = min(0.012, 0.12 * size)
            out.append(Visual(f"bone_{len(out) + 1}", Capsule(radius, size), pose))
    if not out and body != GROUND:
        out.append(Visual("joint", Sphere(0.012), Pose(np.eye(3), start)))
    return tuple(out)


def _repaired(robot: Robot, source: SourceModel, findings: FindingList) -> Robot:
    lines = {body.name: body.element.line for body in source.bodies.values()}
    repaired, repairs = repair_robot(robot)
    for item in repairs:
        findings.warn(
            "inertia-repaired", f"link '{item.link}'", str(item),
            at=FilePlace(str(source.path), lines.get(item.link)),
        )  # fmt: skip
    return repaired


# Errors of what is not exact -------------------------------------------------------------------


def _bodies(muscle: SourceMuscle) -> list[str]:
    return [point.body for point in muscle.points] + [w.wrap.body for w in muscle.wraps]


def _between(source: SourceModel, bodies: Sequence[str]) -> set[str]:
    """Return the joints on the ways between bodies."""
    chains = []
    by_child = {joint.child: joint for joint in source.joints}
    for body in bodies:
        chain, above = [], body
        while above != GROUND:
            chain.append(by_child[above].name)
            above = by_child[above].parent
        chains.append(chain)
    common = set.intersection(*(set(chain) for chain in chains)) if chains else set()
    return set().union(*chains) - common


def crossed_coordinates(source: SourceModel, muscle: SourceMuscle) -> list[str]:
    """Return the free coordinates that a muscle's length may depend on.

    Args:
        source: The model.
        muscle: The muscle.
    """
    between = _between(source, _bodies(muscle))
    found: set[str | None] = set()
    for joint in source.joints:
        if joint.name in between:
            found |= {
                effective(source, a).coordinate for a in (*joint.rotations, *joint.translations)
            }
    for point in muscle.points:
        if isinstance(point, ConditionalPoint):
            found.add(point.coordinate)
        elif isinstance(point, MovingPoint):
            found |= {name for name, _ in point.axes}
    return [name for name in free_coordinates(source) if name in found]


def our_coordinates(
    robot: Robot, coordinates: Mapping[str, CoordinateMap], q: Mapping[str, float]
) -> Array:
    """Return our coordinates, shape (nq,), from OpenSim's.

    Args:
        robot: The imported robot.
        coordinates: From the import.
        q: OpenSim's coordinates by name.
    """
    tree = robot.tree
    out = tree.home.copy()
    place = {name: index for index, name in enumerate(tree.position_names)}
    balls: dict[str, list[float]] = {}
    for name, item in coordinates.items():
        if item.angle is None:
            out[place[item.joint]] = item.scale * q[name]
        else:
            balls.setdefault(item.joint, [0.0, 0.0, 0.0])[item.angle] = q[name]
    for joint, angles in balls.items():
        rotation = np.eye(3)
        for axis, angle in zip(np.eye(3), angles, strict=True):
            rotation = rotation @ axis_rotation(axis, angle)
        start = place[f"{joint}.w"]
        out[start : start + 4] = matrix_quaternion(rotation)
    return out


def _errors(
    source: SourceModel,
    robot: Robot,
    joints: ConvertedJoints,
    *,
    names: Mapping[str, str],
    paths: dict[str, PathReport],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
) -> dict[str, float]:
    """Add joints to the reasons of muscles over them, and return the errors of their lengths."""
    inexact: list[SourceMuscle] = []
    for muscle in source.muscles:
        crossed = _between(source, _bodies(muscle)) & set(joints.misfits)
        paths[muscle.name].reasons += [f"crosses joint '{name}'" for name in sorted(crossed)]
        if paths[muscle.name].reasons:
            inexact.append(muscle)
    out = {muscle.name: 0.0 for muscle in inexact}
    for q, bodies in poses if inexact else ():
        link_poses = _link_poses(robot, our_coordinates(robot, joints.coordinates, q))
        for muscle in inexact:
            mine = robot.muscle(names[f"muscle:{muscle.name}"])
            points = [link_poses(p.link, p) for p in mine.path if isinstance(p, ViaPoint)]
            off = length(np.array(points)) - length(polyline(muscle, q, bodies))
            out[muscle.name] = max(out[muscle.name], abs(off))
    return out


def _inertia_errors(source: SourceModel, robot: Robot, joints: ConvertedJoints) -> dict[str, str]:
    """Return how far the inertia along the coordinates of inexact joints is off, by joint."""
    out: dict[str, str] = {}
    bare = replace(robot, muscles=(), wrap_surfaces=())
    dynamics, still = make_dynamics(bare, "numeric"), np.zeros(robot.tree.nv)
    for joint in source.joints if joints.misfits else ():
        for name in joint.coordinates if joint.name in joints.misfits else ():
            ours = joints.coordinates.get(name)
            if ours is None or ours.angle is not None:
                continue
            k = robot.tree.velocity_names.index(ours.joint)
            off = []
            for value in np.linspace(*coordinate_range(source, name), INERTIAS):
                q = our_coordinates(robot, joints.coordinates, values(source, {name: value}))
                mine = dynamics.update(q, still).mass_matrix[k, k] * ours.scale**2
                if (theirs := inertia_along(source, name, value)) > 0.0:
                    off.append(100.0 * (mine / theirs - 1.0))
            if off:
                ends = f"{readable(min(off))} to {readable(max(off))} %"
                out[joint.name] = f"; the inertia along '{name}' is off by {ends} over its range"
    return out


def _link_poses(robot: Robot, q: Array) -> Callable[[str, ViaPoint], Array]:
    rotations, positions = node_poses(robot.tree, q)

    def world(link: str, point: ViaPoint) -> Array:
        node, pose = robot.tree.link_node[link]
        local = pose.apply(point.position)
        return local if node < 0 else np.asarray(positions[node] + rotations[node] @ local)

    return world


# Report ----------------------------------------------------------------------------------------


def _say(
    source: SourceModel,
    joints: ConvertedJoints,
    paths: Mapping[str, PathReport],
    errors: Mapping[str, float],
    *,
    inertias: Mapping[str, str],
    findings: FindingList,
) -> None:
    file = str(source.path)
    for joint in source.joints:
        misfit = joints.misfits.get(joint.name)
        if misfit is not None:
            findings.warn(
                "joint-not-convertible", f"joint '{joint.name}'",
                f"it moves along functions of a coordinate; made {misfit.how}, off by up to "
                f"{1000 * misfit.position:.3g} mm and {math.degrees(misfit.angle):.3g} deg"
                + inertias.get(joint.name, ""),
                at=FilePlace(file, joint.element.line),
            )  # fmt: skip
    for muscle in source.muscles:
        reasons = paths[muscle.name].reasons
        if reasons:
            findings.warn(
                "path-not-convertible", f"muscle '{muscle.name}'",
                f"its length is off by up to {1000 * errors[muscle.name]:.3g} mm: "
                + "; ".join(reasons),
                at=FilePlace(file, muscle.element.line),
            )  # fmt: skip
    for name, item in source.coordinates.items():
        if name in source.couplings:
            findings.warn(
                "coordinate-coupled", f"coordinate '{name}'",
                f"follows '{source.couplings[name].independent}' in the file; it is no coordinate "
                "here",
                at=FilePlace(file, item.element.line),
            )  # fmt: skip
        elif item.locked:
            subject, at = f"coordinate '{name}'", item.element
            if item.lower == item.upper:
                findings.warn(
                    "joint-locked", subject,
                    f"both ends of its range are {item.lower:.6g}: it is fixed here", at=at,
                )  # fmt: skip
            else:
                findings.note(
                    "coordinate-locked", subject,
                    f"is locked in the file; fixed at {item.default:.6g}", at=at,
                )  # fmt: skip
        elif name in joints.coordinates:
            _say_coordinate(item, joints.coordinates[name], findings)
    for part in source.left_out:
        kind, name = part.element.tag, part.element.get("name", "")
        say = findings.warn if part.weighty else findings.note
        say(
            "left-out", f"{kind} '{name}'" if name else kind, f"{part.why}: left out",
            at=part.element,
        )  # fmt: skip
    meshes = sum(body.meshes for body in source.bodies.values())
    if meshes:
        findings.note(
            "meshes-left-out", "bodies",
            f"{meshes} drawn meshes are files beside the model: links are drawn as bars",
            at=FilePlace(file),
        )  # fmt: skip


def _say_slack(
    source: SourceModel,
    robot: Robot,
    joints: ConvertedJoints,
    *,
    names: Mapping[str, str],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
    findings: FindingList,
) -> None:
    """Name muscles and ligaments whose slack length is longer than their path in all poses."""
    slack: dict[str, float] = {}
    for item in robot.muscles:
        if isinstance(item.actuator, Hill):
            slack[item.name] = item.actuator.tendon_slack_length
        elif isinstance(item.actuator, Ligament):
            slack[item.name] = item.actuator.slack_length
    loose: list[SourceMuscle] = []  # without wraps, which make paths longer
    for muscle in source.muscles:
        rest = slack.get(names[f"muscle:{muscle.name}"])  # a cable has none
        if rest is None:
            continue
        if all(length(polyline(muscle, q, bodies)) <= rest for q, bodies in poses):
            loose.append(muscle)
    if not loose:
        return
    those = [robot.muscle(names[f"muscle:{muscle.name}"]) for muscle in loose]
    dynamics = make_dynamics(replace(robot, muscles=tuple(those)), "numeric")
    still = np.zeros(robot.tree.nv)
    lengths = np.array([
        dynamics.update(our_coordinates(robot, joints.coordinates, q), still).muscle_lengths.copy()
        for q, _ in poses
    ])  # fmt: skip
    for muscle, item, row in zip(loose, those, lengths.T, strict=True):
        if np.max(row) <= slack[item.name]:
            findings.warn(
                "never-taut", f"muscle '{muscle.name}'",
                f"its slack length {slack[item.name]:.6g} m is longer than its path, "
                f"{np.min(row):.6g} .. {np.max(row):.6g} m over the ranges of the coordinates: it "
                "never pulls",
                at=muscle.element,
            )  # fmt: skip


def _say_coordinate(item: Coordinate, ours: CoordinateMap, findings: FindingList) -> None:
    """Add what a free coordinate is here and is not in the file."""
    subject = f"coordinate '{item.name}'"
    bounded = math.isfinite(item.lower) or math.isfinite(item.upper)
    if ours.angle is not None and bounded:
        findings.warn(
            "range-left-out", subject,
            f"its range {item.lower:.6g} to {item.upper:.6g} is left out: a ball joint here has "
            "no limits of angles",
            at=item.element,
        )  # fmt: skip
    elif ours.angle is None and not item.lower <= item.default <= item.upper:
        findings.warn(
            "range-widened", subject,
            f"its default {item.default:.6g} is outside of its range {item.lower:.6g} to "
            f"{item.upper:.6g}: the limit of the joint here is at the default",
            at=item.element,
        )  # fmt: skip
    if item.prescribed:
        findings.warn(
            "coordinate-prescribed", subject,
            "follows a function of time in the file; it moves freely here",
            at=item.element,
        )  # fmt: skip
    if ours.scale != 1.0:
        findings.note(
            "coordinate-scaled", subject, f"ours is {ours.scale:.6g} of the file's",
            at=item.element,
        )  # fmt: skip


def _sections(
    source: SourceModel,
    joints: ConvertedJoints,
    paths: Mapping[str, PathReport],
    errors: Mapping[str, float],
    names: Mapping[str, str],
) -> tuple[Section, ...]:
    coordinates = [
        {"source": name, "joint": item.joint, "scale": item.scale, "angle": item.angle}
        for name, item in joints.coordinates.items()
    ]
    rows = [[f"`{c['source']}`", f"`{c['joint']}`", f"{c['scale']:.6g}"] for c in coordinates]
    muscles = [
        {
            "source": m.name,
            "name": names[f"muscle:{m.name}"],
            "kind": m.kind,
            "exact": not paths[m.name].reasons,
            "length_error": errors.get(m.name, 0.0),
            "reasons": paths[m.name].reasons,
        }
        for m in source.muscles
    ]
    lines = [
        [
            f"`{m['source']}`", str(m["kind"]),
            "exact" if m["exact"] else f"{1000 * float(errors[str(m['source'])]):.3g} mm",
            "; ".join(paths[str(m["source"])].reasons),
        ]
        for m in muscles
    ]  # fmt: skip
    exact = sum(bool(m["exact"]) for m in muscles)
    return (
        Section(
            "coordinates", "Coordinates", coordinates,
            table(["OpenSim", "joint here", "ours over OpenSim's"], rows),
        ),
        Section(
            "muscles", "Paths of muscles", muscles,
            f"{exact} of {len(muscles)} are those of the file. The errors of the others are of "
            "the length of the line through their points, over the ranges of the coordinates.\n\n"
            + table(["muscle", "kind", "length", "why"], lines),
        ),
    )  # fmt: skip
