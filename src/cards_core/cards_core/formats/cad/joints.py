"""Joints of an imported assembly: from the configuration, or from the file (CROSS)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.cad.assembly import Assembly
from cards_core.formats.cad.config import JointEntry, PlaceName, unknown
from cards_core.formats.cad.links import Import, Layout, rename
from cards_core.formats.imports.findings import SAFE, FilePlace, NameTable, safe_name
from cards_core.robot.elements import AXES_PER_KIND, WORLD, Joint, JointAxis
from cards_core.spatial import Pose, matrix_quaternion
from cards_core.typing import Vector3


def make_joints(
    job: Import,
    layout: Layout,
    locate: Callable[[JointEntry, PlaceName], Vector3],
    candidates: int,
) -> tuple[list[Joint], Mapping[str, tuple[float, ...]]]:
    """Return the joints, those to the world among them, and the home of a floating base.

    Args:
        job: File and configuration.
        layout: The links.
        locate: Returns a place in the assembly, [m].
        candidates: How many joints were found, for messages.

    Raises:
        DescriptionError: An unknown link, links without a joint, or joints that are no tree.
    """
    config, findings, source = job.config, job.findings, job.source
    if config.joints is not None:
        joints = [_configured(entry, layout, locate) for entry in config.joints]
    else:
        joints = _given(job.assembly, layout, source)
    children = [joint.child for joint in joints]
    for name in children:
        if children.count(name) > 1:
            raise DescriptionError(
                f"is the child of {children.count(name)} joints",
                source=config.source or source,
                element=f"link '{name}'",
                expected="one; loops cannot be imported",
            )
    roots = [name for name in layout.links if name not in children]
    if len(roots) != 1:
        raise DescriptionError(
            f"{len(layout.links)} links and {len(joints)} joints between them: "
            f"{', '.join(roots[:8]) or 'all of them'} are not held by one",
            source=config.source or source,
            expected=f"joints that make a tree; --propose FILE writes the {candidates} that were "
            "found, to be looked through, and --config FILE reads them",
        )
    root = roots[0]
    pose = layout.links[root]
    taken = NameTable(joint.name for joint in joints)
    if config.floating:
        name = taken.claim(f"{root}_free")
        home = {name: (*pose.translation.tolist(), *matrix_quaternion(pose.rotation).tolist())}
        return [Joint(name, "free", WORLD, root), *joints], home
    name = taken.claim(f"{root}_to_world")
    findings.note(
        "base-fixed", f"link '{root}'",
        "no joint holds it; fixed to the world (floating: true makes it free)",
        at=FilePlace(source),
    )  # fmt: skip
    return [Joint(name, "fixed", WORLD, root, Pose(), pose), *joints], {}


def _link(entry: JointEntry, key: str, layout: Layout) -> str:
    name = getattr(entry, key)
    found = rename(layout, name)
    if found is None:
        raise unknown(entry.where[key], "link", name, list(layout.links))
    return found


def _configured(
    entry: JointEntry, layout: Layout, locate: Callable[[JointEntry, PlaceName], Vector3]
) -> Joint:
    if safe_name(entry.name) != entry.name:
        raise entry.where.error(f"'{entry.name}' is no name", SAFE)
    parent, child = _link(entry, "parent", layout), _link(entry, "child", layout)
    if parent == child:
        raise entry.where.error(f"joins '{parent}' to itself", "two links")
    frame = Pose(np.eye(3), locate(entry, entry.at))
    return Joint(
        entry.name,
        entry.kind,  # type: ignore[arg-type]  # one of AXES_PER_KIND, as read
        parent,
        child,
        layout.links[parent].inverse() @ frame,
        frame.inverse() @ layout.links[child],
        entry.axes,
    )


def _given(assembly: Assembly, layout: Layout, source: str) -> list[Joint]:
    out = []
    table = NameTable()
    for item in assembly.joints:
        where = f"joint '{item.name}'"
        if item.kind not in AXES_PER_KIND:
            raise DescriptionError(
                f"the type is '{item.kind}'", source=source, element=where,
                expected="fixed, prismatic, revolute, continuous, planar or floating",
            )  # fmt: skip
        ends = []
        for role, name in (("parent", item.parent), ("child", item.child)):
            found = rename(layout, name)
            if found is None:
                raise DescriptionError(
                    f"its {role} is '{name}'", source=source, element=where,
                    expected=f"one of the links {', '.join(layout.links)}",
                )  # fmt: skip
            ends.append(found)
        limits = {
            "lower": item.lower,
            "upper": item.upper,
            "effort": item.effort,
            "velocity": item.velocity,
        }
        axes: Sequence[JointAxis] = ()
        if AXES_PER_KIND[item.kind] == 1:
            axes = (JointAxis(np.array([0.0, 0.0, 1.0]), **limits),)
        elif item.kind == "planar":
            axes = tuple(JointAxis(axis) for axis in np.eye(3))
        out.append(
            Joint(
                table.claim(item.name, "joint"),
                item.kind,  # type: ignore[arg-type]  # one of AXES_PER_KIND, as read
                ends[0],
                ends[1],
                item.origin,
                Pose(),
                tuple(axes),
            )
        )
    return out
