"""Experiments on continuum parallel robots: lengths of the rods, the speed path, the robots.

The paper compares the lengths that its simulator finds with those of the program of [Till2015] at
two poses. Two of its robots were solved by a program that shares no code with ours, and one of
them has a solution stored beside the paper's simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.benchmarks.rods import TILL_ROBOT, till_path
from cards_bringup.reproduce.experiment import (
    Band,
    Claim,
    Experiment,
    FinishedRun,
    Outcome,
    Paper,
    Plot,
    Setup,
    Tell,
)
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot, SolverSettings
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.initial_search import home_equilibrium
from cards_core.spatial import axis_rotation
from cards_core.typing import Array
from cards_viz.colors import ACTUAL, DESIRED, LINE_COLORS
from cards_viz.plots.drawing import styled_figure

PAPER = Paper("001", "A Gazebo simulator for continuum parallel robots", "Gotelli2022")

AGREEMENT = 1e-4
"""To which the paper finds the lengths of two programs to agree, [m]."""

LOOK_ALIKE = "the paper's two programs agree to 1e-4 m"

EXACT: dict[str, Any] = {"steps": 8, "tolerance": 1e-11}


def pose_of(numbers: Sequence[float]) -> Array:
    """Return a pose, (4, 4), from x, y, z [m] and angles a, b, c [rad]: Rx(a) Ry(b) Rz(c)."""
    pose = np.eye(4)
    pose[:3, 3] = numbers[:3]
    for axis, angle in zip(np.eye(3), numbers[3:], strict=True):
        pose[:3, :3] = pose[:3, :3] @ axis_rotation(axis, angle)
    return pose


def solve_poses(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Solve the inverse model at the poses of a set-up, one after the other.

    `setup` names ``rods`` (the robot), ``poses`` (each as for `pose_of`), ``solver`` (steps and
    tolerance), and may have ``plate_gravity`` [m/s^2], with which the plate alone is weighed, and
    ``joint_z`` [m], the height of the plate's joints in the plate. Leaves no files.

    Args:
        setup: See above.
        folder: Not used.
        tell: Told the share that is done, 0 to 1.

    Returns:
        ``solutions``, for each pose: ``q``, ``base_wrench`` of the first rod ([N], [Nm]),
        ``min_eigenvalue`` and ``converged``.
    """
    robot = read_rod_robot(setup["rods"])
    if "joint_z" in setup:
        robot = _with_joints_at(robot, setup["joint_z"])
    solver = RodRobotSolver(robot, SolverSettings(**setup["solver"]))
    lift = np.zeros(6)
    if "plate_gravity" in setup:
        lift[2] = robot.plate.mass * (-robot.gravity[2] - setup["plate_gravity"])
    found, last = [], None
    for done, numbers in enumerate(setup["poses"], 1):
        last = solver.igm(pose_of(numbers), wrench=lift, start=last)
        found.append(
            {
                "q": last.q.tolist(),
                "base_wrench": last.base_wrenches[0].tolist(),
                "min_eigenvalue": last.min_eigenvalue,
                "converged": last.converged,
            }
        )
        tell(done / len(setup["poses"]))
    return {"solutions": found}


def _with_joints_at(robot: RodRobot, height: float) -> RodRobot:
    limbs = []
    for limb in robot.limbs:
        joint = limb.tip.joint_pose.copy()
        joint[2, 3] = height
        limbs.append(replace(limb, tip=replace(limb.tip, joint_pose=joint)))
    return replace(robot, limbs=tuple(limbs))


def _solution(run: FinishedRun, index: int = 0) -> Mapping[str, Any]:
    solution: Mapping[str, Any] = run.numbers["solutions"][index]
    if not solution["converged"]:
        return {name: np.full_like(value, np.nan, dtype=float) for name, value in solution.items()}
    return solution


# Two poses --------------------------------------------------------------------------------------

LENGTHS = {
    "tilted": (
        "tilted by 10 degrees",
        (0.0, 0.0, 0.4, 0.0, np.radians(10.0), 0.0),
        (0.397337668, 0.397337668, 0.399720112, 0.421636098, 0.421636098, 0.399720112),
    ),
    "turned": (
        "moved by 20 mm in x and y and turned by 10 degrees",
        (0.02, 0.02, 0.4, 0.0, 0.0, np.radians(10.0)),
        (0.400631836, 0.410389864, 0.407213129, 0.403382077, 0.404877230, 0.414280825),
    ),
}
"""Run to what it is, its pose, and the lengths that the program of [Till2015] finds, [m]."""


def _length_claims() -> tuple[Claim, ...]:
    claims = [
        Claim(
            f"{run}.length_{i}",
            f"plate {words}: length of rod {i}",
            "comparison with the program of [Till2015]",
            Band.around(length, absolute=AGREEMENT),
            "m",
            published=length,
            why=LOOK_ALIKE,
        )
        for run, (words, _, lengths) in LENGTHS.items()
        for i, length in enumerate(lengths, 1)
    ]
    claims += [
        Claim(
            "turned.difference",
            "plate turned: largest difference of a length",
            "comparison with the program of [Till2015]",
            Band(0.0, 2e-9),
            "m",
            statement="the lengths of the same equations",
            why="printed to 1e-9 m; without tilt both orientation errors mean the same",
        ),
        Claim(
            "tilted.difference",
            "plate tilted: largest difference of a length",
            "comparison with the program of [Till2015]",
            Band.around(1.2087e-5, absolute=2e-9),
            "m",
            statement="1.2087e-5 m, calculated",
            why="what the orientation error of the published equations makes",
        ),
    ]
    return tuple(claims)


def length_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate the lengths at two poses."""
    values: dict[str, float] = {}
    table: dict[str, Any] = {"rod": list(range(1, 7))}
    with styled_figure(10.0, 3.4, "Lengths of the rods") as figure:
        axes = figure.subplots(1, len(runs))
        for axis, (run, finished) in zip(axes, runs.items(), strict=True):
            words, _, theirs = LENGTHS[run]
            ours = np.array(_solution(finished)["q"])
            values |= {f"{run}.length_{i}": float(q) for i, q in enumerate(ours, 1)}
            values[f"{run}.difference"] = float(np.abs(ours - theirs).max())
            table[f"{run}, published [m]"] = list(theirs)
            table[f"{run}, ours [m]"] = ours.tolist()
            places = np.arange(1, 7)
            axis.bar(places - 0.2, theirs, 0.38, color=DESIRED, label="published")
            axis.bar(places + 0.2, ours, 0.38, color=ACTUAL, label="ours")
            axis.set_ylim(0.38, 0.44)
            axis.set_title(f"plate {words}", loc="left")
            axis.set_xlabel("rod")
            axis.set_ylabel("length [m]")
            axis.grid(visible=False, axis="x")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    caption = "Published: what the program of [Till2015] finds, with which the paper compares."
    return Outcome(values, {"lengths": table}, {"lengths": Plot(figure, caption)})


# The speed path ----------------------------------------------------------------------------------

PATH_ENDS = {
    "start": (0.482314669009, 0.487571084140, 0.484905823498),
    "end": (0.585461668010, 0.615943678290, 0.598361692871),
}
"""Lengths of rods 1 to 3 at both ends of the path, [m]; 4 to 6 are their mirror images."""

PUBLISHED_RATE = 4200.0
"""Solutions per second of the fastest program for one core in the author's report, [Hz]."""


def follow_path(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Solve along the path of [Till2015], and measure the rate. Leaves no files.

    Args:
        setup: As for `solve_poses`, with ``way``, the length of the path [m], in place of
            ``poses``, and ``laps`` of the measurement.
        folder: Not used.
        tell: Told the share that is done, 0 to 1.

    Returns:
        ``solutions`` of `solve_poses`, ``rate_hz`` [Hz] and ``max_residual``.
    """
    points = 1 + round(setup["way"] / 1e-3)
    poses = [[0.0, 0.02 + 1e-3 * i, 0.48 + 1e-3 * i, 0.0, 0.0, 0.0] for i in range(points)]
    solved = solve_poses({**setup, "poses": poses}, folder, lambda share: tell(0.5 * share))
    measured = till_path(laps=setup["laps"])
    tell(1.0)
    return {**solved, "rate_hz": measured["rate_hz"], "max_residual": measured["max_residual"]}


def _path_claims() -> tuple[Claim, ...]:
    return (
        *(
            Claim(
                f"{end}.length_{i}",
                f"{end} of the path: length of rod {i}",
                "speed path of [Till2015]",
                Band.around(length, absolute=1e-9),
                "m",
                statement=f"{length:.9f} m, calculated",
                why="by a program that shares no code, with 40 steps of order 8",
            )
            for end, lengths in PATH_ENDS.items()
            for i, length in enumerate(lengths, 1)
        ),
        Claim(
            "rate_hz",
            "solutions per second, one core, one call from Python each",
            "report of the author of [Till2015]",
            Band.at_least(PUBLISHED_RATE),
            "Hz",
            published=PUBLISHED_RATE,
            why="other machine and language: not slower; the published one is written for this "
            "robot alone, and ends at a residual of 1e-3",
        ),
        Claim(
            "max_residual",
            "maximum scaled residual on the way",
            "report of the author of [Till2015]",
            Band(0.0, 1e-3),
            published=1e-3,
            why="not less accurate",
        ),
    )


def path_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate the path."""
    run = runs["run"]
    lengths = np.array([one["q"][:3] for one in run.numbers["solutions"]])
    values = {"rate_hz": run.numbers["rate_hz"], "max_residual": run.numbers["max_residual"]}
    for end, row in (("start", 0), ("end", -1)):
        values |= {f"{end}.length_{i}": float(q) for i, q in enumerate(lengths[row], 1)}
    way = np.arange(len(lengths))
    with styled_figure(7.0, 3.4) as figure:
        axis = figure.subplots()
        for i in range(3):
            axis.plot(way, lengths[:, i], color=LINE_COLORS[i], label=f"rods {i + 1}, {i + 4}")
            axis.plot([0, way[-1]], [PATH_ENDS[end][i] for end in PATH_ENDS], "kx", ms=5)
        axis.set_xlabel("way in y and in z [mm]")
        axis.set_ylabel("length [m]")
        axis.legend()
    caption = "Lengths along the path; crosses: calculated by a program that shares no code."
    table: dict[str, Any] = {
        "way [mm]": way,
        **{f"rod {i + 1} [m]": lengths[:, i] for i in range(3)},
    }
    return Outcome(values, {"lengths": table}, {"lengths": Plot(figure, caption)})


# Robots of the simulator -------------------------------------------------------------------------

_6EFR_MOVED = (1.089613433579, 1.150551487667, 1.143175978547, 1.160754178504, 1.117632263087,
               1.129840828066)  # fmt: skip
_6PFS_MOVED = (-0.011098292294, 0.120179890118, 0.099427646440, 0.018031084246, -0.011334488987,
               0.061242542307)  # fmt: skip

COMPUTED = {
    "stewart_6efr": ("6-EFR", (1.1298292423,) * 6, _6EFR_MOVED),
    "stewart_6pfs": ("6-PFS", (0.02198396261,) * 6, _6PFS_MOVED),
}
"""Run to the robot's name, and q at home and moved, calculated by another program, [m]."""

STORED = (
    ("q_1150", "slide, plate at 1.15 m", 0.0969839, "m", 1e-7),
    ("q_1400", "slide, plate at 1.40 m", 0.3469839, "m", 1e-7),
    ("force_x", "force at the base of rod 1, x", -0.02850044, "N", 1e-6),
    ("force_y", "force at the base of rod 1, y", -0.04936418, "N", 1e-6),
    ("force_z", "force at the base of rod 1, z", -0.4294854, "N", 1e-6),
    ("moment_x", "moment at the base of rod 1, x", 0.1275989, "Nm", 1e-6),
    ("moment_y", "moment at the base of rod 1, y", -0.07366929, "Nm", 1e-6),
)
"""Solution of the 6-PFS robot that is stored beside the paper's simulator."""


def _simulator_claims() -> tuple[Claim, ...]:
    claims = [
        Claim(
            f"{run}.{where}_{i}",
            f"{title}, {where}: q of limb {i}",
            "data of the paper's simulator",
            Band.around(q, absolute=1e-8),
            "m",
            statement=f"{q:.9f} m, calculated",
            why="by a program that shares no code, printed to 1e-10 m",
        )
        for run, (title, home, moved) in COMPUTED.items()
        for where, all_q in (("home", home[:1]), ("moved", moved))
        for i, q in enumerate(all_q, 1)
    ]
    claims += [
        Claim(
            f"stored.{key}",
            f"6-PFS, stored solution: {words}",
            "solution stored beside the paper's simulator",
            Band.around(value, absolute=band),
            unit,
            published=value,
            why="stored with seven digits",
        )
        for key, words, value, unit, band in STORED
    ]
    return tuple(claims)


def simulator_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate robots of the paper's simulator."""
    values: dict[str, float] = {}
    for run in COMPUTED:
        values[f"{run}.home_1"] = float(_solution(runs[run])["q"][0])
        moved = _solution(runs[run], 1)["q"]
        values |= {f"{run}.moved_{i}": float(q) for i, q in enumerate(moved, 1)}
    low, high = (_solution(runs["stored"], i) for i in (0, 1))
    found = [low["q"][0], high["q"][0], *low["base_wrench"][:5]]
    values |= {
        f"stored.{key}": float(value) for (key, *_), value in zip(STORED, found, strict=True)
    }
    return Outcome(values)


# All robots --------------------------------------------------------------------------------------

ROBOTS = {
    "planar_3rfr": "planar 3-RFR",
    "planar_3pfr": "planar 3-PFR",
    "planar_3efr": "planar 3-EFR",
    "planar_rfr_fr": "planar 2-RFR-1-EFF",
    "stewart_6efr": "6-EFR",
    "stewart_6pfr": "6-PFR",
    "stewart_6pff": "6-PFF",
    "stewart_6pfs": "6-PFS",
    "spatial_3pfr": "3-PFR",
    "stewart_gough": "6-EFR of [Till2015]",
}
"""Robot of the paper, four planar and six spatial, to its name in the report."""


def settle(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Find the robot's equilibrium at home, and go back from q to the pose.

    `setup` names ``rods``, the robot. Leaves the curves of its rods in ``rods.npz``.

    Args:
        setup: See above.
        folder: Folder of ``rods.npz``.
        tell: Told 1 at the end.

    Returns:
        ``min_eigenvalue``, and ``way_back``, the largest difference of an entry of the pose.
    """
    robot = read_rod_robot(setup["rods"])
    solver = RodRobotSolver(robot)
    home = home_equilibrium(solver).solution
    if home is None or not home.converged:
        return {"min_eigenvalue": float("nan"), "way_back": float("nan")}
    exact = RodRobotSolver(robot, SolverSettings(**EXACT))
    there = exact.igm(home.pose, wrench=robot.wrench, start=home)
    back = exact.dgm(there.q, wrench=robot.wrench, start=there)
    np.savez(folder / "rods.npz", positions=exact.shapes(there, 41).positions)
    tell(1.0)
    return {
        "min_eigenvalue": there.min_eigenvalue,
        "way_back": float(np.abs(back.pose - there.pose).max()),
    }


def _robot_claims() -> tuple[Claim, ...]:
    claims = []
    for robot, title in ROBOTS.items():
        claims += [
            Claim(
                f"{robot}.min_eigenvalue",
                f"{title}: smallest eigenvalue of the stiffness of the plate at home",
                "the robots of the paper",
                Band.at_least(1e-3),
                "N/m, Nm",
                statement="the robot stands at its start",
                why="a stable equilibrium",
            ),
            Claim(
                f"{robot}.way_back",
                f"{title}: pose from the coordinates that were found from the pose",
                "direct and inverse model",
                Band(0.0, 1e-8),
                "m, rad",
                statement="one is the inverse of the other",
                why="both are solved to 1e-11",
            ),
        ]
    return tuple(claims)


def robot_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate all robots."""
    values = {
        f"{robot}.{name}": float(run.numbers[name])
        for robot, run in runs.items()
        for name in ("min_eigenvalue", "way_back")
    }
    with styled_figure(10.0, 5.0) as figure:
        for place, (robot, run) in enumerate(runs.items(), 1):
            axis = figure.add_subplot(2, 5, place)
            axis.set_title(ROBOTS[robot], loc="left")
            axis.set_aspect("equal")
            axis.set_axis_off()
            if not (run.folder / "rods.npz").is_file():
                continue
            with np.load(run.folder / "rods.npz") as file:
                positions = file["positions"]
            across = (0, 1) if robot.startswith("planar") else (0, 2)
            for curve in positions:
                axis.plot(*curve[:, across].T, color=ACTUAL, lw=1.2)
            axis.plot(*positions[:, 0][:, across].T, "ks", ms=3)
            tips = positions[:, -1][:, across]
            axis.plot(*np.vstack([tips, tips[:1]]).T, color=DESIRED, lw=2.0)
    caption = "Rods at home, from above (planar) or from the side; grey: plate."
    table: dict[str, Any] = {
        "robot": list(ROBOTS.values()),
        "smallest eigenvalue [N/m, Nm]": [values[f"{robot}.min_eigenvalue"] for robot in ROBOTS],
        "way back [m, rad]": [values[f"{robot}.way_back"] for robot in ROBOTS],
    }
    return Outcome(values, {"robots": table}, {"robots": Plot(figure, caption)})


MOVED = {
    "stewart_6efr": (0.03, -0.02, 1.1, 0.05, 0.03, 0.08),
    "stewart_6pfs": (0.05, 0.03, 1.12, 0.1, -0.05, 0.1),
}

EXPERIMENTS = (
    Experiment(
        PAPER,
        "LENGTHS",
        "Six rods of fed length: lengths at two poses",
        {"rods": "stewart_gough", "solver": EXACT},
        _length_claims(),
        solve_poses,
        length_outcome,
        runs={run: {"poses": [list(pose)]} for run, (_, pose, _) in LENGTHS.items()},
        notes=(
            "The paper compares its simulator with the program of [Till2015]; the published "
            "lengths are what that program prints.",
            "Its orientation error vee(R1'R2 - R1R2') is no rotation vector: on a tilted plate it "
            "leaves the hinges out of their axes. With the logarithm the lengths differ by "
            "up to 1.2e-5 m.",
        ),
    ),
    Experiment(
        PAPER,
        "PATH",
        "The speed path: lengths, and solutions per second",
        {"rods": TILL_ROBOT, "solver": EXACT, "way": 0.1, "laps": 20},
        _path_claims(),
        follow_path,
        path_outcome,
        notes=(
            "The paper states no times. The path is that of [Till2015], on which the program that "
            "it compares with was measured.",
        ),
        quick={"laps": 3},
    ),
    Experiment(
        PAPER,
        "SIMULATOR",
        "Robots of the simulator: coordinates and a stored solution",
        {"solver": EXACT, "plate_gravity": 9.8},
        _simulator_claims(),
        solve_poses,
        simulator_outcome,
        runs={
            **{
                run: {"rods": run, "poses": [[0.0, 0.0, 1.1, 0.0, 0.0, 0.0], list(MOVED[run])]}
                for run in COMPUTED
            },
            "stored": {
                "rods": "stewart_6pfs",
                "joint_z": 0.0,
                "poses": [[0.0, 0.0, z, 0.0, 0.0, 0.0] for z in (1.15, 1.4)],
            },
        },
        notes=(
            "The simulator weighs the plate with 9.8 m/s^2 and the rods with 9.81 m/s^2; so is it "
            "done here.",
            "The stored solution belongs to ball joints at the height of the plate's origin, not "
            "25 mm below as in the description stored beside it.",
        ),
    ),
    Experiment(
        PAPER,
        "ROBOTS",
        "Four planar and six spatial robots stand at their start",
        {},
        _robot_claims(),
        settle,
        robot_outcome,
        runs={robot: {"rods": robot} for robot in ROBOTS},
        notes=("Where our descriptions differ from the paper's: docs/rod_robots.md.",),
    ),
)
