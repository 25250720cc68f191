"""A controller of somebody else's: two files of a package of its own, and nothing else touched."""

import os
import signal
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from sensor_msgs.msg import JointState

from cards_core.control import (
    controller_class,
    controller_kinds,
    controller_parameters,
    registry,
)
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import load
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet, parameter_table
from cards_core.robot.state import RobotState
from cards_ros import topics
from cards_ros.testing import Probe, private_domain, start_process

CONTROLLER = '''
"""Muscles as springs: f = f0 + k (l - l0), with l0 the lengths of the first state."""

from typing import ClassVar

import numpy as np

from cards_core.control.interface import Controller, ControlOutput, ControlStatus
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import Parameter


class Springs(Controller):
    kind = "springs"
    summary = "muscles as springs about their first lengths"
    space = "joint"
    needs = ("muscle_lengths",)
    commands = ("force",)

    def __init__(self, model, *, tension=50.0, stiffness=1000.0):
        super().__init__(model)
        tree = model.dynamics.tree
        muscles = model.commanded.muscles
        self.reference_names, self.error_names = tree.position_names, tree.velocity_names
        self.tension, self.stiffness = tension, stiffness
        self.output = ControlOutput.empty(len(muscles), 0, tree.nq, tree.nv)
        names = tuple(muscle.name for muscle in muscles)
        self._low = np.array([m.tension_min for m in muscles])
        self._high = np.array([m.tension_max for m in muscles])
        self.command = (CommandPart("force", names, self.output.tensions),)
        self.relaxed = (CommandPart("force", names, self._low.copy()),)
        self._first = None

    @classmethod
    def from_parameters(cls, model, parameters):
        specs = [
            Parameter("tension", 50.0, "Tension at the first lengths.", "N", lower=0.0, live=True),
            Parameter("stiffness", 1000.0, "k of every muscle.", "N/m", lower=0.0),
        ]
        parameters.declare(specs)
        return cls(model, **{spec.name: parameters[spec.name] for spec in specs})

    def change(self, values):
        self.tension = values["tension"]

    def place(self, q, qd):
        return q

    def set_reference(self, reference, start=0.0):
        pass

    def reset(self):
        self._first = None

    def step(self, state):
        out, lengths = self.output, state.measured("muscle_lengths")
        if self._first is None:
            self._first = lengths.copy()
        tensions = self.tension + self.stiffness * (lengths - self._first)
        out.time, out.status = state.time, ControlStatus.OK
        out.actual[:] = out.desired[:] = state.q
        np.clip(tensions, self._low, self._high, out=out.tensions)
        return self.command
'''

NODE = """
import sys

from cards_ros.controller_node import run_controller


def main(args=None):
    return run_controller("springs", args)


if __name__ == "__main__":
    sys.exit(main())
"""


def write_package(folder, name="toy_springs", entry="springs = toy_springs.springs:Springs"):
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "springs.py").write_text(CONTROLLER)
    (package / "springs_node.py").write_text(NODE)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[cards.controllers]\n{entry}\n")


@pytest.fixture(autouse=True)
def no_controller_files(monkeypatch):
    """Controllers of files that other tests made known to this process are not known here."""
    monkeypatch.setattr(registry, "_of_files", {})


@pytest.fixture
def toy(tmp_path, monkeypatch):
    write_package(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("toy_springs")]:
        del sys.modules[name]


def test_the_registry_finds_it_with_its_parameters(toy):
    assert controller_kinds() == [
        "ctc_joint",
        "ctc_operational",
        "mrc",
        "impedance",
        "cpg",
        "springs",
    ]
    robot = load("planar_2r")
    assert not controller_class("springs").unsuited(robot)
    assert controller_class("springs").unsuited(load("snake_24").__class__("bare", (), ()))
    rows = parameter_table(controller_parameters("springs", robot))
    assert any("Tension at the first lengths. [N] >= 0" in row for row in rows)


def test_it_runs_in_one_process_and_says_what_it_lacks(toy):
    robot = load("planar_2r")
    control = make_control_loop("springs", ParameterSet({"tension": 30.0}), robot)
    q, qd = robot.tree.home, np.zeros(2)
    (part,) = control.step(RobotState(0.0, q, qd, muscle_lengths=np.ones(4)))
    assert part.values.tolist() == [30.0] * 4
    lengths = np.array([1.01, 0.99, 1.0, 2.0])
    (part,) = control.step(RobotState(0.001, q, qd, muscle_lengths=lengths))
    np.testing.assert_allclose(part.values, [40.0, 20.0, 30.0, 100.0])
    control.start()
    with pytest.raises(CardsError, match=r"springs needs muscle_lengths, .* \(it provides"):
        control.step(RobotState(0.0, q, qd))
    with pytest.raises(CardsError, match="parameter 'tension' is 'x'"):
        make_control_loop("springs", ParameterSet({"tension": "x"}), robot)


@pytest.mark.ros
def test_its_node_answers_states_with_the_muscles_of_the_same_instant(toy, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{toy}:{os.environ.get('PYTHONPATH', '')}")
    names = [muscle.name for muscle in load("planar_2r").muscles]

    def messages(k, lengths):
        joints = JointState(name=["joint_1", "joint_2"], position=[0.1, 0.2], velocity=[0.0] * 2)
        muscles = JointState(
            name=list(names), position=list(lengths), velocity=[0.0] * 4, effort=[0.0] * 4
        )
        for message in (joints, muscles):
            message.header.stamp.nanosec = k * 1_000_000
        return joints, muscles

    with private_domain() as domain, Probe(domain) as probe:
        given = {"model": "planar_2r", "tension": 30.0, "backend": "numeric"}
        node = start_process("toy_springs.springs_node", given)
        try:
            answers = probe.listen(JointState, topics.FORCE_COMMAND)

            def ask(k, lengths, *, only_joints=False):
                joints, muscles = messages(k, lengths)
                for _ in range(100):
                    probe.publish(joints, topics.JOINT_STATES)
                    if not only_joints:
                        probe.publish(muscles, topics.MUSCLE_STATES)
                    probe.spin(0.2)
                    for answer in answers:
                        if answer.header.stamp == joints.header.stamp:
                            return answer
                    if only_joints and _ == 5:
                        return None
                raise AssertionError(f"no answer to state {k}\n{node.poll()}")

            first = ask(1, [1.0] * 4)
            assert first.name == names
            assert list(first.effort) == [30.0] * 4
            assert ask(2, [1.0] * 4, only_joints=True) is None  # its muscles have not come
            second = ask(3, [1.01, 0.99, 1.0, 2.0])
            np.testing.assert_allclose(second.effort, [40.0, 20.0, 30.0, 100.0])
        finally:
            node.send_signal(signal.SIGINT)
            output = node.communicate(timeout=60)[0]
    assert node.returncode == 0, output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("springs = toy_springs.nothing:Springs", "cannot be loaded: ModuleNotFoundError"),
        ("springs = toy_springs.springs:CommandPart", "is no controller"),
        ("spring = toy_springs.springs:Springs", "has the kind 'springs'"),
    ],
)
def test_an_entry_that_is_none_is_told(tmp_path, monkeypatch, entry, words):
    write_package(tmp_path, entry=entry)
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = entry.split(" ")[0]
    with pytest.raises(CardsError, match=words):
        controller_class(kind)
    with pytest.raises(UnknownNameError, match=f"ctc_operational, mrc, impedance, cpg, {kind}"):
        controller_class("nothing")
    for name in [name for name in sys.modules if name.startswith("toy_springs")]:
        del sys.modules[name]


def test_the_file_of_the_controller_is_short():
    """A new controller is a class: this one has a page."""
    assert len(textwrap.dedent(CONTROLLER).splitlines()) < 80
