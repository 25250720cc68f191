"""Checks of Python, of the environment with its packages, and of ROS 2."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from cards_bringup.bootstrap import Environment, SetupError, ros
from cards_bringup.bootstrap.install import pinned
from cards_bringup.findings import Finding, Status, run_python

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


LOOPBACK = """
import os, time
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier
from std_msgs.msg import Int32
rclpy.init()
node = rclpy.create_node('cards_doctor')
got = []
node.create_subscription(Int32, 'cards_doctor', lambda m: got.append(m.data), 1)
publisher = node.create_publisher(Int32, 'cards_doctor', 1)
end = time.monotonic() + 10
while not got and time.monotonic() < end:
    publisher.publish(Int32(data=7))
    rclpy.spin_once(node, timeout_sec=0.1)
assert got and got[0] == 7, 'a message published here did not arrive here'
print(get_rmw_implementation_identifier(), os.path.dirname(rclpy.__file__), sep='\\n')
node.destroy_node()
rclpy.try_shutdown()
"""
"""Publishes to itself until a message comes back."""


def check_ros() -> Iterator[Finding]:
    """Distribution, RMW, and a message there and back."""
    try:
        kind = ros.in_shell(os.environ)
    except SetupError as error:
        yield Finding("ROS 2", "FAIL", "the shell mixes", str(error))
        return
    env = {
        **os.environ,
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 101),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    answer = run_python(LOOPBACK, env=env)
    name = "jazzy wheels" if kind == ros.WHEELS else kind.removeprefix(ros.SOURCED)
    if not answer.ok:
        fix = "./cards setup; meanwhile --no-ros works"
        if "did not arrive" in answer.text:
            fix = "allow UDP on the loopback interface (firewall, container network)"
        elif kind.startswith(ros.SOURCED):
            fix = f"source /opt/ros/{name}/setup.bash in a new shell, then ./cards setup"
        yield Finding("ROS 2", "FAIL", f"{name}: {answer.text}", fix)
        return
    rmw, folder = answer.text.splitlines()[-2:]
    yield Finding("ROS 2", "OK", f"{name}, {rmw}, message came back ({folder})")
    yield from _check_domain()


def _check_domain() -> Iterator[Finding]:
    text = os.environ.get("ROS_DOMAIN_ID", "0")
    if not text.isdigit() or int(text) > 101:
        yield Finding(
            "ROS_DOMAIN_ID", "WARN", text, "a number 0..101: others collide with ports in use"
        )


def check_launch() -> Iterator[Finding]:
    """Whether ``ros2 launch`` can be used."""
    answer = run_python("import launch_ros.actions")
    if answer.ok and shutil.which("ros2"):
        yield Finding("ros2 launch", "OK", shutil.which("ros2") or "")
    else:
        yield Finding(
            "ros2 launch",
            "WARN",
            "not installed",
            "only needed for the launch files; comes with an installed ROS 2, not with the wheels",
        )
