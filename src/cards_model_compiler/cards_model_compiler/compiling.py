"""Compile a robot and report about it; no ROS."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cards_core.control.model import PassiveLoad
from cards_core.dynamics import compile_model, make_dynamics
from cards_core.dynamics.variables import DEFAULT
from cards_core.formats import load
from cards_core.loop.model_identity import identity_json, identity_of
from cards_core.muscles.system import MuscleSystem
from cards_core.robot.model import Robot

SIMULATOR_STEP = 1e-3
"""Time step that simulators have unless told otherwise, [s]: muscle models are compiled for it."""

Progress = Callable[[str, float], None]
"""Called with what is being done and the done fraction, 0..1."""


@dataclass(frozen=True)
class CompileOptions:
    """What to compile, and how.

    Attributes:
        emit: Names of quantities, see `cards_core.dynamics.variables.VARIABLES`.
        frame: Frame of y, R, J, Jdot_qd; the operational frame if None.
        precision: Of all numbers.
        batch: Compile the code for many states at once, too.
        simplify: Whether common subexpressions are computed once only.
        nodes: Compile what simulators and controllers of the robot load, too.
        force: Recompile even if cached.
    """

    emit: tuple[str, ...] = DEFAULT
    frame: str | None = None
    precision: Literal["double", "single"] = "double"
    batch: bool = False
    simplify: bool = True
    nodes: bool = False
    force: bool = False


def compile_robot(
    name: str, options: CompileOptions | None = None, progress: Progress = lambda what, done: None
) -> dict[str, Any]:
    """Compile a robot.

    Args:
        name: Name of a folder in models/, or path of an SDF file.
        options: What and how.
        progress: Told what is being done.

    Returns:
        The entries of `cards_core.loop.model_identity.identity_json` (``robot``, ``hash``,
        ``joint_names``, ``muscle_names`` ...), and ``source``, ``emit``, ``precision``,
        ``simplify``; ``cached``, ``seconds`` in all, ``phases`` (name to seconds, when the code
        was made), ``instructions``, ``kernels`` (name to instructions), ``bytes`` and ``path`` of
        the library, the latter None if there is no compiler; ``batch`` with the same entries of
        the code for many states, or None; ``warnings``.

    Raises:
        CardsError: The robot, a quantity or the compiler is at fault; the message says how.
    """
    options = options or CompileOptions()
    start = time.perf_counter()
    progress("reading", 0.0)
    robot = load(name)
    identity = identity_of(robot)
    read = time.perf_counter() - start
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        model = compile_model(
            robot,
            options.emit,
            frame=options.frame,
            precision=options.precision,
            simplify=options.simplify,
            force=options.force,
            progress=progress,
        )
        batch = None
        if options.batch:
            progress("compiling for batches", 0.8)
            batch = _code(model.batch_report)
        if options.nodes:
            progress("compiling for nodes", 0.9)
            prepare_nodes(robot)
    code = _code(model.report)
    code["phases"] = {"read": read, **code["phases"]}
    return {
        **identity_json(identity),
        "source": robot.source,
        "emit": list(model.emit),
        "precision": options.precision,
        "simplify": options.simplify,
        **code,
        "seconds": time.perf_counter() - start,
        "batch": batch,
        "warnings": [str(item.message) for item in caught if item.category is RuntimeWarning],
    }


def _code(report: Any) -> dict[str, Any]:
    return {
        "cached": report.cached,
        "seconds": report.seconds,
        "phases": dict(report.phases),
        "instructions": report.instructions,
        "kernels": dict(report.kernels),
        "bytes": report.bytes,
        "path": None if report.path is None else str(report.path / "model.so"),
    }


def prepare_nodes(robot: Robot) -> None:
    """Put into the cache what controllers and simulators of a robot load."""
    dynamics = make_dynamics(robot.commanded())
    if robot.operational_frame is not None:
        dynamics.operational(dynamics.tree.home, np.zeros(dynamics.tree.nv))
    if dynamics.robot is not robot:
        PassiveLoad(robot)
    MuscleSystem(robot, SIMULATOR_STEP)
