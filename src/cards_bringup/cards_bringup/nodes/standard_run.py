"""How a robot with muscles is demonstrated that has no node list: controller, reference, start.

A robot that tensions within their limits can hold along a reference is moved by `ctc_joint`: along
the first of its own joint trajectories of which that is true, else along a wiggle. One that they
cannot hold, but whose muscles have an impedance law, such as a tensegrity, holds their lengths
(`impedance`). Any other is simulated without a controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.control.registry import suited_controllers
from cards_core.dynamics import make_dynamics
from cards_core.parameters.parameter_file import load_parameters
from cards_core.robot.model import Robot
from cards_core.trajectories.base import Reference
from cards_core.trajectories.library import joint_references, read_reference
from cards_core.typing import Array

TRACKING = "ctc_joint"
HOLDING = "impedance"

SAMPLES = 41
"""Points of a reference at which the robot must be held."""

GROUND = "flat:friction=0.5"
"""Terrain of robots that no joint holds to the world."""


@dataclass(frozen=True)
class StandardRun:
    """What runs by default.

    Attributes:
        controller: Of `cards_core.control.registry`, or ``none``.
        controllers: All that can drive the robot.
        terrain: What it stands on, empty: nothing.
        parameters: Of the nodes, by their names.
        notes: What the user should know, one sentence each.
    """

    controller: str
    controllers: tuple[str, ...]
    terrain: str = ""
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def standard_run(robot: Robot, parameter_file: Path) -> StandardRun:
    """Decide how to demonstrate a robot with muscles.

    Args:
        robot: The robot.
        parameter_file: What is given there stays as it is.

    Raises:
        DescriptionError: A file of the robot is wrong; the message names file and line.
        UnknownNameError: There is no reference of the name in the parameter file.
    """
    suited = tuple(suited_controllers(robot))
    floating = any(joint.kind == "free" for joint in robot.joints)
    terrain = GROUND if floating else ""
    if TRACKING in suited:
        given = load_parameters(parameter_file, TRACKING)
        reference = _reference(robot, given)
        if reference is not None:
            parameters: dict[str, dict[str, Any]] = {TRACKING: {}, "simulator": {}}
            if "reference" not in given:
                parameters[TRACKING]["reference"] = reference.name
            if "initial_positions" not in load_parameters(parameter_file, "simulator"):
                parameters["simulator"]["initial_positions"] = reference.start.tolist()
            return StandardRun(TRACKING, suited, terrain, parameters)
    if HOLDING in suited and any(muscle.control.stiffness > 0.0 for muscle in robot.muscles):
        return StandardRun(HOLDING, suited, terrain)
    none = "" if robot.muscles else " (no muscles, no motors of joints)"
    note = f"{robot.name} has nothing to be moved by{none}: it is simulated without a controller"
    if TRACKING in suited:
        note = (
            f"no tensions within their limits hold {robot.name} where it starts: it is simulated "
            f"without a controller (./cards check says more; --controller {TRACKING} tries)"
        )
    return StandardRun("none", suited, terrain, notes=(note,))


def _reference(robot: Robot, given: Mapping[str, Any]) -> Reference | None:
    """Return what is tracked: as the parameters say, else the first that can be; None: nothing."""
    name, file = given.get("reference", ""), given.get("reference_file", "")
    if name:
        chosen = read_reference(name, file, robot, robot.tree, space="joint")
        return chosen if holds(robot, chosen.start[None]) else None
    for reference in joint_references(robot):
        if holds(robot, _poses(reference)):
            return reference
    return None


def _poses(reference: Reference) -> Array:
    times = np.union1d(np.linspace(0.0, reference.duration, SAMPLES), reference.breaks)
    return np.array([reference(time)[0] for time in times.tolist()])


def holds(robot: Robot, q: Array) -> bool:
    """Tell whether tensions and efforts within their limits balance the weight at all poses.

    Args:
        robot: The robot.
        q: Joint coordinates, shape (n, nq).
    """
    dynamics = make_dynamics(robot, "numeric")
    if not len(Actuation(dynamics).coordinates):
        return True  # every joint has a motor that gives whatever is asked of it
    found = make_condition(dynamics, "static").evaluate(q)
    return bool((found["status"] == PointStatus.FEASIBLE).all())
