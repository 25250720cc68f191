"""M, C, G, muscle lengths and Jacobians of a robot, by two backends with one interface."""

from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.dynamics.model_function import compile_model
from cards_core.dynamics.variables import VARIABLES

__all__ = ["VARIABLES", "Dynamics", "compile_model", "make_dynamics"]
