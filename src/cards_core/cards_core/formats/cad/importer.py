"""From a CAD assembly to a robot with muscles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.cad.assembly import Assembly
from cards_core.formats.cad.config import Config, read_config
from cards_core.formats.cad.features import Candidate, Feature, features_of, joint_candidates
from cards_core.formats.cad.joints import make_joints
from cards_core.formats.cad.links import (
    Body,
    Import,
    Layout,
    MarkedComponent,
    bodies_of,
    lay_out,
    make_links,
    marked_components,
)
from cards_core.formats.cad.muscles import Places, make_frames, make_muscles, make_surfaces
from cards_core.formats.cad.report import sections
from cards_core.formats.cad.worker import SUFFIXES, TOLERANCE, check_file, read_assembly
from cards_core.formats.imports.findings import (
    FilePlace,
    FindingList,
    NameTable,
    renamed_robot,
    safe_name,
)
from cards_core.formats.imports.locked_joints import fix_locked_joints
from cards_core.formats.imports.marked_frames import add_marked_muscles, attach_marked_frames
from cards_core.formats.imports.model import ImportedModel
from cards_core.formats.imports.next_command import refuse_xml
from cards_core.formats.imports.units import doubtful_units
from cards_core.formats.mesh_copies import mesh_files
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.xml_lines import parse_xml
from cards_core.robot.model import Robot


@dataclass(frozen=True, eq=False)
class Recognised:
    """What is in a CAD file, before joints and muscles.

    Attributes:
        job: File and configuration.
        source: The file.
        layout: Which component belongs to which link.
        bodies: Solids with mass.
        marked: Components whose names say what they are.
        features: Holes, pins, balls, sockets, rings.
        candidates: Joints that the features suggest.
    """

    job: Import
    source: Path
    layout: Layout
    bodies: tuple[Body, ...]
    marked: tuple[MarkedComponent, ...]
    features: tuple[Feature, ...]
    candidates: tuple[Candidate, ...]


def recognise(
    path: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] | None = None,
    material: str | None = None,
    tolerance: float = TOLERANCE,
    assembly: Assembly | None = None,
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> Recognised:
    """Read a CAD file and say what is in it.

    Args:
        path: A STEP file or FreeCAD document.
        config: YAML file with what the file cannot say.
        material: Of bodies that nothing else is said about; one of `materials.DENSITIES`.
        tolerance: Largest distance of a mesh from its surface, [m].
        assembly: Content of the file, if it was read before.
        progress: Told what is being done and how much of it is done.

    Raises:
        DescriptionError: The file or the configuration cannot be used; the message names the
            place.
    """
    source = Path(path)
    settings = Config() if config is None else read_config(Path(config))
    progress(f"reading {source.name}", 0.1)
    found = assembly if assembly is not None else read_assembly(source, tolerance=tolerance)
    progress("links, bodies, features", 0.7)
    findings = FindingList()
    for code, subject, message in found.remarks:
        findings.warn(code, subject, message, at=FilePlace(str(source)))
    job = Import(found, settings, findings, str(source))
    layout = lay_out(job)
    bodies = bodies_of(job, layout, material)
    features = [
        feature
        for body in bodies
        for feature in features_of(body.path, body.link, body.solid.faces, body.pose)
    ]
    return Recognised(
        job,
        source,
        layout,
        tuple(bodies),
        tuple(marked_components(found, layout)),
        tuple(features),
        tuple(joint_candidates(features)),
    )


def import_cad(
    path: str | os.PathLike[str],
    *,
    config: str | os.PathLike[str] | None = None,
    material: str | None = None,
    tolerance: float = TOLERANCE,
    collisions: bool = True,
    name: str | None = None,
    assembly: Assembly | None = None,
    progress: Callable[[str, float], None] = lambda what, fraction: None,
) -> ImportedModel:
    """Make a robot of a CAD assembly.

    An SDF file is taken too: its frames become via points by their names, all else stays.

    Args:
        path: A STEP file, a FreeCAD document, or an SDF file.
        config: YAML file with what the file cannot say: joints, materials, muscles.
        material: Of bodies that nothing else is said about; one of `materials.DENSITIES`.
        tolerance: Largest distance of a mesh from its surface, [m].
        collisions: Give links collision shapes, the convex hull of every body.
        name: Of the robot; default the configuration's, else the file's.
        assembly: Content of the file, if it was read before.
        progress: Told what is being done and how much of it is done.

    Raises:
        DescriptionError: The file or the configuration cannot be used; the message names the
            place.
        CardsError: Open CASCADE is not installed.
    """
    source = Path(path)
    if assembly is None:
        if source.suffix.lower() not in (*SUFFIXES, ".sdf"):
            refuse_xml(source, "a CAD file")
        check_file(source, (*SUFFIXES, ".sdf"))
    if source.suffix.lower() == ".sdf":
        for what, value in (("a configuration", config), ("a material", material)):
            if value is not None:
                raise DescriptionError(
                    f"{what} is given, '{value}'",
                    source=str(source),
                    expected="neither with an SDF file, which states joints and masses itself",
                )
        return _import_sdf(source, name)
    found = recognise(
        source,
        config=config,
        material=material,
        tolerance=tolerance,
        assembly=assembly,
        progress=progress,
    )
    progress("joints and muscles", 0.8)
    return build(found, collisions=collisions, name=name)


def build(found: Recognised, *, collisions: bool = True, name: str | None = None) -> ImportedModel:
    """Make a robot of what was recognised.

    Args:
        found: From `recognise`.
        collisions: Give links collision shapes, the convex hull of every body.
        name: Of the robot; default the configuration's, else the file's.

    Raises:
        DescriptionError: Joints, muscles or inertias are not complete or contradict each other.
    """
    job, layout = found.job, found.layout
    config, findings, shown = job.config, job.findings, job.source
    links, files = make_links(job, layout, found.bodies, collisions=collisions)
    places = Places(layout, {item.name: item for item in found.features}, found.marked, shown)
    joints, home = make_joints(job, layout, places.locate_joint, len(found.candidates))
    for key in config.home:
        if key not in {joint.name for joint in joints}:
            raise config.top["home"][key].error(
                f"no joint '{key}'", f"one of {', '.join(joint.name for joint in joints)}"
            )
    surfaces = make_surfaces(places, config)
    muscles, renamed = make_muscles(places, config, joints, surfaces, findings)
    frames = make_frames(places, config)
    operational = config.operational_frame
    if operational is None and len(frames) == 1:
        operational = frames[0].name
        findings.note(
            "operational-frame", f"frame '{operational}'", "the only frame; operational space is "
            "its place", at=FilePlace(shown),
        )  # fmt: skip
    if operational is not None and operational not in {item.name for item in frames}:
        raise config.top["operational_frame"].error(
            f"no frame '{operational}'", f"one of {', '.join(f.name for f in frames) or 'none'}"
        )
    original = name or config.name or job.assembly.name
    robot = Robot(
        name=safe_name(original, "robot"),
        links=tuple(links),
        joints=tuple(joints),
        muscles=tuple(muscles),
        frames=tuple(frames),
        operational_frame=operational,
        home={**home, **config.home},
        wrap_surfaces=tuple(surfaces),
        source=shown,
    )
    if config.gravity is not None:
        robot = replace(robot, gravity=config.gravity)
    robot = fix_locked_joints(robot, findings)
    _ = robot.tree  # names used twice and the like are errors now
    doubtful_units(robot, findings)
    return ImportedModel(
        robot=robot,
        program=job.assembly.program,
        source=found.source,
        findings=findings,
        renamed=(*renamed_robot(original, robot.name), *layout.table.renamed, *renamed),
        sections=sections(
            robot,
            job,
            bodies=found.bodies,
            features=found.features,
            candidates=found.candidates,
            marked=found.marked,
            used=places.used,
        ),
        files=files,
        size=_size(found.bodies),
    )


def _size(bodies: Sequence[Body]) -> tuple[float, float, float] | None:
    """Return the edges of the box around all bodies in the assembly, [m]; None of none."""
    placed = [body.pose.apply(body.solid.vertices) for body in bodies if len(body.solid.vertices)]
    if not placed:
        return None
    points = np.vstack(placed)
    x, y, z = (points.max(axis=0) - points.min(axis=0)).tolist()
    return x, y, z


def _import_sdf(source: Path, name: str | None) -> ImportedModel:
    """Return the robot of an SDF file, with the muscles that the names of its frames state."""
    findings, table = FindingList(), NameTable()
    root = parse_xml(source)
    attach_marked_frames(root, findings)
    before = read_sdf(root, base=source.resolve().parent, locked=True)
    before = fix_locked_joints(before, findings)
    robot = add_marked_muscles(before, findings, table=table)
    if len(robot.muscles) == len(before.muscles):
        raise DescriptionError(
            "no frame has the name of a via point",
            source=str(source),
            expected="frames 'muscle:NAME:1', 'muscle:NAME:2', ...",
        )
    doubtful_units(robot, findings)
    original = before.name if name is None else name
    if name is not None:
        robot = replace(robot, name=safe_name(name))
    renamed = (*renamed_robot(original, robot.name), *table.renamed)
    return ImportedModel(
        robot, "SDF", source, findings, renamed=renamed, meshes=frozenset(mesh_files(before))
    )
