"""The arm of `cad_samples` as exporters that keep names would write it, and its muscles' lengths.

Links turn about y; what is where comes from the tables of `cad_samples`, in metres here.
"""

from __future__ import annotations

import numpy as np
from cad_samples import PLACES, POINTS, TURNED, expected_inertia, turn_y

LIMITS = 1.2
PARENTS = {"base": "world", "upper_arm": "base", "lower_arm": "upper_arm"}
JOINTS = {"upper_arm": "shoulder", "lower_arm": "elbow"}
MOVED = {"muscle:1:2": "muscle:1:2@upper_arm"}
"""A marker that stands on the base in the files, and names its link."""


def text(*values):
    return " ".join(repr(float(x)) for x in values)


def in_world(link, angles=(0.0, 0.0)):
    """Return rotation and place of a link, [m], at angles of shoulder and elbow."""
    shoulder, elbow = angles
    if link == "base":
        return np.eye(3), np.zeros(3)
    turn = turn_y(shoulder)
    if link == "upper_arm":
        return turn, np.zeros(3)
    return turn @ turn_y(TURNED[link] + elbow), turn @ (1e-3 * np.array(PLACES[link]))


def muscle_lengths(angles):
    """Return the lengths of the six muscles, [m], from the table of points."""
    places = {}
    for name, (link, point) in POINTS.items():
        rotation, place = in_world(link, angles)
        places[name] = rotation @ (1e-3 * np.array(point)) + place
    out = []
    for muscle in range(1, 7):
        path = [places[name] for name in sorted(places) if name.startswith(f"muscle:{muscle}:")]
        pairs = zip(path[1:], path[:-1], strict=True)
        out.append(sum(np.linalg.norm(b - a) for b, a in pairs))
    return np.array(out)


def markers():
    """Return name in the file, link and place in it, [m]."""
    out = []
    for name, (link, point) in POINTS.items():
        place = 1e-3 * np.array(point)
        if name in MOVED:
            rotation, origin = in_world(link)
            out.append((MOVED[name], "base", rotation @ place + origin))
        else:
            out.append((name, link, place))
    return out


def inertia(link):
    mass, com, tensor = expected_inertia(link)
    return (
        mass,
        com,
        {f"i{'xyz'[i]}{'xyz'[j]}": tensor[i, j] for i in range(3) for j in range(i, 3)},
    )


def urdf(mass="1e-9"):
    """As onshape-to-robot writes frames: links of 1e-9 kg, fixed."""
    parts = []
    for link in PLACES:
        kg, com, entries = inertia(link)
        tensor = " ".join(f'{key}="{float(value)!r}"' for key, value in entries.items())
        parts.append(
            f'<link name="{link}"><inertial><origin xyz="{text(*com)}"/><mass value="{kg!r}"/>'
            f"<inertia {tensor}/></inertial></link>"
        )
        if link in JOINTS:
            place, turn = 1e-3 * np.array(PLACES[link]), TURNED.get(link, 0.0)
            parts.append(
                f'<joint name="{JOINTS[link]}" type="revolute"><parent link="{PARENTS[link]}"/>'
                f'<child link="{link}"/><origin xyz="{text(*place)}" rpy="0 {turn!r} 0"/>'
                f'<axis xyz="0 1 0"/><limit lower="-{LIMITS}" upper="{LIMITS}" effort="1e9" '
                'velocity="1e9"/></joint>'
            )
    for name, link, place in markers():
        parts.append(
            f'<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="0" ixy="0" '
            f'ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>'
            f'<joint name="{name}_frame" type="fixed"><parent link="{link}"/>'
            f'<child link="{name}"/><origin xyz="{text(*place)}"/></joint>'
        )
    return f'<robot name="two_link_arm">{"".join(parts)}</robot>'


def mjcf():
    """Sites are the markers."""

    def body(link):
        kg, com, e = inertia(link)
        full = text(e["ixx"], e["iyy"], e["izz"], e["ixy"], e["ixz"], e["iyz"])
        place, turn = 1e-3 * np.array(PLACES[link]), TURNED.get(link, 0.0)
        hinge = JOINTS.get(link)
        return (
            f'<body name="{link}" pos="{text(*place)}" euler="0 {turn!r} 0">'
            f'<inertial pos="{text(*com)}" mass="{kg!r}" fullinertia="{full}"/>'
            + (f'<joint name="{hinge}" axis="0 1 0" range="-1.2 1.2"/>' if hinge else "")
            + "".join(
                f'<site group="3" name="{name}" pos="{text(*at)}"/>'
                for name, owner, at in markers()
                if owner == link
            )
            + "".join(body(child) for child, parent in PARENTS.items() if parent == link)
            + "</body>"
        )

    return (
        '<mujoco model="two_link_arm"><compiler angle="radian" balanceinertia="true"/>'
        f"<worldbody>{body('base')}</worldbody></mujoco>"
    )


def sdf():
    """Frames are the markers."""
    parts = [
        '<joint name="base_world" type="fixed"><parent>world</parent><child>base</child></joint>'
    ]
    for link in PLACES:
        kg, com, entries = inertia(link)
        tensor = "".join(f"<{key}>{float(value)!r}</{key}>" for key, value in entries.items())
        _, place = in_world(link)
        parts.append(
            f'<link name="{link}"><pose>{text(*place)} 0 {TURNED.get(link, 0.0)!r} 0</pose>'
            f"<inertial><pose>{text(*com)} 0 0 0</pose><mass>{kg!r}</mass>"
            f"<inertia>{tensor}</inertia></inertial></link>"
        )
        if link in JOINTS:
            parts.append(
                f'<joint name="{JOINTS[link]}" type="revolute"><parent>{PARENTS[link]}</parent>'
                f"<child>{link}</child><axis><xyz>0 1 0</xyz><limit><lower>-{LIMITS}</lower>"
                f"<upper>{LIMITS}</upper></limit></axis></joint>"
            )
    for name, link, place in markers():
        parts.append(
            f'<frame name="{name}"><pose relative_to="{link}">{text(*place)} 0 0 0</pose></frame>'
            if name.startswith("frame")
            else f'<frame name="{name}" attached_to="{link}">'
            f"<pose>{text(*place)} 0 0 0</pose></frame>"
        )
    return '<sdf version="1.11"><model name="two_link_arm">' + "".join(parts) + "</model></sdf>"
