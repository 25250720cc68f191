"""The topic ``model`` of one node: late joiners, waiting for others, others that leave."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import String

from cards_core.formats import load
from cards_core.loop.model_identity import Announcement, decode, encode, identity_of
from cards_ros import model_topic, topics
from cards_ros.diagnostics import Level, Status
from cards_ros.model_topic import ModelTopic
from changed_robots import with_mass

pytestmark = pytest.mark.ros

SAME = identity_of(load("planar_2r"))
OTHER = identity_of(with_mass(load("planar_2r"), 2.0))


@pytest.fixture
def make(domain):
    """Make nodes, each with a context of its own, and end them with the test."""
    nodes = []

    def node(name):
        context = Context()
        context.init(args=[], domain_id=domain)
        nodes.append(Node(name, context=context))
        return nodes[-1]

    yield node
    for one in nodes:
        end(one)


def end(node):
    if node.context.ok():
        node.destroy_node()
        node.context.try_shutdown()


def refusing():
    return False


def updated(topic, condition):
    """Return a condition that looks at the messages first."""

    def look():
        topic.update()
        return condition()

    return look


def test_models_are_heard_whoever_comes_first(make, probe):
    one = ModelTopic(make("one"), "host", SAME, refusing)
    two = ModelTopic(make("two"), "controller", OTHER, refusing)
    probe.until(updated(two, lambda: two.refusal), "a refusal")
    assert two.refusal.startswith("host /one has another model 'planar_2r': equations (masses")
    status = Status("model")
    probe.until(updated(one, lambda: one._agreement.others), "the controller at the host")
    one.report(status)
    assert (status.level, one.refusal) == (Level.WARN, "")  # it does not command
    two.commanding(True)
    probe.until(updated(one, lambda: one.refusal), "a refusal of the host")
    one.report(status)
    assert status.level == Level.ERROR
    assert status.message.startswith("no commands: controller /two has another model")
    assert status.values == {"hash": SAME.hash, "others": 1}
    two.commanding(False)
    probe.until(updated(one, lambda: not one.refusal), "no refusal")


def test_what_is_said_without_change_is_said_once(make, probe):
    heard = probe.listen(String, topics.MODEL, topics.MODEL_QOS)
    topic = ModelTopic(make("one"), "controller", SAME, refusing)
    probe.until(lambda: heard, "the first word")
    for commands in (True, True, False, False, True):
        topic.commanding(commands)
        probe.until(lambda commands=commands: decode(heard[-1].data).commands == commands, "it")
    assert [decode(m.data).commands for m in heard] == [False, True, False, True]


def test_whoever_has_a_publisher_is_waited_for(make, probe, monkeypatch):
    monkeypatch.setattr(model_topic, "PATIENCE", 3600.0)
    late = make("late")
    publisher = late.create_publisher(String, topics.MODEL, topics.LATCHED_QOS)
    topic = ModelTopic(make("one"), "controller", SAME, refusing)
    probe.until(lambda: topic._publishers() == 1, "the publisher in the graph")
    probe.spin(0.1)
    assert not topic.settled()
    assert not topic.refusal  # nothing is known yet
    said = Announcement("/late", "x", "host", OTHER)
    publisher.publish(String(data=encode(said)))
    probe.until(topic.settled, "the model")
    assert topic.refusal.startswith("host /late")


def test_but_not_for_ever(make, probe, monkeypatch):
    monkeypatch.setattr(model_topic, "PATIENCE", 0.2)
    silent = make("silent")
    silent.create_publisher(String, topics.MODEL, topics.LATCHED_QOS)
    topic = ModelTopic(make("one"), "controller", SAME, refusing)
    probe.until(lambda: topic._publishers() == 1, "the publisher in the graph")
    assert not topic.settled()
    probe.until(topic.settled, "the end of its patience")


def test_alone_nobody_is_waited_for(make):
    assert ModelTopic(make("one"), "controller", SAME, refusing).settled()
    silent = ModelTopic(make("two"), "compiler", None)
    assert silent.settled()
    assert silent.refusal == ""
    silent.update()
    status = Status("model")
    silent.report(status)
    assert status.level == Level.OK


def test_who_is_gone_does_not_count_any_more(make, probe, monkeypatch):
    monkeypatch.setattr(model_topic, "LOOK_PERIOD", 0.0)
    monkeypatch.setattr(model_topic, "PATIENCE", 3600.0)
    topic = ModelTopic(make("one"), "controller", SAME, refusing)
    old, new = make("host"), make("host")  # an old simulator that still runs beside the new one
    ModelTopic(old, "host", OTHER, refusing)
    ModelTopic(new, "host", SAME, refusing)
    probe.until(updated(topic, lambda: topic._agreement.others == 2), "both")
    assert topic.refusal
    refusals = []

    def agrees():
        topic.update()
        refusals.append(bool(topic.refusal))
        return not refusals[-1]

    end(old)
    probe.until(agrees, "agreement")
    # it holds until all that are left have been heard again: never a moment without
    assert refusals == [True] * (len(refusals) - 1) + [False]
    assert topic._agreement.others == 1


def test_a_new_model_is_compared_anew(make, probe):
    host = ModelTopic(make("host"), "host", OTHER, refusing)
    compiler = ModelTopic(make("compiler"), "compiler", None)
    status = Status("model")
    for model, level in ((SAME, Level.WARN), (OTHER, Level.OK), (SAME, Level.WARN)):
        compiler.announce(model)

        def reported(level=level):
            compiler.report(status)
            return status.level == level and status.values["others"] == 1

        probe.until(updated(compiler, reported), level.name)
    probe.until(updated(host, lambda: host._agreement.uneasy), "the compiler's at the host")
    assert host.refusal == ""  # a remark
