"""Read an ``.osim`` file into a `SourceModel`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cards_core.formats.imports.next_command import refuse_cad, wrong_root
from cards_core.formats.opensim.fields import (
    flag,
    name_of,
    name_taken,
    number,
    objects,
    vector,
    word,
)
from cards_core.formats.opensim.functions import Scaled, function_in
from cards_core.formats.opensim.joint_reading import (
    Frames,
    offset_frames,
    read_coordinates,
    read_joint,
)
from cards_core.formats.opensim.muscles import MUSCLES
from cards_core.formats.opensim.path_reading import read_muscle, read_wrap_objects
from cards_core.formats.opensim.schema import FORCES, check_document, check_force, version_of
from cards_core.formats.opensim.source import (
    GROUND,
    Body,
    Coordinate,
    Coupling,
    LeftOut,
    SourceJoint,
    SourceModel,
    SourceMuscle,
    WrapObject,
)
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten
from cards_core.robot.elements import Inertia
from cards_core.spatial import Pose

MOTORS = ("CoordinateActuator", "ActivationCoordinateActuator")
"""Forces that become motors of joints."""

_PATHS = ("GeometryPath", "path")


def read_osim(path: Path) -> SourceModel:
    """Return the model of a file.

    Raises:
        DescriptionError: Not an OpenSim model, damaged, or with a part that changes the motion and
            cannot be converted.
    """
    refuse_cad(path, "an OpenSim document")
    root = parse_xml(path)
    if root.tag != "OpenSimDocument":
        raise wrong_root(root, "an OpenSim document", "<OpenSimDocument>")
    version = version_of(root)
    check_document(root)
    model = root.child("Model")
    assert model is not None  # checked
    _apply_defaults(model)
    parts = _components(model)
    found = [*objects(model, "BodySet"), *parts["Body"]]
    bodies: dict[str, Body] = {}
    carriers: list[tuple[str, XmlElement]] = []
    ground = model.child("Ground")
    if ground is not None:
        carriers.append((GROUND, ground))
    for item in found:
        if item.tag != "Body":
            raise item.error(f"<{shorten(item.tag)}> in the body set", "<Body>")
        name = name_of(item)
        carriers.append((name, item))
        if name == GROUND:
            continue
        if name in bodies:
            raise name_taken(item, bodies[name].element)
        bodies[name] = Body(name, _inertia(item), _meshes(item), item)
    frames = _frames(model, frozenset(bodies), carriers, parts["Joint"])
    joints, coordinates = _joints(model, frames, found, parts["Joint"])
    wraps: dict[str, WrapObject] = {}
    for name, item in carriers:
        wraps |= read_wrap_objects(item, name, frames, wraps)
    muscles: dict[str, SourceMuscle] = {}
    motors: list[XmlElement] = []
    left_out: list[LeftOut] = []
    forces = [(item, True) for item in objects(model, "ForceSet")]
    for item, listed in (*forces, *((item, False) for item in parts["Force"])):
        check_force(item)
        if flag(item, "isDisabled", False) or not flag(item, "appliesForce", True):
            left_out.append(LeftOut(item, "it is switched off"))
        elif listed and item.tag not in FORCES:
            left_out.append(LeftOut(item, "no force of OpenSim has this name", weighty=True))
        elif item.tag in MOTORS:
            motors.append(item)
        elif item.tag not in MUSCLES:
            left_out.append(LeftOut(item, "no counterpart here", weighty=_pulls(item)))
        else:
            muscle = read_muscle(item, frames, wraps, coordinates)
            if muscle.name in muscles:
                raise name_taken(item, muscles[muscle.name].element)
            muscles[muscle.name] = muscle
    for kind, what in (
        ("ControllerSet", "controllers belong to a run"),
        ("ContactGeometrySet", "shapes of contacts are not converted"),
        ("ProbeSet", "probes measure only"),
    ):
        for item in objects(model, kind):
            left_out.append(LeftOut(item, what))
    for _, carrier in carriers:
        for item in carrier.child("components") or ():
            if item.tag != "PhysicalOffsetFrame":
                left_out.append(LeftOut(item, "no counterpart here"))
    couplings = _couplings(model, coordinates, left_out, parts["Constraint"])
    return SourceModel(
        (model.get("name") or path.stem).strip() or path.stem,
        path, version, vector(model, "gravity", 3, np.array([0.0, -9.80665, 0.0])),
        bodies, joints, coordinates, couplings, tuple(muscles.values()), tuple(motors),
        tuple(left_out),
    )  # fmt: skip


def _pulls(element: XmlElement) -> bool:
    """Whether a force pulls along a path."""
    return any(child.tag.endswith(("Path", "path")) for child in element)


def _apply_defaults(model: XmlElement) -> None:
    """Give objects the properties they lack and the document's ``<defaults>`` of their class have.

    Paths are not among them: a muscle without one is a mistake.
    """
    defaults = {item.tag: item for item in model.child("defaults") or ()}
    for child in model if defaults else ():
        for item in _deep(child) if child.tag != "defaults" else ():
            own = {part.tag for part in item}
            for part in defaults.get(item.tag, ()):
                if part.tag not in own and part.tag not in _PATHS:
                    item.append(part)


def _components(model: XmlElement) -> dict[str, list[XmlElement]]:
    """Return the objects that the model holds outside of its sets, by what they are."""
    out: dict[str, list[XmlElement]] = {"Body": [], "Joint": [], "Constraint": [], "Force": []}
    for item in model.child("components") or ():
        kind = next((k for k in ("Body", "Joint", "Constraint") if item.tag.endswith(k)), "Force")
        if not item.tag.endswith("Frame"):
            out[kind].append(item)
    return out


def _inertia(element: XmlElement) -> Inertia:
    mass = number(element, "mass", 0.0, lower=0.0)
    com = vector(element, "mass_center", 3, np.zeros(3))
    if element.child("inertia") is not None:
        xx, yy, zz, xy, xz, yz = vector(element, "inertia", 6)
    else:
        tags = ("inertia_xx", "inertia_yy", "inertia_zz", "inertia_xy", "inertia_xz", "inertia_yz")
        xx, yy, zz, xy, xz, yz = (number(element, tag, 0.0) for tag in tags)
    return Inertia(mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def _meshes(element: XmlElement) -> int:
    """Count the drawn shapes of a body."""
    return sum(1 for item in _deep(element) if item.tag in ("Mesh", "DisplayGeometry"))


def _deep(element: XmlElement) -> Iterator[XmlElement]:
    for child in element:
        yield child
        yield from _deep(child)


def _frames(
    model: XmlElement,
    names: frozenset[str],
    carriers: list[tuple[str, XmlElement]],
    loose: list[XmlElement],
) -> Frames:
    offsets: dict[str, tuple[str, Pose]] = {}
    frames = Frames(names, offsets)
    for tag in ("components", "ComponentSet"):
        offsets |= offset_frames(model, tag, frames)
    for name, item in carriers:
        for frame, value in offset_frames(item, "components", frames, owner=name).items():
            offsets[f"{name}/{frame}"] = value
    for joint in (*objects(model, "JointSet"), *loose):
        for frame, value in offset_frames(joint, "frames", frames).items():
            offsets[f"{joint.get('name', '')}/{frame}"] = value
    return frames


def _joints(
    model: XmlElement, frames: Frames, listed: list[XmlElement], loose: list[XmlElement]
) -> tuple[tuple[SourceJoint, ...], dict[str, Coordinate]]:
    """Return joints and coordinates, of format 4 or of the older ones (joint within body)."""
    found: list[tuple[XmlElement, str | None]] = [
        (item, None) for item in (*objects(model, "JointSet"), *loose)
    ]
    for body in listed:
        holder = body.child("Joint")
        for item in holder if holder is not None else ():
            found.append((item, name_of(body)))
    joints: list[SourceJoint] = []
    coordinates: dict[str, Coordinate] = {}
    for item, child in found:
        joint = read_joint(item, frames, child)
        if joint.child == GROUND:
            raise item.error("the ground is the child", "ground as the parent")
        earlier = next((other for other in joints if other.child == joint.child), None)
        if earlier is not None:
            raise item.error(
                f"body '{shorten(joint.child)}' is already the child of joint "
                f"'{shorten(earlier.name)}'; loops cannot be converted",
                "one joint per body",
            )
        joints.append(joint)
        for coordinate in read_coordinates(item):
            if coordinate.name in coordinates:
                raise name_taken(coordinate.element, coordinates[coordinate.name].element)
            coordinates[coordinate.name] = coordinate
    _check_tree(joints, model, frames)
    return tuple(joints), coordinates


def _check_tree(joints: list[SourceJoint], model: XmlElement, frames: Frames) -> None:
    parents = {joint.child: joint.parent for joint in joints}
    for name in sorted(frames.bodies):
        above, steps = name, 0
        while above != GROUND:
            if above not in parents or steps > len(parents):
                raise model.error(
                    f"body '{shorten(name)}' is not connected to the ground by joints",
                    "a chain of joints from every body to the ground",
                )
            above, steps = parents[above], steps + 1


def _couplings(
    model: XmlElement,
    coordinates: dict[str, Coordinate],
    left_out: list[LeftOut],
    loose: list[XmlElement],
) -> dict[str, Coupling]:
    out: dict[str, Coupling] = {}
    for item in (*objects(model, "ConstraintSet"), *loose):
        off = flag(item, "isDisabled", False) or not flag(item, "isEnforced", True)
        if item.tag != "CoordinateCouplerConstraint":
            if off:
                left_out.append(LeftOut(item, "it is switched off"))
                continue
            raise item.error(
                f"constraints of kind '{shorten(item.tag)}' cannot be converted",
                "CoordinateCouplerConstraint, or isEnforced false",
            )
        if off:
            left_out.append(LeftOut(item, "it is switched off"))
            continue
        holder = item.child("coupled_coordinates_function")
        function = function_in(holder) if holder is not None else None
        names = word(item, "independent_coordinate_names").split()
        dependent = word(item, "dependent_coordinate_name")
        if function is None or len(names) != 1:
            raise item.error(
                f"a function of {len(names)} coordinates", "a function of one coordinate"
            )
        for name in (dependent, names[0]):
            if name not in coordinates:
                raise item.error(f"coordinate '{shorten(name)}' does not exist", "a coordinate")
        if dependent in out or dependent == names[0]:
            raise item.error(f"coordinate '{shorten(dependent)}' depends twice", "once")
        scale = number(item, "scale_factor", 1.0)
        if scale != 1.0:
            function = Scaled(scale, function)
        out[dependent] = Coupling(dependent, names[0], function, item)
    for start, coupling in out.items():
        name, steps = start, 0
        while name in out:
            name, steps = out[name].independent, steps + 1
            if steps > len(out):
                raise coupling.element.error("couplings in a circle", "no circle")
    return out
