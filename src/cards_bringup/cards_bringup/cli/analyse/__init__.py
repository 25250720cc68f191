"""``./cards analyse``: analyses of a robot; their modules are imported when they are used."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

_HERE = "cards_bringup.cli.analyse."

KINDS = {
    "ik": (
        _HERE + "kinematics",
        "muscle lengths of poses; robots of rods: joints of a plate pose",
    ),
    "fk": (
        _HERE + "kinematics",
        "poses from muscle lengths; robots of rods: plate pose of joints",
    ),
    "id": (_HERE + "dynamics", "tensions of a motion: tension distribution"),
    "fd": (_HERE + "dynamics", "motion under given tensions"),
    "stiffness": (
        _HERE + "stiffness",
        "joint stiffness matrix; robots of rods: that of the plate",
    ),
    "interaction": (_HERE + "dynamics", "forces and moments that the joints carry"),
    "workspace": (
        _HERE + "workspace",
        "where a condition holds: on grids, rays, random samples; robots of rods: plate poses",
    ),
    "force-sensing": (_HERE + "rods.force_sensing", "robots of rods: the wrench on the plate"),
    "prestress": (
        _HERE + "statics",
        "tensegrities: self-stress, mechanisms, tensions and rest lengths that keep cables taut",
    ),
    "modes": (_HERE + "statics", "tensegrities: frequencies and stability of an equilibrium"),
    "offsets": (_HERE + "offsets", "offsets of length sensors, from poses that nobody knows"),
    "cable-function": (_HERE + "cable_function", "what each muscle is for"),
}
"""Kind to its module, with a function ``add_KIND(subparsers)``, and one line of help."""

EXAMPLES = """examples:
  ./cards analyse id planar_2r --q=0.3,-0.5
  ./cards analyse workspace ipanema_1 --condition wrench_closure --grid x=-2:2:41,z=0:2:21
  ./cards analyse KIND --help       help on one kind
"""


def add_analyse(subparsers: Any, words: Sequence[str] = ()) -> None:
    """Declare the command; only the requested kind is imported.

    Args:
        subparsers: Receives the command.
        words: The command line after the command; the first kind in it is the requested one.
    """
    parser = subparsers.add_parser(
        "analyse",
        help="kinematics, tensions, stiffness, workspaces",
        description="Questions about a robot: kinematics, tensions, stiffness, workspaces.",
        epilog=EXAMPLES,
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    asked = next((word for word in words if word in KINDS), None)
    if asked is None:
        for name, (_, text) in KINDS.items():
            kinds.add_parser(name, help=text)
        return
    getattr(importlib.import_module(KINDS[asked][0]), f"add_{asked.replace('-', '_')}")(kinds)
