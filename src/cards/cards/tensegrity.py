"""Tensegrity structures from a page of YAML.

structure = cards.tensegrity.build("structure.yaml")
sim = cards.Simulator(cards.tensegrity.to_robot(structure), ground=0.0)
cards.tensegrity.write_structure(structure, "models/mine")
"""

from __future__ import annotations

from cards_core.tensegrity import Structure, build, statics, to_robot, write_structure

__all__ = ["Structure", "build", "statics", "to_robot", "write_structure"]
