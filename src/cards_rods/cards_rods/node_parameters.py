"""Parameters of the node ``rod_solver``; the demo without ROS reads the same."""

from __future__ import annotations

from cards_core.parameters.declaration import Parameter
from cards_core.stamps import LONGEST_RUN

DEFAULT_MODEL = "stewart_gough"

COLORS = ("curvature", "stress", "strain", "none")
"""What the colour of a rod may show."""


def parameters() -> list[Parameter]:
    """Return the node's parameters."""
    return [
        Parameter(
            "model",
            DEFAULT_MODEL,
            "Robot of rods: name of a folder in models/, or path of an SDF.",
        ),
        Parameter(
            "rate", 200.0, "Rate of steps towards the command, and of ~/state.", "Hz", 1.0, 2000.0
        ),
        Parameter(
            "substeps",
            8,
            "Maximum number of solves per step; each moves the plate by at most 5 mm or 2 "
            "degrees.",
            lower=1,
            upper=100,
        ),
        Parameter(
            "draw_rate",
            60.0,
            "Rate of ~/shapes and ~/rods while something moves.",
            "Hz",
            1.0,
            200.0,
        ),
        Parameter("points", 51, "Points of each centre line.", lower=5, upper=1001),
        Parameter(
            "color_by", "curvature", "What the colours in RViz show.", choices=COLORS, live=True
        ),
        Parameter(
            "solve_timeout", 1.0, "Longest time that ~/solve takes.", "s", lower=1e-3, upper=60.0
        ),
        Parameter("state_name", "state", "Name for ~/save_state and ~/load_state.", live=True),
        Parameter(
            "states_file",
            "",
            "JSON file of the saved states; empty: they are lost when the node ends.",
        ),
        Parameter("play", False, "Begin with the demo motion, as ~/play does."),
        Parameter(
            "motion_duration", 20.0, "Duration of one cycle of the demo motion.", "s", 1.0, 3600.0
        ),
        Parameter(
            "duration",
            0.0,
            "Time after which the node ends; 0: endless.",
            "s",
            lower=0.0,
            upper=LONGEST_RUN,
        ),
        Parameter("log_dir", "", "Folder for rod_solver.npz, one row per step; empty: no log."),
    ]
