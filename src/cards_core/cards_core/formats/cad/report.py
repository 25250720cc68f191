"""What the report of an imported assembly says: masses, joints, muscles, open questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cards_core.formats.cad.assembly import Assembly
from cards_core.formats.cad.features import SMALL_HOLE, Candidate, Feature
from cards_core.formats.cad.links import Body, Import, MarkedComponent
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.model import Section, table
from cards_core.robot.elements import ViaPoint, Wrap
from cards_core.robot.model import Robot
from cards_core.typing import Array

LISTED = 200
"""Most rows of a table of features."""

QUESTIONS = {
    "material-assumed": "What are the bodies made of? `material:` for all, `bodies:` for single "
    "ones; or weigh them and state `mass:`.",
    "tension-assumed": "How strong are the muscles? `muscle_defaults: {tension: [low, high]}`, or "
    "`tension:` of a muscle, in N.",
    "no-limits": "How far do the joints move? `limits:` of a joint, in rad or m.",
    "volume-differs": "Are the masses of the bodies named above right?",
    "shape-faulty": "Are the masses of the bodies named above right?",
}
"""Code of a finding to what the user should answer."""


def sections(
    robot: Robot,
    job: Import,
    *,
    bodies: Sequence[Body],
    features: Sequence[Feature],
    candidates: Sequence[Candidate],
    marked: Sequence[MarkedComponent],
    used: set[str],
) -> tuple[Section, ...]:
    """Return the parts of the report.

    Args:
        robot: What was made.
        job: File and configuration.
        bodies: Solids with mass.
        features: Holes, pins and so on.
        candidates: Joints that they suggest.
        marked: Components with the names of markers.
        used: Names of features that something was made of.
    """
    return (
        _questions(robot, job.assembly, candidates, job.findings),
        _links(robot),
        _bodies(bodies),
        _joints(robot),
        _muscles(robot, marked),
        _features(features, used),
        candidate_section(candidates),
    )


def _questions(
    robot: Robot,
    assembly: Assembly,
    candidates: Sequence[Candidate],
    findings: FindingList,
) -> Section:
    codes = {item.code for item in findings}
    asked = list(dict.fromkeys(text for code, text in QUESTIONS.items() if code in codes))
    endless = [
        joint.name
        for joint in robot.joints
        for axis in joint.axes
        if not (np.isfinite(axis.lower) and np.isfinite(axis.upper))
    ]
    if endless and "no-limits" not in codes:
        asked.append(f"How far do {', '.join(dict.fromkeys(endless))} move? `limits:` of a joint.")
    if not robot.muscles:
        asked.append(
            "Where do the muscles run? Name frames, points or small bodies `muscle:NAME:1`, "
            "`muscle:NAME:2`, or list holes under `muscles:`."
        )
    joined = {frozenset((joint.parent, joint.child)) for joint in robot.joints}
    for item in candidates:
        if frozenset(item.links) not in joined:
            asked.append(
                f"{item.links[0]} and {item.links[1]} share an axis ({item.features[0]}, "
                f"{item.features[1]}): is there a joint?"
            )
    data = {"unit": assembly.unit, "questions": asked}
    text = f"Unit of length in the file: {assembly.unit}.\n\n"
    text += "\n".join(f"- {item}" for item in asked) if asked else "No question is open."
    return Section("questions", "What to answer", data, text)


def _moments(tensor: Array) -> list[float]:
    return [float(value) for value in np.linalg.eigvalsh(tensor)]


def _links(robot: Robot) -> Section:
    data, rows = [], []
    for link in robot.links:
        inertia = link.inertia
        moments = _moments(inertia.tensor)
        data.append(
            {
                "name": link.name,
                "mass": inertia.mass,
                "com": inertia.com.tolist(),
                "tensor": inertia.tensor.tolist(),
                "principal_moments": moments,
            }
        )
        rows.append(
            [
                link.name,
                f"{inertia.mass:.4g}",
                " ".join(f"{1e3 * v:.2f}" for v in inertia.com),
                " ".join(f"{v:.3g}" for v in moments),
                "yes",
            ]
        )
    head = ["link", "mass [kg]", "centre [mm]", "principal moments [kg m^2]", "a rigid body's"]
    total = sum(link.inertia.mass for link in robot.links)
    return Section(
        "links",
        "Links",
        data,
        table(head, rows) + f"\n\nTogether {total:.4g} kg. The centre is in the link's frame, "
        "which is that of its component. Every inertia satisfies the triangle inequality.",
    )


def _bodies(bodies: Sequence[Body]) -> Section:
    data = [
        {
            "path": body.path,
            "link": body.link,
            "volume": abs(body.solid.volume),
            "density": body.density,
            "basis": body.basis,
            "mass": body.inertia.mass,
            "triangles": len(body.solid.triangles),
        }
        for body in bodies
    ]
    rows = [
        [
            body.path,
            body.link,
            f"{1e6 * abs(body.solid.volume):.4g}",
            f"{body.density:.4g}",
            body.basis,
            f"{1e3 * body.inertia.mass:.4g}",
        ]
        for body in bodies[:LISTED]
    ]
    head = ["body", "link", "volume [cm^3]", "density [kg/m^3]", "from", "mass [g]"]
    return Section("bodies", "Bodies", data, table(head, rows) + _more(bodies))


def _more(items: Sequence[Any]) -> str:
    return f"\n\n{len(items) - LISTED} more." if len(items) > LISTED else ""


def _joints(robot: Robot) -> Section:
    data = [
        {"name": j.name, "kind": j.kind, "parent": j.parent, "child": j.child}
        for j in robot.joints
    ]
    rows = [
        [
            joint.name,
            joint.kind,
            joint.parent,
            joint.child,
            "; ".join(f"{a.lower:.4g} to {a.upper:.4g}" for a in joint.axes),
        ]
        for joint in robot.joints
    ]
    return Section(
        "joints", "Joints", data, table(["joint", "kind", "parent", "child", "limits"], rows)
    )


def _muscles(robot: Robot, marked: Iterable[MarkedComponent]) -> Section:
    data, rows = [], []
    for muscle in robot.muscles:
        path = [
            item.surface if isinstance(item, Wrap) else getattr(item, "link", "")
            for item in muscle.path
        ]
        points = sum(isinstance(item, ViaPoint) for item in muscle.path)
        data.append(
            {
                "name": muscle.name,
                "path": path,
                "points": points,
                "tension_min": muscle.tension_min,
                "tension_max": muscle.tension_max,
            }
        )
        rows.append(
            [muscle.name, " > ".join(path), f"{muscle.tension_min:g} to {muscle.tension_max:g}"]
        )
    names = [item.name for item in marked]
    text = table(["muscle", "path", "tension [N]"], rows) if rows else "None."
    if names:
        text += "\n\nNames that say what they are: " + ", ".join(f"`{n}`" for n in names) + "."
    return Section("muscle_paths", "Muscles", {"muscles": data, "markers": names}, text)


def _features(features: Sequence[Feature], used: set[str]) -> Section:
    listed = sorted(
        (f for f in features if f.kind != "hole" or 2.0 * f.radius <= SMALL_HOLE),
        key=lambda f: (f.kind != "hole", f.kind != "torus"),
    )
    data = [feature_data(item, item.name in used) for item in listed]
    rows = [
        [
            f"`{item.name}`",
            item.link,
            f"{2e3 * item.radius:.3g}",
            " ".join(f"{v:.5g}" for v in item.centre),
            " ".join(f"{v:.3g}" for v in item.axis),
            "yes" if item.name in used else "",
        ]
        for item in listed[:LISTED]
    ]
    head = ["feature", "link", "diameter [mm]", "centre in the assembly [m]", "axis", "used"]
    text = (
        "Small holes, rings, pins, balls and sockets. Each can be named in a configuration as a "
        "via point, as the place of a joint or, by its surface, under `surfaces:`.\n\n"
    )
    return Section("features", "Features", data, text + table(head, rows) + _more(listed))


def feature_data(item: Feature, used: bool) -> dict[str, Any]:
    """Return a feature as plain data."""
    return {
        "name": item.name,
        "kind": item.kind,
        "link": item.link,
        "centre": item.centre.tolist(),
        "axis": item.axis.tolist(),
        "radius": item.radius,
        "length": item.length,
        "used": used,
    }


def candidate_section(candidates: Sequence[Candidate]) -> Section:
    """Return the part about joints that features suggest."""
    data = [
        {
            "kind": item.kind,
            "links": list(item.links),
            "at": item.at.tolist(),
            "axis": item.axis.tolist(),
            "features": list(item.features),
            "clearance": item.clearance,
        }
        for item in candidates
    ]
    rows = [
        [
            item.kind,
            " and ".join(item.links),
            " ".join(f"{v:.5g}" for v in item.at),
            " ".join(f"{v:.3g}" for v in item.axis),
            " and ".join(f"`{name}`" for name in item.features),
            f"{1e3 * item.clearance:.3g}",
        ]
        for item in candidates
    ]
    head = ["kind", "links", "at [m]", "axis", "features", "clearance [mm]"]
    text = (
        table(head, rows)
        + "\n\nThese are suggestions; `--propose FILE` writes them for confirmation."
        if rows
        else "None: no pin fits a hole of another link, no ball a socket."
    )
    return Section("joint_candidates", "Joints that coaxial faces suggest", data, text)
