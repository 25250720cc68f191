"""Experiments of the CARDSFlow paper: a planar arm in joint space, an arm that draws a flower."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cards_bringup.reproduce.experiment import (
    Band,
    Claim,
    Experiment,
    FinishedRun,
    Outcome,
    Paper,
    with_unit,
)
from cards_bringup.reproduce.simulated_run import SimulatedRun, simulated_run
from cards_core.control.interface import ControlStatus

PAPER = Paper("000", "CARDSFlow: design, simulation and control of muscle robots", "Trendel2018")

READING = "a curve in a printed plot can be read to about 1 % of its range"

HOST = (
    "The paper closes the loop between CASPR in MATLAB and Gazebo over ROS; here simulator "
    "(MuJoCo) and controller run in one process, in lockstep at 1 kHz."
)

NO_NUMBERS = (
    "Published errors and tensions are not at hand as numbers. Held to numbers are the task, the "
    "limits of the robot, and what follows from its data."
)

# A: the planar arm ------------------------------------------------------------------------------

REST_TENSIONS = (41.3328, 10.0, 10.0, 14.039668)
"""Tensions of least norm within 10 to 100 N at (-0.5, 0.5) rad, [N]; at (0.5, -0.5) rad cables 1
and 3, and 2 and 4, have changed places. Calculated from CASPR's numbers of the robot
(Example_2R_planar_XZ) by a program that shares no code with ours."""

PLANAR_SETUP: dict[str, Any] = {
    "robot": "planar_2r",
    "simulator": {"dt": 0.001, "initial_positions": [-0.5, 0.5]},
    "controller": "ctc_joint",
    "parameters": {"kp": [2000.0, 2000.0], "kd": [90.0, 90.0], "solver": "daqp"},
    "reference": {
        "kind": "quintic",
        "space": "joint",
        "time_definition": "relative",
        "points": [
            {"position": [-0.5, 0.5]},
            {"time": 4.0, "position": [0.5, -0.5]},
            {"time": 4.0, "position": [-0.5, 0.5]},
        ],
    },
    "duration": 8.0,
}


def _planar_claims() -> tuple[Claim, ...]:
    source = "2R planar robot, joint-space control: gains, trajectory"
    data = "CASPR's data of the robot"
    claims = [
        Claim(
            f"joint_{i}_error",
            f"maximum error of joint {i}",
            source,
            Band.at_most(0.01),
            "rad",
            statement="follow (-0.5, 0.5), (0.5, -0.5), (-0.5, 0.5) rad in 8 s",
            why=READING,
        )
        for i in (1, 2)
    ]
    claims += [
        *_limit_claims(data, 10.0, 100.0),
        _feasible_claim(source),
    ]
    swapped = [REST_TENSIONS[i] for i in (2, 3, 0, 1)]
    for time, tensions in ((0, REST_TENSIONS), (4, swapped)):
        claims += [
            Claim(
                f"tension_{i}_at_{time}s",
                f"tension of cable {i} at rest, t = {time} s",
                f"least-norm tensions, calculated from {data}",
                Band.around(tension, relative=0.01),
                "N",
                statement=f"{with_unit(tension, 'N')}, calculated",
                why="what the controller adds to the tensions at rest is below 1 %",
            )
            for i, tension in enumerate(tensions, 1)
        ]
    return tuple(claims)


def _tension_claim(value: str, text: str, source: str, band: Band, limit: float) -> Claim:
    return Claim(value, text, source, band, "N", published=limit, why="within the limits")


def _limit_claims(source: str, least: float, greatest: float) -> tuple[Claim, Claim]:
    """Claims that the tensions stay within the limits of the cables, [N]."""
    return (
        _tension_claim(
            "tension_min",
            "minimum tension, limit of the cables",
            source,
            Band.at_least(least - 1e-6),
            least,
        ),
        _tension_claim(
            "tension_max",
            "maximum tension, limit of the cables",
            source,
            Band.at_most(greatest + 1e-6),
            greatest,
        ),
    )


def _feasible_claim(source: str) -> Claim:
    return Claim(
        "infeasible_steps",
        "control steps without tensions that do what is asked",
        source,
        Band(0.0, 0.0),
        statement="the task can be done",
        why="the programs that distribute the tensions must have solutions",
    )


def _common_values(run: SimulatedRun) -> dict[str, float]:
    return {
        "tension_min": float(run.simulator.tensions.min()),
        "tension_max": float(run.simulator.tensions.max()),
        "infeasible_steps": float(np.sum(run.controller.status >= ControlStatus.INFEASIBLE)),
    }


def planar_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate experiment A."""
    run = SimulatedRun.load(runs["run"])
    errors = np.abs(run.controller.error).max(axis=0)
    values = _common_values(run)
    values |= {f"joint_{i}_error": float(error) for i, error in enumerate(errors, 1)}
    for time in (0, 4):
        for i, tension in enumerate(run.tensions_at(time), 1):
            values[f"tension_{i}_at_{time}s"] = float(tension)
    return Outcome(
        values,
        {"run": run.table()},
        {
            "tracking": run.tracking_plot(
                "2R planar robot, joint space",
                "Joint coordinates over time, reference and simulation, and their difference.",
            ),
            "tensions": run.tension_plot("Cable tensions over time, with their limits."),
        },
    )


# B: the flower ----------------------------------------------------------------------------------

CENTRE = [0.45, -0.45, 0.45]
AMPLITUDE = 0.15
FLOWER_DURATION = 30.0

FLOWER_SETUP: dict[str, Any] = {
    "robot": "roboy_arm",
    "simulator": {"dt": 0.001},
    "controller": "ctc_operational",
    "parameters": {
        "kp": [2000.0] * 3,
        "kd": [90.0] * 3,
        "solver": "daqp",
        "posture": "mid",
        "posture_kp": [100.0] * 4,
    },
    "reference": {
        "kind": "flower",
        "centre": CENTRE,
        "amplitude": AMPLITUDE,
        "petals": 5,
        "axes": [[1, 0, 0], [0, 0, 1]],
        "duration": FLOWER_DURATION,
    },
    "duration": FLOWER_DURATION,
}


def _flower_claims() -> tuple[Claim, ...]:
    source = "Roboy arm, operational-space control: flower"
    data = "CASPR's data of the robot"
    return (
        Claim(
            "position_error",
            "maximum distance of the hand from the reference",
            source,
            Band.at_most(0.003),
            "m",
            statement="follow the flower in 30 s",
            why=f"{READING}, 0.3 m",
        ),
        Claim(
            "size",
            "maximum distance of the hand from the centre (0.45, -0.45, 0.45) m",
            source,
            Band.around(AMPLITUDE, absolute=0.003),
            "m",
            published=AMPLITUDE,
            why=READING,
        ),
        Claim(
            "plane",
            "mean y of the hand",
            source,
            Band.around(CENTRE[1], absolute=0.003),
            "m",
            published=CENTRE[1],
            why=READING,
        ),
        Claim(
            "drawn",
            "share of the flower that is drawn in 30 s",
            source,
            Band.at_least(0.999),
            statement="all of it",
            why="the last step of the controller is one before the end",
        ),
        *_limit_claims(data, 10.0, 5000.0),
        _feasible_claim(source),
    )


def flower_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate experiment B."""
    run = SimulatedRun.load(runs["run"])
    log = run.controller
    hand = log.actual[:, :3]
    values = _common_values(run) | {
        "position_error": float(np.linalg.norm(log.error[:, :3], axis=1).max()),
        "size": float(np.linalg.norm(hand - CENTRE, axis=1).max()),
        "plane": float(hand[:, 1].mean()),
        "drawn": 1.0 - float(log.remaining[-1]) / FLOWER_DURATION,
    }
    return Outcome(
        values,
        {"run": run.table()},
        {
            "path": run.path_plot(
                "Roboy arm: flower", "Path of the hand in the plane of the flower."
            ),
            "tracking": run.tracking_plot(
                "Roboy arm, operational space",
                "Position of the hand over time, reference and simulation, and their difference.",
            ),
            "tensions": run.tension_plot("Muscle tensions over time."),
        },
    )


EXPERIMENTS = (
    Experiment(
        PAPER,
        "A",
        "2R planar robot with four cables, joint-space control",
        PLANAR_SETUP,
        _planar_claims(),
        simulated_run,
        planar_outcome,
        notes=(
            HOST,
            NO_NUMBERS,
            "Links whose moment of inertia about the joint axis is zero, as in CASPR's file, are "
            "no rigid bodies: 1e-6 of the largest moment is used.",
        ),
    ),
    Experiment(
        PAPER,
        "B",
        "Roboy arm with eleven muscles draws a flower, operational-space control",
        FLOWER_SETUP,
        _flower_claims(),
        simulated_run,
        flower_outcome,
        notes=(
            HOST,
            NO_NUMBERS,
            "Centre, amplitude, plane and duration are the paper's; five petals and the speed "
            "along them (at rest at both ends) are chosen here.",
            "Gains are those of the planar robot; the arm starts at home, with its hand in the "
            "centre of the flower.",
        ),
    ),
)
