"""Simulator and controller as processes: repeatable, equal to one process, safe to kill."""

import os
import signal

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("mujoco", reason="MuJoCo is not installed")
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from cards_core.control import make_controller
from cards_core.formats import load
from cards_core.loop.run_log import recover
from cards_core.robot.state import RobotState
from cards_core.stamps import quantised
from cards_core.trajectories.library import read_reference
from cards_ros.diagnostics import Level
from cards_ros.testing import Probe, end_process, start_process
from cards_sim.simulator import Simulator

pytestmark = pytest.mark.ros

START = "[-0.5, 0.5]"
SIMULATOR = {"model": "planar_2r", "initial_positions": START}
CONTROLLER = {"model": "planar_2r", "reference": "there_and_back", "kp": 2000.0, "kd": 90.0}


@pytest.fixture
def processes():
    running = []
    yield running
    for process in running:
        end_process(process)


def start(processes, module, parameters):
    process = start_process(module, parameters)
    processes.append(process)
    return process


def end(process, number=None):
    if number is not None:
        process.send_signal(number)
    output = process.communicate(timeout=30)[0]
    assert "Traceback" not in output, output
    assert process.returncode == 0, output
    return output


def run_lockstep(processes, folder, duration):
    controller = start(processes, "controllers.ctc_joint", CONTROLLER | {"log_dir": folder})
    simulator = start(
        processes,
        "cards_sim.simulator_node",
        SIMULATOR | {"mode": "lockstep", "duration": duration, "log_dir": folder},
    )
    end(simulator)
    end(controller, signal.SIGINT)
    with np.load(folder / "simulator.npz") as log:
        simulated = {name: log[name] for name in log.files}
    with np.load(folder / "controller.npz") as log:
        controlled = {name: log[name] for name in log.files}
    return simulated, controlled


def run_in_process(steps):
    """The same loop without ROS and without the hosts' classes."""
    robot = load("planar_2r")
    simulator = Simulator(robot)
    simulator.reset(np.array([-0.5, 0.5]))
    controller = make_controller("ctc_joint", robot, kp=2000.0, kd=90.0)
    reference = read_reference("there_and_back", "", robot, robot.tree, space="joint")
    controller.set_reference(reference)
    rows = []
    for _ in range(steps):
        state = simulator.state
        controller.step(RobotState(quantised(state.time), state.q, state.qd))
        out = controller.output
        simulator.step(out.tensions)
        rows.append((simulator.state.q, simulator.state.qd, out.tensions.copy()))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_lockstep_over_topics_is_repeatable_and_equal_to_one_process(domain, processes, tmp_path):
    first, controlled = run_lockstep(processes, tmp_path / "a", 1.0)
    again, _ = run_lockstep(processes, tmp_path / "b", 1.0)
    assert first["time"].size == 1000
    for name, values in first.items():
        assert again[name].tobytes() == values.tobytes(), name
    q, qd, tensions = run_in_process(1000)
    assert first["q"].tobytes() == q.tobytes()
    assert first["qd"].tobytes() == qd.tobytes()
    assert first["tensions"].tobytes() == tensions.tobytes()
    # the controller answered every state once, and followed
    assert np.array_equal(controlled["tensions"][:1000], tensions)
    assert np.all(np.diff(controlled["time"]) > 0)
    assert np.all(controlled["missed_deadlines"] == 0)
    assert np.all(controlled["status"] == 0)
    assert np.abs(controlled["error"]).max() < 1e-3
    assert np.abs(q[-1] - q[0]).max() > 0.05


def test_a_killed_controller_leaves_the_muscles_at_their_minimum(domain, processes, tmp_path):
    timeout = 0.05
    controller = start(processes, "controllers.ctc_joint", CONTROLLER | {"log_dir": tmp_path})
    simulator = start(
        processes,
        "cards_sim.simulator_node",
        SIMULATOR | {"mode": "realtime", "command_timeout": timeout, "log_dir": tmp_path},
    )
    with Probe(domain) as probe:
        probe.until_status("simulator: world", Level.OK, "running")
        probe.until_status("ctc_joint: control", Level.OK)
        probe.spin(0.5)
        os.kill(controller.pid, signal.SIGKILL)
        controller.wait()
        probe.forget()
        probe.until_status("simulator: commands", Level.ERROR, "no valid command for 0.05 s")
        probe.spin(0.1)
    output = end(simulator, signal.SIGTERM)
    assert [name for name in os.listdir(tmp_path) if name[0] != "."] == ["simulator.npz"]
    # the killed one leaves its rows behind
    assert recover(tmp_path) == [tmp_path / "controller.npz"]
    assert sorted(os.listdir(tmp_path)) == ["controller.npz", "simulator.npz"]
    with np.load(tmp_path / "simulator.npz") as log:
        tensions, time = log["tensions"], log["time"]
    relaxed = np.all(tensions == 10.0, axis=1)
    assert relaxed[-1]
    # one warning each time, not one each step; a busy machine may starve the controller before
    times = int(np.count_nonzero(np.diff(relaxed.astype(int)) == 1))
    assert 1 <= output.count("no valid command for") <= times
    last = int(np.flatnonzero(~relaxed)[-1])  # last step with tension
    changes = np.flatnonzero(np.any(np.diff(tensions[: last + 1], axis=0) != 0.0, axis=1))
    newest = changes[-1] + 1  # first step with the last command
    assert time[last] - time[newest] <= timeout + 1e-9
    assert np.all(relaxed[last + 1 :])


def test_ctrl_c_ends_both_and_leaves_the_logs(domain, processes, tmp_path):
    simulator = start(
        processes,
        "cards_sim.simulator_node",
        SIMULATOR | {"mode": "lockstep", "log_dir": tmp_path},
    )
    controller = start(processes, "controllers.ctc_joint", CONTROLLER | {"log_dir": tmp_path})
    with Probe(domain) as probe:
        probe.until_status("simulator: world", Level.OK, "running")
        # the operators' stop works in lockstep too: the world goes on without tension
        assert probe.call(Trigger, "simulator/estop").success
        probe.until_status("simulator: commands", Level.ERROR, "emergency stop")
    end(controller, signal.SIGINT)
    end(simulator, signal.SIGINT)
    assert sorted(os.listdir(tmp_path)) == ["controller.npz", "simulator.npz"]
    with np.load(tmp_path / "simulator.npz") as log:
        assert log["tensions"][-1].tolist() == [10.0] * 4


def test_bad_parameters_end_the_process_with_one_clear_line(domain, processes):
    for module, parameters, words in (
        ("cards_sim.simulator_node", {"model": "planar_2r", "dt": 5}, "dt"),
        ("controllers.ctc_joint", {"model": "planar_2r", "kp": "[1.0, 2.0, 3.0]"}, "2 numbers"),
        ("cards_sim.simulator_node", {"model": "planar_2r", "log_dir": "/proc/x"}, "/proc/x"),
    ):
        process = start(processes, module, parameters)
        output = process.communicate(timeout=30)[0]
        assert process.returncode == 2, output
        assert words in output
        assert "Traceback" not in output
        assert len(output.strip().splitlines()) == 1


def test_muscle_relaxation_control_shows_what_it_releases(domain, processes):
    """Node `mrc` with the simulator; motors' temperatures reach it, and gains change live."""
    common = {"model": "musashi_like"}
    start(processes, "controllers.mrc", common)
    start(processes, "cards_sim.simulator_node", common | {"mode": "as_fast_as_possible"})
    with Probe(domain) as probe:
        released = probe.listen(JointState, "mrc/relaxation")
        needed = probe.listen(JointState, "mrc/necessary_tension")
        muscles = probe.listen(JointState, "muscle_states")
        probe.until(lambda: released and sum(released[-1].position) > 1e-3, "muscles let go")
        probe.until(lambda: needed and muscles, "their tensions")
        names = [muscle.name for muscle in load("musashi_like").muscles]
        assert list(released[-1].name) == list(needed[-1].name) == names
        assert min(needed[-1].effort) >= 30.0
        assert f"{names[0]}/winding_temperature" in muscles[-1].name

        def give(name, value):
            gains = Parameter(name, value=[value] * len(names)).to_parameter_msg()
            (result,) = probe.call(
                SetParameters, "simulator/set_parameters", parameters=[gains]
            ).results
            return result

        result = give("impedance_stiffness", 5e4)
        assert result.successful, result.reason
        result = give("impedance_damping", -1.0)
        assert not result.successful
        assert "impedance_damping" in result.reason


def test_a_load_that_a_hand_carries_is_told_by_topic(domain, processes):
    """The necessary tensions are then larger; a link that there is not changes nothing."""
    common = {"model": "musashi_like"}
    controller = start(processes, "controllers.mrc", common | {"force_ramp": 0.0})
    start(processes, "cards_sim.simulator_node", common | {"mode": "as_fast_as_possible"})
    with Probe(domain) as probe:
        needed = probe.listen(JointState, "mrc/necessary_tension")
        forces = probe.node.create_publisher(WrenchStamped, "mrc/hand_force", 8)
        probe.until(lambda: needed, "necessary tensions")
        probe.until(lambda: forces.get_subscription_count() > 0, "mrc/hand_force")

        def tell(link, size):
            message = WrenchStamped()
            message.header.frame_id = link
            message.wrench.force.z = size
            forces.publish(message)

        def most():
            return max(needed[-1].effort)

        light = most()
        tell("left_hnad", 1000.0)
        tell("left_hand", float("nan"))
        tell("left_hand", 35.0)
        probe.until(lambda: most() > light + 100.0, "tensions for the load")
        assert most() < 1000.0
        tell("left_hand", 0.0)
        probe.until(lambda: most() < light + 10.0, "tensions without it")
    controller.send_signal(signal.SIGINT)
    output = controller.communicate(timeout=30)[0]
    assert "hand_force refused: no frame or link named 'left_hnad'" in output
    assert "hand_force refused: force of 'left_hand' is" in output


def test_a_push_that_is_told_moves_the_arm_less(domain, processes):
    """`apply_wrench` on a link, and what it does told to the controller as `external_wrench`."""
    common = {"model": "planar_2r"}
    gains = {"kp": [400.0, 0.0, 0.0, 400.0], "kd": [40.0, 0.0, 0.0, 40.0]}  # matrices
    start(processes, "controllers.ctc_joint", common | gains)
    world = {"mode": "lockstep", "wrench_duration": 3600.0}
    start(processes, "cards_sim.simulator_node", common | world)
    with Probe(domain) as probe:
        errors = probe.listen(JointState, "ctc_joint/error")
        pushes = probe.node.create_publisher(WrenchStamped, "apply_wrench", 8)
        told = probe.node.create_publisher(WrenchStamped, "ctc_joint/external_wrench", 8)
        for publisher in (pushes, told):
            probe.until(lambda p=publisher: p.get_subscription_count() > 0, "a subscriber")
        message = WrenchStamped()
        message.header.frame_id = "link_2"
        message.wrench.force.x = 1.0

        def size():
            return max(abs(value) for value in errors[-1].position)

        pushes.publish(message)
        probe.until(lambda: errors and size() > 2e-3, "an error")
        told.publish(message)
        probe.until(lambda: size() < 2e-4, "no error")
        message.wrench.force.x = 0.0
        told.publish(message)
        probe.until(lambda: size() > 2e-3, "an error again")


def test_a_spine_crawls_over_topics_and_bends_when_told(domain, processes):
    """Node `impedance` with the simulator on a terrain; its set-points change while it runs."""
    common = {"model": "tetraspine_hardware"}
    start(
        processes,
        "controllers.impedance",
        common | {"backend": "numeric", "tension": 5.0, "gait": "sine", "amplitude": 0.05},
    )
    start(
        processes,
        "cards_sim.simulator_node",
        common | {"mode": "as_fast_as_possible", "terrain": "blocks:friction=0.15"},
    )
    with Probe(domain) as probe:
        sent = probe.listen(JointState, "impedance_command")
        probe.until(lambda: sent, "set-points")
        names = [muscle.name for muscle in load("tetraspine_hardware").muscles]
        assert list(sent[-1].name) == names
        turn = Parameter("turn", value=4.0).to_parameter_msg()
        (result,) = probe.call(
            SetParameters, "impedance/set_parameters", parameters=[turn]
        ).results
        assert result.successful, result.reason
        left = [i for i, name in enumerate(names) if "left" in name]
        probe.until(lambda: sent[-1].effort[left[0]] == 9.0, "more tension on the left")
        assert {i for i, tension in enumerate(sent[-1].effort) if tension == 9.0} == set(left)
        bad = Parameter("tension", value=[-1.0] * len(names)).to_parameter_msg()
        (result,) = probe.call(SetParameters, "impedance/set_parameters", parameters=[bad]).results
        assert not result.successful
