"""The muscles against a simulator of our own: wrenches, coordinates, start, failures."""

import math
from pathlib import Path

import numpy as np
import pytest
from fake_simulator import DT, FakeSimulator
from hybrid_robots import MOTORS, platform_arm

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.interface import HoldPoint
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import load, write_model
from cards_core.formats.sdf.muscle_block import MODULE
from cards_core.muscles.command import CommandRefusedError, command_of
from cards_muscle_plugin.gazebo_host import GazeboHost
from cards_muscle_plugin.hosted_robot import host_robot


def block_of(name):
    """The plugin element of a model, as Gazebo would hand it over."""
    text = load(name).source
    content = open(text).read()  # noqa: SIM115
    start = content.index("<plugin")
    return content[start : content.index("</plugin>") + len("</plugin>")]


def make(name="planar_2r", **options):
    robot = load(name)
    simulator = FakeSimulator(robot, file=robot.source)
    hosted = host_robot(simulator, block_of(name))
    return simulator, GazeboHost(hosted, simulator, command_timeout=1.0, **options)


class Turn:
    """A system that only has a host."""

    def __init__(self, host):
        self.host = host
        self.started = False

    def before_step(self, info):
        if not self.started:
            self.started = True
            self.host.start()
        if self.host.known and not info.paused:
            self.host.step(info.dt)

    def after_step(self, info):
        if self.host.read(info.time) and not info.paused:
            self.host.record()

    def reset(self, _info):
        self.host.reset()


@pytest.mark.parametrize("name", ["planar_2r", "roboy_arm"])
def test_wrenches_are_the_tensions_by_the_muscle_jacobian(name):
    simulator, host = make(name)
    turn = Turn(host)
    simulator.iterate(turn)
    robot = host.hosted.robot
    rng = np.random.default_rng(4)
    dynamics = make_dynamics(robot, "numeric")
    for _ in range(5):
        simulator.q = simulator.tree.random(rng, span=1.0)
        simulator.qd = rng.normal(size=simulator.tree.nv)
        host.read(simulator.time)
        limits = host.gate.minimum, np.minimum(host.gate.maximum, 400.0)
        tensions = rng.uniform(*limits)
        host.submit(command_of([m.name for m in robot.muscles], tensions))
        host.step(DT)
        tau = simulator.generalised(simulator.applied)
        state = dynamics.update(simulator.q, simulator.qd)
        assert tau == pytest.approx(-state.muscle_jacobian.T @ tensions, abs=1e-9)
        lengths, rates = host.state.muscle_lengths, host.state.muscle_rates
        assert lengths == pytest.approx(state.muscle_lengths, abs=1e-12)
        assert rates == pytest.approx(state.muscle_jacobian @ simulator.qd, abs=1e-12)
        assert np.array_equal(host.tensions, tensions)
        simulator.applied.clear()


def hybrid(tmp_path, robot, **options):
    """A host of a robot whose file was written for this test."""
    file = Path(write_model(robot, tmp_path / robot.name))
    text = file.read_text()
    block = text[text.index("<plugin") : text.index("</plugin>") + len("</plugin>")]
    simulator = FakeSimulator(load(file), file=file)
    hosted = host_robot(simulator, block)
    return simulator, GazeboHost(hosted, simulator, command_timeout=1.0, **options)


def test_motors_drive_their_joints_with_the_efforts_they_are_told(tmp_path):
    simulator, host = hybrid(tmp_path, platform_arm(), log_path=tmp_path / "log.npz")
    turn = Turn(host)
    simulator.iterate(turn)
    assert host.motors.names == MOTORS
    host.submit(command_of(["elbow", "shoulder"], np.array([-3.0, 8.0]), "effort"))
    assert host.unanswered == ("muscles",)
    host.step(DT)
    assert simulator.driven == {3: 8.0, 4: -3.0}
    assert host.efforts.tolist() == [8.0, -3.0]
    simulator.iterate(turn, 3)
    # it is told in every step, for the simulator forgets it
    assert simulator.driven == {}
    assert host.efforts.tolist() == [8.0, -3.0]
    host.gate.estop()
    simulator.iterate(turn)
    assert host.efforts.tolist() == [0.0, 0.0]
    host.close()
    with np.load(tmp_path / "log.npz") as log:
        assert log["motor_names"].tolist() == list(MOTORS)
        assert log["efforts"].tolist()[-2:] == [[8.0, -3.0], [0.0, 0.0]]


def test_a_hybrid_robot_is_held_by_cables_and_motors(tmp_path):
    """One second of computed torque in a simulator of our own."""
    robot = platform_arm()
    simulator, host = hybrid(tmp_path, robot)
    turn = Turn(host)
    simulator.iterate(turn, 2)
    controller = make_controller("ctc_joint", ControlModel(robot, "numeric"))
    controller.set_reference(HoldPoint(robot.tree.home, 5))
    for _ in range(1000):
        host.submit(controller.step(host.state))
        simulator.iterate(turn)
        assert controller.output.status is ControlStatus.OK
    # the two steps before the controller was there let it fall by some 1e-5
    assert np.abs(controller.output.error).max() < 1e-6


def test_one_wrench_per_moving_link_and_none_for_fixed_ones():
    simulator, host = make()
    simulator.iterate(Turn(host), 3)
    links = [name for name, _ in simulator.last_applied]
    assert sorted(links) == ["link_1", "link_2"]  # the base is fixed to the world


def test_joints_start_at_home_and_at_rest():
    simulator, host = make()
    turn = Turn(host)
    simulator.paused = True
    assert not host.known
    simulator.iterate(turn)
    assert host.known
    assert host.q.tolist() == [-0.5, 0.5]
    assert host.qd.tolist() == [0.0, 0.0]


def test_initial_positions_replace_home():
    simulator, host = make(initial_positions=np.array([0.1, 0.2]))
    simulator.paused = True
    simulator.iterate(Turn(host))
    assert host.q.tolist() == [0.1, 0.2]


def test_reset_begins_anew(tmp_path):
    simulator, host = make(log_path=tmp_path / "log.npz")
    turn = Turn(host)
    simulator.iterate(turn, 20)
    host.gate.estop()
    simulator.rewind(True)
    simulator.iterate(turn)
    simulator.iterate(turn)
    assert host.stamp == 0
    assert host.q.tolist() == [-0.5, 0.5]
    assert not host.gate.stopped
    simulator.paused = False
    simulator.iterate(turn, 5)
    host.close()
    with np.load(tmp_path / "log.npz") as log:
        assert log["time"] == pytest.approx(np.arange(1, 6) * 1e-3)


def test_the_watchdog_relaxes_the_muscles():
    robot = load("planar_2r")
    simulator = FakeSimulator(robot, file=robot.source)
    host = GazeboHost(
        host_robot(simulator, block_of("planar_2r")), simulator, command_timeout=0.005
    )
    turn = Turn(host)
    simulator.iterate(turn)
    host.submit(command_of([m.name for m in robot.muscles], [90.0] * 4))
    simulator.iterate(turn, 4)
    assert host.tensions.tolist() == [90.0] * 4
    simulator.iterate(turn, 4)
    assert host.tensions.tolist() == [10.0] * 4


def test_commands_for_others_and_without_sense_are_refused():
    simulator, host = make()
    simulator.iterate(Turn(host))
    with pytest.raises(CommandRefusedError, match="biceps"):
        host.submit(command_of(["biceps"], [50.0]))
    with pytest.raises(CommandRefusedError, match="nan"):
        host.submit(command_of(["cable_1"], [math.nan]))
    simulator.iterate(Turn(host), 2)
    assert host.tensions.tolist() == [10.0] * 4


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e7])
def test_a_state_without_sense_is_named(value):
    simulator, host = make()
    turn = Turn(host)
    simulator.iterate(turn, 2)
    simulator.qd[1] = value
    with pytest.raises(CardsError, match=r"no sensible state of joint_2: the physics diverged"):
        host.read(simulator.time)


def test_forces_that_are_not_finite_are_refused():
    simulator, host = make()
    turn = Turn(host)
    simulator.iterate(turn, 2)
    real = simulator.pose
    simulator.pose = lambda name: real(name) * math.nan if name == "link_2" else real(name)
    host.read(simulator.time)
    with pytest.raises(CardsError, match="no finite force"):
        host.step(DT)
    assert simulator.applied == []


def test_a_missing_link_is_named():
    simulator, host = make()
    simulator.unknown_links = {"link_2"}
    with pytest.raises(UnknownNameError, match="'link_2'"):
        host.start()


def test_the_time_step_is_the_simulators():
    simulator, host = make()
    simulator.iterate(Turn(host), 2)
    assert host.dt == 1e-3
    host.step(DT // 2)
    assert host.dt == 0.5e-3


FREE = f"""
<sdf version="1.11">
  <model name="kite">
    <pose>0.3 0 2 0 0 0.4</pose>
    <link name="body"><inertial><mass>1</mass></inertial></link>
    <link name="arm">
      <pose relative_to="shoulder"/><inertial><mass>0.5</mass></inertial>
    </link>
    <joint name="shoulder" type="ball">
      <pose relative_to="body">0 0 -0.2 0 0.3 0</pose><parent>body</parent><child>arm</child>
    </joint>
    <plugin filename="gz-sim-python-system-loader-system"
            name="gz::sim::systems::PythonSystemLoader">
      <module_name>{MODULE}</module_name>
      <home joint="shoulder">0.8 0.6 0 0</home>
      <muscle name="line" type="cable">
        <tension min="0" max="100"/>
        <via_point link="world">0 0 3</via_point>
        <via_point link="body">0.1 0 0.1</via_point>
        <via_point link="arm">0 0.1 -0.2</via_point>
      </muscle>
    </plugin>
  </model>
</sdf>
"""


def test_free_links_and_ball_joints_are_computed_from_poses(tmp_path):
    file = tmp_path / "kite.sdf"
    file.write_text(FREE)
    robot = load(file)
    simulator = FakeSimulator(robot, file=file)
    simulator.q = simulator.tree.home.copy()
    text = FREE[FREE.index("<plugin") : FREE.index("</plugin>") + 9]
    host = GazeboHost(host_robot(simulator, text), simulator, command_timeout=1.0)
    simulator.paused = True
    simulator.iterate(Turn(host))
    # the simulator places the free link, home is for joints
    assert host.q == pytest.approx(robot.home["body_free"] + (0.8, 0.6, 0.0, 0.0), abs=1e-12)
    rng = np.random.default_rng(3)
    simulator.qd = rng.normal(size=9)
    simulator.paused = False
    simulator.iterate(Turn(host), 10)
    tree = simulator.tree
    assert np.abs(tree.difference(host.q, simulator.q)).max() < 1e-12
    assert host.qd == pytest.approx(simulator.qd, abs=1e-12)
    assert {name for name, _ in simulator.last_applied} == {"body", "arm"}


def test_the_coordinates_of_many_free_links_are_those_of_the_simulator():
    simulator, host = make("tetrahedral_6")
    simulator.iterate(Turn(host))
    rng = np.random.default_rng(8)
    tree = simulator.tree
    for _ in range(3):
        simulator.q, simulator.qd = tree.random(rng, span=1.0), rng.normal(size=tree.nv)
        assert host.read(simulator.time)
        assert np.abs(tree.difference(host.q, simulator.q)).max() < 1e-12
        assert host.qd == pytest.approx(simulator.qd, abs=1e-12)
