"""Import a robot of CARDSflow or Roboy: an old SDF and its muscles to a `Robot`, and a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.cardsflow.muscles import (
    MUSCLE,
    TENSION,
    MuscleRewriter,
    muscle_elements,
)
from cards_core.formats.cardsflow.upgrade import Upgrade, check_version
from cards_core.formats.imports.findings import FilePlace, FindingList, renamed_robot, safe_name
from cards_core.formats.imports.finishing import (
    BaseChoice,
    CollisionChoice,
    check_choices,
    finish,
)
from cards_core.formats.imports.masses import InertiaPoint, restate_about_com
from cards_core.formats.imports.meshes import SUFFIXES, FoundMeshes
from cards_core.formats.imports.model import ImportedModel
from cards_core.formats.imports.next_command import refuse_cad
from cards_core.formats.imports.sdf_tree import add, read_tree, take_inertias
from cards_core.formats.sdf.values import attribute, known_names, unknown_name
from cards_core.formats.xml_lines import XmlElement, parse_xml
from cards_core.named_files import Confinement, import_confinement, is_folder, outside
from cards_core.robot.elements import Frame
from cards_core.robot.model import Robot

MUSCLES_FILE = "cardsflow.xml"
"""File with the muscles, beside the SDF."""


def import_cardsflow(
    location: str | Path,
    *,
    muscles: str | Path | None = None,
    model: str | None = None,
    base: BaseChoice = "fixed",
    collisions: CollisionChoice = "primitives",
    inertia_about: InertiaPoint = "auto",
    tension: tuple[float, float] = TENSION,
    packages: Mapping[str, Path] | None = None,
) -> ImportedModel:
    """Import a robot.

    Args:
        location: Its folder, with ``model.sdf`` and ``cardsflow.xml``, or its SDF file.
        muscles: File with the muscles, ``<cardsflow>`` as root. By default ``cardsflow.xml``
            beside the SDF, else the ``<myoMuscle>`` elements of plugins in the SDF.
        model: Which model, where the SDF holds several.
        base: What holds a link that no joint holds: the world, or nothing.
        collisions: As of `cards_core.formats.imports.finishing.finish`.
        inertia_about: Point that the tensors of the file are about: ``com`` as SDF has it,
            ``origin`` of the model as some exporters write it, ``auto``: what the numbers say.
        tension: Limits of the muscles' tensions, [N]; no file states any.
        packages: Name of a package or model to its folder, for meshes that lie elsewhere.

    Raises:
        DescriptionError: A file cannot be understood; the message names file, line and element.
        CardsError: A file is missing, or a choice is unknown.
    """
    check_choices(base, collisions, inertia_about)
    if not 0.0 <= tension[0] <= tension[1] or not np.isfinite(tension[1]):
        raise CardsError(f"tension {tension[0]:g} {tension[1]:g} N (expected: 0 <= MIN <= MAX)")
    file = _sdf_file(Path(location))
    findings = FindingList()
    refuse_cad(file, "an SDF document")
    root = parse_xml(file)
    check_version(root)
    folder = file.resolve().parent
    meshes = FoundMeshes(folder, import_confinement(folder, SUFFIXES, packages))
    upgrade = Upgrade(findings, meshes)
    upgrade.run(root)
    element = _model(root, model)
    inertias = take_inertias(element)
    _hold_base(element, upgrade.kinematic, base, findings)
    muscles_root = _muscles_root(file, muscles, meshes.allowed)
    block = MuscleRewriter(
        findings,
        {item.get("name", "").strip() for item in element.children("link")},
        {item.get("name", "").strip() for item in element.children("joint")},
        upgrade.meshes,
        tension,
    )
    plugin = block.add_to(element, _muscles(muscles_root, upgrade.plugins, findings))
    if plugin is not None:
        findings.note(
            "tension-assumed",
            "muscles",
            f"tensions of {tension[0]:g} .. {tension[1]:g} N: the files state no limits",
            at=plugin,
        )
    robot = read_tree(root, meshes, inertias, findings, model=element.get("name", "").strip())
    for link in robot.links:
        if link.name not in inertias:
            findings.warn(
                "inertia-missing",
                f"link '{link.name}'",
                "no <inertial>: 1 kg and 1 kg m^2 about every axis, as SDF has it",
                at=FilePlace(robot.source, link.line),
            )
    robot = restate_about_com(robot, inertias, inertia_about, findings)
    if muscles_root is not None:
        robot = _end_effectors(robot, muscles_root)
    original = robot.name
    robot = dataclasses.replace(robot, name=safe_name(original, "robot"))
    robot, sections = finish(robot, findings, collisions=collisions)
    return ImportedModel(
        robot,
        "CARDSflow",
        file,
        findings,
        renamed=(*renamed_robot(original, robot.name), *upgrade.renamed),
        sections=sections,
        meshes=meshes.files,
    )


# Files and models ------------------------------------------------------------------------------


def _sdf_file(location: Path) -> Path:
    if not is_folder(location):
        return location
    try:
        found = sorted(location.glob("*.sdf"))
    except OSError as error:
        raise CardsError(f"{location}: cannot be read: {error.strerror or error}") from None
    if location / "model.sdf" in found:
        return location / "model.sdf"
    if len(found) == 1:
        return found[0]
    names = ", ".join(item.name for item in found[:10])
    raise DescriptionError(
        f"holds {len(found)} SDF files{': ' + names if names else ''}",
        source=str(location),
        expected="model.sdf, or the path of one file",
    )


def _model(root: XmlElement, name: str | None) -> XmlElement:
    world = root.child("world")
    models = list((root if world is None else world).children("model"))
    if name is not None:
        for item in models:
            if item.get("name", "").strip() == name:
                return item
        raise unknown_name(root, "model", name, [item.get("name", "") for item in models])
    if len(models) != 1:
        names = known_names(item.get("name", "") for item in models)
        raise root.error(f"holds {len(models)} models", f"one, or --model with one of: {names}")
    attribute(models[0], "name")
    return models[0]


def _hold_base(
    model: XmlElement, kinematic: Iterable[str], base: BaseChoice, findings: FindingList
) -> None:
    """Fix links that no joint holds, or only those that are kinematic, to the world."""
    children = set()
    for joint in model.children("joint"):
        child = joint.child("child")
        if child is not None:
            children.add((child.text or "").strip())
    for link in list(model.children("link")):
        name = link.get("name", "").strip()
        if name in children:
            if name in kinematic:
                findings.warn(
                    "kinematic-moves",
                    link.label,
                    "<kinematic>true</kinematic>, but a joint holds it: it moves by forces here",
                    at=link,
                )
            continue
        if base == "free" and name not in kinematic:
            continue
        why = "it is kinematic" if name in kinematic else "no joint holds it (see --base)"
        findings.note(
            "base-fixed",
            link.label,
            f"fixed to the world: {why}",
            at=link,
        )
        joint = add(model, "joint", link, name=f"{name}_world", type="fixed")
        add(joint, "parent", link, "world")
        add(joint, "child", link, name)


# Muscles ---------------------------------------------------------------------------------------


def _muscles_root(
    file: Path, muscles: str | Path | None, allowed: Confinement
) -> XmlElement | None:
    if muscles is not None:
        return parse_xml(Path(muscles))
    beside = file.resolve().parent / MUSCLES_FILE
    if not beside.is_file():
        return None
    if not allowed.holds(beside):
        raise DescriptionError(
            outside(str(beside), beside, "the package"),
            source=str(file),
            expected=f"{allowed.expected}; or --muscles FILE",
        )
    return parse_xml(beside)


def _muscles(
    root: XmlElement | None, plugins: Iterable[XmlElement], findings: FindingList
) -> list[XmlElement]:
    """Return the ``<myoMuscle>`` elements; those of a file of their own count before plugins'."""
    inside: list[XmlElement] = []
    for plugin in plugins:
        found = list(plugin.children(MUSCLE))
        if found and root is not None:
            findings.warn(
                "muscles-twice",
                plugin.label,
                f"its {len(found)} muscles are left out: {root.source} has them",
                at=plugin,
            )
        elif not found:
            findings.note(
                "plugin-ignored",
                f"plugin '{plugin.get('filename', plugin.get('name', ''))}'",
                "no muscles in it: left out",
                at=plugin,
            )
        inside += found
    return inside if root is None else muscle_elements(root)


def _end_effectors(robot: Robot, root: XmlElement) -> Robot:
    """Return the robot with a frame for every ``<endEffector name link>``."""
    frames = list(robot.frames)
    links = [item.name for item in robot.links]
    taken = {*links, *(j.name for j in robot.joints), *(f.name for f in robot.frames)}
    for element in root.children("endEffector"):
        name, link = attribute(element, "name"), attribute(element, "link")
        if link not in links:
            raise unknown_name(element, "link", link, links)
        if name in taken:
            name = f"{name}_frame"
        taken.add(name)
        frames.append(Frame(name, link, line=None))
    if len(frames) == len(robot.frames):
        return robot
    operational = robot.operational_frame or frames[len(robot.frames)].name
    return dataclasses.replace(robot, frames=tuple(frames), operational_frame=operational)
