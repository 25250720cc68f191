"""Benchmark of the solver: the path of [Till2015] and the shipped robots.

Times are of whole calls from Python, copies of the results included, each warm started with the
solution before; `library_us` is the part inside the compiled library.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cards_core.errors import RodError
from cards_core.formats.locate import known_models
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.initial_search import home_equilibrium
from cards_core.typing import Array

TILL_ROBOT = "stewart_gough_till"

PUBLISHED_HZ = 4500.0
"""Rate of the specialised C++ program of the authors of [Till2015] on this path: hand-written for
this robot, one core, 2-norm of the residual up to 1e-3."""

PATH_STEPS = 100
"""Millimetre steps of the path, one way."""


def bench_rods(
    say: Callable[[str], None] = lambda text: None,
    *,
    robots: Iterable[str] | None = None,
    laps: int = 20,
    steps: int = 2000,
) -> dict[str, Any]:
    """Measure the inverse model on Till's path, and both models of the shipped robots.

    Args:
        say: Is told what is being measured.
        robots: Names of rod robots; default all that are shipped.
        laps: Times that the path is gone up and down.
        steps: Solves per robot and model.

    Returns:
        JSON-ready: ``till_path`` with ``median_us``, ``p99_us``, ``max_residual`` (scaled) and
        more; ``till_path_chord``, the same with Jacobians kept; ``published_hz`` and ``ratio``;
        ``igm_us`` and ``dgm_us``, medians per robot, beside them ``..._p99_us``;
        ``stiffness_us``, K with its eigenvalues on top of a solve; ``max_residual`` over all
        robots; ``unsolved``, how many of their solves failed.
    """
    say("the path of Till 2015: 6 rods, inverse model")
    path = till_path(laps=laps)
    chord = till_path(laps=laps, policy="chord")
    details: dict[str, Any] = {}
    for name in known_models(rods=True) if robots is None else robots:
        say(name)
        details[name] = bench_robot(read_rod_robot(name), steps)
    return {
        "till_path": path,
        "till_path_chord": chord,
        "published_hz": PUBLISHED_HZ,
        "ratio": path["rate_hz"] / PUBLISHED_HZ,
        "igm_us": {name: entry["igm"]["median_us"] for name, entry in details.items()},
        "igm_p99_us": {name: entry["igm"]["p99_us"] for name, entry in details.items()},
        "dgm_us": {name: entry["dgm"]["median_us"] for name, entry in details.items()},
        "dgm_p99_us": {name: entry["dgm"]["p99_us"] for name, entry in details.items()},
        "stiffness_us": {name: entry["stiffness_us"] for name, entry in details.items()},
        "max_residual": max(
            (entry[kind]["max_residual"] for entry in details.values() for kind in KINDS),
            default=0.0,
        ),
        "unsolved": sum(entry[kind]["unsolved"] for entry in details.values() for kind in KINDS),
    }


KINDS = ("igm", "dgm")


def till_path(*, laps: int = 20, policy: str = "fresh") -> dict[str, Any]:
    """Measure the path (0, 0.02, 0.48) m to (0, 0.12, 0.58) m and back, 1 mm in y and z a step.

    Raises:
        RodError: The robot has no equilibrium at the start of the path.
    """
    robot = read_rod_robot(TILL_ROBOT)
    solver = RodRobotSolver(robot, replace(robot.settings, policy=policy))
    way = np.concatenate([np.arange(PATH_STEPS), np.arange(PATH_STEPS, 0, -1)])
    poses = np.tile(np.eye(4), (2 * PATH_STEPS, 1, 1))
    poses[:, 1, 3] = 0.02 + 0.001 * way
    poses[:, 2, 3] = 0.48 + 0.001 * way
    start = solver.igm(poses[0])
    if not start.converged:
        raise RodError(f"'{robot.name}': no equilibrium at the start of the path: {start}")
    timed = np.concatenate([poses] * (laps + 1))[1:]
    found = _measure(
        lambda pose, last: solver.igm(pose, start=last), timed, start, skip=2 * PATH_STEPS
    )
    return {"policy": policy, **found, "rate_hz": 1e6 / found["median_us"]}


def bench_robot(robot: RodRobot, steps: int = 2000) -> dict[str, Any]:
    """Measure a robot about its home: waves of the joints, and the inverse on the same way.

    The joints move by 1 % of the rods' length (or 0.02 rad), each at its own phase, once around
    in 500 steps; the inverse model then follows the poses that came out.

    Raises:
        RodError: The robot has no equilibrium at home.
    """
    solver = RodRobotSolver(robot)
    first = home_equilibrium(solver).solution
    if first is None:
        raise RodError(f"'{robot.name}': no equilibrium at home")
    angles = 2.0 * np.pi * np.arange(steps) / 500.0
    rising = np.minimum(1.0, np.arange(steps) / 100.0)
    waves = np.sin(angles[:, None] + np.arange(robot.n_limbs)) - np.sin(np.arange(robot.n_limbs))
    amplitude = np.where(solver.turns, 0.02, 0.01 * robot.lengths) * robot.actuated
    joints = first.q + amplitude * rising[:, None] * waves
    W, frame = robot.wrench, robot.wrench_frame
    loaded = W if np.any(W) else None

    def igm(pose: Array, last: Solution) -> Solution:
        return solver.igm(pose, wrench=loaded, frame=frame, start=last)

    def dgm(q: Array, last: Solution) -> Solution:
        return solver.dgm(q, wrench=loaded, frame=frame, start=last)

    poses, state = [], first
    for q in joints:
        found = dgm(q, state)
        if found.converged:
            state = found
            poses.append(found.pose)
    results = {"dgm": _measure(dgm, joints, first), "igm": _measure(igm, np.array(poses), first)}
    state, times = first, []
    for pose in poses[:200]:
        state = igm(pose, state)
        begin = time.perf_counter_ns()
        solver.linear(state)
        times.append(time.perf_counter_ns() - begin)
    return {**results, "stiffness_us": float(np.median(times)) / 1e3}


def _measure(
    solve: Callable[[Array, Solution], Solution], commands: Array, start: Solution, skip: int = 100
) -> dict[str, Any]:
    """Time solves in a row; those of the first `skip` commands warm up."""
    times, inside, residuals, iterations, jacobians = [], [], [], [], []
    state, unsolved = start, 0
    collecting = gc.isenabled()
    gc.disable()
    try:
        for index, command in enumerate(commands):
            begin = time.perf_counter_ns()
            found = solve(command, state)
            elapsed = time.perf_counter_ns() - begin
            if not found.converged:
                unsolved += 1
                continue
            state = found
            if index >= skip:
                times.append(elapsed)
                inside.append(found.time_s)
                residuals.append(found.residual)
                iterations.append(found.iterations)
                jacobians.append(found.jacobians)
    finally:
        if collecting:
            gc.enable()
    if not times:
        raise RodError(f"'{start.solver.robot.name}': none of {len(commands)} solves succeeded")
    return {
        "median_us": float(np.median(times)) / 1e3,
        "p99_us": float(np.percentile(times, 99)) / 1e3,
        "library_us": float(np.median(inside)) * 1e6,
        "max_residual": float(np.max(residuals)),
        "iterations": float(np.mean(iterations)),
        "jacobians": float(np.mean(jacobians)),
        "solves": len(times),
        "unsolved": unsolved,
    }
