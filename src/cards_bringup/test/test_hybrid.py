"""A robot of cables and joint motors in closed loop: in one process, over topics, and its run."""

import json
from pathlib import Path

import numpy as np
import pytest
from closed_loops import run_closed_loop
from hybrid_robots import LIMITS, platform_arm

pytest.importorskip("mujoco", reason="MuJoCo is not installed")
from cards_core.control import ControlStatus
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.formats.caspr import import_caspr, write_import
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.motors import motors_of
from cards_sim.build import build_host

pytestmark = pytest.mark.serial

ROBOT = platform_arm()
DURATION = 1.0
CASPR = Path(__file__).resolve().parents[3].parent / "shared" / "caspr_hybrid"
KINDS = ("ctc_joint", "ctc_operational")


def rest(*rows):
    """Points of a trajectory that stops in each of them."""
    return "".join(
        f"\n      - {{time: {t}, position: {list(p)}, velocity: {[0.0] * len(p)}, "
        f"acceleration: {[0.0] * len(p)}}}"
        for t, p in rows
    )


@pytest.fixture(scope="module")
def trajectories(tmp_path_factory):
    q = ROBOT.tree.home
    hand = make_dynamics(ROBOT, "numeric").operational(q, 0.0 * q, "hand").position[[0, 2]]
    start, goal = q.tolist(), [0.15, 0.1, 0.05, 0.9, 0.2]
    swing = rest((0.0, start), (0.5, goal), (DURATION, start))
    reach = rest((0.0, hand.tolist()), (DURATION, [0.6, 0.6]))
    file = tmp_path_factory.mktemp("hybrid") / "platform_arm.yaml"
    file.write_text(
        "trajectories:\n"
        "  ctc_joint:\n    kind: quintic\n    time_definition: absolute\n"
        f"    joints: {list(ROBOT.tree.position_names)}\n    points:{swing}\n"
        "  ctc_operational:\n    kind: quintic\n    space: operational\n"
        f"    time_definition: absolute\n    points:{reach}\n"
    )
    return str(file)


def parameters(kind, trajectories, folder):
    out = {"reference": kind, "reference_file": trajectories, "log_dir": str(folder)}
    return out | ({"axes": "xz"} if kind == "ctc_operational" else {})


def run(robot, kind, controller, folder, duration):
    """Run a closed loop; return both logs."""
    host = build_host(ParameterSet({"log_dir": str(folder)}), robot)
    session = make_control_loop(kind, ParameterSet(controller), robot)
    run_closed_loop(host, session, duration)
    host.close()
    session.close()
    assert host.gate.refused == 0, host.gate.last_refusal
    logs = []
    for name in ("simulator", "controller"):
        with np.load(folder / f"{name}.npz") as log:
            logs.append({key: log[key] for key in log.files})
    return logs


def check(robot, simulated, controlled):
    """Whatever the robot: tracked, and within all limits."""
    assert np.all(controlled["status"] == ControlStatus.OK)
    assert np.abs(controlled["error"]).max() < 1e-3  # mm or mrad
    lower = np.array([muscle.tension_min for muscle in robot.muscles])
    upper = np.array([muscle.tension_max for muscle in robot.muscles])
    assert np.all((simulated["tensions"] >= lower) & (simulated["tensions"] <= upper))
    motors = motors_of(robot.tree)
    assert simulated["motor_names"].tolist() == list(motors.names)
    assert np.all(np.abs(simulated["efforts"]) <= motors.efforts)
    # what is logged is what was told, to the last bit
    assert simulated["efforts"].tobytes() == controlled["efforts"].tobytes()
    assert np.any(simulated["efforts"] != 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_both_controllers_track_within_the_limits(kind, trajectories, tmp_path):
    simulated, controlled = run(
        ROBOT, kind, parameters(kind, trajectories, tmp_path), tmp_path, DURATION
    )
    check(ROBOT, simulated, controlled)
    assert np.ptp(controlled["desired"], axis=0).max() > 0.1


def test_a_limit_that_is_met_is_kept(trajectories, tmp_path):
    """A shoulder that cannot hold its arm gives what it has, and not more."""
    weak = platform_arm((1.0, LIMITS[1]))
    simulated, controlled = run(
        weak, "ctc_joint", parameters("ctc_joint", trajectories, tmp_path), tmp_path, 0.2
    )
    assert np.abs(simulated["efforts"][:, 0]).max() == 1.0
    assert np.all(controlled["status"] == ControlStatus.INFEASIBLE)


@pytest.mark.ros
def test_over_topics_it_is_the_same_to_the_last_bit(trajectories, tmp_path):
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    from functools import partial

    from cards_ros.controller_node import ControllerNode
    from cards_ros.testing import NodeThread, Probe, private_domain
    from cards_sim.simulator_node import SimulatorNode

    duration = 0.2
    alone, topics = tmp_path / "alone", tmp_path / "topics"
    own = parameters("ctc_joint", trajectories, alone)
    expected, controlled = run(ROBOT, "ctc_joint", own, alone, duration)
    options = {"mode": "lockstep", "duration": duration, "log_dir": str(topics)}
    with private_domain() as domain, Probe(domain) as probe:
        controller = NodeThread(
            partial(ControllerNode, "ctc_joint"),
            domain,
            {"robot": ROBOT},
            **(own | {"log_dir": str(topics)}),
        )
        simulator = NodeThread(SimulatorNode, domain, {"robot": ROBOT}, **options)
        with controller, simulator:
            probe.until(lambda: simulator.exit_code == 0, "the end of the run")
    with np.load(topics / "simulator.npz") as log:
        for name, values in expected.items():
            assert log[name].tobytes() == values.tobytes(), name
    with np.load(topics / "controller.npz") as log:
        steps = len(controlled["time"])
        assert log["efforts"][:steps].tobytes() == controlled["efforts"].tobytes()
        assert not np.any(log["missed_deadlines"])


def test_its_run_shows_the_efforts(trajectories, tmp_path):
    mcap = pytest.importorskip("mcap.reader", reason="mcap is not installed")
    from cards_viz.runs.folder import write_run_folder

    own = parameters("ctc_joint", trajectories, tmp_path)
    simulated, _ = run(ROBOT, "ctc_joint", own, tmp_path, 0.1)
    info = {"controller": "ctc_joint", "mode": "lockstep", "wall_time_s": 1.0}
    summary = write_run_folder(tmp_path / "run", ROBOT, info, logs=tmp_path)
    assert summary["effort_max"] == np.abs(simulated["efforts"]).max()
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (tmp_path / "run" / "efforts.png").stat().st_size > 0
    with open(tmp_path / "run" / "recording.mcap", "rb") as stream:
        counts = mcap.make_reader(stream).get_summary()
    topics = {channel.topic: i for i, channel in counts.channels.items()}
    assert counts.statistics.channel_message_counts[topics["/effort_command"]] == 100


@pytest.mark.skipif(not CASPR.is_dir(), reason=f"CASPR's hybrid robots are not at {CASPR}")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["SpiderBot_X52", "FASTKIT_Planar"])
def test_the_hybrid_robots_of_caspr_hold_themselves(name, kind, tmp_path):
    """Without their motors they fell by some rad in half a second."""
    model = import_caspr(CASPR / name, feasibility=False)
    robot = load(write_import(model, tmp_path))
    simulated, controlled = run(robot, kind, {"log_dir": str(tmp_path)}, tmp_path, 0.25)
    check(robot, simulated, controlled)
