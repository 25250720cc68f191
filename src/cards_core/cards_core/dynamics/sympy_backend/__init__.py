"""The dynamics as SymPy expressions: to read, to export, and as an independent check.

``SymbolicModel(robot)`` has M, C, G, l, L, J and more as expressions, ``SympyDynamics(robot)``
evaluates them as a backend; see docs/symbolic.md.
"""

from cards_core.dynamics.sympy_backend.document import (
    latex_document,
    make_document,
    markdown_document,
)
from cards_core.dynamics.sympy_backend.evaluate import SympyDynamics, in_many_digits
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.dynamics.sympy_backend.options import SymbolicOptions, predicted_size
from cards_core.dynamics.sympy_backend.python_module import python_module
from cards_core.dynamics.sympy_backend.quantities import QUANTITIES

__all__ = [
    "QUANTITIES",
    "SymbolicModel",
    "SymbolicOptions",
    "SympyDynamics",
    "in_many_digits",
    "latex_document",
    "make_document",
    "markdown_document",
    "predicted_size",
    "python_module",
]
