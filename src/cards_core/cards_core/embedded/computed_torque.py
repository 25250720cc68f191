"""A computed-torque controller as C that stands alone: model, task errors, program, checks.

What is exported is what `QpController` does in a step, from the same texts as its compiled form
(`cards_core.control.native_step`), with two differences: the program is solved by our own
active-set method (`cards_core.optimize.active_set`), and what `GoalProgram` does where a request
is out of reach is in C too. Tensions are those of the Python form to 1e-12 of the largest wherever
the request can be met. Out of reach, both solve programs with stiff slacks, whose last digits
depend on the solver: there what is lacking agrees to 1e-5, and tensions as far as the minimum is
sharp, usually to 1e-7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.codegen.emit import Precision
from cards_core.control.base import QpController
from cards_core.control.native_step import COMPUTED_TORQUE, StepParts, TaskParts
from cards_core.embedded import c_text
from cards_core.embedded.curve import curve_at_home, curve_text
from cards_core.embedded.export import (
    ControllerExport,
    NotExportableError,
    Texts,
    check_muscles,
    comment,
)
from cards_core.embedded.model_text import model_text
from cards_core.optimize.active_set import ACTIVE_SET, DOT, GOAL_PROGRAM, REAL, ROWS
from cards_core.optimize.goal_program import FULL_SHARE, RELAXATION, ROUNDING, STIFFNESS
from cards_core.optimize.qp import QP_INFINITY
from cards_core.trajectories.curves import Flower


@dataclass(frozen=True)
class _Numbers:
    """Numbers of the program that depend on the precision; see `cards_core.optimize.goal_program`.

    A float has seven digits: weights of 1e8 would leave none of the goals, and what is met to 1e-8
    cannot be told.
    """

    tolerance: float
    stiffness: float
    relaxation: float


_NUMBERS = {
    "double": _Numbers(0.0, STIFFNESS, RELAXATION),
    "single": _Numbers(1e-4, 1e5, 1e-3),
}


def export_computed_torque(
    own: QpController, precision: Precision, curve: Flower | None
) -> ControllerExport:
    """Return the C text of a controller of computed torque.

    Args:
        own: A `CtcJoint` or `CtcOperational` that has not made a step.
        precision: Of all numbers.
        curve: What the example tracks, in the space of its references; None: a flower about home.

    Raises:
        NotExportableError: It has no form in C; the message says why, and what would have one.
    """
    parts = _exportable(own)
    task = parts.task
    robot = own.dynamics.robot
    model = model_text(robot, None if task is None else task.frame, precision)
    named = "flower about home" if curve is None else "flower of the robot"
    curve = curve_at_home(own) if curve is None else curve
    unit = "rad or m" if task is None else "m"
    report = {
        "robot": robot.name,
        "controller": own.kind,
        "precision": precision,
        "coordinates": own.dynamics.tree.nq,
        "velocities": own.dynamics.tree.nv,
        "muscles": len(robot.muscles),
        "motors": len(own.motors),
        "task": list(own.error_names),
        "variables": parts.program.exact.n,
        "equations": parts.program.right.size,
        "operations": model.operations,
        "curve": named,
    }
    texts = Texts("computed_torque", report)
    sources = (REAL, DOT, ROWS, ACTIVE_SET, GOAL_PROGRAM, COMPUTED_TORQUE)
    size = 0.25 if task is not None else 1.0
    return texts.export(
        {
            "controller.h": _header(texts, own, task),
            "parameters.h": texts.head + _parameters(own, parts, precision) + model.places,
            "model.c": f"{texts.head}{model.text}",
            "controller.c": texts.controller(sources, [texts.path("steps.c")]),
            "curve.h": texts.head + curve_text(curve, own.output.error.size, unit, size),
        }
    )


def _exportable(controller: QpController) -> StepParts:
    """Return the parts of a controller.

    Raises:
        NotExportableError: See `export_computed_torque`.
    """
    kind = f"controller '{controller.kind}'"
    parts, robot = controller.step_parts, controller.dynamics.robot
    if parts is None:
        raise NotExportableError(
            f"{kind} has no form in C (expected: 'ctc_joint' or 'ctc_operational')"
        )
    if parts.prepare is not None:
        raise NotExportableError(
            f"{kind} of {robot.name} has rotations among its coordinates or its task, which the C "
            "form does not know (expected: joints without balls and free links, and a task of "
            "positions: orientation: false)"
        )
    check_muscles(controller.model)
    if controller.model.passive is not None:
        raise NotExportableError(
            f"{robot.name} has muscles that pull without a command: "
            f"{', '.join(controller.model.passive.names)}; their passive tensions are not in the "
            "C form (expected: cables, series elastic units, or McKibben muscles without "
            "bladder_stiffness)"
        )
    if parts.program.exact.n == 0:
        raise NotExportableError(f"{robot.name} has nothing to command (expected: muscles)")
    return parts


def _header(texts: Texts, controller: QpController, task: TaskParts | None) -> str:
    """Return ``controller.h``."""
    tree = controller.dynamics.tree
    sizes = {
        "COORDINATES": tree.nq,
        "VELOCITIES": tree.nv,
        "MUSCLES": controller.tension_min.size,
        "MOTORS": len(controller.motors),
        "TASK": controller.output.error.size,
    }
    if task is None:
        words = (
            "joint coordinates",
            "in the order of the coordinates, [rad] or [m]",
            "joint forces, [Nm] or [N]",
        )
    else:
        axes = ", ".join(controller.error_names)
        words = (
            f"the place of the frame {comment(task.frame)} in the world",
            f"its {axes}, [m]",
            "accelerations of the task, [m/s^2]",
        )
    return texts.header(sizes, dict(zip(("SPACE", "Y", "RESIDUAL"), words, strict=True)))


def _parameters(controller: QpController, parts: StepParts, precision: Precision) -> str:
    """Return the constants of ``controller.c``."""
    program, numbers = parts.program, _NUMBERS[precision]
    tree, robot, motors = controller.dynamics.tree, controller.dynamics.robot, controller.motors
    tolerance = max(program.tolerance, numbers.tolerance)
    force, torque, goal = parts.units
    slacks = max(program.weights.size, program.yielding.size)
    stiff = numbers.stiffness * program.weights / np.max(program.weights, initial=0.0)
    low, up = program.lower_bounds.copy(), program.upper_bounds.copy()
    m = controller.tension_min.size
    # what a step of the controller has narrowed is open here
    low[:m] = controller.tension_min / force
    up[:m] = np.where(
        controller.tension_max >= QP_INFINITY, QP_INFINITY, controller.tension_max / force
    )
    rate = controller.tension_rate
    gains = controller.gains
    text = "\n/* The program: columns [f, tau, qdd], rows [motion, task]. */\n"
    sizes = {
        "HARD": program.hard,
        "COLUMNS": program.exact.n,
        "YIELDING": program.yielding.size,
        "RATE_LIMITED": int(rate is not None),
        "KP_FULL": int(gains.kp.ndim == 2),
        "KD_FULL": int(gains.kd.ndim == 2),
    }
    text += "".join(c_text.define(name, size) for name, size in sizes.items())
    for name, value in (
        ("TOLERANCE", tolerance),
        ("ROUNDING", (ROUNDING * tolerance) ** 2),
        ("STIFFNESS", numbers.stiffness),
        ("RELAXATION", numbers.relaxation),
        ("PRICE", min(program.price, QP_INFINITY)),
        ("FULL_SHARE", FULL_SHARE),
        ("REGULAR", program.regular),
        ("FORCE_UNIT", force),
        ("TORQUE_UNIT", torque),
        ("GOAL_UNIT", goal),
        ("LEVER", parts.lever),
    ):
        text += c_text.define(name, float(value))
    real = "cards_real"
    text += c_text.array(real, "kp", gains.kp, "stiffness of the error, [1/s^2]")
    text += c_text.array(real, "kd", gains.kd, "damping of the error, [1/s]")
    text += c_text.array(real, "tension_min", controller.tension_min, "[N]")
    text += c_text.array(real, "tension_max", controller.tension_max, "[N]")
    text += c_text.array(real, "tension_rate", np.zeros(m) if rate is None else rate, "[N/s]")
    most = np.minimum(motors.efforts, QP_INFINITY)
    text += c_text.array(real, "effort_max", most, "[Nm] or [N]")
    text += c_text.array("int", "motor_velocity", motors.rows)
    text += c_text.array(real, "lowest", low, "bounds of the variables, in their units")
    text += c_text.array(real, "highest", up)
    root = np.concatenate([np.sqrt(program.hessian), np.ones(slacks)])
    text += c_text.array(real, "root", root, "root of the diagonal Hessian; ones of slacks")
    text += c_text.array(real, "slackness", 1.0 / np.sqrt(stiff))
    text += c_text.array("int", "yielding", program.yielding)
    text += _task(parts.task)
    home = np.clip(tree.home, tree.lower, tree.upper)
    text += "\n"
    text += f"const cards_real cards_home[] = {{{', '.join(map(c_text.number, home))}}};\n"
    count, least = "CARDS_COORDINATES", "CARDS_AT_LEAST_ONE(CARDS_{})"
    text += c_text.names("cards_coordinate_names", count, tree.position_names)
    muscles = [muscle.name for muscle in robot.muscles]
    text += c_text.names("cards_muscle_names", least.format("MUSCLES"), muscles)
    return text + c_text.names("cards_motor_names", least.format("MOTORS"), motors.names)


def _task(task: TaskParts | None) -> str:
    """Return the constants of the task of a frame; without one they are not used."""
    real = "cards_real"
    text = c_text.define("OPERATIONAL", int(task is not None))
    text += c_text.define("BARRIERS", 0 if task is None else len(task.barrier_v))
    for name, value in (
        ("BARRIER_RATE", 0.0 if task is None else task.barrier_rate),
        ("BARRIER_SQUARE", 0.0 if task is None else task.barrier_square),
        ("ACCELERATION_UNIT", 1.0 if task is None else task.acceleration_unit),
        ("INERTIA", 0.0 if task is None else task.inertia),
    ):
        text += c_text.define(name, float(value))
    text += c_text.array("long", "task_rows", [] if task is None else task.rows)
    text += c_text.array("long", "barrier_q", [] if task is None else task.barrier_q)
    text += c_text.array("long", "barrier_v", [] if task is None else task.barrier_v)
    gains = None if task is None else task.posture_gains
    for name, values in (
        ("barrier_low", None if task is None else task.barrier_low),
        ("barrier_up", None if task is None else task.barrier_up),
        ("posture", None if task is None else task.posture),
        ("posture_kp", None if gains is None else gains.kp),
        ("posture_kd", None if gains is None else gains.kd),
        ("pull_weight", None if task is None else task.pull_weight),
    ):
        text += c_text.array(real, name, [] if values is None else values)
    return text
