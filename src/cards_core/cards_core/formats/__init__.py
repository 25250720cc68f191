"""Robots read from files and written to them: SDF with muscles, CASPR XML, URDF, MJCF.

`load` is the way in: ``load("roboy_arm")`` or ``load("path/to/model.sdf")`` gives a
`cards_core.robot.Robot`.
"""

from cards_core.formats.locate import find_model, known_models
from cards_core.formats.sdf.muscle_block import parse_muscle_block
from cards_core.formats.sdf.reader import load, read_sdf
from cards_core.formats.sdf.writer import to_sdf, write_model

__all__ = [
    "find_model",
    "known_models",
    "load",
    "parse_muscle_block",
    "read_sdf",
    "to_sdf",
    "write_model",
]
