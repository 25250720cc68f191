"""Controllers as C that needs nothing of CARDS: for microcontrollers and real-time programs."""

from cards_core.embedded.controller import check_exportable, export_controller
from cards_core.embedded.export import ControllerExport, NotExportableError
from cards_core.embedded.folder import write_controller

__all__ = [
    "ControllerExport",
    "NotExportableError",
    "check_exportable",
    "export_controller",
    "write_controller",
]
