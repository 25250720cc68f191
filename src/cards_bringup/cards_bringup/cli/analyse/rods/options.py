"""Options of ``./cards analyse`` for robots of rods, and which options no such robot has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cards_core.errors import CardsError
from cards_core.formats.locate import find_model, has_rods

MUSCLE_OPTIONS = {
    "ik": ("q", "qd", "qdd", "trajectory", "input"),
    "fk": ("lengths", "rates", "input", "initial"),
    "stiffness": (
        "trajectory",
        "input",
        "tensions",
        "muscle_stiffness",
        "axial_stiffness",
        "gravity",
    ),
}
"""Options of each kind that are for robots with muscles alone."""

RODS_ALONE = {"fk": ("q",)}
"""Options of a kind, besides those of all kinds, that are for robots of rods alone."""


def is_rod_robot(name: str) -> bool:
    """Return whether a name or path is that of a robot of rods.

    Raises:
        UnknownNameError: There is no such robot.
    """
    return has_rods(find_model(name))


def refuse_options(args: argparse.Namespace, names: Sequence[str], whose: str) -> None:
    """Refuse options that do not apply to this robot.

    Args:
        args: Parsed options.
        names: Attributes of ``args``; None and False count as not given.
        whose: Robots that the options are for, for the message.

    Raises:
        CardsError: One of them was given.
    """
    for name in names:
        if not any(getattr(args, name, None) is value for value in (None, False)):
            option = "--" + name.replace("_", "-")
            raise CardsError(
                f"{option} is for {whose}, not for '{args.robot}' (expected: without it)"
            )


def add_options(parser: Any, *, pose: bool, joints: bool, has_q: bool = False) -> None:
    """Declare the options of a kind for robots of rods.

    Args:
        parser: Parser of the kind.
        pose: Whether it takes a plate pose.
        joints: Whether it takes joint coordinates, as ``--joints`` or, as elsewhere, ``--q``.
        has_q: The parser has ``--q`` already, for robots with muscles.
    """
    group = parser.add_argument_group("robots of rods")
    if pose:
        text = "plate pose; x y z [m], rx ry rz [rad] from home (default: home)"
        group.add_argument("--pose", action="append", metavar="C=V,..", help=text)
    if joints:
        text = "joint coordinates, also as --q (default: home)"
        group.add_argument("--joints", metavar="Q,..", help=text)
        if not has_q:
            group.add_argument("--q", metavar="Q,..", help="the same as --joints")
    group.add_argument("--wrench", metavar="FX,..,MZ", help="on the plate [N, N m]")
    group.add_argument("--frame", choices=("world", "plate"), help="of --wrench (world)")


def dispatch(args: argparse.Namespace) -> int | None:
    """Run the analysis of a robot of rods; return None for other robots, after a check of options.

    Raises:
        CardsError: Options that do not apply to the robot.
    """
    if is_rod_robot(args.robot):
        refuse_options(args, MUSCLE_OPTIONS[args.kind], "robots with muscles")
        from cards_bringup.cli.analyse.rods import equilibrium  # slow to load

        return equilibrium.run(args)
    names = ("pose", "joints", "wrench", "frame", *RODS_ALONE.get(args.kind, ()))
    refuse_options(args, names, "robots of rods alone")
    return None
