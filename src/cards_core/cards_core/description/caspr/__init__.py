"""Import of robots from the XML files of CASPR [Lau2016]_; `docs/caspr.md` is the guide."""

from cards_core.description.caspr.cables import Cable, CableSet
from cards_core.description.caspr.coordinates import CoordinateMap
from cards_core.description.caspr.feasibility import Feasibility
from cards_core.description.caspr.files import CasprFiles, ModelRow, find_models
from cards_core.description.caspr.findings import Finding
from cards_core.description.caspr.importer import CasprModel, import_caspr
from cards_core.description.caspr.operational_spaces import OperationalSpace
from cards_core.description.caspr.report import ImportReport
from cards_core.description.caspr.trajectories import CasprTrajectory
from cards_core.description.caspr.writer import write_import

__all__ = [
    "Cable",
    "CableSet",
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
    "write_import",
]
