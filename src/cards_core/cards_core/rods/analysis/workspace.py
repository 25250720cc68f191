"""Reachable and stable workspace of a rod robot: slices of plate poses, solved by continuation.

From home the equilibrium is followed to the nearest point of the grid, and from there from point
to point in all directions (`grid_continuation`), so that all points are on one branch: that which
the robot reaches by moving. Poses behind a region where the robot collapses or joints are outside
their limits are found too, but are no part of its workspace (CUT_OFF, UNSTABLE, JOINT_LIMIT).

    result = solve_slice(read_rod_robot("stewart_gough"), Grid((Axis("x", -0.1, 0.1, 41),)))
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from cards_core.analysis.workspace import Grid
from cards_core.checks import check_fits
from cards_core.cores import available_cores
from cards_core.errors import CardsError
from cards_core.rods.analysis.grid_continuation import (
    GridFill,
    GridPath,
    PathFollower,
    Point,
    Runner,
)
from cards_core.rods.analysis.workspace_slice import (
    UNKNOWN,
    PlateGrid,
    SliceOptions,
    SliceResult,
    SliceStatus,
)
from cards_core.rods.robots.limb_failure import limb_morse_index
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.commands import reach_findings
from cards_core.rods.tracking.continuation import Bounds, StepAcceptance, follow
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.targets import Target

Progress = Callable[[int, int], None]
"""Called with the number of points that are decided, and of all."""

MANY = 30_000
"""Points from which on several processes are worth their start."""

SEEDS = 27
"""Points of the grid at which an equilibrium is searched if no path from home reaches it."""


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
    follower = PathFollower(solver, points, options, reference)
    bytes_each = 8.0 * (2 * robot.n_limbs + 40)  # what a pose needs for its neighbours, too
    check_fits(points.count, bytes_each, "poses", "a grid of at most {most}")
    grid_fill = GridFill(robot, points)
    seeds, note = _seeds(follower, start)
    for seed in seeds:
        grid_fill.put(seed, strict=True)
    count = workers or (available_cores() if points.count >= MANY else 1)
    with _runner(follower, count, progress) as run:
        grid_fill.fill(run, strict=True)
        grid_fill.fill(run, strict=False)
    missing = _status_of_missing(robot, points, grid_fill)
    ambiguities = [
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
        status=grid_fill.status.reshape(points.shape),
        numbers=grid_fill.numbers.reshape(*points.shape, 5),
        q=grid_fill.q.reshape(*points.shape, robot.n_limbs),
        missing=missing.reshape(points.shape),
        notes=(*robot.notes, *ambiguities, *note),
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


def _seeds(follower: PathFollower, start: Solution) -> tuple[list[Point], tuple[str, ...]]:
    """Return the first points, and notes about them."""
    grid, options, solver = follower.grid, follower.options, follower.solver
    first = grid.nearest_home()
    origin = Target(None, start.pose, options.wrench, options.frame)
    target = replace(origin, pose=grid.pose(first))
    acceptance = StepAcceptance(
        solver.robot, Bounds(stop_fraction=options.stop), follower.reference
    )
    followed = follow(solver, start, origin, target, acceptance)
    if followed.arrived:
        return [follower.point(first, followed.solution)], ()
    note = f"the straight way from home to the slice ends before it: {followed.refusal}"
    count = math.prod(grid.shape)
    tries = dict.fromkeys([first, *np.linspace(0, count - 1, SEEDS).astype(int).tolist()])
    for index in tries:
        found = find_equilibrium(
            solver, pose=grid.pose(index), wrench=options.wrench, frame=options.frame
        )
        if found.solution is None:
            continue
        point = follower.point(index, found.solution)
        if point.passable:
            how = "good points are connected with one found by a cold start instead"
            return [point], (f"{note}; {how}",)
    return [], (f"{note}; cold starts at {len(tries)} of its points found nothing good either",)


def _status_of_missing(
    robot: RodRobot, grid: PlateGrid, grid_fill: GridFill
) -> np.ndarray[Any, Any]:
    """Set the status of points without an equilibrium; return missing lengths, (count,), [m]."""
    missing = np.full(grid.count, np.nan)
    whole = len(robot.controlled) == len(robot.coordinates)
    for index in np.flatnonzero(grid_fill.status == UNKNOWN):
        findings = reach_findings(robot, grid.pose(int(index))) if whole else ()
        grid_fill.status[index] = SliceStatus.UNREACHABLE if findings else SliceStatus.NOT_FOUND
        if findings:
            missing[index] = findings[0].missing
    return missing


@contextlib.contextmanager
def _runner(follower: PathFollower, workers: int, progress: Progress | None) -> Iterator[Runner]:
    """Follow paths in this process, or in others, which end with the context."""
    total, done = follower.grid.count, 1

    def seen() -> None:
        nonlocal done
        done += 1
        if progress is not None and (done % 64 == 0):
            progress(min(done, total), total)

    if workers <= 1:
        yield lambda paths: [follower.follow(path, seen) for path in paths]
        return
    # a fork of a process with threads may hang
    context = multiprocessing.get_context("spawn")
    grid, options = follower.grid, follower.options
    pool = ProcessPoolExecutor(
        workers,
        mp_context=context,
        initializer=_start_worker,
        initargs=(follower.robot, grid.grid, grid.home, options, follower.reference),
    )

    def run(paths: list[GridPath]) -> Iterable[list[Point]]:
        # processes start here and inherit the blocked Ctrl-C
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            results = pool.map(_follow, paths, chunksize=max(1, len(paths) // (8 * workers)))
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


def _follow(path: GridPath) -> list[Point]:
    return _WORKER[0].follow(path)
