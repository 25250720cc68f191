"""The node ``live_analysis`` over real topics; the test plays the host, or it is the real one."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from functools import partial

from rcl_interfaces.srv import SetParameters
from rclpy.exceptions import InvalidParameterValueException
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.stiffness import joint_stiffness
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.model_identity import Announcement, decode, encode, identity_of
from cards_model_compiler.live_analysis.analyses import ConditionAnalysis, StiffnessAnalysis
from cards_model_compiler.live_analysis.node import LiveAnalysisNode
from cards_ros import topics
from cards_ros.controller_node import ControllerNode
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread, Probe
from cards_sim.simulator_node import SimulatorNode
from changed_robots import with_mass

pytestmark = pytest.mark.ros

ROBOT = load("planar_2r")
HEAVY = with_mass(ROBOT, 1.5)
NODE = "live_analysis"
METRICS, INTERACTION, ESTIMATE = f"{NODE}/metrics", f"{NODE}/interaction", f"{NODE}/joint_states"
REPORT = f"{NODE}/report"


def live(domain, robot=ROBOT, **parameters):
    given = {"conditions": "wrench_closure,tension_factor,interference", **parameters}
    # a busy machine is no reason to lose states
    return NodeThread(LiveAnalysisNode, domain, {"robot": robot}, state_timeout=5.0, **given)


class Host:
    """Publishes states of a robot at rest, with stamps that go on."""

    def __init__(self, probe, robot=ROBOT):
        self.probe, self.dynamics = probe, make_dynamics(robot)
        self.tree = self.dynamics.tree
        self.stamp = 0
        self.muscles = [muscle.name for muscle in robot.muscles]

    def messages(self, q, tension=30.0):
        state = self.dynamics.update(np.asarray(q, float), np.zeros(self.tree.nv))
        joints = JointState(name=list(self.tree.position_names), position=[float(x) for x in q])
        joints.velocity = [0.0] * self.tree.nq
        muscles = JointState(name=list(self.muscles), position=state.muscle_lengths.tolist())
        muscles.velocity = [0.0] * len(self.muscles)
        muscles.effort = [tension] * len(self.muscles)
        self.stamp += 1
        for message in (joints, muscles):
            message.header.stamp.sec = self.stamp
        return joints, muscles

    def send(self, joints, muscles):
        self.probe.publish(joints, topics.JOINT_STATES)
        self.probe.publish(muscles, topics.MUSCLE_STATES)
        self.probe.spin(0.02)

    def until(self, condition, what, q):
        """Send poses until a condition holds; return its value."""

        def found():
            self.send(*self.messages(q))
            return condition()

        return self.probe.until(found, what)


def values_of(message, field="position"):
    return dict(zip(message.name, getattr(message, field), strict=True))


def complete(received):
    """The newest metrics whose numbers all belong to its own state, None before."""
    for message in reversed(received):
        values = values_of(message)
        if all(value == 0.0 for name, value in values.items() if name.endswith("/age")):
            return message
    return None


def test_metrics_wrenches_and_pose_of_a_state(domain, probe):
    host, q = Host(probe), np.array([0.3, -0.5])
    metrics = probe.listen(JointState, METRICS)
    wrenches = probe.listen(JointState, INTERACTION)
    poses = probe.listen(JointState, ESTIMATE)
    with live(domain):
        message = host.until(lambda: wrenches and poses and complete(metrics), "metrics", q)
        for name in ("states", "conditions", "forward_kinematics", "loop", "model"):
            probe.until_status(f"{NODE}: {name}", Level.OK)
    assert message.header.stamp.sec > 0
    values = values_of(message)
    dynamics = make_dynamics(ROBOT)
    for name in ("wrench_closure", "tension_factor", "interference"):
        for column, expected in make_condition(dynamics, name).evaluate(q[None]).items():
            assert values[f"{name}/{column}"] == pytest.approx(float(expected[0]))
    stiffness = joint_stiffness(dynamics, q, np.full(4, 30.0), gravity=True)
    assert values["stiffness/eigenvalue_min"] == pytest.approx(stiffness.eigenvalues[0])
    assert np.isnan(values["stiffness/frequency_min"]) == (stiffness.eigenvalues[0] < 0.0)
    assert values["forward_kinematics/status"] == 0.0
    assert values["forward_kinematics/difference"] < 1e-6
    assert len(values) == len(message.name)  # no name twice
    np.testing.assert_allclose(poses[-1].position, q, atol=1e-6)
    assert poses[-1].name == list(dynamics.tree.position_names)
    carried = values_of(wrenches[-1], "effort")
    assert len(carried) == 6 * len(ROBOT.joints)
    # across the plane of the arm nothing acts
    assert carried["joint_1/fy"] == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(list(carried.values())).all()
    assert wrenches[-1].position.tolist() == []


def test_who_comes_late_gets_all_there_is(domain):
    with Probe(domain, "host") as first:
        host = Host(first)
        with live(domain):
            first.until_status(f"{NODE}: states", Level.STALE, "no joint_states yet")
            first.until_status(f"{NODE}: conditions", Level.STALE, "no states")
            host.until(lambda: host.stamp > 20, "twenty states", [0.1, 0.2])
            with Probe(domain, "late") as late:
                metrics = late.listen(JointState, METRICS)
                model = late.listen(String, topics.MODEL, topics.MODEL_QOS)

                def heard():
                    late.spin(0.01)
                    return model and complete(metrics)

                host.until(heard, "metrics for the late one", [0.1, 0.2])
    said = decode(model[0].data)
    assert (said.node, said.role, said.commands) == (f"/{NODE}", "observer", False)
    assert said.model == identity_of(ROBOT)


def test_states_that_stop_are_stale(domain, probe):
    host = Host(probe)
    metrics = probe.listen(JointState, METRICS)
    options = {"robot": ROBOT}
    with NodeThread(LiveAnalysisNode, domain, options, conditions="", state_timeout=0.3):
        host.until(lambda: metrics, "metrics", [0.1, 0.2])
        probe.forget()
        probe.until_status(f"{NODE}: states", Level.STALE, "no joint_states for 0.3 s")
        probe.until_status(f"{NODE}: forward_kinematics", Level.STALE, "no states")
        probe.until(lambda: probe.call(Trigger, REPORT).success, "a report of the last state")
        metrics.clear()
        probe.spin(0.3)
        assert metrics == []
        host.until(lambda: metrics, "metrics again", [0.1, 0.2])
        probe.forget()
        host.until(lambda: probe.status(f"{NODE}: states"), "a status", [0.1, 0.2])


def test_bad_states_are_reported_and_answered_with_nan(domain, probe):
    host, q = Host(probe), [0.3, -0.5]
    metrics = probe.listen(JointState, METRICS)
    poses = probe.listen(JointState, ESTIMATE)

    def spoil(joints, muscles, change):
        change(joints, muscles)
        return joints, muscles

    def nan_joint(joints, _):
        joints.position = [float("nan"), 0.0]

    def stranger(joints, _):
        joints.name[0] = "neck"

    def nan_length(_, muscles):
        muscles.position = [float("nan")] * 4

    def unknown_muscle(_, muscles):
        muscles.name[1] = "rope"

    with live(domain) as thread:
        host.until(lambda: complete(metrics), "metrics", q)
        cases = (
            (nan_joint, "position of 'joint_1' is nan", "tension_factor/tension_factor"),
            (stranger, "unknown: neck", "tension_factor/tension_factor"),
            (nan_length, "position of 'cable_1' is nan", "forward_kinematics/residual"),
            (unknown_muscle, "unknown: rope", "stiffness/eigenvalue_min"),
        )
        for change, words, name in cases:
            probe.forget()

            def bad(change=change, name=name):
                host.send(*spoil(*host.messages(q), change))
                message = complete(metrics)
                return message is not None and np.isnan(values_of(message)[name]) and message

            message = probe.until(bad, f"NaN of {words}")
            status = values_of(message)[f"{name.split('/')[0]}/status"]
            assert status == 2.0  # NOT_FINITE

            def told(change=change, words=words):
                host.send(*spoil(*host.messages(q), change))
                status = probe.status(f"{NODE}: states")
                return status and status.level == bytes([Level.ERROR]) and words in status.message

            probe.until(told, words)
            if name.startswith("forward"):
                probe.until_status(f"{NODE}: forward_kinematics", Level.STALE, "not known")
                poses.clear()
                host.send(*spoil(*host.messages(q), change))
                probe.spin(0.1)
                assert poses == []  # no lengths, no pose
        probe.forget()
        host.until(lambda: complete(metrics), "metrics again", q)
        probe.forget()

        def ok():
            status = probe.status(f"{NODE}: states")
            return status and status.level == bytes([Level.OK])

        host.until(ok, "ok", q)
    assert thread.exit_code == 0


def test_an_infeasible_condition_and_a_wrong_sensor_are_warnings(domain, probe):
    host, q = Host(probe), np.array([0.3, -0.5])
    text = '{"interference": {"min_distance": 10.0}}'
    with live(domain, condition_options=text, difference_limit=0.01):

        def tilted():
            joints, muscles = host.messages(q)
            joints.position = (q + np.array([0.0, 0.05])).tolist()
            host.send(joints, muscles)
            s = probe.status(f"{NODE}: forward_kinematics")
            return s and s.level == bytes([Level.WARN]) and s

        status = probe.until(tilted, "a warning")
        assert "differs from joint_states at 'joint_2'" in status.message
        values = {item.key: item.value for item in status.values}
        assert float(values["difference"]) == pytest.approx(0.05, abs=1e-4)
        status = probe.until_status(f"{NODE}: conditions", Level.WARN, "infeasible: interference")
        assert {v.key: v.value for v in status.values}["wrench_closure"] == "FEASIBLE"
        request = [Parameter("difference_limit", value=0.1).to_parameter_msg()]
        probe.call(SetParameters, f"{NODE}/set_parameters", parameters=request)
        probe.forget()

        def fine():
            joints, muscles = host.messages(q)
            joints.position = (q + np.array([0.0, 0.05])).tolist()
            host.send(joints, muscles)
            s = probe.status(f"{NODE}: forward_kinematics")
            return s and s.level == bytes([Level.OK])

        probe.until(fine, "no warning")


def test_a_robot_that_wraps(domain, probe):
    robot = load("wrap_elbow")
    host, q = Host(probe, robot), np.array([0.9])
    metrics, poses = probe.listen(JointState, METRICS), probe.listen(JointState, ESTIMATE)

    def found():
        good = [m for m in metrics if values_of(m)["forward_kinematics/status"] == 0.0]
        return poses and good and np.isfinite(values_of(good[-1])["stiffness/eigenvalue_min"])

    with live(domain, robot, conditions="wrench_closure"):
        host.until(found, "a pose and a stiffness", q)
        probe.until_status(f"{NODE}: forward_kinematics", Level.OK)
    np.testing.assert_allclose(poses[-1].position, q, atol=1e-6)


def test_a_robot_without_muscles(domain, probe):
    bare = replace(ROBOT, muscles=())
    host, q = Host(probe, bare), np.array([0.3, -0.5])
    metrics, poses = probe.listen(JointState, METRICS), probe.listen(JointState, ESTIMATE)
    with live(domain, bare):

        def found():
            host.send(host.messages(q)[0], JointState())
            return complete(metrics)

        message = probe.until(found, "metrics")
        probe.until_status(f"{NODE}: states", Level.OK)
        words = "the robot has no muscles"
        probe.until_status(f"{NODE}: forward_kinematics", Level.OK, words)
        probe.until_status(f"{NODE}: conditions", Level.WARN, "tension_factor (NO_MUSCLES)")
        assert probe.call(Trigger, REPORT).success
    values = values_of(message)
    assert values["tension_factor/status"] == 3.0
    assert np.isnan(values["tension_factor/tension_factor"])
    assert poses == []


def test_the_rate_is_kept_while_a_heavy_condition_runs(domain, probe, monkeypatch):
    busy, go = threading.Event(), threading.Event()
    evaluate = ConditionAnalysis.evaluate

    def heavy(self, state):
        if self.condition.name == "interference" and state.number >= 0:
            busy.set()
            assert go.wait(60.0)
        return evaluate(self, state)

    monkeypatch.setattr(ConditionAnalysis, "evaluate", heavy)
    host, q = Host(probe), [0.3, -0.5]
    metrics = probe.listen(JointState, METRICS)
    with live(domain, rate=50.0):
        host.until(busy.is_set, "the heavy condition", q)
        host.until(lambda: len(metrics) >= 20, "twenty messages all the same", q)
        values = values_of(metrics[-1])
        assert np.isnan(values["interference/distance"])
        assert np.isfinite(values["tension_factor/tension_factor"])
        stamps = [m.header.stamp.sec for m in metrics]
        assert stamps == sorted(set(stamps))  # of new states, each once
        assert json.loads(probe.call(Trigger, REPORT).message)["conditions"]["interference"] == {
            "status": None
        }
        go.set()
        host.until(
            lambda: np.isfinite(values_of(metrics[-1])["interference/distance"]), "its answer", q
        )
        # its age is that of the state it was asked about
        assert values_of(metrics[-1])["interference/age"] >= 0.0


def test_an_analysis_that_fails_is_an_error_and_the_others_go_on(domain, probe, monkeypatch):
    evaluate = ConditionAnalysis.evaluate

    def broken(self, state):
        if self.condition.name == "interference" and state.number >= 0:
            raise ZeroDivisionError("no distance")
        return evaluate(self, state)

    monkeypatch.setattr(ConditionAnalysis, "evaluate", broken)
    host, q = Host(probe), [0.3, -0.5]
    metrics = probe.listen(JointState, METRICS)
    with live(domain) as thread:
        words = "interference: ZeroDivisionError: no distance"
        host.until(lambda: len(metrics) > 5, "metrics", q)
        probe.until_status(f"{NODE}: conditions", Level.ERROR, words)
        assert np.isnan(values_of(metrics[-1])["interference/status"])
        assert np.isfinite(values_of(metrics[-1])["tension_factor/status"])
    assert thread.exit_code == 0


def test_a_stiffness_that_fails_is_not_silent(domain, probe, monkeypatch):
    evaluate = StiffnessAnalysis.evaluate

    def broken(self, state):
        if state.number >= 0:
            raise FloatingPointError("no stiffness")
        return evaluate(self, state)

    monkeypatch.setattr(StiffnessAnalysis, "evaluate", broken)
    host = Host(probe)
    with live(domain):
        words = "stiffness: FloatingPointError: no stiffness"

        def told():
            status = probe.status(f"{NODE}: loop")
            return status and status.level == bytes([Level.ERROR]) and words in status.message

        host.until(told, words, [0.3, -0.5])


def test_the_report(domain, probe):
    host, q = Host(probe), np.array([0.3, -0.5])
    metrics = probe.listen(JointState, METRICS)
    with live(domain):
        early = probe.call(Trigger, REPORT)
        assert not early.success
        assert json.loads(early.message)["error"]["message"] == "no joint_states yet"
        host.until(lambda: complete(metrics), "metrics", q)
        answer = probe.call(Trigger, REPORT)
        assert answer.success
    report = json.loads(answer.message)
    assert report["robot"] == "planar_2r"
    assert report["joint_states"]["position"] == {"joint_1": 0.3, "joint_2": -0.5}
    assert report["tension_distribution"]["status"] == "FEASIBLE"
    assert np.array(report["stiffness"]["matrix"]).shape == (2, 2)
    assert {said["status"] for said in report["conditions"].values()} == {"FEASIBLE"}
    assert report["forward_kinematics"]["status"] == "FEASIBLE"


def announce(probe, robot, role="host"):
    said = Announcement(f"/{role}", "x", role, identity_of(robot))
    probe.publish(String(data=encode(said)), topics.MODEL, topics.LATCHED_QOS)


def test_another_model_stops_it_until_it_is_gone(domain, probe):
    host, q = Host(probe), [0.3, -0.5]
    metrics = probe.listen(JointState, METRICS)
    with live(domain) as thread:
        host.until(lambda: complete(metrics), "metrics", q)
        with Probe(domain, "other") as other:
            announce(other, HEAVY)
            words = "nothing is published: host /host has another model"
            status = probe.until_status(f"{NODE}: model", Level.ERROR, words)
            assert "set accept_other_model" in status.message
            probe.until_status(f"{NODE}: conditions", Level.STALE, "stopped: another model")
            probe.forget()
            for _ in range(20):
                host.send(*host.messages(q))
            assert metrics == []
            refused = probe.call(Trigger, REPORT)
            assert not refused.success
            assert "host /host has another model" in refused.message
            request = [Parameter("accept_other_model", value=True).to_parameter_msg()]
            probe.call(SetParameters, f"{NODE}/set_parameters", parameters=request)
            host.until(lambda: metrics, "metrics, as the other model is accepted", q)
            probe.until_status(f"{NODE}: model", Level.WARN, "host /host has another model")
            request = [Parameter("accept_other_model", value=False).to_parameter_msg()]
            probe.call(SetParameters, f"{NODE}/set_parameters", parameters=request)
            probe.until(lambda: thread.node.models.refusal, "a refusal")
        metrics.clear()
        host.until(lambda: metrics, "metrics, as the other host is gone", q)


def test_beside_the_real_simulator_and_a_controller(domain, probe, tmp_path):
    """In lockstep, where a third node must not change a bit of the run."""
    logs = []
    for company in (False, True):
        folder = tmp_path / str(company)
        options = {"robot": ROBOT}
        simulator = NodeThread(
            SimulatorNode, domain, options, mode="lockstep", duration=0.2, log_dir=str(folder)
        )
        with simulator as host, CompanyOrNot(domain, company) as node:
            metrics = probe.listen(JointState, METRICS)
            if company:
                # the simulator waits, and repeats its first state
                probe.until(lambda m=metrics: differences(m), "metrics of the first state")
            with NodeThread(partial(ControllerNode, "ctc_joint"), domain, options, kp=900.0):
                probe.until(lambda host=host: host.exit_code is not None, "the end")
                if company:
                    state = node.node._states.state
        with np.load(folder / "simulator.npz") as log:
            logs.append({name: log[name] for name in log.files})
    assert len(logs[0]["time"]) == 200
    for name, values in logs[0].items():
        assert values.tobytes() == logs[1][name].tobytes(), name
    # the state that was analysed is one of the run
    row = np.flatnonzero(np.isclose(logs[1]["time"], 1e-9 * state.stamp, atol=1e-9))
    if state.stamp:
        np.testing.assert_array_equal(logs[1]["q"][row[0]], state.q)
        np.testing.assert_array_equal(logs[1]["muscle_lengths"][row[0]], state.lengths)
    assert max(differences(metrics)) < 1e-6


def differences(metrics):
    """Lengths against joints, of the messages that know both."""
    found = [values_of(message)["forward_kinematics/difference"] for message in metrics]
    return [value for value in found if np.isfinite(value)]


class CompanyOrNot:
    """The node, or nobody."""

    def __init__(self, domain, wanted):
        self._thread = live(domain, rate=200.0) if wanted else None

    def __enter__(self):
        return self._thread.__enter__() if self._thread else None

    def __exit__(self, *_):
        if self._thread:
            self._thread.stop()


def test_bad_parameters_are_refused_at_the_start(domain):
    for name, value, words in (
        ("conditions", "wrench_clojure", "no condition named 'wrench_clojure'"),
        ("condition_options", "{", "'condition_options' is no JSON"),
        ("tension_distribution", "guess", "expected: least_norm or"),
        ("rate", 0.0, "[Rr]ate"),
    ):
        with pytest.raises((CardsError, InvalidParameterValueException), match=words):
            live(domain, **{name: value})
