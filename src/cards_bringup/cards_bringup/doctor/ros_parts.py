"""Checks of ROS 2."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from cards_bringup.bootstrap import SetupError, ros
from cards_bringup.doctor.finding import Finding, run_python

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
