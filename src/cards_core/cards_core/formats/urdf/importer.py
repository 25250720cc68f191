"""Import a URDF: links and joints to a `Robot`, muscles from a file of their own, and a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from cards_core.checks import check_choice
from cards_core.formats.cardsflow.muscles import MUSCLE, MuscleRewriter, muscle_elements
from cards_core.formats.imports.findings import FilePlace, FindingList, NameTable
from cards_core.formats.imports.finishing import (
    BaseChoice,
    CollisionChoice,
    check_choices,
    finish,
)
from cards_core.formats.imports.marked_frames import (
    NEGLIGIBLE,
    add_marked_muscles,
    take_marked_links,
)
from cards_core.formats.imports.masses import InertiaPoint, restate_about_com
from cards_core.formats.imports.massless import Merged, merge_massless
from cards_core.formats.imports.meshes import SUFFIXES, FoundMeshes
from cards_core.formats.imports.model import ImportedModel
from cards_core.formats.imports.next_command import refuse_cad
from cards_core.formats.imports.sdf_tree import add, add_plugin, read_tree, take_inertias
from cards_core.formats.sdf.muscle_block import is_muscle_plugin
from cards_core.formats.sdf.values import required
from cards_core.formats.sdf.writer import prepare_for_sdf
from cards_core.formats.urdf.gazebo import GazeboBlocks, transmission_joints
from cards_core.formats.urdf.muscles_file import add_muscles
from cards_core.formats.urdf.reader import MimicChoice, UrdfReader, check_root
from cards_core.formats.xml_lines import XmlElement, XmlSource, parse_xml
from cards_core.named_files import import_confinement
from cards_core.robot.elements import WORLD, Inertia, path_links
from cards_core.robot.model import Robot
from cards_core.typing import Vector3

MotorChoice: TypeAlias = Literal["none", "transmissions", "all"]
"""Joints with an actuator of their own."""


def import_urdf(
    source: XmlSource,
    *,
    muscles: str | Path | None = None,
    base: BaseChoice = "fixed",
    collisions: CollisionChoice = "primitives",
    mimic: MimicChoice = "free",
    motors: MotorChoice = "none",
    inertia_about: InertiaPoint = "auto",
    folder: str | Path | None = None,
    packages: Mapping[str, Path] | None = None,
) -> ImportedModel:
    """Import a robot.

    Args:
        source: Path object of the URDF, or its text.
        muscles: File with muscles: YAML (`cards_core.formats.urdf.muscles_file`), or CARDSflow's
            XML where its name ends in ``.xml``.
        base: What holds the root link: the world, or nothing.
        collisions: As of `cards_core.formats.imports.finishing.finish`.
        mimic: What becomes of joints that mimic others: they move freely, or are fixed at 0.
        motors: Which joints have a motor: none, those with a transmission, or all that move and
            have one degree of freedom.
        inertia_about: As of `cards_core.formats.imports.masses.restate_about_com`.
        folder: That meshes of a text are relative to; default the current one.
        packages: Name of a package to its folder, for meshes that lie elsewhere.

    Raises:
        DescriptionError: A file cannot be understood; the message names file, line and element.
        CardsError: A file is missing, or a choice is unknown.
    """
    check_choices(base, collisions, inertia_about)
    check_choice(mimic, "mimic", get_args(MimicChoice))
    check_choice(motors, "motors", get_args(MotorChoice))
    refuse_cad(source, "a URDF")
    root = parse_xml(source)
    file = Path(root.source)
    check_root(root, root.source)
    findings = FindingList()
    blocks = GazeboBlocks(findings)
    blocks.read(root)
    near = Path(folder) if folder is not None else file.resolve().parent
    meshes = FoundMeshes(near, import_confinement(near, SUFFIXES, packages))
    reader = UrdfReader(findings, blocks, meshes, mimic)
    sdf = reader.convert(root)
    model = required(sdf, "model")
    inertias = take_inertias(model)
    inertias |= {name: Inertia() for name in reader.massless}
    _hold_roots(model, findings, fixed=base == "fixed" or blocks.static)
    centres = {name: item.com for name, item in inertias.items()}
    plugin = _muscles(model, reader, None if muscles is None else Path(muscles), centres)
    _motors(model, plugin, root, reader, motors)
    robot = read_tree(sdf, meshes, inertias, findings)
    named = {ours: name for name, ours in reader.links.items()}
    robot = take_marked_links(robot, named, findings)
    robot = _without_negligible(robot, findings)
    robot = restate_about_com(robot, inertias, inertia_about, findings)
    table = NameTable()
    robot = add_marked_muscles(
        robot,
        findings,
        links=reader.links,
        table=table,
        stated=_stated(plugin),
    )
    robot, merged = merge_massless(robot, _attached(robot))
    _report_merged(robot, merged, findings)
    robot, sections = finish(robot, findings, collisions=collisions)
    there = {x.name for x in robot.links} | {x.name for x in robot.joints}
    there |= {robot.name} | {x.name for x in robot.frames}
    renamed = [item for item in reader.renamed if item[1] in there]
    return ImportedModel(
        robot,
        "URDF",
        file,
        findings,
        renamed=(*renamed, *table.renamed),
        sections=sections,
        meshes=meshes.files,
    )


def _hold_roots(model: XmlElement, findings: FindingList, *, fixed: bool) -> None:
    """Fix links that are the child of no joint to the world."""
    children = {(required(joint, "child").text or "") for joint in model.children("joint")}
    taken = {item.get("name") for item in model}
    for link in list(model.children("link")):
        name = link.get("name", "")
        if name in children or not fixed:
            continue
        findings.note(
            "base-fixed",
            link.label,
            "fixed to the world: it is the root (see --base)",
            at=link,
        )
        joint_name = f"{name}_world"
        while joint_name in taken:
            joint_name += "_"
        joint = add(model, "joint", link, name=joint_name, type="fixed")
        add(joint, "parent", link, WORLD)
        add(joint, "child", link, name)


def _muscles(
    model: XmlElement,
    reader: UrdfReader,
    path: Path | None,
    centres: Mapping[str, Vector3],
) -> XmlElement | None:
    """Append the muscle block, if there is one; return it.

    Points of a ``cardsflow.xml`` are relative to the centre of mass of their link: that is where
    the frames of its SDF are, and those of a URDF are not.
    """
    found: list[XmlElement] = []
    for plugin in reader.blocks.plugins:
        if is_muscle_plugin(plugin) or plugin.child(MUSCLE) is not None:
            found.append(plugin)
        else:
            name = plugin.get("filename", plugin.get("name", ""))
            reader.findings.note(
                "plugin-ignored",
                f"plugin '{name}'",
                "no muscles in it: left out",
                at=plugin,
            )
    if len(found) > 1 or (found and path is not None):
        raise found[-1].error(
            "muscles in a plugin, and in another plugin or a file",
            "one place for the muscles",
        )
    if path is not None and path.suffix != ".xml":
        return add_muscles(
            model,
            path,
            link=lambda name: reader.links.get(name, name),
            joint=lambda name: reader.joints.get(name, name),
        )
    if path is None and not found:
        return None
    if path is None and is_muscle_plugin(found[0]):
        model.append(found[0])
        found[0].parent = model
        return found[0]
    elements = muscle_elements(parse_xml(path)) if path else list(found[0].children(MUSCLE))
    if path is not None and elements:
        reader.findings.note(
            "points-about-com",
            "muscles",
            "points of CARDSflow's file are relative to the centres of mass of the links",
            at=elements[0],
        )
    rewriter = MuscleRewriter(
        reader.findings,
        set(reader.links.values()),
        set(reader.joints.values()),
        reader.meshes,
        origins=centres if path is not None else {},
    )
    return rewriter.add_to(model, elements)


def _stated(plugin: XmlElement | None) -> dict[str, XmlElement]:
    """Return every muscle of the muscle block to its element."""
    elements = () if plugin is None else plugin.children("muscle")
    return {element.get("name", ""): element for element in elements}


def _motors(
    model: XmlElement,
    plugin: XmlElement | None,
    root: XmlElement,
    reader: UrdfReader,
    choice: MotorChoice,
) -> None:
    """Add a ``<motor>`` for every joint that shall have one."""
    moving = {
        joint.get("name", ""): joint
        for joint in model.children("joint")
        if joint.get("type") != "fixed"
    }
    wanted: list[tuple[str, XmlElement]] = []
    if choice == "all":
        own = set(reader.joints.values())
        wanted = [(name, joint) for name, joint in moving.items() if name in own]
    elif choice == "transmissions":
        for original, element in transmission_joints(root):
            name = reader.joints.get(original, original)
            if name in moving:
                wanted.append((name, element))
            else:
                reader.findings.warn(
                    "motor-left-out",
                    f"joint '{original}'",
                    "no joint of one degree of freedom: it gets no motor",
                    at=element,
                )
    if not wanted:
        return
    block = add_plugin(model, root) if plugin is None else plugin
    taken = {item.get("joint") for item in block.children("motor")}
    for name, element in wanted:
        if name not in taken:
            add(block, "motor", element, joint=name)


def _without_negligible(robot: Robot, findings: FindingList) -> Robot:
    """Return the robot whose fixed links without shape weigh nothing where they nearly do."""
    fixed = {joint.child for joint in robot.joints if joint.kind == "fixed"}
    links = []
    for link in robot.links:
        inertia = link.inertia
        light = 0.0 < inertia.mass <= NEGLIGIBLE and float(abs(inertia.tensor).max()) <= NEGLIGIBLE
        if light and link.name in fixed and not (link.visuals or link.collisions):
            findings.note(
                "mass-negligible",
                f"link '{link.name}'",
                f"{inertia.mass:g} kg and no shape: a place without mass",
                at=FilePlace(robot.source, link.line),
            )
            link = dataclasses.replace(link, inertia=Inertia())  # noqa: PLW2901
        links.append(link)
    return dataclasses.replace(robot, links=tuple(links))


def _attached(robot: Robot) -> set[str]:
    """Return the links that muscles and surfaces are on."""
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    out = {surface.link for surface in robot.wrap_surfaces}
    for muscle in robot.muscles:
        out.update(path_links(muscle.path, surfaces))
    return out


def _report_merged(robot: Robot, merged: Merged, findings: FindingList) -> None:
    for name in merged.frames:
        findings.note(
            "link-is-frame",
            f"link '{name}'",
            "nothing but a place on another link: a frame",
            at=FilePlace(robot.source),
        )
    for name in merged.joints:
        kind = robot.joint(name).kind
        findings.note(
            "joints-merged",
            f"joint '{name}'",
            f"a chain of joints through links without mass is one {kind} joint",
            at=FilePlace(robot.source),
        )


def is_urdf(path: Path) -> bool:
    """Return whether a file is a URDF by its name."""
    return path.suffix.lower() in (".urdf", ".xacro")


def with_masses(robot: Robot) -> Robot:
    """Return the robot with a little mass in moving links that have none, for simulators."""
    moving = {joint.child for joint in robot.joints if joint.kind != "fixed"}
    lacking = [
        link.name for link in robot.links if link.inertia.mass == 0.0 and link.name in moving
    ]
    if not lacking:
        return robot
    links = {link.name: link for link in prepare_for_sdf(robot).links}
    return dataclasses.replace(robot, links=tuple(links[link.name] for link in robot.links))
