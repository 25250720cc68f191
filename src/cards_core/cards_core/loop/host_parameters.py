"""Parameters that every simulator of muscles has."""

from __future__ import annotations

from cards_core.loop.model_agreement import accept_parameter
from cards_core.parameters.declaration import Parameter
from cards_core.robot.model import Tree
from cards_core.stamps import LONGEST_RUN

MODES = ("realtime", "as_fast_as_possible", "lockstep")


def host_parameters() -> list[Parameter]:
    """Return the parameters that depend neither on the simulator nor on the robot."""
    return [
        Parameter("mode", "realtime", "How time advances.", choices=MODES),
        Parameter(
            "publish_rate",
            1000.0,
            "Rate of the states in simulated time; in lockstep every step is published.",
            "Hz",
            lower=0.1,
            upper=1e6,
        ),
        Parameter(
            "clock_rate", 100.0, "Rate of /clock in simulated time.", "Hz", lower=0.1, upper=1e6
        ),
        Parameter(
            "command_timeout",
            0.1,
            "Simulated time without a valid command after which tensions decay to the minimum.",
            "s",
            lower=1e-3,
            upper=3600.0,
        ),
        Parameter("decay_time", 0.0, "How long that decay takes.", "s", lower=0.0, upper=3600.0),
        Parameter(
            "wait_for_command",
            True,
            "Time starts with the first accepted command (always so in lockstep).",
        ),
        Parameter(
            "duration",
            0.0,
            "Simulated time after which the simulation ends; 0: endless.",
            "s",
            lower=0.0,
            upper=LONGEST_RUN,
        ),
        accept_parameter("Obey commands although another node has another model (compiler.md)."),
        Parameter("log_dir", "", "Folder for simulator.npz, one row per step; empty: no log."),
    ]


def initial_positions(tree: Tree) -> Parameter:
    """Return the parameter with the coordinates at time zero."""
    return Parameter(
        "initial_positions",
        tuple(tree.home),
        "Joint coordinates at time zero.",
        "rad or m",
        length=tree.nq,
        names=tree.position_names,
        default_text="the model's home",
    )
