"""Robots from and to the XML files of CASPR [Lau2016]_; `docs/caspr.md` is the guide."""

from cards_core.formats.caspr.export import to_caspr, write_caspr
from cards_core.formats.caspr.files import find_models
from cards_core.formats.caspr.importer import import_caspr
from cards_core.formats.caspr.writer import write_import

__all__ = ["find_models", "import_caspr", "to_caspr", "write_caspr", "write_import"]
