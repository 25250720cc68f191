"""Import a MuJoCo model: `import_mjcf`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.imports.findings import FilePlace, NameTable, renamed_robot, safe_name
from cards_core.formats.imports.marked_frames import add_marked_muscles
from cards_core.formats.imports.markers import marked, meant_marker, misspelt
from cards_core.formats.imports.model import ImportedModel, Section
from cards_core.formats.imports.units import doubtful_units
from cards_core.robot.elements import WORLD, Frame, Joint, Link
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_sim.mjcf.actuators import TENSION, Actuators, muscle_table
from cards_sim.mjcf.agreement import inertia_section, with_length_errors
from cards_sim.mjcf.bodies import read_bodies
from cards_sim.mjcf.constraints import locked_joints
from cards_sim.mjcf.files import CompiledMjcf, compile_file, read_source
from cards_sim.mjcf.names import Names, pose_of
from cards_sim.mjcf.shapes import Shapes
from cards_sim.mjcf.tendons import Paths
from cards_sim.mujoco_warnings import quiet_mujoco

UNNAMED = "MuJoCo Model"
"""MuJoCo's name of a model without one."""


def import_mjcf(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    keyframe: str | None = None,
    frame: str | None = None,
    tension_max: float = TENSION,
    all_tendons: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> ImportedModel:
    """Return a robot from an MJCF file.

    Coordinates are MuJoCo's ``qpos``, entry by entry, without those of locked joints.

    Args:
        path: The main file.
        name: Name of the robot; default the model's, else that of the file.
        keyframe: Name of the keyframe that is home; default ``home``, else the first, else the
            reference pose.
        frame: Site or body that is the operational frame.
        tension_max: Largest tension of a muscle whose actuator has no limit, [N].
        all_tendons: Tendons that nothing pulls are cables up to `tension_max`, too.
        progress: Told what is done, and the share that is, 0 to 1.

    Raises:
        DescriptionError: A file is damaged, or MuJoCo refuses it; with its place.
        UnknownNameError: No such keyframe, site or body.
        CardsError: `tension_max` is no tension.
    """
    if not (math.isfinite(tension_max) and tension_max > 0.0):
        raise CardsError(f"largest tension {tension_max:g} N (expected: above 0 N)")
    told = progress or (lambda what, share: None)
    source = Path(path)
    told("reading", 0.0)
    text = read_source(source)
    told("compiling", 0.1)
    compiled = compile_file(text)
    told("converting", 0.5)
    names = Names(compiled)
    for said in compiled.warnings:
        names.findings.note("mujoco", "model", f"MuJoCo says: {said}", at=FilePlace(str(source)))
    for element, attribute, effect in text.obsolete:
        said = f"{attribute} left out, which newer MuJoCo does not have: that {effect}"
        names.findings.warn("obsolete", element.label, said, at=element)
    model = compiled.model
    key = _keyframe(compiled, keyframe)
    qpos = np.array(model.qpos0 if key is None else model.key_qpos[key])
    control = np.zeros(model.nu) if key is None else np.array(model.key_ctrl[key])
    shapes = Shapes(names)
    locked = locked_joints(names)
    links, joints = read_bodies(names, shapes, locked)
    qpos = _within_limits(names, joints, qpos, locked)
    paths = Paths(names, qpos)
    drive = Actuators(names, paths, control, tension_max, all_tendons=all_tendons)
    joints = _with_motors(names, joints, drive.efforts)
    frames = _frames(names, paths, frame, links, joints)
    _left_out(compiled, names)
    bodies = {names.name("body", index): link for index, link in names.links.items()}
    original = name or _model_name(compiled)
    robot = Robot(
        name=safe_name(original),
        links=tuple(links),
        joints=tuple(joints),
        muscles=tuple(drive.muscles),
        frames=tuple(frames),
        operational_frame=_operational(names, frames, frame),
        gravity=_gravity(model),
        home=_home(names, joints, qpos),
        source=str(source),
        wrap_surfaces=paths.surfaces,
    )
    table = NameTable()
    robot = add_marked_muscles(robot, names.findings, links=bodies, table=table)
    if not any(joint.kind != "fixed" for joint in joints):
        raise DescriptionError(
            "no joint moves", source=str(source), line=1, expected="a body with a joint"
        )
    told("checking", 0.8)
    doubtful_units(robot, names.findings)
    # of masses near the end of the range of numbers
    with np.errstate(all="ignore"), quiet_mujoco():
        rows = with_length_errors(drive.rows, names, robot, locked, qpos)
        inertia = inertia_section(robot)
    sections = (
        Section("muscles", "Muscles", [dict(row.__dict__) for row in rows], muscle_table(rows)),
        inertia,
    )
    return ImportedModel(
        robot,
        "MuJoCo",
        source,
        names.findings,
        renamed=(
            *renamed_robot(original, robot.name),
            *names.table.renamed,
            *names.muscles.renamed,
            *names.surfaces.renamed,
            *table.renamed,
        ),
        sections=sections,
        files=shapes.files,
    )


def _model_name(compiled: CompiledMjcf) -> str:
    name = str(compiled.spec.modelname)
    return compiled.source.path.stem if not name or name == UNNAMED else name


def _keyframe(compiled: CompiledMjcf, name: str | None) -> int | None:
    model = compiled.model
    known = [model.key(i).name for i in range(model.nkey)]
    if name is not None:
        check_choice(name, "keyframe", known)
        return known.index(name)
    if "home" in known:
        return known.index("home")
    return 0 if known else None


def _within_limits(
    names: Names, joints: list[Joint], qpos: Array, locked: Mapping[int, float]
) -> Array:
    """Return the coordinates that the robot stands at; a warning for each that differs.

    Args:
        names: Of the model.
        joints: Ours.
        qpos: Coordinates that the file states, shape (nq,).
        locked: Joints that a constraint holds, and their coordinate there, [rad] or [m].
    """
    model = names.compiled.model
    of_name = {joint.name: joint for joint in joints}
    out = np.array(qpos, dtype=float)
    for index, value in locked.items():
        out[int(model.jnt_qposadr[index])] = value
    for index, name in names.joints.items():
        place = int(model.jnt_qposadr[index])
        for axis in of_name[name].axes:
            out[place] = np.clip(qpos[place], axis.lower, axis.upper)
            if out[place] != qpos[place]:
                names.warn(
                    "home",
                    "joint",
                    index,
                    f"starts at {qpos[place]:g}, outside its limits; here at {out[place]:g}",
                )
    return out


def _home(names: Names, joints: list[Joint], qpos: Array) -> dict[str, tuple[float, ...]]:
    model = names.compiled.model
    of_name = {joint.name: joint for joint in joints}
    home: dict[str, tuple[float, ...]] = {}
    for index, name in names.joints.items():
        joint = of_name[name]
        first = int(model.jnt_qposadr[index])
        size = {"free": 7, "ball": 4}.get(joint.kind, 1)
        values = np.array(qpos[first : first + size], dtype=float)
        if size > 1:
            length = float(np.linalg.norm(values[-4:]))
            values[-4:] = values[-4:] / length if length > 0.0 else (1.0, 0.0, 0.0, 0.0)
            home[name] = tuple(values.tolist())
            continue
        if values[0] != 0.0:
            home[name] = (float(values[0]),)
    return home


def _with_motors(names: Names, joints: list[Joint], efforts: dict[int, float]) -> list[Joint]:
    motors = {names.joints[index]: effort for index, effort in efforts.items()}
    out = []
    for joint in joints:
        if joint.name in motors:
            axis = joint.axes[0]
            effort = min(motors[joint.name], axis.effort)
            joint = replace(joint, motor=True, axes=(replace(axis, effort=effort),))  # noqa: PLW2901
        out.append(joint)
    return out


def _frames(
    names: Names, paths: Paths, wanted: str | None, links: list[Link], joints: list[Joint]
) -> list[Frame]:
    """Return a frame for every site that is no part of a muscle, and for the one wanted."""
    model = names.compiled.model
    sites = {
        site: name
        for site in range(model.nsite)
        if (name := names.name("site", site) or f"site_{site}") == wanted
        or site not in paths.used_sites
    }
    markers = marked(sites.values())
    frames = []
    for site, name in sites.items():
        link = names.links[int(model.site_bodyid[site])]
        if (meant := meant_marker(name)) is not None:
            names.warn("marker-misspelt", "site", site, misspelt(meant))
        pose = pose_of(model.site_pos[site], model.site_quat[site])
        if name in markers:
            place = names.place("site", site)[1]
            if link != WORLD or not name.lower().startswith("frame:"):
                frames.append(Frame(name, link, pose, place))
                continue
        if link == WORLD:
            link = _fixed_link(names, links, joints)
        frames.append(Frame(name if name in markers else names.table.claim(name), link, pose))
    return frames


def _fixed_link(names: Names, links: list[Link], joints: list[Joint]) -> str:
    """Return a link that is the world's frame: in SDF a frame is on a link."""
    if names.surroundings is not None:
        return names.surroundings
    names.surroundings = name = names.table.claim("surroundings")
    links.insert(0, Link(name))
    joints.insert(0, Joint(names.table.claim(f"{name}_fixed"), "fixed", WORLD, name))
    return name


def _operational(names: Names, frames: list[Frame], frame: str | None) -> str | None:
    if frame is None:
        return None
    frame = dict(names.table.renamed).get(frame, frame)
    known = [item.name for item in frames] + [n for n in names.links.values() if n != WORLD]
    check_choice(frame, "site or body", known)
    return frame


def _left_out(compiled: CompiledMjcf, names: Names) -> None:
    """Name what a description has no place for."""
    model = compiled.model
    findings, at = names.findings, FilePlace(str(compiled.source.path))
    weighty = {
        "flexes": model.nflex,
        "skins": model.nskin,
        "plugins": model.nplugin,
    }
    plain = {
        "sensors": model.nsensor,
        "cameras": model.ncam,
        "lights": model.nlight,
        "contact pairs": model.npair,
        "excluded contacts": model.nexclude,
    }
    for what, count in weighty.items():
        if count:
            findings.warn("left-out", what, f"{count} left out", at=at)
    for what, count in plain.items():
        if count:
            findings.note("left-out", what, f"{count} left out", at=at)
    option = model.opt
    if option.density or option.viscosity:
        findings.warn("fluid", "option", "forces of the medium left out", at=at)
    off = mujoco.mjtDisableBit
    bits = {"limits": off.mjDSBL_LIMIT, "contacts": off.mjDSBL_CONTACT}
    bits |= {
        "springs": off.mjDSBL_SPRING,
        "damping": off.mjDSBL_DAMPER,
        "dry friction": off.mjDSBL_FRICTIONLOSS,
    }
    for what, bit in bits.items():
        if option.disableflags & int(bit):
            findings.warn("flag", "option", f"{what} switched off there, not here", at=at)


def _gravity(model: mujoco.MjModel) -> Array:
    if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY):
        return np.zeros(3)
    gravity: Array = np.array(model.opt.gravity)
    return gravity
