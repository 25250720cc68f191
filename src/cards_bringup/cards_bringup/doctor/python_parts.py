"""Checks of Python, the environment and the packages in it."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from cards_bringup.bootstrap import Environment, SetupError, ros
from cards_bringup.bootstrap.install import pinned
from cards_bringup.doctor.finding import Finding, Status, run_python

MODULES = {
    "numpy": "numpy",
    "scipy": "scipy.linalg",
    "casadi": "casadi",
    "daqp": "daqp",
    "osqp": "osqp",
    "mujoco": "mujoco",
    "viser": "viser",
    "matplotlib": "matplotlib",
    "mcap": "mcap",
    "pyarrow": "pyarrow",
    "distributed": "distributed",
    "pyserial": "serial",
    "pyyaml": "yaml",
}
"""Distribution to the module that is imported to try it."""

OPTIONAL = ("osqp", "viser", "matplotlib", "mcap", "pyarrow", "distributed", "pyserial")
"""Packages that only some commands need."""


def check_python() -> Iterator[Finding]:
    """Version of Python; ./cards itself refuses one that is too old."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", "OK", f"{version} ({sys.executable})")


def check_environment(checkout: Path | None) -> Iterator[Finding]:
    """The environment that ``./cards`` makes."""
    if checkout is None:
        yield Finding("environment", "OK", "installed by colcon; ./cards is not used")
        return
    try:
        environment = Environment(checkout, ros.in_shell(os.environ))
        ready = environment.is_ready(environment.sets())
    except SetupError as error:
        yield Finding("environment", "FAIL", "does not fit this shell", str(error))
        return
    if not ready:
        where = "incomplete" if environment.path.exists() else "not made yet"
        yield Finding("environment", "FAIL", f"{environment.path}: {where}", "./cards setup")
        return
    test = "with" if environment.is_ready(environment.sets(test=True)) else "without"
    yield Finding("environment", "OK", f"{environment.path}, {test} the test packages")


def check_packages(checkout: Path | None) -> Iterator[Finding]:
    """Version of each key package, and whether it can be imported."""
    wanted = pinned(checkout / "requirements" / "runtime.txt") if checkout else {}
    for name, module in MODULES.items():
        bad: Status = "WARN" if name in OPTIONAL else "FAIL"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, bad, "not installed", "./cards setup")
            continue
        answer = run_python(f"import {module}")
        if not answer.ok:
            yield Finding(
                name,
                bad,
                f"{version} cannot be imported: {answer.text}",
                "./cards setup --recreate",
            )
        elif name in wanted and wanted[name] != version:
            yield Finding(name, "WARN", f"{version}, tested with {wanted[name]}", "./cards setup")
        else:
            yield Finding(name, "OK", version)


def check_dynamics(robot: str = "planar_2r") -> Iterator[Finding]:
    """The whole chain below ROS: read a robot, simulate a step."""
    script = (
        "from cards_core.formats import load\n"
        "from cards_sim.simulator import Simulator\n"
        f"robot = load({robot!r})\n"
        "simulator = Simulator(robot)\n"
        "simulator.step([m.tension_min for m in robot.muscles])\n"
        "print(f'{robot.name}: one step to t = {simulator.time:g} s')\n"
    )
    answer = run_python(script, timeout=60)
    if answer.ok:
        yield Finding("MuJoCo simulator", "OK", answer.text)
    else:
        yield Finding("MuJoCo simulator", "FAIL", answer.text, "./cards setup --recreate")
