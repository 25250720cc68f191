"""Robots from and to the XML files of CASPR [Lau2016]_; `docs/caspr.md` is the guide."""

from cards_core.formats.caspr.bodies import CoordinateMap
from cards_core.formats.caspr.cables import Cable, CableSet
from cards_core.formats.caspr.export import CasprExport, to_caspr, write_caspr
from cards_core.formats.caspr.feasibility import Feasibility
from cards_core.formats.caspr.files import CasprFiles, ModelRow, find_models
from cards_core.formats.caspr.importer import CasprModel, import_caspr
from cards_core.formats.caspr.operational_spaces import OperationalSpace
from cards_core.formats.caspr.report import ImportReport
from cards_core.formats.caspr.trajectories import CasprTrajectory
from cards_core.formats.caspr.writer import write_import
from cards_core.formats.imports.findings import Finding

__all__ = [
    "Cable",
    "CableSet",
    "CasprExport",
    "CasprFiles",
    "CasprModel",
    "CasprTrajectory",
    "CoordinateMap",
    "Feasibility",
    "Finding",
    "ImportReport",
    "ModelRow",
    "OperationalSpace",
    "find_models",
    "import_caspr",
    "to_caspr",
    "write_caspr",
    "write_import",
]
