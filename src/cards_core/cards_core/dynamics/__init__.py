"""M, C, G, muscle lengths and Jacobians of a robot, by two backends with one interface."""

from cards_core.dynamics.interface import (
    Dynamics,
    DynamicsState,
    OperationalState,
    make_dynamics,
)

__all__ = ["Dynamics", "DynamicsState", "OperationalState", "make_dynamics"]
