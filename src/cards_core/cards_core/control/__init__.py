"""Controllers: from a measured state to muscle tensions. No ROS, no simulator.

controller = make_controller("ctc_joint", make_dynamics(robot), kp=2000.0, kd=90.0)
controller.set_reference(reference)
tensions = controller.step(t, q, qd).tensions
"""

from __future__ import annotations

import inspect
from typing import Any

from cards_core.control.ctc_joint import CtcJoint
from cards_core.control.ctc_operational import CtcOperational
from cards_core.control.interface import (
    Controller,
    ControlOutput,
    ControlStatus,
    ParameterError,
    Reference,
)
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import UnknownNameError
from cards_core.optimize.qp_backends import QP_SOLVERS, make_qp_solver

CONTROLLERS: dict[str, type[CtcJoint] | type[CtcOperational]] = {
    CtcJoint.kind: CtcJoint,
    CtcOperational.kind: CtcOperational,
}
"""Kind to class."""


def make_controller(kind: str, dynamics: Dynamics, **parameters: Any) -> CtcJoint | CtcOperational:
    """Return a controller by name, e.g. from the parameters of a YAML file.

    Args:
        kind: ``ctc_joint`` or ``ctc_operational``.
        dynamics: Model of the robot.
        **parameters: Keyword arguments of the class; the others keep their defaults.

    Raises:
        UnknownNameError: No such kind or parameter; the message lists all.
        ParameterError: A parameter of the wrong size or out of range.
    """
    if kind not in CONTROLLERS:
        raise UnknownNameError("controller", kind, CONTROLLERS)
    factory = CONTROLLERS[kind]
    known = [name for name in inspect.signature(factory).parameters if name != "dynamics"]
    for name in parameters:
        if name not in known:
            raise UnknownNameError(f"parameter of {kind}", name, known)
    return factory(dynamics, **parameters)


__all__ = [
    "CONTROLLERS",
    "QP_SOLVERS",
    "ControlOutput",
    "ControlStatus",
    "Controller",
    "CtcJoint",
    "CtcOperational",
    "ParameterError",
    "Reference",
    "make_controller",
    "make_qp_solver",
]
