"""Reachable and stable workspace of a rod robot: slices of plate poses, solved by continuation.

From home the equilibrium is followed to the nearest point of the grid, and from there from point
to point in all directions (`sweeps`), so that all points are of one branch: that which the robot
gets to by moving. Poses behind a region where the robot collapses or runs out of its joints are
found too, but are no part of its workspace (CUT_OFF, UNSTABLE, JOINT_LIMIT).

    result = solve_slice(read_rod_robot("stewart_gough"), Grid((Axis("x", -0.1, 0.1, 41),)))
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from cards_core.analysis.workspace import Grid
from cards_core.errors import CardsError
from cards_core.memory import check_fits
from cards_core.rods.analysis.grid_continuation import (
    GridFill,
    GridPath,
    PathFollower,
    Point,
    Runner,
)
from cards_core.rods.analysis.plate_grid import PlateGrid
from cards_core.rods.analysis.slice_result import SliceResult
from cards_core.rods.analysis.slice_status import UNKNOWN, SliceOptions, SliceStatus
from cards_core.rods.robots.limb_stability import limb_morse_index
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.acceptance import Bounds, StepAcceptance
from cards_core.rods.tracking.continuation import follow
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.reachability import reach_findings
from cards_core.rods.tracking.targets import Target

Progress = Callable[[int, int], None]
"""Called with the number of points that are decided, and of all."""

MANY = 30_000
"""Points from which on several processes are worth their start."""

SEEDS = 27
"""Points of the grid at which a cold start is tried where no way leads from home to the grid."""


class SliceError(CardsError):
    """A slice that cannot be solved at all: the robot has no equilibrium at home."""


def solve_slice(
    robot: RodRobot,
    grid: Grid,
    options: SliceOptions | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> SliceResult:
    """Solve a grid of plate poses.

    Args:
        robot: The robot.
        grid: Axes and held values by plate coordinate; see `PlateGrid`.
        options: Wrench on the plate, and what counts as near a limit; default: the wrench of the
            robot's file.
        workers: Processes; default: one, or one per core for large grids. The result does not
            depend on it.
        progress: Called in this thread now and then.

    Raises:
        PointSetError: A grid that the robot has no poses for.
        UnknownNameError: No such plate coordinate.
        SliceError: There is no stable equilibrium at home.
        CardsError: The grid does not fit into the memory.
    """
    if options is None:
        options = SliceOptions(wrench=robot.wrench, frame=robot.wrench_frame)
    solver = RodRobotSolver(robot)
    start = _home(solver, options)
    origin = robot.home_pose if robot.initial_pose is not None else start.pose.copy()
    points = PlateGrid(robot, grid, origin)
    reference = start.min_eigenvalue
    walker = PathFollower(solver, points, options, reference)
    bytes_each = 8.0 * (2 * robot.n_limbs + 40)  # what a pose needs for its neighbours, too
    check_fits(points.count, bytes_each, "poses", "a grid of at most {most}")
    sweeps = GridFill(robot, points)
    seeds, note = _seeds(walker, start)
    for seed in seeds:
        sweeps.put(seed, strict=True)
    count = workers or (_cores() if points.count >= MANY else 1)
    with _runner(walker, count, progress) as run:
        sweeps.fill(run, strict=True)
        sweeps.fill(run, strict=False)
    missing = _judge_missing(robot, points, sweeps)
    doubts = [
        f.message for f in home_equilibrium(solver).findings if f.status is RodStatus.AMBIGUOUS
    ]
    if progress is not None:
        progress(points.count, points.count)
    return SliceResult(
        robot=robot.name,
        joints=robot.joint_names,
        grid=points,
        options=options,
        reference=reference,
        status=sweeps.status.reshape(points.shape),
        numbers=sweeps.numbers.reshape(*points.shape, 5),
        q=sweeps.q.reshape(*points.shape, robot.n_limbs),
        missing=missing.reshape(points.shape),
        notes=(*robot.notes, *doubts, *note),
    )


def _home(solver: RodRobotSolver, options: SliceOptions) -> Solution:
    """Return the equilibrium at home under the wrench."""
    robot = solver.robot
    own = np.array_equal(options.wrench, robot.wrench) and options.frame == robot.wrench_frame
    found = home_equilibrium(solver)
    if found.solution is not None and not own:
        found = find_equilibrium(
            solver, pose=found.solution.pose, wrench=options.wrench, frame=options.frame
        )
    if (
        found.solution is None
        or not found.solution.min_eigenvalue > 0.0
        or limb_morse_index(solver, found.solution).any()
    ):
        raise SliceError(
            f"{robot.name}: no stable equilibrium at home under this wrench: "
            f"{found.message or found.status.name} (expected: a home, `initial:` in its "
            "rods.yaml, from which poses can be followed)"
        )
    return found.solution


def _seeds(walker: PathFollower, start: Solution) -> tuple[list[Point], tuple[str, ...]]:
    """Return the first points, and what must be said about them."""
    grid, options, solver = walker.grid, walker.options, walker.solver
    first = grid.nearest_home()
    origin = Target(None, start.pose, options.wrench, options.frame)
    target = replace(origin, pose=grid.pose(first))
    judge = StepAcceptance(solver.robot, Bounds(stop_fraction=options.stop), walker.reference)
    followed = follow(solver, start, origin, target, judge)
    if followed.arrived:
        return [walker.point(first, followed.solution)], ()
    note = f"the straight way from home to the slice ends before it: {followed.refusal}"
    count = math.prod(grid.shape)
    tries = dict.fromkeys([first, *np.linspace(0, count - 1, SEEDS).astype(int).tolist()])
    for index in tries:
        found = find_equilibrium(
            solver, pose=grid.pose(index), wrench=options.wrench, frame=options.frame
        )
        if found.solution is None:
            continue
        point = walker.point(index, found.solution)
        if point.passable:
            how = "good points are connected with one found by a cold start instead"
            return [point], (f"{note}; {how}",)
    return [], (f"{note}; cold starts at {len(tries)} of its points found nothing good either",)


def _judge_missing(robot: RodRobot, grid: PlateGrid, sweeps: GridFill) -> np.ndarray[Any, Any]:
    """Give points without an equilibrium their status; return missing lengths, (count,), [m]."""
    missing = np.full(grid.count, np.nan)
    whole = len(robot.controlled) == len(robot.coordinates)
    for index in np.flatnonzero(sweeps.status == UNKNOWN):
        findings = reach_findings(robot, grid.pose(int(index))) if whole else ()
        sweeps.status[index] = SliceStatus.UNREACHABLE if findings else SliceStatus.NOT_FOUND
        if findings:
            missing[index] = findings[0].missing
    return missing


@contextlib.contextmanager
def _runner(walker: PathFollower, workers: int, progress: Progress | None) -> Iterator[Runner]:
    """Make walks in this process, or in others, which end with the context."""
    total, done = walker.grid.count, 1

    def seen() -> None:
        nonlocal done
        done += 1
        if progress is not None and (done % 64 == 0):
            progress(min(done, total), total)

    if workers <= 1:
        yield lambda walks: [walker.walk(walk, seen) for walk in walks]
        return
    # a fork of a process with threads may hang
    context = multiprocessing.get_context("spawn")
    grid, options = walker.grid, walker.options
    pool = ProcessPoolExecutor(
        workers,
        mp_context=context,
        initializer=_start_worker,
        initargs=(walker.robot, grid.grid, grid.home, options, walker.reference),
    )

    def run(walks: list[GridPath]) -> Iterable[list[Point]]:
        # processes start here, and inherit that Ctrl-C is not for them
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            results = pool.map(_walk, walks, chunksize=max(1, len(walks) // (8 * workers)))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for found in results:
            for _ in found:
                seen()
            yield found

    try:
        yield run
    finally:
        pool.shutdown(cancel_futures=True)


_WORKER: list[PathFollower] = []


def _start_worker(robot: RodRobot, grid: Grid, home: Any, options: Any, reference: float) -> None:
    """Prepare a process."""
    points = PlateGrid(robot, grid, home)
    _WORKER[:] = [PathFollower(RodRobotSolver(robot), points, options, reference)]


def _walk(walk: GridPath) -> list[Point]:
    return _WORKER[0].walk(walk)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
