"""``./cards bench loop``: the closed loop in one process."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.nodes.in_process import InProcessRun
from cards_bringup.nodes.plan import make_plan
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.verdict import Ending, judge
from cards_core.robot.model import Robot
from cards_sim.build import build_host
from cards_sim.host import SimulatorHost


def bench_loop(robot_name: str, *, seconds: float = 2.0) -> dict[str, Any]:
    """Time the closed loop in one process: control step, simulator step, both.

    Args:
        robot_name: A robot with a node list in ``config/``.
        seconds: Simulated time of the measurement, [s].

    Returns:
        Medians and 99th percentiles [us], simulated seconds per second, and the verdict on the
        run: times of a robot that does something else mean nothing.
    """
    controller_name, host, control = make_loop(robot_name)
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


def make_loop(
    robot_name: str, robot: Robot | None = None, **arguments: str
) -> tuple[str, SimulatorHost, ControlLoop]:
    """Return the kind of the controller, the simulator and the loop of a robot's node list.

    Args:
        robot_name: A robot with a node list in ``config/``.
        robot: In place of what the parameters name.
        **arguments: Launch arguments beside those of a run without views in lockstep.
    """
    given = {"simulator": "mujoco", "mode": "lockstep", "rviz": "false", "view": "false"}
    plan = make_plan({**given, **arguments}, robot_name)
    controller = plan.values["controller"]
    run = InProcessRun(plan, {}, np.inf, Path())
    host = build_host(run.parameters("simulator"), robot)
    return controller, host, make_control_loop(controller, run.parameters(controller), robot)
