"""From parameters to a control loop; nodes and the runner without ROS make it here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cards_core.checks import check_kind
from cards_core.control.interface import Controller
from cards_core.control.model import ControlModel
from cards_core.control.registry import check_suited, controller_class
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.model_agreement import accept_parameter
from cards_core.loop.run_log import CONTROLLER_LOG
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.model import Robot
from cards_core.robot.perturb import perturbed
from cards_core.trajectories import Reference
from cards_core.trajectories.library import read_reference

MODEL_ERRORS: Mapping[str, float] = {
    "mass_factor": 1.0,
    "attachment_offset": 0.0,
    "moment_arm_error": 0.0,
}
"""Parameters that make the controller's model another one, and their values without errors."""


def model_parameters() -> list[Parameter]:
    """Return the parameters that must be known before the robot is."""
    return [
        Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF."),
        Parameter(
            "mass_factor",
            1.0,
            "Factor of all masses of the controller's model, for studies of model errors.",
            lower=1e-3,
            upper=1e3,
        ),
        Parameter(
            "attachment_offset",
            0.0,
            "Random displacement of all via points of the controller's model, likewise.",
            "m",
            lower=0.0,
            upper=1.0,
        ),
        Parameter(
            "moment_arm_error",
            0.0,
            "Moves them away from the nearest joint axis or towards it by this share of the "
            "distance, at random, and changes radii, likewise.",
            lower=0.0,
            upper=0.5,
        ),
        Parameter("perturbation_seed", 0, "Seed of both.", lower=0),
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
            "Trajectory file, or name of one in config/trajectories; empty: the robot's own.",
        ),
        Parameter(
            "approach_speed",
            0.25,
            "Maximum speed of the motion to the start of the reference; 0: jump there.",
            "rad/s or m/s",
            lower=0.0,
            upper=100.0,
        ),
        Parameter(
            "repeat_reference",
            False,
            "Restart the reference when it is over, after a motion from its end to its start.",
        ),
        Parameter(
            "autostart", True, "Enable the controller at start-up; otherwise call ~/enable."
        ),
        accept_parameter(
            "Send commands even if another node has a different model (compiler.md)."
        ),
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
        Parameter("log_dir", "", f"Folder for {CONTROLLER_LOG}, one row per step; empty: no log."),
    ]


def reference_parameters(controller: type[Controller]) -> list[Parameter]:
    """Return the parameters of live references, which depend on their space."""
    if controller.space != "operational":
        return []
    return [
        Parameter(
            "reference_speed",
            0.25,
            "Maximum speed of the motion to a point received on ~/reference.",
            "m/s or rad/s",
            lower=1e-3,
            upper=100.0,
        )
    ]


def make_control_loop(
    kind: str,
    parameters: ParameterStore,
    robot: Robot | None = None,
    reference: Reference | None = None,
) -> ControlLoop:
    """Declare all parameters of a controller and make it with its model, reference and log.

    Args:
        kind: Of the controller, see `cards_core.control.registry`.
        parameters: Where the values come from.
        robot: Replaces the parameter ``model``.
        reference: Replaces the parameter ``reference``.

    Raises:
        CardsError: A parameter, the model or the reference is not usable; the message says why.
    """
    controller_type = controller_class(kind)
    parameters.declare(model_parameters())
    robot = load(parameters["model"]) if robot is None else robot
    check_suited(kind, robot)
    errors = {name: parameters[name] for name in MODEL_ERRORS}
    known = robot
    if errors != MODEL_ERRORS:
        known = perturbed(robot, **errors, seed=parameters["perturbation_seed"])
    model = ControlModel(known, parameters["backend"])
    parameters.declare(run_parameters())
    controller = controller_type.from_parameters(model, parameters)
    expected = "what from_parameters returns to be one"
    check_kind(controller, Controller, f"controller '{kind}'", expected)
    parameters.declare(reference_parameters(controller_type))
    parameters.refuse_others()
    log_dir: str = parameters["log_dir"]
    return ControlLoop(
        controller,
        _reference(controller, parameters, robot) if reference is None else reference,
        approach_speed=parameters["approach_speed"],
        repeat=parameters["repeat_reference"],
        log_path=Path(log_dir) / CONTROLLER_LOG if log_dir else None,
        robot=robot,
    )


def _reference(
    controller: Controller, parameters: ParameterStore, robot: Robot
) -> Reference | None:
    if not parameters["reference"]:
        return None
    joint = controller.space == "joint"
    return read_reference(
        parameters["reference"],
        parameters["reference_file"],
        robot,
        controller.model.dynamics.tree,
        space=controller.space,
        operational_size=None if joint else len(controller.reference_names),
    )
