"""Logs of nodes, and what others hear of them, have no link: they are readable by other users."""

import time

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile

from cards_ros.testing import start_process
from cards_viz.pages import access

pytestmark = pytest.mark.ros

TOKEN = "a-token-of-the-tests"


@pytest.mark.parametrize(
    ("module", "model"),
    [("cards_viz.muscles.view_node", "planar_2r"), ("cards_viz.rods.view_node", "stewart_6pfs")],
)
def test_no_log_has_the_link(probe, tmp_path, monkeypatch, module, model):
    session = tmp_path / "session"
    session.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(session))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "ros"))
    monkeypatch.setenv(access.VARIABLE, TOKEN)
    heard = []
    # transient local, as nodes publish it: what a node said before it was discovered comes, too
    qos = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    probe.node.create_subscription(Log, "/rosout", lambda log: heard.append(log.msg), qos)
    node = start_process(module, {"model": model, "port": 0})
    try:
        probe.until(lambda: any("link in" in text for text in heard), "where the link is")
        (file,) = (session / "cards").glob("cards-page-*/page-*")
        assert f"?token={TOKEN}\n" in file.read_text()
        assert any(str(file) in text for text in heard)
    finally:
        node.terminate()
        printed, _ = node.communicate(timeout=60.0)
    assert not file.exists()
    end = time.monotonic() + 30.0
    while not (logs := list((tmp_path / "ros").iterdir())) and time.monotonic() < end:
        time.sleep(0.02)
    texts = [printed, *heard, *(log.read_text() for log in logs)]
    assert sum("link in" in text for text in texts) >= 3  # terminal, topic, file
    for text in texts:
        assert TOKEN not in text
        assert access.spectator_token(TOKEN) not in text
