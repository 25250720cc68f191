"""Parameters of the node ``live_analysis``, and the analyses that they ask for; no ROS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cards_core.analysis.conditions.base import ConditionError
from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.analysis.tension_distribution import METHODS
from cards_core.checks import check_choice
from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import ParameterError
from cards_core.loop.model_agreement import accept_parameter
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.model import Robot
from cards_model_compiler.live_analysis.analyses import (
    Analysis,
    ConditionAnalysis,
    ForwardKinematicsAnalysis,
    InteractionAnalysis,
    StiffnessAnalysis,
)

DEFAULT_CONDITIONS = "wrench_closure,wrench_feasible,tension_factor,condition_number,interference"

STIFFNESS = "stiffness"
INTERACTION = "interaction"
FORWARD_KINEMATICS = "forward_kinematics"


def parameters() -> list[Parameter]:
    """Return all parameters of the node."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "rate", 20.0, "Maximum rate of messages, in real time.", "Hz", lower=0.1, upper=200.0
        ),
        Parameter(
            "conditions",
            DEFAULT_CONDITIONS,
            "Conditions of the present pose, separated by commas; names as in conditions.md.",
        ),
        Parameter(
            "condition_options",
            "{}",
            'Options of conditions as JSON, e.g. {"interference": {"min_distance": 0.01}}.',
        ),
        Parameter(
            "tension_distribution",
            "least_norm",
            "Method of the tensions in ~/report.",
            choices=tuple(METHODS),
        ),
        Parameter(
            "axial_stiffness",
            0.0,
            "EA of all muscles, for the joint stiffness; 0: what their actuators say.",
            "N",
            lower=0.0,
        ),
        Parameter("gravity", True, "Count gravity in the joint stiffness."),
        Parameter(
            "length_tolerance",
            1e-3,
            "Residual up to which the pose of the forward kinematics has the measured lengths.",
            "m",
            lower=1e-9,
            upper=1.0,
        ),
        Parameter(
            "difference_limit",
            0.01,
            "Difference of forward kinematics and joint_states that is a warning.",
            "rad or m",
            lower=0.0,
            live=True,
        ),
        Parameter(
            "starts",
            8,
            "Random initial guesses of the forward kinematics after it has failed.",
            lower=0,
            upper=1000,
        ),
        Parameter(
            "start_from",
            "joint_states",
            "Initial guess of the forward kinematics, which then uses lengths only.",
            choices=("joint_states", "home"),
        ),
        Parameter(
            "state_timeout",
            0.5,
            "Real time without a new state after which the state counts as unknown.",
            "s",
            lower=0.01,
            upper=3600.0,
        ),
        accept_parameter("Publish even if the host has a different model (compiler.md)."),
    ]


def condition_names(values: ParameterStore) -> list[str]:
    """Return the names of the conditions that are wanted.

    Raises:
        UnknownNameError: There is no such condition.
    """
    names = [name.strip() for name in str(values["conditions"]).split(",") if name.strip()]
    for name in names:
        check_choice(name, "condition", CONDITIONS)
    return list(dict.fromkeys(names))


def condition_options(values: ParameterStore) -> dict[str, Mapping[str, Any]]:
    """Return the options of conditions by name.

    Raises:
        ParameterError: It is no JSON object of objects.
        UnknownNameError: There is no such condition.
    """
    text = str(values["condition_options"])
    try:
        options = json.loads(text or "{}")
    except ValueError as error:
        raise ParameterError(f"parameter 'condition_options' is no JSON: {error}") from error
    if not isinstance(options, dict) or not all(isinstance(o, dict) for o in options.values()):
        raise ParameterError(
            f"parameter 'condition_options' is {text!r} (expected: a JSON object with an object "
            'for each condition, e.g. {"interference": {"min_distance": 0.01}})'
        )
    for name in options:
        check_choice(name, "condition", CONDITIONS)
    return options


def make_analyses(
    robot: Robot, values: ParameterStore
) -> tuple[dict[str, Analysis], dict[str, str]]:
    """Return the analyses by name, and why conditions are not among them.

    Raises:
        UnknownNameError: A condition, or an option of one, does not exist.
        ParameterError: ``condition_options`` cannot be read.
        ConditionError: Options that were given do not fit the robot.
        CompilationError: There is no C compiler.
    """
    options = condition_options(values)
    analyses: dict[str, Analysis] = {}
    missing: dict[str, str] = {}
    for name in condition_names(values):
        try:
            analyses[name] = ConditionAnalysis(make_dynamics(robot), name, options.get(name, {}))
        except ConditionError as error:
            if name in options:
                raise
            missing[name] = str(error)  # the default names suit most robots, not all
    analyses[STIFFNESS] = make_stiffness(robot, values)
    analyses[INTERACTION] = InteractionAnalysis(make_dynamics(robot))
    analyses[FORWARD_KINEMATICS] = ForwardKinematicsAnalysis(
        make_dynamics(robot),
        float(values["length_tolerance"]),
        int(values["starts"]),
        from_measured=values["start_from"] == "joint_states",
    )
    return analyses, missing


def make_stiffness(robot: Robot, values: ParameterStore) -> StiffnessAnalysis:
    """Return the joint stiffness that the parameters ask for."""
    axial_stiffness = float(values["axial_stiffness"]) or None
    return StiffnessAnalysis(
        make_dynamics(robot), axial_stiffness, gravity=bool(values["gravity"])
    )
