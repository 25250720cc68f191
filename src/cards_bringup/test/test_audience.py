"""When a run with a page begins, on invented clocks, and that its nodes obey."""

from functools import partial

import pytest

from cards_bringup.nodes.audience import Audience, Opening
from cards_core.errors import CardsError

PAGE = "http://127.0.0.1:8080"


def opening(pages=("browser_view",)):
    notes = []
    addresses = dict.fromkeys(pages, PAGE)
    audience = Audience(addresses, page_patience=10.0, view_patience=60.0)
    return Opening(audience, notes.append), notes


def test_a_run_begins_when_a_browser_shows_the_page():
    one, notes = opening()
    assert not one.look(100.0, {}, set())
    assert not one.up
    assert notes == []
    # the address is told when it answers, not before
    assert not one.look(103.0, {"browser_view": 0}, set())
    assert one.up
    assert notes[0] == f"watch at {PAGE}"
    assert "--no-wait" in notes[1]
    assert not one.look(112.9, {"browser_view": 0}, set())
    assert one.look(112.91, {"browser_view": 1}, set())
    assert len(notes) == 2


def test_nobody_has_to_look():
    one, _ = opening()
    one.look(100.0, {"browser_view": 0}, set())
    assert not one.look(110.0, {"browser_view": 0}, set())
    assert one.look(110.1, {"browser_view": 0}, set())


def test_of_several_pages_all_must_answer_and_one_be_open():
    one, notes = opening(("left_arm/browser_view", "right_arm/browser_view"))
    assert not one.look(100.0, {"left_arm/browser_view": 1}, set())
    assert not one.up
    watching = {"left_arm/browser_view": 1, "right_arm/browser_view": 0}
    assert one.look(101.0, watching, set())
    assert notes == [f"watch at {PAGE} (left_arm)", f"watch at {PAGE} (right_arm)"]


@pytest.mark.parametrize(("time", "gone"), [(100.1, {"browser_view"}), (160.1, set())])
def test_a_page_that_does_not_come_is_not_waited_for(time, gone):
    one, notes = opening()
    one.look(100.0, {}, set())
    assert one.look(time, {}, gone)
    assert notes == ["browser_view: no page; the run begins without it"]


@pytest.mark.ros
def test_controllers_are_enabled_and_told_to_the_pages(domain, probe):
    """The nodes of a run that waits: the controller answers nothing until it is enabled."""
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    from std_msgs.msg import Int32, String

    from cards_bringup.nodes.audience import AudienceTopics
    from cards_ros import topics
    from cards_ros.controller_node import ControllerNode
    from cards_ros.testing import NodeThread

    here = partial(ControllerNode, "ctc_joint")
    with NodeThread(here, domain, model="planar_2r", backend="numeric", autostart=False) as thread:
        audience = Audience({"browser_view": PAGE}, ["ctc_joint"])
        found = AudienceTopics(probe.node, audience)
        pages = probe.node.create_publisher(Int32, "browser_view/pages", topics.LATCHED_QOS)
        pages.publish(Int32(data=2))
        probe.until(lambda: found.watching == {"browser_view": 2}, "the number of pages")
        told = []
        probe.node.create_subscription(String, topics.RUN_STATE, told.append, topics.LATCHED_QOS)
        probe.until(lambda: found.enable(), "the controller is enabled")
        assert thread.node.enabled
        found.tell("finished: results in run")
        probe.until(lambda: told and told[-1].data == "finished: results in run", "the state")


class Refusal:
    success, message = False, "not enabled: the models differ"


def test_a_controller_that_refuses_ends_the_run():
    from cards_bringup.nodes.audience import AudienceTopics

    class Call:
        def done(self):
            return True

        def result(self):
            return Refusal

    found = AudienceTopics.__new__(AudienceTopics)
    found._clients = {"ctc_joint": None}
    found._calls = {"ctc_joint": Call()}
    with pytest.raises(CardsError, match="ctc_joint cannot begin: not enabled: the models differ"):
        found.enable()
