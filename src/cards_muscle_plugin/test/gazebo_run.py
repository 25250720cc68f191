"""Runs a world in real Gazebo, in a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from cards_core.formats import load
from cards_ros.testing import PATIENCE

PHYSICS = """
  <physics name="run" type="ignored">
    <max_step_size>{dt}</max_step_size><real_time_factor>{factor}</real_time_factor>
  </physics>
  <gravity>0 0 {gravity}</gravity>
  <plugin filename="gz-sim-physics-system" name="gz::sim::systems::Physics"/>
  <plugin filename="gz-sim-user-commands-system" name="gz::sim::systems::UserCommands"/>
"""


def installation():
    """Return what is installed; skips the test, with the reason, where Gazebo is missing."""
    try:
        from cards_bringup.gazebo.installation import examine, problem
    except ImportError as error:
        pytest.skip(f"no search for Gazebo: {error}")
    found, findings = examine()
    if found is None:
        pytest.skip(problem(findings))
    return found


class GazeboRun:
    """``gz sim`` without a window; a context manager.

    Args:
        gazebo: From `installation`.
        domain: ROS domain.
        models: SDF of what is in the world: ``<include>`` or ``<model>`` elements.
        dt: Time step, [s].
        factor: Real-time factor; 0: as fast as it goes.
        gravity: Along z, [m/s^2].
        **parameters: Of the nodes in it.
    """

    def __init__(
        self, gazebo, domain, models, *, dt=0.001, factor=0.0, gravity=-9.81, **parameters
    ):
        from cards_bringup.gazebo.simulator import ROS_ARGUMENTS, gazebo_environment

        self._gazebo = gazebo
        self._folder = tempfile.TemporaryDirectory(prefix="cards-gazebo-test-")
        self.folder = Path(self._folder.name)
        world = self.folder / "world.sdf"
        physics = PHYSICS.format(dt=dt, factor=factor, gravity=gravity)
        world.write_text(f'<sdf version="1.11"><world name="test">{physics}{models}</world></sdf>')
        self.environment = gazebo_environment(gazebo, [], os.environ)
        self.environment["GZ_PARTITION"] = f"cards-test-{os.getpid()}-{domain}"
        self.environment["ROS_DOMAIN_ID"] = str(domain)
        arguments = ["--ros-args"]
        for name, value in parameters.items():
            text = str(value).lower() if isinstance(value, bool) else value
            arguments += ["-p", f"{name}:={text}"]
        self.environment[ROS_ARGUMENTS] = " ".join(arguments)
        self.log = self.folder / "log.txt"
        command = [str(gazebo.program), "sim", "-s", "-r", "-v", "1"]
        if int(gazebo.version.split(".")[0]) >= 10:
            command.append("--wait-for-assets")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, str(world)],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def __enter__(self):
        return self

    @property
    def alive(self):
        """Whether the simulator lives."""
        return self.process.poll() is None

    def text(self):
        """Return what it printed so far."""
        return self.log.read_text()

    def call(self, service, kind, request):
        """Call a service of Gazebo; the answer must be true."""
        done = subprocess.run(
            [
                *(str(self._gazebo.program), "service", "-s", service, "--timeout", "5000"),
                *("--reqtype", f"gz.msgs.{kind}", "--reptype", "gz.msgs.Boolean"),
                *("--req", request),
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "data: true" in done.stdout, f"{done.stdout}{done.stderr}"

    def wait(self):
        """Wait until it ends by itself, and return its exit code."""
        return self.process.wait(3 * PATIENCE)

    def __exit__(self, *_):
        if self.alive:
            self.process.terminate()
            try:
                self.process.wait(5.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        time.sleep(0.0)
        self._folder.cleanup()


def include(name, *, as_name="", pose=""):
    """Return an ``<include>`` of one of our models."""
    own = f"<name>{as_name}</name>" if as_name else ""
    place = f"<pose>{pose}</pose>" if pose else ""
    return f"<include><uri>{load(name).source}</uri>{own}{place}</include>"
