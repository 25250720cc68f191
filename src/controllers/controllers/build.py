"""From parameters to a running controller; nodes and the runner without ROS build it here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cards_core.control import make_controller
from cards_core.control.passive_load import PassiveLoad
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.robot.model import Robot, Tree
from cards_core.robot.perturb import perturbed
from cards_core.trajectories import Reference
from cards_ros.parameter_spec import Parameter, ParameterStore
from controllers.node_parameters import (
    controller_arguments,
    joint_parameters,
    model_parameters,
    operational_parameters,
    run_parameters,
    task_parameters,
)
from controllers.references import read_reference
from controllers.session import ControlSession

ROTATIONS = ("rotation_x", "rotation_y", "rotation_z")
"""Names of the entries of an orientation error."""


def build_session(
    kind: str, parameters: ParameterStore, robot: Robot | None = None
) -> ControlSession:
    """Declare all parameters of a controller and build it with its model, reference and log.

    Args:
        kind: ``ctc_joint`` or ``ctc_operational``.
        parameters: Where the values come from.
        robot: Replaces the parameter ``model``, for tests.

    Raises:
        CardsError: A parameter, the model or the reference is not usable; the message says why.
    """
    parameters.declare(model_parameters())
    described = robot or load(parameters["model"])
    known, robot = described, described.commanded()
    if parameters["mass_factor"] != 1.0 or parameters["attachment_offset"] != 0.0:
        known = perturbed(
            described,
            mass_factor=parameters["mass_factor"],
            attachment_offset=parameters["attachment_offset"],
            seed=parameters["perturbation_seed"],
        )
    dynamics = make_dynamics(known.commanded(), parameters["backend"])
    load_of_ligaments = None if robot is described else PassiveLoad(known, parameters["backend"])
    parameters.declare(run_parameters())
    arguments = _arguments(kind, parameters, robot, dynamics.tree)
    parameters.refuse_others()
    controller = make_controller(kind, dynamics, load=load_of_ligaments, **arguments)
    log_dir: str = parameters["log_dir"]
    return ControlSession(
        controller,
        _reference(kind, parameters, robot, dynamics.tree, controller.reference_names),
        approach_speed=parameters["approach_speed"],
        log_path=Path(log_dir) / "controller.npz" if log_dir else None,
        robot=described,
    )


def rate_names(kind: str, parameters: ParameterStore, tree: Tree) -> tuple[str, ...]:
    """Return the names of the entries of a controller's error; its task must be declared."""
    if kind == "ctc_joint":
        return tree.velocity_names
    return (*parameters["axes"], *(ROTATIONS if parameters["orientation"] else ()))


def _arguments(kind: str, parameters: ParameterStore, robot: Robot, tree: Tree) -> dict[str, Any]:
    if kind == "ctc_joint":
        return _declared(parameters, joint_parameters(robot, tree))
    arguments = _declared(parameters, task_parameters(robot))
    del arguments["reference_speed"]
    arguments["frame"] = arguments["frame"] or None
    rest = operational_parameters(robot, tree, rate_names(kind, parameters, tree))
    return arguments | _declared(parameters, rest)


def _declared(parameters: ParameterStore, specs: Sequence[Parameter]) -> dict[str, Any]:
    parameters.declare(specs)
    return controller_arguments(specs, {spec.name: parameters[spec.name] for spec in specs})


def _reference(
    kind: str,
    parameters: ParameterStore,
    robot: Robot,
    tree: Tree,
    reference_names: Sequence[str],
) -> Reference | None:
    if not parameters["reference"]:
        return None
    joint = kind == "ctc_joint"
    return read_reference(
        parameters["reference"],
        parameters["reference_file"],
        robot,
        tree,
        space="joint" if joint else "operational",
        operational_size=None if joint else len(reference_names),
    )
