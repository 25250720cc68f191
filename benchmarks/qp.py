"""How long a control step takes, per controller and QP solver, compiled and in Python."""

from __future__ import annotations

import inspect
import os
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np

from cards_core.control.cpg.files import pattern_file, read_pattern
from cards_core.control.interface import Controller
from cards_core.control.model import ControlModel
from cards_core.control.registry import OWN
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, UnknownNameError
from cards_core.optimize.qp import SolverUnavailableError
from cards_core.optimize.qp_backends import QP_SOLVERS
from cards_core.robot.model import Robot, Tree
from cards_core.robot.state import RobotState
from cards_core.typing import Array, Backend

WARM_UP = 100
"""Steps that are not counted."""

PERIODS = {"mrc": 0.008, "impedance": 0.05, "cpg": 0.01}
"""Times between states of the controllers without a solver to choose, [s]: theirs by default, so
that every step computes something. Between, a step is a look at the time."""

TURNS = 10
"""Parts of the steps that compiled and NumPy form take in turn, so that both see the same load."""


def bench_qp(
    robot: Robot, *, steps: int = 5000, backend: Backend = "compiled", seed: int = 0
) -> dict[str, Any]:
    """Time whole control steps, dynamics included, on a smooth motion about the home position.

    The controllers hold the place of the first step while q and qd are those of a motion of
    0.1 rad (or m) at 0.5 Hz, sampled at 1 kHz: the QP changes from step to step as it does in
    use, and the warm start is worth as much.

    Args:
        robot: The description; without an operational frame ``ctc_operational`` does not run.
        steps: Steps per controller and solver.
        backend: Of the dynamics.
        seed: Of the directions of the motion.

    Returns:
        JSON-ready: ``robot``, ``dof``, ``muscles``, ``backend``, ``steps``, ``load`` (of the
        machine, before: processes of the last minute) and ``results``, a
        list with per controller and solver ``median_us``, ``p99_us``, ``max_us`` of the step,
        ``qp_median_us``, ``qp_p99_us`` of the solver in it, ``iterations_mean``, ``status``
        (count of every `ControlStatus` that occurred) and ``native`` (`Controller.native`). Where
        that is ``yes``, ``numpy`` has the same figures of the NumPy form, taken in turns of a
        tenth of the steps. A solver that is not installed has ``unavailable`` instead. ``mrc``,
        ``impedance`` (the sine gait) and ``cpg`` (the pattern called as the robot, if there is
        one) have no ``solver`` and no ``qp_``; their states come each ``period_ms``. One that
        cannot drive the robot has ``unavailable``, too.
    """
    load = os.getloadavg()[0]
    model = ControlModel(robot, backend)
    tree = robot.tree
    positions, velocities = _motion(tree, steps + WARM_UP, np.random.default_rng(seed))
    results: list[dict[str, Any]] = []
    for kind, controller_type in OWN.items():
        if "solver" not in inspect.signature(controller_type).parameters:
            continue  # below
        if controller_type.space == "operational" and robot.operational_frame is None:
            continue
        for solver in QP_SOLVERS:
            entry: dict[str, Any] = {"controller": kind, "solver": solver}
            results.append(entry)
            try:
                factory: Any = controller_type  # also for robots that nobody could drive
                runs = [_Run(factory(model, solver=solver), steps)]
            except SolverUnavailableError as error:
                entry["unavailable"] = str(error)
                continue
            if runs[0].controller.native == "yes":
                runs.append(_Run(factory(model, solver=solver), steps))
            states = _states(positions, velocities, 1e-3)
            entry.update(_timed(runs, states, steps))
    for kind, period in PERIODS.items():
        results.append(_of_set_points(kind, robot, backend, (positions, velocities), period))
    return {
        "robot": robot.name,
        "dof": tree.nv,
        "muscles": len(robot.muscles),
        "backend": backend,
        "steps": steps,
        "load": load,
        "results": results,
    }


def _of_set_points(
    kind: str,
    robot: Robot,
    backend: Backend,
    motion: tuple[list[Array], list[Array]],
    period: float,
) -> dict[str, Any]:
    """Return the entry of a controller that has no solver to choose.

    Args:
        kind: Of the controller.
        robot: The description.
        backend: Of the dynamics.
        motion: q and qd of all steps.
        period: Between states, [s].
    """
    entry: dict[str, Any] = {"controller": kind, "period_ms": 1e3 * period}
    if reason := OWN[kind].unsuited(robot):
        return {**entry, "unavailable": reason}
    more: dict[str, Any] = {}
    if kind == "impedance":
        more = {"gait": "sine", "amplitude": 0.1}
    elif kind == "cpg":
        with suppress(UnknownNameError):  # without a pattern muscles hold their lengths
            more["pattern"] = read_pattern(pattern_file(robot.name))
    steps = len(motion[0]) - WARM_UP
    factory: Any = OWN[kind]
    try:
        runs = [_Run(factory(ControlModel(robot, backend), **more), steps, inner=False)]
    except CardsError as error:
        return {**entry, "unavailable": str(error)}
    if runs[0].controller.native == "yes":
        runs.append(_Run(factory(ControlModel(robot, backend), **more), steps, inner=False))
    entry.update(_timed(runs, _states(*motion, period, ControlModel(robot, backend)), steps))
    return entry


def _states(
    positions: list[Array],
    velocities: list[Array],
    period: float,
    model: ControlModel | None = None,
) -> list[RobotState]:
    """Return states at a distance in time; with a model those have lengths and tensions, too."""
    states = [
        RobotState(period * (k - WARM_UP), q, qd)
        for k, (q, qd) in enumerate(zip(positions, velocities, strict=True))
    ]
    if model is not None:
        muscles = model.robot.muscles
        dynamics = make_dynamics(model.robot)
        pull = np.array([min(m.tension_min + 20.0, m.tension_max) for m in muscles])
        for state in states:
            state.muscle_lengths = dynamics.update(state.q, state.qd).muscle_lengths.copy()
            state.tensions = pull
    return states


def _timed(runs: list[_Run], states: list[RobotState], steps: int) -> dict[str, Any]:
    """Time a controller and, if there is a second one of it, that one's Python form in turn."""
    native = runs[0].controller.native
    for run in runs[1:]:
        run.controller.step_in_python()
    edges = np.linspace(0, steps, TURNS + 1).astype(int)
    for first, last in zip([-WARM_UP, *edges[1:-1]], edges[1:], strict=True):
        for run in runs:
            run.take(range(first, last), states)
    found = {"native": native, **runs[0].figures()}
    if len(runs) > 1:
        found["numpy"] = runs[1].figures()
    return found


class _Run:
    """A controller and how long its steps took; ``inner``: the solver in them, too."""

    def __init__(self, controller: Controller, steps: int, *, inner: bool = True) -> None:
        self.controller = controller
        self._with_inner = inner
        self._whole, self._inner = np.zeros(steps), np.zeros(steps)
        self._iterations = 0
        self._status: Counter[str] = Counter()

    def take(self, steps: range, states: list[RobotState]) -> None:
        """Do steps, of which those from 0 on count."""
        controller, out = self.controller, self.controller.output
        for k in steps:
            state = states[k + WARM_UP]
            start = time.perf_counter()
            controller.step(state)
            stop = time.perf_counter()
            if k >= 0:
                self._whole[k], self._inner[k] = 1e6 * (stop - start), 1e6 * out.solve_time
                self._iterations += out.iterations
                self._status[out.status.name] += 1

    def figures(self) -> dict[str, Any]:
        """Return what `bench_qp` has of a controller."""
        found: dict[str, Any] = {
            "median_us": float(np.median(self._whole)),
            "p99_us": float(np.percentile(self._whole, 99)),
            "max_us": float(np.max(self._whole)),
        }
        if self._with_inner:
            found |= {
                "qp_median_us": float(np.median(self._inner)),
                "qp_p99_us": float(np.percentile(self._inner, 99)),
                "iterations_mean": self._iterations / self._whole.size,
            }
        return {**found, "status": dict(self._status)}


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
