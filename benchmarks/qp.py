"""How long a control step takes, per controller and QP solver."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from typing import Any

import numpy as np

from cards_core.control.model import ControlModel
from cards_core.control.registry import OWN
from cards_core.optimize.qp import SolverUnavailableError
from cards_core.optimize.qp_backends import QP_SOLVERS
from cards_core.robot.model import Robot, Tree
from cards_core.robot.state import RobotState
from cards_core.typing import Array, Backend

WARM_UP = 100
"""Steps that are not counted."""


def bench_qp(
    robot: Robot, *, steps: int = 5000, backend: Backend = "compiled", seed: int = 0
) -> dict[str, Any]:
    """Time whole control steps, dynamics included, on a smooth motion about the home position.

    The controllers hold the place of the first step while q and qd are those of a motion of
    0.1 rad (or m) at 0.5 Hz, sampled at 1 kHz: the QP changes from step to step as it does in
    use, and the warm start is worth as much.

    Args:
        robot: The description; without an operational frame only ``ctc_joint`` runs.
        steps: Steps per controller and solver.
        backend: Of the dynamics.
        seed: Of the directions of the motion.

    Returns:
        JSON-ready: ``robot``, ``dof``, ``muscles``, ``backend``, ``steps`` and ``results``, a
        list with per controller and solver ``median_us``, ``p99_us``, ``max_us`` of the step,
        ``qp_median_us``, ``qp_p99_us`` of the solver in it, ``iterations_mean`` and ``status``
        (count of every `ControlStatus` that occurred). A solver that is not installed has
        ``unavailable`` instead.
    """
    model = ControlModel(robot, backend)
    tree = robot.tree
    positions, velocities = _motion(tree, steps + WARM_UP, np.random.default_rng(seed))
    results: list[dict[str, Any]] = []
    for kind, controller_type in OWN.items():
        if "solver" not in inspect.signature(controller_type).parameters:
            continue
        if controller_type.space == "operational" and robot.operational_frame is None:
            continue
        for solver in QP_SOLVERS:
            entry: dict[str, Any] = {"controller": kind, "solver": solver}
            results.append(entry)
            try:
                factory: Any = controller_type  # also for robots that nobody could drive
                controller = factory(model, solver=solver)
            except SolverUnavailableError as error:
                entry["unavailable"] = str(error)
                continue
            whole, inner = np.zeros(steps), np.zeros(steps)
            iterations = 0
            status: Counter[str] = Counter()
            for k in range(-WARM_UP, steps):
                q, qd = positions[k + WARM_UP], velocities[k + WARM_UP]
                state = RobotState(1e-3 * k, q, qd)
                start = time.perf_counter()
                controller.step(state)
                stop = time.perf_counter()
                out = controller.output
                if k >= 0:
                    whole[k], inner[k] = 1e6 * (stop - start), 1e6 * out.solve_time
                    iterations += out.iterations
                    status[out.status.name] += 1
            entry.update(
                median_us=float(np.median(whole)),
                p99_us=float(np.percentile(whole, 99)),
                max_us=float(np.max(whole)),
                qp_median_us=float(np.median(inner)),
                qp_p99_us=float(np.percentile(inner, 99)),
                iterations_mean=iterations / steps,
                status=dict(status),
            )
    return {
        "robot": robot.name,
        "dof": tree.nv,
        "muscles": len(robot.muscles),
        "backend": backend,
        "steps": steps,
        "results": results,
    }


def _motion(tree: Tree, count: int, rng: np.random.Generator) -> tuple[list[Array], list[Array]]:
    """Return q and qd of ``home + 0.1 sin(2 pi t / 2 s)`` along a random direction.

    Joints whose home is at a limit move on its inner side.
    """
    direction = rng.uniform(0.5, 1.0, tree.nv) * rng.choice([-1.0, 1.0], tree.nv)
    center = tree.home.copy()
    for node in tree.nodes:
        if node.kind != "ball":
            low, up = tree.lower[node.q], tree.upper[node.q]
            reach = min(0.1, 0.25 * (up - low))
            center[node.q] = min(max(center[node.q], low + 1.5 * reach), up - 1.5 * reach)
            direction[node.v] *= reach / 0.1
    t = 1e-3 * np.arange(count)
    amplitudes, rates = 0.1 * np.sin(np.pi * t), 0.1 * np.pi * np.cos(np.pi * t)
    q = [tree.integrate(center, a * direction) for a in amplitudes]
    return q, [rate * direction for rate in rates]
