"""Parameters of the controller nodes; those of the controllers have the names of their arguments.

`controller_arguments` turns the values of a node into arguments of `make_controller`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cards_core.control import CONTROLLERS, QP_SOLVERS
from cards_core.optimize.qp import QP_INFINITY
from cards_core.robot.model import Robot, Tree
from cards_core.robot.motors import motors_of
from cards_ros.model_agreement import accept_parameter
from cards_ros.parameter_spec import Parameter

CRITICAL = -1.0
"""Value of a damping that stands for critical damping, ``2 sqrt(stiffness)``."""

NO_RATE_LIMIT = 0.0
"""Value of ``tension_rate`` that stands for none."""


def model_parameters() -> list[Parameter]:
    """Return the parameters that must be known before the robot is."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "mass_factor",
            1.0,
            "Multiplies all masses of the controller's model, to try out model errors.",
            lower=1e-3,
            upper=1e3,
        ),
        Parameter(
            "attachment_offset",
            0.0,
            "Moves all via points of the controller's model in random directions, likewise.",
            "m",
            lower=0.0,
            upper=1.0,
        ),
        Parameter("perturbation_seed", 0, "Seed of these directions.", lower=0),
        Parameter(
            "backend",
            "compiled",
            "How the dynamics are computed.",
            choices=("compiled", "numeric"),
        ),
    ]


def run_parameters() -> list[Parameter]:
    """Return the parameters of the node's work that do not depend on the robot."""
    return [
        Parameter("reference", "", "Name of the trajectory to track; empty: hold the place."),
        Parameter(
            "reference_file",
            "",
            "Trajectory file, or name of one in config/trajectories; empty: the robot's name.",
        ),
        Parameter(
            "approach_speed",
            0.25,
            "Greatest speed of the motion to the start of the reference; 0: jump there.",
            "rad/s or m/s",
            lower=0.0,
            upper=100.0,
        ),
        Parameter("autostart", True, "Enable the controller at start-up; else call ~/enable."),
        accept_parameter("Command although another node has another model (compiler.md)."),
        Parameter(
            "state_rate",
            50.0,
            "Rate of ~/desired and ~/error in the time of the states.",
            "Hz",
            lower=0.1,
            upper=1e4,
        ),
        Parameter(
            "state_timeout",
            0.5,
            "Real time without joint_states after which that is an error.",
            "s",
            lower=0.01,
            upper=3600.0,
        ),
        Parameter("log_dir", "", "Folder for controller.npz, one row per step; empty: no log."),
    ]


def _default(kind: str, name: str) -> Any:
    """Return the default of an argument of a controller, so that it is stated only there."""
    return inspect.signature(CONTROLLERS[kind]).parameters[name].default


def _stiffness(kind: str, name: str, names: Sequence[str], what: str) -> Parameter:
    return Parameter(
        name,
        [_default(kind, name)] * len(names),
        f"Stiffness of {what}.",
        "1/s^2",
        lower=0.0,
        length=len(names),
        names=tuple(names),
        live=True,
    )


def _damping(name: str, names: Sequence[str], what: str) -> Parameter:
    return Parameter(
        name,
        [CRITICAL] * len(names),
        f"Damping of {what}; -1: critical, 2 sqrt(stiffness).",
        "1/s",
        lower=CRITICAL,
        length=len(names),
        names=tuple(names),
        live=True,
    )


def qp_parameters(kind: str, robot: Robot, gain_names: Sequence[str]) -> list[Parameter]:
    """Return the parameters that both computed-torque controllers have.

    Args:
        kind: Of the controller, for the defaults.
        robot: Gives the muscles.
        gain_names: What the entries of kp and kd belong to.
    """
    muscles = tuple(muscle.name for muscle in robot.muscles)
    count = len(muscles)
    motors = motors_of(robot.tree).names
    return [
        _stiffness(kind, "kp", gain_names, "the error"),
        _damping("kd", gain_names, "the error"),
        Parameter(
            "solver",
            _default(kind, "solver"),
            "Solver of the quadratic program.",
            choices=QP_SOLVERS,
        ),
        Parameter(
            "force_weight",
            [_default(kind, "force_weight")] * count,
            "Diagonal of Hf.",
            "1/N^2",
            lower=1e-12,
            length=count,
            names=muscles,
        ),
        Parameter(
            "effort_weight",
            [_default(kind, "effort_weight")] * len(motors),
            "Diagonal of Ht, for robots with joint motors.",
            "1/(Nm)^2 or 1/N^2",
            lower=1e-12,
            length=len(motors),
            names=motors,
            default_text=f"{_default(kind, 'effort_weight'):g} each",
        ),
        Parameter(
            "tension_min",
            [muscle.tension_min for muscle in robot.muscles],
            "Least tension, not below the muscle's own limit.",
            "N",
            lower=0.0,
            length=count,
            names=muscles,
            default_text="the muscle's",
        ),
        Parameter(
            "tension_max",
            [muscle.tension_max for muscle in robot.muscles],
            "Greatest tension, not above the muscle's own limit.",
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
            "Greatest change of a tension; 0: no limit.",
            "N/s",
            lower=0.0,
        ),
        Parameter(
            "residual_tolerance",
            _default(kind, "residual_tolerance"),
            "What may be missing in a step that counts as ok, relative to its equation's terms.",
            lower=1e-12,
        ),
    ]


def joint_parameters(robot: Robot, tree: Tree) -> list[Parameter]:
    """Return the parameters of ``ctc_joint``."""
    return [
        *qp_parameters("ctc_joint", robot, tree.velocity_names),
        Parameter(
            "slack_weight",
            [_default("ctc_joint", "slack_weight")] * tree.nv,
            "Weight of a missing torque; where not all can be produced, the ratios count.",
            lower=1e-12,
            length=tree.nv,
            names=tree.velocity_names,
        ),
    ]


def task_parameters(robot: Robot) -> list[Parameter]:
    """Return the parameters of ``ctc_operational`` that decide the size of the others."""
    return [
        Parameter(
            "frame",
            robot.operational_frame or "",
            "Frame or link to control.",
            default_text="the model's operational frame",
        ),
        Parameter("axes", "xyz", "World axes of the controlled position, some of xyz."),
        Parameter("orientation", False, "Control the orientation too."),
        Parameter(
            "reference_speed",
            0.25,
            "Greatest speed of the motion to a point received on ~/reference.",
            "m/s or rad/s",
            lower=1e-3,
            upper=100.0,
        ),
    ]


def operational_parameters(robot: Robot, tree: Tree, rate_names: Sequence[str]) -> list[Parameter]:
    """Return the other parameters of ``ctc_operational``; `rate_names` are the task's."""
    kind = "ctc_operational"
    return [
        *qp_parameters(kind, robot, rate_names),
        Parameter(
            "acceleration_weight",
            [_default(kind, "acceleration_weight")] * tree.nv,
            "Diagonal of Hq.",
            "s^4/rad^2",
            lower=1e-12,
            length=tree.nv,
            names=tree.velocity_names,
        ),
        Parameter(
            "task_weight",
            [_default(kind, "task_weight")] * len(rate_names),
            "Weight of what the task lacks; where not all can be done, the ratios count.",
            lower=1e-12,
            length=len(rate_names),
            names=tuple(rate_names),
        ),
        Parameter(
            "posture",
            _default(kind, "posture"),
            "Where free motion is pulled to: mid (of the joint ranges), home, or positions.",
            "rad or m",
            choices=("mid", "home"),
            or_vector=True,
            length=tree.nq,
            names=tree.position_names,
        ),
        _stiffness(kind, "posture_kp", tree.velocity_names, "that pull"),
        _damping("posture_kd", tree.velocity_names, "that pull"),
        Parameter(
            "limit_rate",
            _default(kind, "limit_rate"),
            "How steeply a joint may approach its limit: speed <= rate * distance.",
            "1/s",
            lower=1e-6,
        ),
        Parameter(
            "limit_margin",
            _default(kind, "limit_margin"),
            "Distance kept from the limits.",
            "rad or m",
            lower=0.0,
        ),
    ]


def damping(stiffness: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return damping with `CRITICAL` replaced by ``2 sqrt(stiffness)``."""
    return np.where(values < 0.0, 2.0 * np.sqrt(stiffness), values)


def controller_arguments(specs: Sequence[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `make_controller` for the parameters in ``specs``."""
    out: dict[str, Any] = {spec.name: values[spec.name] for spec in specs}
    for stiffness, name in (("kp", "kd"), ("posture_kp", "posture_kd")):
        if name in out:
            out[name] = damping(out[stiffness], out[name])
    if out.get("tension_rate") == NO_RATE_LIMIT:
        out["tension_rate"] = None
    if "tension_max" in out:
        # what the muscles leave open has no bound in the QP either
        out["tension_max"] = np.minimum(out["tension_max"], QP_INFINITY)
    return out
