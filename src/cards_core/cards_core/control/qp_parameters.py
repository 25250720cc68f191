"""Parameters that controllers with gains and a quadratic program have in common.

Their names are those of the arguments of the controllers, which also have the defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from cards_core.control.interface import Controller, critical_damping
from cards_core.control.sampled_gains import SHORTEST_PERIOD, kp_bound
from cards_core.errors import ParameterError
from cards_core.optimize.qp import QP_INFINITY
from cards_core.optimize.qp_backends import QP_SOLVERS
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.typing import Array

_MATRIX = ", or its symmetric matrix by rows"

CRITICAL = -1.0
"""Value of a damping that stands for critical damping, ``2 sqrt(stiffness)``."""

NO_RATE_LIMIT = 0.0
"""Value of ``tension_rate`` that stands for none."""


def default_of(controller: type[Controller], name: str) -> Any:
    """Return the default of an argument of a controller, so that it is stated only there."""
    return inspect.signature(controller).parameters[name].default


def stiffness_parameter(
    controller: type[Controller],
    name: str,
    names: Sequence[str],
    what: str,
    *,
    square: bool = False,
) -> Parameter:
    """Return the live parameter of a stiffness, [1/s^2], with one entry per name.

    Args:
        controller: Class of the controller, which has the default.
        name: Name of the parameter.
        names: What the entries belong to.
        what: Meaning of the parameter.
        square: Whether a full matrix may be given too.
    """
    return Parameter(
        name,
        [default_of(controller, name)] * len(names),
        f"Stiffness of {what}{_MATRIX if square else ''}.",
        "1/s^2",
        lower=0.0,
        upper=kp_bound(SHORTEST_PERIOD),
        length=len(names),
        names=tuple(names),
        live=True,
        square=square,
    )


def damping_parameter(
    name: str, names: Sequence[str], what: str, *, square: bool = False
) -> Parameter:
    """Return the live parameter of a damping, [1/s]: one entry per name, critical by default.

    Args:
        name: Name of the parameter.
        names: What the entries belong to.
        what: Meaning of the parameter.
        square: Whether a full matrix may be given too.
    """
    return Parameter(
        name,
        [CRITICAL] * len(names),
        f"Damping of {what}{_MATRIX if square else ''}; -1: critical, 2 sqrt(stiffness).",
        "1/s",
        lower=CRITICAL,
        upper=1.0 / SHORTEST_PERIOD,
        length=len(names),
        names=tuple(names),
        live=True,
        square=square,
        range_note=f", where {CRITICAL:g} is critical damping",
    )


def qp_parameters(
    controller: type[Controller], robot: Robot, gain_names: Sequence[str]
) -> list[Parameter]:
    """Return gains, weights and limits of a controller that distributes tensions.

    Args:
        controller: Class with the defaults.
        robot: Gives the muscles that are commanded.
        gain_names: What the entries of kp and kd belong to.
    """
    muscles = tuple(muscle.name for muscle in robot.muscles)
    count = len(muscles)
    motors = motors_of(robot.tree).names
    return [
        stiffness_parameter(controller, "kp", gain_names, "the error", square=True),
        damping_parameter("kd", gain_names, "the error", square=True),
        Parameter(
            "solver",
            default_of(controller, "solver"),
            "Solver of the quadratic program.",
            choices=QP_SOLVERS,
        ),
        Parameter(
            "force_weight",
            [default_of(controller, "force_weight")] * count,
            "Diagonal of Hf.",
            "1/N^2",
            lower=1e-12,
            length=count,
            names=muscles,
        ),
        Parameter(
            "effort_weight",
            [default_of(controller, "effort_weight")] * len(motors),
            "Diagonal of Ht, for robots with joint motors.",
            "1/(Nm)^2 or 1/N^2",
            lower=1e-12,
            length=len(motors),
            names=motors,
            default_text=f"{default_of(controller, 'effort_weight'):g} each",
        ),
        Parameter(
            "tension_min",
            [muscle.tension_min for muscle in robot.muscles],
            "Minimum tension, not below the muscle's own limit.",
            "N",
            lower=0.0,
            length=count,
            names=muscles,
            default_text="the muscle's",
        ),
        Parameter(
            "tension_max",
            [muscle.tension_max for muscle in robot.muscles],
            "Maximum tension, not above the muscle's own limit.",
            "N",
            lower=0.0,
            length=count,
            names=muscles,
            infinite=True,
            default_text="the muscle's",
        ),
        Parameter(
            "tension_rate",
            NO_RATE_LIMIT,
            "Maximum change of a tension; 0: no limit.",
            "N/s",
            lower=0.0,
        ),
        Parameter(
            "residual_tolerance",
            default_of(controller, "residual_tolerance"),
            "Residual up to which a step counts as OK, relative to the terms of its equation.",
            lower=1e-12,
        ),
    ]


def damping(stiffness: Array, values: Array) -> Array:
    """Return damping with `CRITICAL` replaced by ``2 sqrt(stiffness)``.

    Args:
        stiffness: Shape (k,) or, as a matrix, (k, k).
        values: Likewise; a matrix is returned as it is.

    Raises:
        ParameterError: The stiffness is a matrix, and some of the values are `CRITICAL`.
    """
    if values.ndim == 2 or not (values < 0.0).any():
        return values
    if stiffness.ndim == 1:
        return np.where(values < 0.0, critical_damping(np.maximum(stiffness, 0.0)), values)
    if not (values < 0.0).all():
        raise ParameterError(
            f"kd is {values.tolist()} beside a matrix kp; expected -1 (critical) for all, or for "
            "none"
        )
    return critical_damping(stiffness)


def declared(parameters: ParameterStore, specs: Sequence[Parameter]) -> dict[str, Any]:
    """Declare parameters and return their values as arguments of the controller.

    Raises:
        ParameterError: A value does not fit.
    """
    parameters.declare(specs)
    out: dict[str, Any] = {spec.name: parameters[spec.name] for spec in specs}
    for stiffness, name in (("kp", "kd"), ("posture_kp", "posture_kd")):
        if name in out:
            out[name] = damping(out[stiffness], out[name])
    if out.get("tension_rate") == NO_RATE_LIMIT:
        out["tension_rate"] = None
    if "tension_max" in out:
        # what the muscles leave open has no bound in the QP either
        out["tension_max"] = np.minimum(out["tension_max"], QP_INFINITY)
    return out
