"""Robots of every kind by name, path or text."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import NoneType
from typing import TypeAlias

from cards_core.checks import check_kind
from cards_core.errors import CardsError
from cards_core.formats import find_model, known_models, read_sdf
from cards_core.formats import load as load_muscles
from cards_core.formats.locate import has_rods
from cards_core.formats.urdf.importer import import_urdf, is_urdf, with_masses
from cards_core.formats.xml_lines import parse_xml
from cards_core.robot.model import Robot
from cards_core.rods import RodRobot, read_rod_robot

AnyRobot: TypeAlias = Robot | RodRobot
"""A robot with muscles, or a robot of rods."""

LOG = logging.getLogger(__name__)

_MARK = "\ufeff"  # with which some editors begin a file

__all__ = ["AnyRobot", "known_models", "load"]


def check_robot(robot: object) -> None:
    """Refuse what is no robot.

    Raises:
        CardsError: The message says how to get one.
    """
    name = robot if isinstance(robot, str) and robot in known_models() else "planar_2r"
    check_kind(robot, (Robot, RodRobot), "the robot", f'a robot, e.g. cards.load("{name}")')


def load(source: str | os.PathLike[str], *, model: str | None = None) -> AnyRobot:
    """Read a robot.

    Args:
        source: Name of a model (`known_models`), path of an SDF file or of a folder with one, path
            of a URDF (``.urdf``), or the text of an SDF or URDF file.
        model: Which model, where a file holds several.

    Returns:
        A `cards_core.robot.model.Robot`, or a `RodRobot` for a robot of rods.

    Raises:
        CardsError: The source is neither a text nor a path.
        UnknownNameError: No such model; the message lists those there are.
        DescriptionError: The description is wrong; the message names file, line and element.
    """
    check_kind(model, (str, NoneType), "model", "the name of a model in the file")
    if isinstance(source, str):
        text = source.removeprefix(_MARK).lstrip()
        if text.startswith("<"):
            root = parse_xml(text)
            return _imported(text, model) if root.tag == "robot" else read_sdf(root, model=model)
    if isinstance(source, str | os.PathLike) and is_urdf(Path(source)):
        return _imported(Path(source), model)
    if has_rods(find_model(source)):
        return read_rod_robot(source, model=model)
    return load_muscles(source, model=model)


def _imported(source: Path | str, model: str | None) -> Robot:
    """Return the robot of a URDF; log how much was changed."""
    if model is not None:
        raise CardsError(f"model '{model}' of a URDF, which holds one (expected: no model)")
    imported = import_urdf(source)
    if imported.warnings:
        name = source if isinstance(source, Path) else "URDF"
        LOG.warning("warning: %s: %s; './cards import urdf' lists them", name, imported.summary())
    return with_masses(imported.robot)
