"""Muscle relaxation control as C that stands alone: model, necessary tensions, release, safety.

What is exported is what `MuscleRelaxationControl` does in a step, from the same texts as its
compiled form (`cards_core.control.mrc.native_blocks`), with our own active-set method for the two
programs. Set-points are those of the Python form to 1e-12 of the largest, as long as the same
muscles are chosen: between two that are needed equally to the last digits, solvers may differ.
"""

from __future__ import annotations

import numpy as np

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.codegen.emit import Precision
from cards_core.control.mrc.controller import IN_FORCE, MuscleRelaxationControl
from cards_core.control.mrc.hand_over import STEP
from cards_core.control.mrc.native_blocks import RELAXATION
from cards_core.control.mrc.relaxation import TIES
from cards_core.embedded import c_text
from cards_core.embedded.export import (
    DUE,
    LAW,
    ControllerExport,
    NotExportableError,
    Texts,
    check_muscles,
    law_parameters,
)
from cards_core.embedded.model_text import model_text
from cards_core.muscles.impedance import SLACK
from cards_core.optimize.active_set import ACTIVE_SET, DOT, REAL

_REAL = "cards_real"


def export_relaxation(
    controller: MuscleRelaxationControl, precision: Precision
) -> ControllerExport:
    """Return the C text of muscle relaxation control.

    Args:
        controller: That has not made a step.
        precision: Of all numbers; ``double``.

    Raises:
        NotExportableError: It has no form in C; the message says why, and what would have one.
    """
    _check(controller, precision)
    parts = controller.block_parts
    robot, tree = parts.dynamics.robot, parts.dynamics.tree
    model = model_text(robot, None, precision)
    report = {
        "robot": robot.name,
        "controller": controller.kind,
        "precision": precision,
        "coordinates": tree.nq,
        "velocities": tree.nv,
        "muscles": len(robot.muscles),
        "period": parts.period,
        "model_period": parts.model_period,
        "variables": len(robot.muscles) + tree.nv,
        "equations": tree.nv,
        "operations": model.operations,
    }
    texts = Texts("relaxation", report)
    sizes = {"COORDINATES": tree.nq, "MUSCLES": len(robot.muscles)}
    period = {"PERIOD": f"#define CARDS_PERIOD {parts.period!r} /* [s] */\n"}
    program = texts.path("program.c")
    return texts.export(
        {
            "controller.h": texts.header(sizes, period),
            "parameters.h": texts.head + _parameters(controller) + model.places,
            "model.c": f"{texts.head}{model.text}",
            "controller.c": texts.controller(
                (REAL, DOT, ACTIVE_SET, program, RELAXATION), [DUE, LAW, texts.path("steps.c")]
            ),
        }
    )


def _check(controller: MuscleRelaxationControl, precision: Precision) -> None:
    """Refuse what has no form in C.

    Raises:
        NotExportableError: See `export_relaxation`.
    """
    parts, kind = controller.block_parts, f"controller '{controller.kind}'"
    robot, tree = parts.dynamics.robot, parts.dynamics.tree
    image = parts.image
    if precision != "double":
        raise NotExportableError(
            f"{kind} in {precision} precision has no form in C, as its lengths differ by 1e-7 m "
            "and less (expected: --precision double)"
        )
    if not controller.needs_joints or controller.learning:
        raise NotExportableError(
            f"{kind} with estimated joint angles or learning has no form in C (expected: "
            "joint_angles: measured, learning: false)"
        )
    if type(image) is not GeometricBodyImage or not image.rigid:
        raise NotExportableError(
            f"the body image of {kind} has no form in C (expected: body_image: geometric, and "
            "muscles without springs)"
        )
    check_muscles(controller.model)
    if tree.nq != tree.nv:
        raise NotExportableError(
            f"{robot.name} has ball joints or free links, which the C form of {kind} does not "
            "know (expected: joints of one coordinate each)"
        )


def _parameters(controller: MuscleRelaxationControl) -> str:
    """Return the constants of ``controller.c``."""
    parts, options, limits = controller.block_parts, controller.options, controller.limits
    robot, tree = parts.dynamics.robot, parts.dynamics.tree
    solver = parts.present.solver
    text = "\n/* Relaxation and safety. */\n"
    text += c_text.define("RELAXATION", int(controller.relaxation))
    text += c_text.define("TIES", TIES.index(options.ties))
    text += c_text.define("HOLD", round(options.hold / options.period))
    for name in ("dl_plus", "dl_minus", "dl_max", "dtheta_max", "resume", "tension_min"):
        text += c_text.define(name.upper(), float(getattr(options, name)))
    text += c_text.define("STILL_CHANGE", float(options.still))
    for name in (
        *("soft", "hard", "heat_rate", "tension_share", "tension_rate", "recovery_rate"),
        "largest",
    ):
        text += c_text.define(name.upper(), float(getattr(limits, name)))
    for name, value in (
        ("MODEL_PERIOD", parts.model_period),
        ("LETTING_GO", parts.letting_go),
        ("HAND_OVER_STEP", STEP),
        ("IN_FORCE", IN_FORCE),
        ("SLACK", SLACK),
        ("SLACKNESS", 1.0 / float(np.sqrt(solver.weights[0]))),
    ):
        text += c_text.define(name, value)
    text += law_parameters(robot.muscles)
    text += c_text.array(_REAL, "bias", parts.arrays["bias"], "T0, [N]")
    text += c_text.array(_REAL, "tension_least", solver.lower_bounds, "of what is needed, [N]")
    home = ", ".join(map(c_text.number, np.clip(tree.home, tree.lower, tree.upper)))
    text += f"const cards_real cards_home[CARDS_COORDINATES] = {{{home}}};\n"
    text += c_text.names("cards_coordinate_names", "CARDS_COORDINATES", tree.position_names)
    muscles = [muscle.name for muscle in robot.muscles]
    return text + c_text.names("cards_muscle_names", "CARDS_MUSCLES", muscles)
