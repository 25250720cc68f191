"""Measurement behind ``./cards bench paper``: the tables of the model-compilation paper, our way.

The paper measures CASPR on four robots: how long an update of the model, a step of forward
kinematics and of inverse dynamics, and a point of two workspace conditions take, with the model
evaluated by interpreted code (*default*) and compiled. Here the same questions are asked of the
same robots, with the numeric backend as *default*; both are measured in one run.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from cards_bringup.benchmarks.timing import Say, empty_cache, machine, quiet_median
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.forward_kinematics import ForwardKinematics
from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import Dynamics, compile_model, make_dynamics
from cards_core.formats import load
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.robot.model import Robot
from cards_core.trajectories import parabolic_blend
from cards_core.typing import Array

ROBOTS = ("planar_xy", "bm_arm", "ipanema_1", "spherical_2s")
"""Of the paper: planar, BM-Arm, IPAnema1, 2S-MCDR."""

SIZES: Mapping[str, Mapping[str, int]] = {
    "planar_xy": {"links": 1, "dof": 3, "cables": 4},
    "bm_arm": {"links": 2, "dof": 4, "cables": 6},
    "ipanema_1": {"links": 1, "dof": 6, "cables": 8},
    "spherical_2s": {"links": 2, "dof": 6, "cables": 8},
}
"""Robot to its published number of links, degrees of freedom and cables."""

STEP = 0.01
"""Time between the steps of a motion, [s]."""

DURATION = 10.0
"""Of a motion, [s]."""

BLEND = 0.5
"""Time in which a motion accelerates, and in which it stops, [s]: default of the trajectory of
this kind that comes with CASPR's planar robot."""

MOTIONS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "planar_xy": ((0.3, 0.5, 0.0), (0.4, 0.3, 0.1)),
    "bm_arm": ((0.0, 0.0, 0.0, 0.0), (0.5, -0.1, 0.2, 0.2)),
    "ipanema_1": ((-0.4, -0.3, 0.8, 0.0, 0.0, 0.0), (0.4, 0.3, 1.2, 0.0, 0.0, 0.0)),
    "spherical_2s": ((-0.5, 0.0, 0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0, 0.0, 0.0)),
}
"""Robot to the start and the end of its motion, [m] or [rad]: of the planar robot those of the
paper, of BM-Arm and 2S-MCDR those of a point-to-point motion that comes with CASPR's robot, of
IPAnema1 chosen where its cables can carry it."""

GRID = (20, 10)
"""Points of a workspace along the first two coordinates: 200 as in the paper."""

# Tables I to VI of the paper on generalised model compilation (Chan et al.), measured by its
# authors in MATLAB R2017a on an Intel i5-6500; [ms] here, [us] in `PUBLISHED`. Each pair is
# interpreted, compiled; a step or a point includes its update.
_PAIRS = {
    "fk_update": ((1.64, 0.13), (2.80, 0.14), (2.81, 0.14), (3.37, 0.16)),
    "fk_step": ((10.26, 3.60), (14.78, 3.59), (17.48, 4.31), (17.83, 3.96)),
    "id_update": ((1.72, 0.11), (3.00, 0.14), (2.95, 0.15), (3.54, 0.20)),
    "id_step": ((4.20, 2.43), (5.69, 2.58), (5.71, 2.72), (6.17, 2.81)),
    "wcc_update": ((1.63, 0.11), (2.86, 0.15), (2.79, 0.12), (3.46, 0.19)),
    "wcc_point": ((1.94, 0.38), (3.31, 0.57), (2.99, 0.28), (4.00, 0.71)),
    "wfc_update": ((1.74, 0.13), (3.12, 0.23), (3.24, 0.26), (4.01, 0.35)),
    "wfc_point": ((4.31, 2.60), (25.00, 22.19), (3037.85, 3013.27), (2678.31, 2651.78)),
}
_COMPILE = ((5.1, 4.9), (2058.1, 90.8), (1183.8, 158.2), (23167.2, 784.4))


def _published(index: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, values in _PAIRS.items():
        interpreted, compiled = values[index]
        out[f"{name}_numeric_us"] = round(1e3 * interpreted, 3)
        out[f"{name}_compiled_us"] = round(1e3 * compiled, 3)
    out["compile_s"], out["compile_simplified_s"] = _COMPILE[index]
    return out


PUBLISHED = {name: _published(index) for index, name in enumerate(ROBOTS)}
"""Robot to published figures of CASPR, named as our own."""


def bench_paper(say: Say | None = None) -> dict[str, Any]:
    """Measure all robots.

    Args:
        say: Told what is being measured.

    Returns:
        Robot to medians in microseconds and seconds, see docs/benchmarks.md, with the published
        figures beside them; and ``machine``.
    """
    tell = say or (lambda text: None)
    result = {}
    for name in ROBOTS:
        tell(name)
        result[name] = bench_robot(name)
    return {**result, "machine": machine()}


def bench_robot(name: str) -> dict[str, Any]:
    """Measure one robot; see `bench_paper`."""
    robot = load(name)
    dynamics = make_dynamics(robot)
    result: dict[str, Any] = {"dof": dynamics.tree.nv, "muscles": len(robot.muscles)}
    for measure in MEASUREMENTS.values():
        result |= measure(robot)
    for what in ("fk_step", "id_step", "wcc_point", "wfc_point"):
        result[f"{what}_us"] = result[f"{what}_compiled_us"]
    result["update_ratio"] = result["update_numeric_us"] / result["update_compiled_us"]
    result["batch_poses_per_s"] = _batch_rate(dynamics)
    result["peers"] = _peers(robot, dynamics, result["update_compiled_us"])
    result["published"] = PUBLISHED[name]
    return result


def size_of(robot: Robot) -> dict[str, int]:
    """Count as in `SIZES`.

    Links are moved bodies of weight: those between the joints that stand for one joint of several
    degrees of freedom have next to none.
    """
    moved = {joint.child for joint in robot.joints if joint.kind != "fixed"}
    masses = [link.inertia.mass for link in robot.links if link.name in moved]
    heavy = sum(mass > 1e-3 * max(masses) for mass in masses)
    return {"links": heavy, "dof": robot.tree.nv, "cables": len(robot.muscles)}


def compile_times(robot: Robot) -> dict[str, float]:
    """Measure ``compile_s`` and ``compile_simplified_s``, with an empty cache."""
    return {
        "compile_s": _compile_seconds(robot, simplify=False),
        "compile_simplified_s": _compile_seconds(robot, simplify=True),
    }


def update_times(robot: Robot) -> dict[str, float]:
    """Measure ``update_numeric_us`` and ``update_compiled_us``."""
    return {f"update_{label}_us": _update_us(dynamics) for label, dynamics in _both(robot)}


def forward_kinematics_times(robot: Robot) -> dict[str, float]:
    """Measure ``fk_step_numeric_us``, ``fk_step_compiled_us``, ``fk_step_solved`` (a share)."""
    return _step_times(robot, "fk_step", _fk_us)


def inverse_dynamics_times(robot: Robot) -> dict[str, float]:
    """Measure ``id_step_numeric_us``, ``id_step_compiled_us``, ``id_step_solved`` (a share)."""
    return _step_times(robot, "id_step", _id_us)


def wrench_closure_times(robot: Robot) -> dict[str, float]:
    """Measure ``wcc_point_numeric_us``, ``wcc_point_compiled_us``, ``wcc_feasible`` (a share)."""
    return _point_times(robot, "wcc", "wrench_closure")


def wrench_feasible_times(robot: Robot) -> dict[str, float]:
    """Measure ``wfc_point_numeric_us``, ``wfc_point_compiled_us``, ``wfc_feasible`` (a share)."""
    return _point_times(robot, "wfc", "wrench_feasible")


MEASUREMENTS: Mapping[str, Callable[[Robot], dict[str, float]]] = {
    "compile": compile_times,
    "update": update_times,
    "fk": forward_kinematics_times,
    "id": inverse_dynamics_times,
    "wcc": wrench_closure_times,
    "wfc": wrench_feasible_times,
}
"""What the paper measures, by the name it has in `PUBLISHED`."""


def _both(robot: Robot) -> tuple[tuple[str, Dynamics], tuple[str, Dynamics]]:
    """Return both evaluations of a model, by label; of shares the compiled one's is kept."""
    return ("numeric", make_dynamics(robot, "numeric")), ("compiled", make_dynamics(robot))


def _step_times(
    robot: Robot, what: str, measure: Callable[[Dynamics], tuple[float, float]]
) -> dict[str, float]:
    result = {}
    for label, dynamics in _both(robot):
        result[f"{what}_{label}_us"], result[f"{what}_solved"] = measure(dynamics)
    return result


def _point_times(robot: Robot, what: str, condition: str) -> dict[str, float]:
    result = {}
    for label, dynamics in _both(robot):
        found = _point_us(dynamics, condition)
        result[f"{what}_point_{label}_us"], result[f"{what}_feasible"] = found
    return result


def _update_us(dynamics: Dynamics) -> float:
    """Median time of an update of M, C, G, l and L, called from Python."""
    rng = np.random.default_rng(0)
    tree = dynamics.tree
    states = itertools.cycle([(tree.random(rng), rng.normal(size=tree.nv)) for _ in range(64)])
    return quiet_median(lambda: dynamics.update(*next(states))) - quiet_median(
        lambda: next(states)
    )


def motion(dynamics: Dynamics, step: float = STEP) -> Iterator[tuple[Array, Array, Array]]:
    """Yield q, qd, qdd of the robot's motion, a parabolic blend from rest to rest.

    Args:
        dynamics: Of a robot of `MOTIONS`.
        step: Time between two samples, [s].
    """
    blend = parabolic_blend([0.0, DURATION], MOTIONS[dynamics.robot.name], BLEND)
    times = np.linspace(0.0, DURATION, round(DURATION / step) + 1)
    yield from zip(*blend.sample(times), strict=True)


def _fk_us(dynamics: Dynamics) -> tuple[float, float]:
    """Median time of a step of forward kinematics, and the part of the steps that was solved."""
    lengths = [dynamics.update(q, qd).muscle_lengths.copy() for q, qd, _ in motion(dynamics)]
    solver = forward_kinematics(dynamics)
    return _steps(lambda values: solver.step(values).status, lengths)


def forward_kinematics(dynamics: Dynamics) -> ForwardKinematics:
    """Return a solver that knows the start of the robot's motion."""
    solver = ForwardKinematics(dynamics)
    solver.reset(np.array(MOTIONS[dynamics.robot.name][0]))
    return solver


def _id_us(dynamics: Dynamics) -> tuple[float, float]:
    """Median time of a step of inverse dynamics, least norm, and the part that was solved."""
    solver = InverseDynamics(dynamics)
    return _steps(lambda state: solver.step(*state).status, list(motion(dynamics)))


def _steps(step: Callable[[Any], PointStatus], inputs: list[Any]) -> tuple[float, float]:
    step(inputs[0])
    samples, solved = [], 0
    for item in inputs:
        start = time.perf_counter_ns()
        status = step(item)
        samples.append(time.perf_counter_ns() - start)
        solved += status == PointStatus.FEASIBLE
    return float(np.median(samples)) / 1e3, solved / len(inputs)


def workspace_grid(dynamics: Dynamics) -> Array:
    """Return a grid of coordinates, shape (200, nq).

    The first two coordinates take 20 and 10 values in the middle 90 % of their ranges, the first
    one changing fastest; the others are those of the home position.
    """
    tree = dynamics.tree
    ranges = tree.upper - tree.lower
    first, second = (
        np.linspace(tree.lower[i] + 0.05 * ranges[i], tree.upper[i] - 0.05 * ranges[i], count)
        for i, count in enumerate(GRID)
    )
    points = np.tile(tree.home, (first.size * second.size, 1))
    points[:, 0] = np.tile(first, second.size)
    points[:, 1] = np.repeat(second, first.size)
    return points


def _point_us(dynamics: Dynamics, condition: str) -> tuple[float, float]:
    """Time of a workspace point with its update, and the feasible part of the points."""
    points = workspace_grid(dynamics)
    evaluator = make_condition(dynamics, condition)
    evaluator.evaluate(points[:2])
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        result = evaluator.evaluate(points)
        best = min(best, time.perf_counter() - start)
    feasible = np.mean(result["status"] == PointStatus.FEASIBLE)
    return 1e6 * best / len(points), float(feasible)


def _batch_rate(dynamics: Dynamics) -> float:
    """Updates of M, C, G, l and L per second, 100,000 poses at once, on all cores."""
    rng = np.random.default_rng(2)
    q = np.array([dynamics.tree.random(rng) for _ in range(1000)]).repeat(100, axis=0)
    threads = os.cpu_count() or 1
    dynamics.batch(q[:8])
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        dynamics.batch(q, threads=threads)
        best = min(best, time.perf_counter() - start)
    return len(q) / best


def _compile_seconds(robot: Robot, *, simplify: bool) -> float:
    """Time from a description to a function that can be called, with an empty cache."""
    import casadi  # noqa: F401  # its import, 0.3 s once in a process, is not part of this

    with empty_cache():
        start = time.perf_counter()
        compile_model(robot, simplify=simplify)
        return time.perf_counter() - start


def _peers(robot: Robot, dynamics: Dynamics, own: float) -> dict[str, Any]:
    """Time the same model in other programs, from Python, and how much longer it takes than ours.

    MuJoCo: positions and velocities, which gives M, C + G, tendon lengths and their Jacobian.
    Pinocchio, where installed: M and C + G alone, for it knows no muscles.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, tendons=True))
    data = mujoco.MjData(model)
    data.qpos[:] = dynamics.tree.home

    def forward() -> None:
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)

    times = {"mujoco": quiet_median(forward)}
    try:
        import pinocchio
    except ImportError:
        pass
    else:
        from cards_core.formats.urdf.writer import to_urdf

        arm = pinocchio.buildModelFromXML(to_urdf(robot))
        state = arm.createData()
        q, v = pinocchio.neutral(arm), np.zeros(arm.nv)

        def update() -> None:
            pinocchio.crba(arm, state, q)
            pinocchio.nonLinearEffects(arm, state, q, v)

        times["pinocchio_without_muscles"] = quiet_median(update)
    return {name: {"us": us, "ratio": us / own} for name, us in times.items()}
