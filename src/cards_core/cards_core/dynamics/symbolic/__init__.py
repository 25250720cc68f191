"""CasADi expressions of a tree: kinematics, M, C, G, l, L, Jacobians, body-space quantities."""

from __future__ import annotations

from types import ModuleType


def symbolic_kernels() -> ModuleType:
    """Return `cards_core.dynamics.symbolic.kernels`."""
    # casadi takes 0.3 s to import and is not needed when the code is cached
    from cards_core.dynamics.symbolic import kernels

    return kernels
