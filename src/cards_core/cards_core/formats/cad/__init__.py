"""Robots from CAD assemblies: STEP files and FreeCAD documents, through Open CASCADE.

`read_assembly` gives what is in the file (`assembly`), `import_cad` makes a robot of it.
Open CASCADE runs in a process of its own (`worker`), so that a file that makes it crash, hang or
fill the memory is an error of ours. It is an optional package, ``cadquery-ocp-novtk``.
"""

from cards_core.formats.cad.importer import import_cad
from cards_core.formats.cad.worker import Reader, read_assembly

__all__ = ["Reader", "import_cad", "read_assembly"]
