"""The formats that ``./cards import`` reads. A new one is a line here."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

IMPORTERS = {
    "cad": (
        "cards_core.formats.cad.cli",
        "STEP assembly, FreeCAD document, or SDF with frames named muscle:NAME:K",
    ),
    "caspr": ("cards_core.formats.caspr.cli", "folder of CASPR's XML files"),
    "cardsflow": (
        "cards_core.formats.cardsflow.cli",
        "folder or SDF of a robot of CARDSflow or Roboy",
    ),
    "urdf": ("cards_core.formats.urdf.cli", "URDF, with muscles from a YAML file"),
    "mjcf": ("cards_sim.mjcf.cli", "MuJoCo's XML"),
    "opensim": ("cards_core.formats.opensim.cli", "OpenSim model, an .osim file"),
}
"""Format to (module with ``make_parser`` and ``main``, what it reads)."""


def import_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of an importer's options; ``name`` is one of `IMPORTERS`."""
    parser = importlib.import_module(IMPORTERS[name][0]).make_parser()
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


def run_import(name: str, argv: Sequence[str]) -> int:
    """Run an importer and return its exit code.

    Args:
        name: One of `IMPORTERS`.
        argv: Arguments after ``import FORMAT``.
    """
    return int(importlib.import_module(IMPORTERS[name][0]).main(argv))
