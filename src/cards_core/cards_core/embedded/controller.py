"""Controllers as C that stands alone, whatever their kind."""

from __future__ import annotations

from typing import get_args

from cards_core.checks import check_choice
from cards_core.codegen.emit import Precision
from cards_core.control.base import QpController
from cards_core.control.interface import Controller
from cards_core.control.mrc.controller import MuscleRelaxationControl
from cards_core.control.registry import controller_class
from cards_core.control.set_points import SetPointController
from cards_core.embedded.computed_torque import export_computed_torque
from cards_core.embedded.export import ControllerExport, NotExportableError
from cards_core.embedded.relaxation import export_relaxation
from cards_core.embedded.set_points import export_set_points
from cards_core.trajectories.curves import Flower

EXPECTED = "(expected: 'ctc_joint', 'ctc_operational', 'mrc', 'impedance' or 'cpg')"


def export_controller(
    controller: Controller, *, precision: Precision = "double", curve: Flower | None = None
) -> ControllerExport:
    """Return the C text of a controller.

    Args:
        controller: A `CtcJoint`, `CtcOperational`, `MuscleRelaxationControl`,
            `ImpedanceController` or `PatternGenerator` that has not made a step.
        precision: Of all numbers.
        curve: What the example of computed torque tracks, in the space of its references; None: a
            flower about home.

    Raises:
        NotExportableError: It has no form in C; the message says why, and what would have one.
        UnknownNameError: No such precision.
    """
    check_choice(precision, "precision", get_args(Precision))
    if isinstance(controller, QpController):
        return export_computed_torque(controller, precision, curve)
    if isinstance(controller, MuscleRelaxationControl):
        return export_relaxation(controller, precision)
    if isinstance(controller, SetPointController):
        return export_set_points(controller, precision)
    raise _not_exportable(getattr(controller, "kind", type(controller).__name__))


def check_exportable(kind: str) -> None:
    """Refuse a kind of controller that has no form in C, before one is made.

    Args:
        kind: Of the controller, e.g. ``ctc_joint``.

    Raises:
        UnknownNameError: No such kind; the message lists all.
        NotExportableError: It has none.
    """
    known = QpController | MuscleRelaxationControl | SetPointController
    if not issubclass(controller_class(kind), known):
        raise _not_exportable(kind)


def _not_exportable(kind: str) -> NotExportableError:
    return NotExportableError(f"controller '{kind}' has no form in C {EXPECTED}")
