"""Tensegrity structures: from a page of YAML to bodies, cables and an SDF.

`build` reads a file and gives a `Structure`, `write_structure` makes a model of it; `statics` has
self-stress, prestress, form finding and modes.
"""

from cards_core.tensegrity.build import build
from cards_core.tensegrity.robot import to_robot, write_structure
from cards_core.tensegrity.structure import Structure

__all__ = ["Structure", "build", "to_robot", "write_structure"]
