"""Set-points of the muscles' impedance law over time as C that stands alone.

What is exported is what `ImpedanceController` and `PatternGenerator` do, from the same texts as
their compiled refreshes (`cards_core.control.native_set_points`, `cards_core.control.cpg`), and
the muscles' law for hosts that take tensions. Set-points of the former are those of the compiled
form to the last bit; sines and cosines are those of the C library that the export is linked to.
Oscillators are integrated without fused operations here: their states agree to 1e-12 per second.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cards_core.codegen.emit import Precision
from cards_core.control.cpg.controller import LONGEST_GAP, PatternGenerator
from cards_core.control.cpg.native_refresh import PATTERN
from cards_core.control.cpg.oscillators import OSCILLATORS, Feedback
from cards_core.control.impedance import ImpedanceController
from cards_core.control.native_set_points import GAIT, SET_POINTS
from cards_core.control.recorded_commands import QUANTITIES
from cards_core.control.set_points import SetPointController, SetPointParts
from cards_core.embedded import c_text
from cards_core.embedded.export import (
    DUE,
    LAW,
    ControllerExport,
    NotExportableError,
    Texts,
    law_parameters,
)
from cards_core.muscles.impedance import SLACK
from cards_core.optimize.active_set import DOT, REAL

_REAL = "cards_real"


def export_set_points(controller: SetPointController, precision: Precision) -> ControllerExport:
    """Return the C text of a controller of set-points.

    Args:
        controller: An `ImpedanceController` or `PatternGenerator`.
        precision: Of all numbers.

    Raises:
        NotExportableError: It has no form in C; the message says why, and what would have one.
    """
    parts, robot = controller.set_point_parts, controller.model.robot
    if not parts.muscles:
        raise NotExportableError(f"{robot.name} has nothing to command (expected: muscles)")
    feedback = 0
    if isinstance(controller, ImpedanceController):
        own, what = _gait(controller)
        sources: tuple[Path, ...] = (REAL, SET_POINTS, GAIT)
        steps = "impedance.c"
    elif isinstance(controller, PatternGenerator):
        own, what = _pattern(controller, precision)
        sources = (REAL, DOT, OSCILLATORS, SET_POINTS, PATTERN)
        steps, feedback = "pattern.c", int(controller.pattern_parts.feedback)
    else:
        raise NotExportableError(
            f"controller '{controller.kind}' has no form in C (expected: 'impedance' or 'cpg')"
        )
    report = {
        "robot": robot.name,
        "controller": controller.kind,
        "precision": precision,
        "muscles": len(parts.muscles),
        "period": parts.period,
        "pattern": what,
        "feedback": bool(feedback),
    }
    texts = Texts("set_points", report)
    sizes = {"MUSCLES": len(parts.muscles), "FEEDBACK": feedback}
    period = {"PERIOD": f"#define CARDS_PERIOD {parts.period!r} /* [s] */\n"}
    return texts.export(
        {
            "controller.h": texts.header(sizes, period),
            "parameters.h": texts.head + _parameters(parts) + own,
            "controller.c": texts.controller(
                sources, [DUE, LAW, texts.path("steps.c"), texts.path(steps)]
            ),
        }
    )


def _parameters(parts: SetPointParts) -> str:
    """Return the constants that all kinds have."""
    count = "CARDS_MUSCLES"
    text = "\n" + c_text.define("SLACK", SLACK)
    text += c_text.array(_REAL, "tension", parts.tension, "T0, [N]")
    text += c_text.array(_REAL, "rest_length", parts.rest_length, "l0, [m]")
    text += law_parameters(parts.muscles)
    text += c_text.array("long", "columns", np.arange(len(parts.muscles)))
    home = ", ".join(map(c_text.number, parts.home))
    text += f"const cards_real cards_home_lengths[{count}] = {{{home}}};\n"
    return text + c_text.names("cards_muscle_names", count, [item.name for item in parts.muscles])


def _gait(controller: ImpedanceController) -> tuple[str, str]:
    """Return the constants of a gait, and in words what it is."""
    gait = controller.gait_parts
    recorded = gait.recorded
    rows = 0 if recorded is None else recorded.times.size
    values = {} if recorded is None else recorded.values
    text = "\n/* The gait. */\n"
    text += c_text.define("WAVE", int(gait.wave))
    text += c_text.define("REPEAT", int(gait.repeat))
    text += c_text.define("ROWS", int(rows))
    text += c_text.define("AMPLITUDE", gait.amplitude)
    text += f"#define DURATION {0.0 if recorded is None else recorded.duration!r} /* [s] */\n"
    text += f"#define TURN {2.0 * np.pi * gait.frequency!r} /* [rad/s] */\n"
    text += c_text.array(_REAL, "factor", gait.factor, "of v0")
    text += c_text.array(_REAL, "phase", gait.phase, "of v0, [rad]")
    text += c_text.array(_REAL, "times", [] if recorded is None else recorded.times, "[s]")
    for name in QUANTITIES:
        text += c_text.define(f"HAS_{name.upper()}", int(name in values))
        text += c_text.array(_REAL, f"recorded_{name}", values.get(name, []), missing=True)
    if recorded is not None:
        return text, f"replay of {rows} rows, {recorded.duration:g} s"
    return text, f"sine gait of {gait.frequency:g} Hz" if gait.wave else "set-points that stay"


def _pattern(controller: PatternGenerator, precision: Precision) -> tuple[str, str]:
    """Return the constants of a pattern, and in words what it is.

    Raises:
        NotExportableError: Of single precision, or with a goal.
    """
    parts = controller.pattern_parts
    if precision != "double":
        raise NotExportableError(
            f"controller '{controller.kind}' in {precision} precision has no form in C, as its "
            "oscillators are integrated in double precision (expected: --precision double)"
        )
    if parts.goal:
        raise NotExportableError(
            f"controller '{controller.kind}' with a goal has no form in C (expected: goal: [])"
        )
    oscillators, pattern = parts.oscillators, parts.pattern
    network = pattern.feedback if pattern is not None and parts.feedback else None
    settings, arrays = oscillators.parameters, oscillators.arrays
    with_feedback = isinstance(settings, Feedback)
    text = "\n/* The pattern: oscillators, couplings, network. */\n"
    for name, value in (
        ("KIND", int(with_feedback)),
        ("LIMIT", oscillators.limit),
        ("HIDDEN", 1 if network is None else len(network.hidden)),
        ("ACTIVE", int(parts.active)),
        ("TOLERANCE", oscillators.tolerance),
        ("RATE_SCALE", 0.0 if pattern is None else float(pattern.rate_scale)),
        ("RAMP", float(parts.ramp)),
        ("LONGEST_GAP", LONGEST_GAP),
        ("FIRST_RADIUS", float(np.sqrt(settings.amplitude)) if with_feedback else 0.0),
        ("FIRST_RATE", float(settings.frequency) if with_feedback else 0.0),
    ):
        text += c_text.define(name, value)
    for name, of in (("coupling_start", "start"), ("coupling_source", "source")):
        text += c_text.array("long", name, arrays[of])
    for name, of in (
        ("weight_cos", "weight_cos"),
        ("weight_sin", "weight_sin"),
        ("natural_rate", "rate"),
        ("natural_amplitude", "amplitude"),
        ("gains", "gains"),
    ):
        text += c_text.array(_REAL, name, arrays[of])
    text += c_text.array(_REAL, "first_layer", [] if network is None else network.hidden)
    text += c_text.array(_REAL, "second_layer", [] if network is None else network.output)
    kind = "with feedback" if with_feedback else "of the open loop"
    if pattern is None:
        return text, "no pattern: muscles hold their lengths"
    words = f"{len(controller.names)} oscillators {kind}"
    words += f", {len(arrays['source'])} couplings"
    return text, words + (", shaped by lengths and tensions" if network is not None else "")
