"""A configuration to begin with: what was found, to be confirmed or corrected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import yaml

from cards_core.formats.cad.features import SMALL_HOLE, Candidate
from cards_core.formats.cad.importer import Recognised
from cards_core.formats.imports.findings import NameTable
from cards_core.formats.imports.markers import natural_order

_BASES = ("base", "ground", "world", "frame", "stand", "torso", "fixed")


def propose(found: Recognised) -> str:
    """Return the text of a configuration.

    Joints that coaxial faces suggest are in it with ``confirmed: false``: an import refuses the
    file until somebody has looked at each.
    """
    assumed = {item.code for item in found.job.findings}
    lines = [
        f"# What {found.source.name} cannot say. Read by ./cards import cad --config; see",
        "# docs/tutorial_cad.md. Lengths in m and places in the axes of the assembly, angles in",
        "# rad, densities in kg/m^3, tensions in N.",
        "",
        "material: aluminium   # ASSUMED: nothing in the file says it"
        if "material-assumed" in assumed
        else "# material: aluminium",
        "floating: false       # true: nothing holds the base",
        "",
        "bodies: {}            # exceptions, the last that matches counts",
    ]
    for body in found.bodies[:3]:
        lines.append(f"#  {_text(body.path)}: {{mass: {body.inertia.mass:.3g}}}")
    lines += [
        "",
        "# link: the components in it; else every top component is a link",
        "#links:",
    ]
    lines += [f"#  {name}: [{_text(name)}]" for name in found.layout.links]
    lines += ["", *_joints(found), "", *_muscles(found)]
    return "\n".join(lines) + "\n"


def _joints(found: Recognised) -> list[str]:
    if found.job.assembly.joints:
        names = ", ".join(joint.name for joint in found.job.assembly.joints)
        return [f"# joints: the file states them itself: {names}"]
    links = list(found.layout.links)
    if not found.candidates:
        lines = ["# No pin fits a hole of another link: the joints have to be written."]
        if len(links) < 2:
            return ["joints: {}            # one link, no joint"]
        lines += ["joints:", f"  {_text(links[1])}_joint:"]
        lines += ["    kind: revolute", f"    parent: {_text(links[0])}"]
        lines += [f"    child: {_text(links[1])}", "    at: [0, 0, 0]", "    axis: [0, 0, 1]"]
        return [*lines, "    confirmed: false"]
    lines = [
        "# Found from coaxial faces. Look at each: kind, which link is the parent, and how far it",
        "# moves. Then say confirmed: true, or delete it.",
        "joints:",
    ]
    table = NameTable()
    for candidate, parent, child in _tree(links, found.candidates):
        name = table.claim(f"{parent}_{child}")
        lines += [
            f"  {_text(name)}:   # {candidate.features[0]} in {candidate.features[1]}, "
            f"clearance {1e3 * candidate.clearance:.2g} mm",
            f"    kind: {candidate.kind}",
            f"    parent: {_text(parent)}",
            f"    child: {_text(child)}",
            f"    at: [{_numbers(candidate.at)}]",
        ]
        if candidate.kind == "revolute":
            lines += [f"    axis: [{_numbers(candidate.axis)}]", "    limits: [-1.57, 1.57]"]
        lines.append("    confirmed: false")
    return lines


def _tree(
    links: Sequence[str], candidates: Sequence[Candidate]
) -> list[tuple[Candidate, str, str]]:
    """Return candidates with parent and child, from the base outwards."""
    root = next(
        (name for word in _BASES for name in links if name.lower().startswith(word)), links[0]
    )
    reached = [root, *(name for name in links if name != root)]
    known, left = {root}, list(candidates)
    out = []
    while left:
        step = next((c for c in left if len(known & set(c.links)) == 1), None)
        if step is None:  # a loop, or links that nothing joins to the base
            step = next((c for c in left if not known & set(c.links)), None)
            if step is None:
                # links that are joined twice already: two bolts are one joint
                break
        left.remove(step)
        ordered = sorted(step.links, key=lambda name: (name not in known, reached.index(name)))
        known |= set(step.links)
        out.append((step, ordered[0], ordered[1]))
    return out


def _muscles(found: Recognised) -> list[str]:
    names = sorted({m.marker.muscle for m in found.marked} - {""}, key=natural_order)
    lines = ["muscle_defaults:", "  tension: [5, 500]   # ASSUMED", ""]
    if names:
        lines += [f"# Muscles that names in the file state: {', '.join(names)}"]
    lines += [
        "# A path from origin to insertion: features, markers, wrap surfaces, places of a link.",
        "muscles: {}",
        "#  biceps:",
        "#    path: [A#hole1, {wrap: elbow, side: [0, 0.1, 0]}, {link: arm, at: [0, 0, 0.1]}]",
        "#    tension: [5, 300]",
    ]
    small = [f for f in found.features if f.kind == "hole" and 2.0 * f.radius <= SMALL_HOLE]
    rings = [f for f in found.features if f.kind == "torus"]
    if small or rings:
        lines.append("# Small holes and rings:")
    for item in (*small, *rings)[:100]:
        lines.append(
            f"#  {item.name}: diameter {2e3 * item.radius:.3g} mm at [{_numbers(item.centre)}]"
        )
    return [*lines, "", "frames: {}", "#  hand: {link: lower_arm, at: [0, 0, 0]}"]


def _numbers(values: Sequence[float] | np.ndarray) -> str:
    rounded = (round(float(v), 9) + 0.0 for v in values)
    return ", ".join(f"{value:.9g}" for value in rounded)


def _text(name: str) -> str:
    """Return a name as YAML wants it."""
    text: str = yaml.safe_dump(name, default_flow_style=True, width=1000).strip()
    return text.removesuffix("...").strip()
