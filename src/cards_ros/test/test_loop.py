"""The loop must wake up for its messages, answer services meanwhile, and end in order."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rcl_interfaces.srv import GetParameters
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_ros import loop as loop_module
from cards_ros import topics
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.loop import HotPublisher, HotSubscription, Looking, NodeLoop, StopFlag, describe
from cards_ros.messages import JointStateReader, JointStateWriter
from cards_ros.testing import NodeThread, Probe

pytestmark = pytest.mark.ros


class EchoNode(Node):
    """Answers every ``ping`` with a ``pong`` of the same stamp."""

    def __init__(self, context, stop, **options):
        super().__init__("echo", context=context, **options)
        self.stop = stop
        self.ping = HotSubscription(self, JointState, "ping", topics.STATE_QOS)
        self.pong = HotPublisher(self, JointState, "pong", topics.STATE_QOS)
        quick = self.create_service(Trigger, "~/quick", self.on_hello)
        self.loop = NodeLoop(self, [self.ping], stop, urgent=[quick], serve_period=0.02)
        self.create_service(Trigger, "~/hello", self.on_hello)
        self.create_service(Trigger, "~/broken", self.on_broken)
        self.create_subscription(String, "slow", self.on_slow, 10)
        self.slow = []
        self.diagnostics = Diagnostics(self, "none", ("work", "play"))
        self.reader, self.writer = JointStateReader(), JointStateWriter(("a",), ("effort",))
        self.waits = 0

    def on_hello(self, _request, response):
        response.success, response.message = True, "hello"
        return response

    def on_broken(self, _request, _response):
        raise CardsError("broken on purpose")

    def on_slow(self, message):
        if message.data == "bad":
            raise ValueError("bad on purpose")
        self.slow.append(message.data)

    def run(self):
        while not self.stop:
            data = self.ping.take()
            if data is None:
                self.waits += 1
                self.loop.wait(0.02)
            else:
                sample = self.reader.read(data)
                self.pong.publish(self.writer.write(sample.stamp, 2.0 * sample.effort))
            if self.loop.serve():
                self.pong.refresh()
                self.diagnostics.update()
        return 0

    def close(self):
        self.loop.close()
        self.destroy_node()


@pytest.fixture(scope="module")
def echo(domain):
    with NodeThread(EchoNode, domain) as thread:
        yield thread.node


@pytest.fixture(scope="module")
def probe(domain):
    with Probe(domain) as probe:
        yield probe


def ping(k):
    message = JointState(name=["a"], effort=[float(k)])
    message.header.stamp.nanosec = k
    return message


def test_messages_are_answered(echo, probe):
    pongs = probe.listen(JointState, "pong")
    probe.until(lambda: probe.node.count_publishers("pong"), "the echo")
    probe.until(lambda: echo.pong.wanted, "discovery")
    for k in range(200):
        probe.publish(ping(k), "ping")
        probe.until(lambda k=k: pongs and pongs[-1].header.stamp.nanosec == k, f"pong {k}")
        assert pongs[-1].effort.tolist() == [2.0 * k]


def test_services_parameters_and_slow_topics_are_served(echo, probe):
    assert probe.call(Trigger, "echo/hello").message == "hello"
    answer = probe.call(GetParameters, "echo/get_parameters", names=["use_sim_time"])
    assert answer.values[0].bool_value is False
    for text in ("bad", "good"):
        probe.publish(String(data=text), "slow", 10)
    probe.until(lambda: echo.slow == ["good"], "the slow message behind the bad one")
    assert probe.call(Trigger, "echo/hello").success


def test_a_service_that_raises_does_not_end_the_loop(echo, probe):
    client = probe.node.create_client(Trigger, "echo/broken")
    probe.until(client.service_is_ready, "service")
    client.call_async(Trigger.Request())
    probe.spin(0.1)
    assert probe.call(Trigger, "echo/hello").success


def test_waiting_is_not_busy(echo, probe):
    before = echo.waits
    time.sleep(0.5)
    # 20 ms a wait; far more would mean that waits return at once
    assert echo.waits - before <= 60


def bare(domain):
    """Return a node and its context; nothing but a test takes its messages."""
    context = Context()
    context.init(args=[], domain_id=domain)
    return Node("bare", context=context), context


def test_another_thread_wakes_the_loop(domain):
    node, context = bare(domain)
    loop = NodeLoop(node, [], StopFlag())

    def woken():
        loop.wait(0.02)
        return loop._wait_set.is_ready("guard_condition", 0)

    try:
        assert not woken()
        loop.wake()  # before the wait: it is not lost
        loop.wake()
        assert woken()
        assert not woken()  # and not kept
        thread = threading.Timer(0.05, loop.wake)
        thread.start()
        end = time.monotonic() + 20.0
        while not woken():
            assert time.monotonic() < end
        thread.join()
    finally:
        loop.close()
        node.destroy_node()
        context.try_shutdown()
    loop.wake()  # a thread that is late does no harm


def test_a_loop_that_looks_in_vain_sleeps_for_a_while():
    looking = Looking(True)
    assert not looking.pays  # nothing is known yet
    looking.slept(0.5 * loop_module.SOON)
    assert looking.pays
    for _ in range(100):  # one miss of twenty: the sender had something else to do
        for _ in range(19):
            looking.looked(in_time=True)
        looking.looked(in_time=False)
        assert not looking.pays
        looking.slept(0.5 * loop_module.SOON)
        assert looking.pays
    for _ in range(10):
        looking.looked(in_time=True)
    for _ in range(3):  # as where others use the processors
        looking.looked(in_time=False)
        looking.slept(0.5 * loop_module.SOON)
    assert not looking.pays
    for _ in range(Looking.REST - 1):
        assert not looking.pays
        looking.slept(0.5 * loop_module.SOON)
    assert looking.pays
    looking.slept(2.0 * loop_module.SOON)
    assert not looking.pays


def test_a_loop_that_must_not_look_always_sleeps():
    looking = Looking(False)
    looking.slept(0.0)
    assert not looking.pays


class CountingWaits:
    """A wait set that counts its waits."""

    def __init__(self, wait_set):
        self._wait_set, self.waits = wait_set, 0

    def __getattr__(self, name):
        return getattr(self._wait_set, name)

    def wait(self, timeout):
        self.waits += 1
        self._wait_set.wait(timeout)


@pytest.mark.parametrize("polls", [True, False])
def test_a_loop_that_polls_looks_for_messages_while_they_come_soon(domain, monkeypatch, polls):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(loop_module, "SOON", 0.2)  # so that no pause of this process is longer
    node, context = bare(domain)
    ping = HotSubscription(node, JointState, "ping", topics.STATE_INPUT_QOS)
    messages = []
    monkeypatch.setattr(ping, "_fetch", lambda: messages.pop() if messages else None)
    loop = NodeLoop(node, [ping], StopFlag(), polls=polls)
    loop._wait_set = wait_set = CountingWaits(loop._wait_set)
    try:
        messages = [b"first"]
        loop.wake()
        loop.wait(0.02)  # ended soon
        assert wait_set.waits == 1
        messages = [b"second", None, None]  # comes with the third look
        loop.wait(0.02)
        assert wait_set.waits == (1 if polls else 2)
        if polls:
            assert ping.take() == b"second"  # what was found is not lost
            assert ping.take() is None
        monkeypatch.setattr(loop_module, "SOON", 0.001)
        loop.wait(0.02)  # nothing comes: the loop blocks, and does so at once next time
        looks = []
        monkeypatch.setattr(ping, "has_come", lambda: looks.append(1))
        loop.wait(0.02)
        assert wait_set.waits == (3 if polls else 4)
        assert not looks
    finally:
        loop.close()
        node.destroy_node()
        context.try_shutdown()


def test_urgent_services_are_answered_without_waiting_for_the_others(domain, probe):
    node, context = bare(domain)
    called = []

    def note(name):
        return lambda _request, response: called.append(name) or response

    urgent = node.create_service(Trigger, "~/urgent", note("urgent"))
    node.create_service(Trigger, "~/other", note("other"))
    loop = NodeLoop(node, [], StopFlag(), urgent=[urgent], serve_period=3600.0)
    try:
        loop.serve()
        clients = [probe.node.create_client(Trigger, f"bare/{n}") for n in ("other", "urgent")]
        for client in clients:
            probe.until(client.service_is_ready, "the service")
            client.call_async(Trigger.Request())

        def looked():
            loop.wait(0.02)
            loop.serve()
            return called

        probe.until(looked, "the urgent call")
        assert called == ["urgent"]
    finally:
        loop.close()
        node.destroy_node()
        context.try_shutdown()


def test_an_error_is_logged_once_when_it_begins(echo, monkeypatch):
    class Log:
        def __init__(self):
            self.lines = []

        def error(self, text):
            self.lines.append(text)

    log = Log()
    monkeypatch.setattr(echo, "get_logger", lambda: log)
    diagnostics = Diagnostics(echo, "none", ("work", "play"))  # of nobody else
    work, play = diagnostics["work"], diagnostics["play"]
    for level, text in (
        (Level.WARN, "warm"),
        (Level.ERROR, "on fire at 451"),
        (Level.ERROR, "on fire at 452"),
    ):
        work.report(level, text)
        diagnostics.log_errors()
    assert log.lines == ["work: on fire at 451"]
    play.report(Level.ERROR, "over")
    diagnostics.log_errors()
    work.ok()
    diagnostics.log_errors()
    work.report(Level.ERROR, "on fire again")
    diagnostics.log_errors()
    assert log.lines[1:] == ["play: over", "work: on fire again"]


def test_diagnostics_come_regularly_and_at_once_on_change(echo, probe):
    probe.until(lambda: probe.status("echo: work"), "diagnostics")
    assert probe.status("echo: work").level == bytes([Level.OK])
    assert probe.status("echo: work").hardware_id == "none"
    probe.forget()
    echo.diagnostics["work"].report(Level.ERROR, "on fire", temperature=451.0)
    status = probe.until_status("echo: work", Level.ERROR, "on fire")
    assert [(v.key, v.value) for v in status.values] == [("temperature", "451")]
    assert probe.status("echo: play").level == bytes([Level.OK])
    assert echo.diagnostics.level == Level.ERROR
    probe.forget()
    stamps = probe.received[topics.DIAGNOSTICS]
    probe.until(lambda: len(stamps) >= 2, "two more without change")
    first, second = (m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in stamps[:2])
    assert 0.9 < second - first < 5.0
    assert echo.diagnostics["work"].ok()


def test_errors_are_described():
    assert describe(CardsError("ours")) == "ours"
    with pytest.raises(IndexError) as caught:
        [].pop()
    assert describe(caught.value).startswith("IndexError: pop from empty list (test_errors")


def test_stop_flag_outside_the_main_thread_leaves_signals_alone():
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: StopFlag().install())
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before


PROGRAM = textwrap.dedent("""
    import sys, time
    from rclpy.node import Node
    from cards_core.errors import CardsError
    from cards_ros.loop import NodeLoop, run

    class Simple(Node):
        def __init__(self, context, stop):
            super().__init__("simple", context=context)
            self.stop, self.loop = stop, NodeLoop(self, [], stop)
            if "refuse" in sys.argv:
                raise CardsError("parameter 'x' is wrong")
        def run(self):
            print("running", flush=True)
            if "fail" in sys.argv:
                raise CardsError("it failed")
            while not self.stop:
                self.loop.wait(0.02)
                self.loop.serve()
            self.get_logger().info("last words")
            return 0
        def close(self):
            print("closed", flush=True)
            self.loop.close()
            self.destroy_node()

    sys.exit(run(Simple, "simple", []))
""")


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_loop_in_order(domain, number):
    process = start()
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out == "closed\n"
    assert "last words" in err
    assert "Traceback" not in err


def test_a_doubled_ctrl_c_is_one(domain):
    process = start()
    assert process.stdout.readline() == "running\n"
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out == "closed\n"


def test_arguments_that_ros_refuses_end_with_one_line(domain, tmp_path):
    code = "import sys; from cards_ros.loop import run; sys.exit(run(None, 'thing'))"
    for arguments in (["--params-file", str(tmp_path / "no.yaml")], ["--nonsense"]):
        done = subprocess.run(
            [sys.executable, "-c", code, "--ros-args", *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 2
        assert "thing: ROS does not accept the arguments" in done.stderr
        assert arguments[-1] in done.stderr
        assert "Traceback" not in done.stderr


def test_exit_codes_and_messages(domain):
    for argument, code, text in (
        ("refuse", 2, "parameter 'x' is wrong"),
        ("fail", 1, "it failed"),
    ):
        process = start(argument)
        _, err = process.communicate(timeout=20)
        assert process.returncode == code
        assert text in err
        assert "Traceback" not in err
