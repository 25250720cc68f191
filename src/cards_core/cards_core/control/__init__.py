"""Controllers: from the state of a robot to a command for its muscles. No ROS, no simulator.

controller = make_controller("ctc_joint", robot, kp=2000.0, kd=90.0)
controller.set_reference(reference)
command = controller.step(state)
"""

from cards_core.control.ctc_joint import CtcJoint
from cards_core.control.ctc_operational import CtcOperational
from cards_core.control.interface import Controller, ControlOutput, ControlStatus
from cards_core.control.model import ControlModel
from cards_core.control.registry import (
    controller_class,
    controller_kinds,
    controller_parameters,
    make_controller,
)

__all__ = [
    "ControlModel",
    "ControlOutput",
    "ControlStatus",
    "Controller",
    "CtcJoint",
    "CtcOperational",
    "controller_class",
    "controller_kinds",
    "controller_parameters",
    "make_controller",
]
