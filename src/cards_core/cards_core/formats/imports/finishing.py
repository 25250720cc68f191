"""The last steps of importing a robot of links, joints and muscles, the same for all formats."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal, TypeAlias, get_args

import numpy as np

from cards_core.checks import check_choice
from cards_core.dynamics import make_dynamics
from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.imports.inertias import home_within_limits
from cards_core.formats.imports.masses import (
    InertiaPoint,
    doubtful_masses,
    repair_and_report,
)
from cards_core.formats.imports.mesh_content import check_meshes
from cards_core.formats.imports.meshes import DRAWN
from cards_core.formats.imports.model import Section, table
from cards_core.formats.imports.units import doubtful_units
from cards_core.formats.mjcf.scene import MESH_SUFFIXES
from cards_core.robot.elements import Collision, Mesh, ViaPoint, path_links
from cards_core.robot.model import Robot

CollisionChoice: TypeAlias = Literal["primitives", "all", "none"]
"""Which collision shapes are taken over."""

BaseChoice: TypeAlias = Literal["fixed", "free"]
"""What holds links that no joint holds: the world, or nothing."""

NO_EFFECT = 1e-9
"""Moment arms below this are none, [m] or 1."""


def finish(
    robot: Robot, findings: FindingList, *, collisions: CollisionChoice = "primitives"
) -> tuple[Robot, tuple[Section, ...]]:
    """Return the robot that is written, and the sections of its report.

    Inertias are repaired, masses compared with shapes, collisions chosen, the home position is
    moved into the limits, muscles are measured.

    Args:
        robot: As the file says, with its inertias and absolute paths of meshes.
        findings: Takes what was done.
        collisions: ``primitives`` leaves meshes out: simulators take the convex hull, and those of
            neighbours in a CAD assembly overlap.

    Raises:
        DescriptionError: A mass is negative, or there is inertia without mass.
    """
    robot = _choose_collisions(robot, findings, collisions)
    robot = _home_within_limits(robot, findings)
    doubtful_masses(robot, findings)
    robot, masses = repair_and_report(robot, findings)
    doubtful_units(robot, findings)
    _not_drawn(robot, findings)
    check_meshes(robot, findings)
    return robot, (_joints(robot), *_muscles(robot, findings), masses)


def check_choices(base: str, collisions: str, inertia_about: str) -> None:
    """Refuse what `add_choices` does not offer.

    Args:
        base: What holds a link that no joint holds.
        collisions: Which shapes are taken over.
        inertia_about: Point that the tensors of the file are about.

    Raises:
        CardsError: One of them is unknown; the message lists all.
    """
    check_choice(base, "base", get_args(BaseChoice))
    check_choice(collisions, "collisions", get_args(CollisionChoice))
    check_choice(inertia_about, "inertia_about", get_args(InertiaPoint))


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Add ``--base``, ``--collisions`` and ``--inertia-about``.

    Args:
        parser: The importer's.
    """
    parser.add_argument(
        "--base",
        choices=get_args(BaseChoice),
        default="fixed",
        help="what holds a link that no joint holds: the world, or nothing (default: fixed)",
    )
    parser.add_argument(
        "--collisions",
        choices=get_args(CollisionChoice),
        default="primitives",
        help="collision shapes to take over; meshes of neighbours in a CAD assembly mostly "
        "overlap (default: primitives)",
    )
    parser.add_argument(
        "--inertia-about",
        choices=get_args(InertiaPoint),
        default="auto",
        help="point that the tensors of the file are about: the centres of mass, the origin of "
        "the model, or what the numbers say (default: auto)",
    )


def _choose_collisions(robot: Robot, findings: FindingList, choice: CollisionChoice) -> Robot:
    links = []
    for link in robot.links:
        kept: Sequence[Collision] = link.collisions
        if choice == "none":
            kept = ()
        elif choice == "primitives":
            kept = [item for item in kept if not isinstance(item.geometry, Mesh)]
        else:
            kept = [item for item in kept if not _unreadable(item)]
        left_out = len(link.collisions) - len(kept)
        if left_out:
            why = "a format that simulators do not read" if choice == "all" else "see --collisions"
            findings.warn(
                "collisions-left-out",
                "collisions",
                f"collision shapes of links are left out ({why})",
                at=FilePlace(robot.source, link.line),
            )
        links.append(dataclasses.replace(link, collisions=tuple(kept)))
    return dataclasses.replace(robot, links=tuple(links))


def _unreadable(item: Collision) -> bool:
    if not isinstance(item.geometry, Mesh):
        return False
    return not item.geometry.uri.lower().endswith(MESH_SUFFIXES)


def _not_drawn(robot: Robot, findings: FindingList) -> None:
    """Warn of links whose shapes are in files of formats that are not drawn here."""
    for link in robot.links:
        files = [item.geometry.uri for item in link.visuals if isinstance(item.geometry, Mesh)]
        kinds = sorted({PurePath(uri).suffix.lower() for uri in files} - set(DRAWN))
        if kinds:
            findings.warn(
                "mesh-not-drawn",
                f"link '{link.name}'",
                f"meshes in the format {', '.join(kinds)} are not drawn (drawn: "
                f"{', '.join(DRAWN)}); a link without other shapes is drawn as bars",
                at=FilePlace(robot.source, link.line),
            )


def _home_within_limits(robot: Robot, findings: FindingList) -> Robot:
    moved = home_within_limits(robot)
    for joint in robot.joints:
        before = robot.home.get(joint.name, (0.0,) * len(joint.axes))
        after = moved.home.get(joint.name, before)
        if tuple(after) != tuple(before):
            findings.warn(
                "home-moved",
                f"joint '{joint.name}'",
                f"home position {_text(before)} outside of its limits, moved to {_text(after)}",
                at=FilePlace(robot.source, joint.line),
            )
    return moved


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{x:g}" for x in values)


# Sections --------------------------------------------------------------------------------------


def _joints(robot: Robot) -> Section:
    rows, data = [], []
    for joint in robot.joints:
        if joint.kind == "fixed":
            continue
        limits = [[axis.lower, axis.upper] for axis in joint.axes]
        shown = "; ".join(f"{low:.4g} .. {high:.4g}" for low, high in limits)
        rows.append(
            [f"`{joint.name}`", joint.kind, f"`{joint.parent}`", f"`{joint.child}`", shown]
        )
        data.append(
            {
                "joint": joint.name,
                "kind": joint.kind,
                "parent": joint.parent,
                "child": joint.child,
                "limits": [[x if np.isfinite(x) else None for x in pair] for pair in limits],
            }
        )
    head = ["joint", "kind", "parent", "child", "limits, rad or m"]
    return Section("joints", "Joints", data, table(head, rows) if rows else "None that moves.")


def _muscles(robot: Robot, findings: FindingList) -> tuple[Section, ...]:
    """Return the section of the muscles; warn of coordinates that none moves."""
    if not robot.muscles:
        return ()
    surfaces = {surface.name: surface for surface in robot.wrap_surfaces}
    dynamics = make_dynamics(robot, "numeric")
    state = dynamics.update(dynamics.tree.home, np.zeros(dynamics.tree.nv))
    lengths = np.asarray(state.muscle_lengths, dtype=float).tolist()
    arms = np.abs(np.asarray(state.muscle_jacobian, dtype=float))
    rows, data = [], []
    for muscle, length in zip(robot.muscles, lengths, strict=True):
        links = list(dict.fromkeys(path_links(muscle.path, surfaces)))
        points = sum(isinstance(item, ViaPoint) for item in muscle.path)
        rows.append(
            [
                f"`{muscle.name}`",
                " ".join(f"`{link}`" for link in links),
                str(points),
                str(len(muscle.path) - points),
                f"{length:.6f}",
            ]
        )
        data.append(
            {
                "muscle": muscle.name,
                "links": links,
                "points": points,
                "wraps": len(muscle.path) - points,
                "length_at_home": length,
            }
        )
    for name, effect in zip(
        dynamics.tree.velocity_names, arms.max(axis=0, initial=0.0), strict=True
    ):
        if effect <= NO_EFFECT:
            findings.warn(
                "coordinate-not-driven",
                f"coordinate '{name}'",
                "no muscle moves it at the home position",
                at=FilePlace(robot.source),
            )
    for muscle, effect in zip(robot.muscles, arms.max(axis=1, initial=0.0), strict=True):
        if effect <= NO_EFFECT:
            findings.warn(
                "muscle-without-effect",
                f"muscle '{muscle.name}'",
                "it moves no coordinate at the home position",
                at=FilePlace(robot.source, muscle.line),
            )
    head = ["muscle", "links", "points", "wraps", "length at home, m"]
    return (Section("muscles", "Muscles", data, table(head, rows)),)
