"""Measurements behind ``./cards bench``. Nothing here runs in the tests' assertions on time."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.nodes.in_process import InProcessRun
from cards_bringup.nodes.plan import make_plan
from cards_core.dynamics import Dynamics, make_dynamics
from cards_core.formats import load
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.verdict import Ending, judge
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot import Tree
from cards_core.typing import Array
from cards_sim.build import build_host


def time_call(function: Callable[[], Any], *, seconds: float = 1.0) -> dict[str, float]:
    """Call ``function`` for about ``seconds`` and return median and 99th percentile, [us]."""
    samples: list[int] = []
    clock = time.perf_counter_ns
    for _ in range(3):
        function()
    end = clock() + int(seconds * 1e9)
    while (start := clock()) < end:
        function()
        samples.append(clock() - start)
    array = np.array(samples) / 1e3
    return {"median": float(np.median(array)), "p99": float(np.percentile(array, 99))}


def random_states(tree: Tree, count: int = 64) -> list[tuple[Array, Array]]:
    """Random states within the limits, the same in every run."""
    rng = np.random.default_rng(0)
    return [(tree.random(rng), rng.normal(size=tree.nv)) for _ in range(count)]


def bench_dynamics(robot_name: str) -> dict[str, Any]:
    """Time one update of M, C, G, l, L with both backends, and a compilation from nothing.

    Returns:
        numeric_us, compiled_us (median), compile_s and details.
    """
    robot = load(robot_name)
    with tempfile.TemporaryDirectory() as folder:
        old = os.environ.get("CARDS_CACHE")
        os.environ["CARDS_CACHE"] = folder
        try:
            start = time.perf_counter()
            compiled = make_dynamics(robot, "compiled")
            compile_s = time.perf_counter() - start
            engine = MuscleEngine(robot)
        finally:
            if old is None:
                del os.environ["CARDS_CACHE"]
            else:
                os.environ["CARDS_CACHE"] = old
    numeric = make_dynamics(robot, "numeric")
    states = random_states(compiled.tree)
    timing = {}
    for name, backend in (("numeric", numeric), ("compiled", compiled)):
        timing[name] = time_call(partial(_update_next, backend, itertools.cycle(states)))
    empty = time_call(partial(next, itertools.cycle(states)))["median"]
    poses = compiled.link_poses(states[0][0]).copy()
    twists, tensions = np.zeros((len(robot.links), 6)), np.ones(len(robot.muscles))
    return {
        "robot": robot.name,
        "dof": compiled.tree.nv,
        "muscles": len(robot.muscles),
        "numeric_us": timing["numeric"]["median"] - empty,
        "compiled_us": timing["compiled"]["median"] - empty,
        "compiled_p99_us": timing["compiled"]["p99"],
        "ratio": (timing["numeric"]["median"] - empty) / (timing["compiled"]["median"] - empty),
        "compile_s": compile_s,
        "muscle_engine_us": time_call(lambda: engine.update(poses, twists, tensions))["median"],
    }


def _update_next(backend: Dynamics, states: Iterator[tuple[Array, Array]]) -> None:
    backend.update(*next(states))


def bench_loop(robot_name: str, *, seconds: float = 2.0) -> dict[str, Any]:
    """Time the closed loop in one process: control step, simulator step, both.

    Args:
        robot_name: A robot with a node list in ``config/``.
        seconds: Simulated time of the measurement, [s].

    Returns:
        Medians and 99th percentiles [us], simulated seconds per second, and the verdict on the
        run: times of a robot that does something else mean nothing.
    """
    plan = make_plan(
        {"simulator": "mujoco", "mode": "lockstep", "rviz": "false", "view": "false"}, robot_name
    )
    controller_name = plan.values["controller"]
    run = InProcessRun(plan, {}, seconds, Path())
    host = build_host(run.parameters("simulator"))
    control = make_control_loop(controller_name, run.parameters(controller_name))
    clock = time.perf_counter_ns
    steps, simulation = [], []
    while host.state.time < seconds:
        start = clock()
        command = control.step(host.state)
        middle = clock()
        host.submit(command)
        host.step()
        end = clock()
        steps.append(middle - start)
        simulation.append(end - middle)
        control.record(1e-3 * (middle - start), 0)
    total = np.array(steps) + np.array(simulation)
    result: dict[str, Any] = {"robot": robot_name, "controller": controller_name}
    for name, values in (("control", steps), ("simulation", simulation), ("loop", total)):
        result[f"{name}_us"] = float(np.median(values)) / 1e3
        result[f"{name}_p99_us"] = float(np.percentile(values, 99)) / 1e3
    result["real_time_factor"] = seconds / (float(np.sum(total)) * 1e-9)
    facts = replace(control.tally.facts(), remaining=0.0)  # nobody asked for all of it
    verdict = judge(None, facts, Ending(host.state.time))
    return {**result, **verdict.entries()}
