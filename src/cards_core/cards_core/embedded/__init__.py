"""Controllers as C that needs nothing of CARDS: for microcontrollers and real-time programs."""

from cards_core.embedded.controller import check_exportable, export_controller
from cards_core.embedded.export import NotExportableError
from cards_core.embedded.folder import write_controller

__all__ = ["NotExportableError", "check_exportable", "export_controller", "write_controller"]
