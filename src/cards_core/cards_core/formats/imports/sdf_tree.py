"""Elements of SDF made from those of another format, which keep the place they came from.

Importers of XML formats near to SDF build a tree of elements and have it read by the reader of
SDF: it checks names, numbers, frames and paths, and its errors name the line of the file that the
user has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.locked_joints import fix_locked_joints
from cards_core.formats.imports.meshes import FoundMeshes
from cards_core.formats.sdf.muscle_block import MODULE, PLUGIN_FILENAME, PLUGIN_NAME
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.sdf.values import parse_number, parse_pose, scalar, text_of
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import Inertia
from cards_core.robot.model import Robot


def add(
    parent: XmlElement | None,
    tag: str,
    like: XmlElement,
    text: str | None = None,
    **attributes: str,
) -> XmlElement:
    """Return a new element, appended to its parent, that stands where another one stands.

    Args:
        parent: Takes it; None: nothing does.
        tag: Its name.
        like: Gives file and line, and how errors speak of it.
        text: Its text.
        attributes: Its attributes.
    """
    element = like.another(tag, attributes)
    element.text = text
    if parent is not None:
        parent.append(element)
        element.parent = parent
    return element


def add_plugin(parent: XmlElement | None, like: XmlElement) -> XmlElement:
    """Return a new ``<plugin>`` for muscles (`cards_core.formats.sdf.muscle_block`).

    Args:
        parent: Takes it; None: nothing does.
        like: Gives file and line.
    """
    plugin = add(parent, "plugin", like, filename=PLUGIN_FILENAME, name=PLUGIN_NAME)
    add(plugin, "module_name", like, MODULE)
    return plugin


MAX_LINKS = 2000
"""Most links of a robot that is imported; large humanoids have some hundred."""


def check_links(parent: XmlElement) -> None:
    """Refuse documents with too many links.

    Args:
        parent: Element whose children are the links.

    Raises:
        DescriptionError: There are more than `MAX_LINKS`.
    """
    for count, link in enumerate(parent.children("link")):
        if count >= MAX_LINKS:
            raise link.error(f"more than {MAX_LINKS} links", f"a robot of at most {MAX_LINKS}")


# Inertias of no rigid body -------------------------------------------------------------------


def take_inertias(model: XmlElement, prefix: str = "") -> dict[str, Inertia]:
    """Take the ``<inertial>`` out of every link of a ``<model>`` and return what they say.

    The reader of SDF refuses tensors that no rigid body has; an importer repairs them. Links
    without ``<inertial>`` are not in the result.

    Args:
        model: The model; its links lose the element.
        prefix: Of the names, for nested models.

    Returns:
        Full name of the link to its inertia, in link axes, [kg], [m], [kg m^2].

    Raises:
        DescriptionError: Something is no number, or a mass is negative.
    """
    out: dict[str, Inertia] = {}
    for link in model.children("link"):
        element = link.child("inertial")
        if element is not None:
            out[prefix + link.get("name", "").strip()] = _inertia(element)
            link[:] = [item for item in link if item.tag != "inertial"]
    for inner in model.children("model"):
        out |= take_inertias(inner, f"{prefix}{inner.get('name', '').strip()}::")
    return out


def _inertia(element: XmlElement) -> Inertia:
    pose = parse_pose(element.child("pose"))
    mass_element = element.child("mass")
    mass = 1.0
    if mass_element is not None:
        mass = parse_number(text_of(mass_element), mass_element)
        if mass < 0.0:
            raise mass_element.error(f"{mass:g} kg is negative", "a mass greater than 0")
    tensor = np.eye(3)
    child = element.child("inertia")
    if child is not None:
        for i, j, name in _ENTRIES:
            tensor[i, j] = tensor[j, i] = scalar(child, name, float(i == j))
    if not np.array_equal(pose.rotation, np.eye(3)):
        tensor = pose.rotation @ tensor @ pose.rotation.T
    return Inertia(mass, pose.translation, 0.5 * (tensor + tensor.T))


_ENTRIES = (
    (0, 0, "ixx"),
    (0, 1, "ixy"),
    (0, 2, "ixz"),
    (1, 1, "iyy"),
    (1, 2, "iyz"),
    (2, 2, "izz"),
)


def read_tree(
    root: XmlElement,
    meshes: FoundMeshes,
    inertias: dict[str, Inertia],
    findings: FindingList,
    *,
    model: str | None = None,
) -> Robot:
    """Read a tree of SDF elements as a robot with inertias of its own.

    Args:
        root: The ``<sdf>`` element; its models have no ``<inertial>``.
        meshes: Finds the meshes, those of included files too; paths are relative to its folder.
        inertias: From `take_inertias`; links that are not in it keep SDF's default, 1 kg and the
            unit tensor.
        findings: Takes warnings of joints that do not move, which become fixed ones.
        model: Which model, where there are several.

    Raises:
        DescriptionError: The description is wrong; the message names file, line and element.
    """
    meshes.resolve(root, meshes.folder)
    robot = read_sdf(root, model=model, base=meshes.folder, included=meshes.resolve, locked=True)
    robot = fix_locked_joints(meshes.in_place(robot), findings)
    links = tuple(
        replace(link, inertia=inertias[link.name]) if link.name in inertias else link
        for link in robot.links
    )
    return replace(robot, links=links)
