"""Load a robot by name or path."""

from __future__ import annotations

import logging
import os

from cards_core.errors import DescriptionError
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.sdf.unit_checks import unit_warning
from cards_core.robot.model import Robot

LOG = logging.getLogger(__name__)

_TOLD: set[str] = set()
"""Warnings of `load` that were given: commands read a robot more than once."""


def load(name_or_path: str | os.PathLike[str], *, model: str | None = None) -> Robot:
    """Read a robot; warn, once, if points of its muscles look as if they were in millimetres.

    Args:
        name_or_path: Name of a folder in `model_folders`, or path of an SDF file or a folder.
        model: Which model of a file that holds several.

    Raises:
        UnknownNameError: No such model; the message lists those there are.
        DescriptionError: The description is wrong; the message names file, line and element. Or
            it is that of a robot of rods, which `cards_core.rods.read_rod_robot` reads.
    """
    file = find_model(name_or_path)
    if has_rods(file):
        raise DescriptionError(
            "is a robot of rods; it has no muscles, and its joints are no tree",
            source=str(file),
            expected="a robot with muscles here; robots of rods: './cards demo', './cards analyse "
            "ik, fk, stiffness, workspace, force-sensing', './cards bench rods', "
            "cards_core.rods.read_rod_robot (docs/rod_robots.md)",
        )
    robot = read_sdf(file, model=model)
    warning = unit_warning(robot)
    if warning is not None:
        place = str(file) if warning.line is None else f"{file}:{warning.line}"
        text = f"{place}: muscle '{warning.muscle}': {warning.text}"
        if text not in _TOLD:
            _TOLD.add(text)
            LOG.warning("warning: %s", text)
    return robot
