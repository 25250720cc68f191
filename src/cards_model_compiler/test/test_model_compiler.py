"""The node ``model_compiler`` behind real topics and services."""

import json
import signal
from itertools import pairwise

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.exceptions import InvalidParameterValueException
from rclpy.parameter import Parameter
from std_msgs.msg import String
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.loop.model_identity import Announcement, decode, encode, identity_of
from cards_model_compiler.model_compiler import ModelCompilerNode
from cards_ros import topics
from cards_ros.diagnostics import PERIOD, Level
from cards_ros.testing import PATIENCE, NodeThread, Probe, start_process

pytestmark = pytest.mark.ros

COMPILE = "model_compiler/compile"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CARDS_CACHE", str(folder))
    return folder


def compiler(domain, **parameters):
    return NodeThread(ModelCompilerNode, domain, **{"model": "planar_2r", **parameters})


def set_parameter(probe, name, value):
    request = [Parameter(name, value=value).to_parameter_msg()]
    answer = probe.call(SetParameters, "model_compiler/set_parameters", parameters=request)
    return answer.results[0]


@pytest.fixture
def slow_cc(tmp_path, monkeypatch):
    """A C compiler that waits for a file."""
    release = tmp_path / "release"
    script = tmp_path / "slow-cc"
    script.write_text(f'#!/bin/sh\nwhile [ ! -e {release} ]; do sleep 0.05; done\nexec cc "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return release


def test_it_compiles_at_its_start_and_tells_those_who_come_later(domain):
    with compiler(domain) as thread:
        with Probe(domain) as early:
            early.until_status("model_compiler: compiler", Level.OK, "planar_2r: compiled in")
        with Probe(domain, "late") as late:
            heard = late.listen(String, topics.MODEL, topics.MODEL_QOS)
            late.until(lambda: heard, "the model")
            status = late.until_status("model_compiler: compiler", Level.OK, "compiled in")
    announcement = decode(heard[0].data)
    assert announcement.node == "/model_compiler"
    assert announcement.role == "compiler"
    assert announcement.model == identity_of(load("planar_2r"))
    values = {item.key: item.value for item in status.values}
    assert values["hash"] == announcement.model.hash
    assert int(values["instructions"]) == thread.node.report["instructions"] > 0
    assert thread.exit_code == 0


def test_the_service_compiles_what_the_parameter_says(domain, probe, cache):
    with compiler(domain):
        probe.until_status("model_compiler: compiler", Level.OK, "planar_2r: compiled")
        heard = probe.listen(String, topics.MODEL, topics.MODEL_QOS)
        probe.until(lambda: heard, "the first model")
        again = probe.call(Trigger, COMPILE)
        assert again.success
        assert json.loads(again.message)["cached"]

        assert set_parameter(probe, "model", "wrap_elbow").successful
        answer = probe.call(Trigger, COMPILE)
        assert answer.success
        report = json.loads(answer.message)
        assert (report["robot"], report["cached"]) == ("wrap_elbow", False)
        assert report["hash"] == identity_of(load("wrap_elbow")).hash
        probe.until(lambda: decode(heard[-1].data).model.robot == "wrap_elbow", "the new model")

        refused = set_parameter(probe, "model", "elbow")
        assert not refused.successful
        assert "no model or file named 'elbow'" in refused.reason
        assert set_parameter(probe, "emit", "M,X").successful  # found out by the compilation
        answer = probe.call(Trigger, COMPILE)
        assert not answer.success
        assert "no quantity named 'X'" in json.loads(answer.message)["error"]["message"]
        probe.until_status("model_compiler: compiler", Level.ERROR, "no quantity named 'X'")
        assert decode(heard[-1].data).model.robot == "wrap_elbow"  # what it last made
        assert set_parameter(probe, "emit", "M,G").successful
        assert json.loads(probe.call(Trigger, COMPILE).message)["emit"] == ["M", "G"]
        probe.until_status("model_compiler: compiler", Level.OK, "wrap_elbow: compiled")


def test_a_second_call_is_refused_and_diagnostics_go_on(domain, probe, slow_cc):
    with compiler(domain):
        probe.until_status("model_compiler: compiler", Level.OK, "compiling planar_2r")
        refused = probe.call(Trigger, COMPILE)
        assert not refused.success
        error = json.loads(refused.message)["error"]
        assert error["type"] == "BusyError"
        assert "compiling planar_2r" in error["message"]
        # several messages while one compilation lasts, none of them much later than it should
        messages = probe.listen(DiagnosticArray, topics.DIAGNOSTICS, topics.DIAGNOSTICS_QOS)
        del messages[:]
        probe.until(lambda: len(messages) >= 3, "three messages", patience=20 * PERIOD)
        stamps = [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in messages]
        assert all(b > a for a, b in pairwise(stamps))
        slow_cc.touch()
        probe.until_status("model_compiler: compiler", Level.OK, "planar_2r: compiled")
        assert probe.call(Trigger, COMPILE).success


def test_a_call_waits_for_its_answer_while_the_node_serves_others(domain, probe, slow_cc):
    with compiler(domain):
        slow_cc.touch()
        probe.until_status("model_compiler: compiler", Level.OK, "planar_2r: compiled")
        slow_cc.unlink()
        set_parameter(probe, "force", True)
        client = probe.node.create_client(Trigger, COMPILE)
        probe.until(client.service_is_ready, "the service")
        answer = client.call_async(Trigger.Request())
        probe.until_status("model_compiler: compiler", Level.OK, "compiling planar_2r")
        assert not probe.call(Trigger, COMPILE).success
        assert not answer.done()
        slow_cc.touch()
        probe.until(answer.done, "the answer")
        assert answer.result().success
        assert not json.loads(answer.result().message)["cached"]


def test_an_end_while_it_compiles_leaves_nothing_behind(domain, probe, slow_cc, cache):
    with compiler(domain) as thread:
        probe.until_status("model_compiler: compiler", Level.OK, "compiling planar_2r")
        probe.until(lambda: cache.exists() and list(cache.iterdir()), "a build")
    assert thread.exit_code == 0
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_compiles_ends_in_order(domain, probe, slow_cc, cache, number):
    process = start_process("cards_model_compiler.model_compiler", {"model": "planar_2r"})
    try:
        probe.until_status("model_compiler: compiler", Level.OK, "compiling planar_2r")
        probe.until(lambda: cache.exists() and list(cache.iterdir()), "a build")
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, out
    assert "Traceback" not in out
    assert list(cache.iterdir()) == []


def test_bad_parameters_are_refused_at_the_start(domain):
    with pytest.raises(CardsError, match="no model or file named 'planar_9r'"):
        compiler(domain, model="planar_9r")
    with pytest.raises((CardsError, InvalidParameterValueException)):
        compiler(domain, precision="half")


def test_a_host_with_another_model_is_a_remark(domain, probe):
    with compiler(domain):
        other = Announcement("/simulator", "s1", "host", identity_of(load("wrap_elbow")))
        probe.publish(String(data=encode(other)), topics.MODEL, topics.LATCHED_QOS)
        words = (
            "host /simulator has another model 'wrap_elbow': joints: joint_1, joint_2 only here"
        )
        probe.until_status("model_compiler: model", Level.WARN, words)
