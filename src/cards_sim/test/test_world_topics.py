"""Objects, contacts, wrenches and grasps of the embedded simulator, over topics."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from geometry_msgs.msg import WrenchStamped
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import MultiDOFJointState
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.spatial import quaternion_matrix
from cards_ros import topics
from cards_ros.testing import NodeThread
from cards_sim.simulator_node import SimulatorNode
from cards_sim.world_topics import read_grasped

pytestmark = pytest.mark.ros

BOX = "box::link"
MASS = 0.2  # [kg], of the box of worlds/table.sdf
HAND = "roboy_arm::lower_arm"


def table(domain, **parameters):
    """A box that stands on a shelf."""
    options = {"mode": "as_fast_as_possible", "wait_for_command": False} | parameters
    return NodeThread(SimulatorNode, domain, model="roboy_arm", world="table", **options)


def xyz(vector):
    return np.array([vector.x, vector.y, vector.z])


def wrench(body, **force):
    message = WrenchStamped()
    message.header.frame_id = body
    for axis, value in force.items():
        setattr(message.wrench.force, axis, value)
    return message


def parameters_of(probe, node="simulator"):
    remote = AsyncParameterClient(probe.node, node)
    probe.until(remote.services_are_ready, "the parameters")

    def change(**values):
        asked = [Parameter(k, value=v) for k, v in values.items()]
        done = remote.set_parameters(asked)
        try:
            probe.until(done.done, "the answer", 20.0)
        except TimeoutError:  # the node had not found this client when it answered
            done = remote.set_parameters(asked)
            probe.until(done.done, "the answer")
        return done.result().results[0]

    return change


def test_contacts_carry_the_box(domain, probe):
    """Their forces balance its weight, and every normal points from the shelf into it."""
    with table(domain) as thread:
        received = probe.listen(MultiDOFJointState, topics.CONTACTS)
        states = probe.listen(MultiDOFJointState, topics.OBJECT_STATES)
        probe.until(lambda: received and thread.node.steps > 500, "contacts")
        probe.forget()
        probe.until(lambda: received and states, "contacts")
    message = received[-1]
    assert message.header.frame_id == "world"
    rows = zip(message.joint_names, message.transforms, message.wrench, strict=True)
    # the arm, which nobody holds up, lies on the desk
    found = [(frame, item) for name, frame, item in rows if name == "desk::link/box::link"]
    force = sum(xyz(item.force) for _, item in found)
    np.testing.assert_allclose(force, [0.0, 0.0, 9.81 * MASS], atol=1e-3)
    for item, _ in found:
        q = item.rotation
        normal = quaternion_matrix([q.w, q.x, q.y, q.z])[:, 2]
        np.testing.assert_allclose(normal, [0.0, 0.0, 1.0], atol=1e-6)
        assert item.translation.z == pytest.approx(0.25, abs=1e-3)  # top of the shelf
    (name,) = states[-1].joint_names
    assert name == BOX
    np.testing.assert_allclose(
        xyz(states[-1].transforms[0].translation), [0.48, -0.45, 0.25], atol=2e-3
    )
    np.testing.assert_allclose(xyz(states[-1].wrench[0].force), force, atol=1e-3)


def test_contact_forces_of_links(domain, probe):
    """What `contacts` says of the arm, summed by link; moments about the link's origin."""
    with table(domain) as thread:
        forces = probe.listen(WrenchStamped, topics.CONTACT_FORCES)
        contacts = probe.listen(MultiDOFJointState, topics.CONTACTS)
        probe.until(lambda: forces and thread.node.steps > 2000, "forces on the arm")
        probe.forget()

        def both():
            stamps = {_stamp(message) for message in forces}
            return [m for m in contacts if _stamp(m) in stamps]

        probe.until(both, "forces and contacts of one instant")
    found = both()[-1]
    link = {m.header.frame_id: m for m in forces if _stamp(m) == _stamp(found)}
    assert set(link) == {"lower_arm"}
    total = np.zeros(3)
    for name, item in zip(found.joint_names, found.wrench, strict=True):
        first, second = name.split("/")
        if HAND in (first, second):
            total += (1.0 if second == HAND else -1.0) * xyz(item.force)
    np.testing.assert_allclose(xyz(link["lower_arm"].wrench.force), total, atol=1e-12)
    assert np.linalg.norm(total) > 1.0
    assert np.linalg.norm(xyz(link["lower_arm"].wrench.torque)) > 0.1


def _stamp(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


def test_nothing_is_computed_for_nobody(domain, probe, monkeypatch):
    with table(domain) as thread:
        world = thread.node.world.simulator
        monkeypatch.setattr(world, "velocity", lambda body: pytest.fail("asked for nothing"))
        probe.until(lambda: thread.node.steps > 300, "steps")


def test_a_wrench_is_in_world_axes_and_replaces_the_one_before(domain, probe):
    """A force that is told again and again is one force."""
    with table(domain, mode="realtime", wait_for_command=True) as thread:
        world = thread.node.world.simulator
        turned = [np.cos(0.4), 0.0, 0.0, np.sin(0.4)]  # about z by 0.8 rad
        for _ in range(5):
            probe.publish(wrench("box", x=1.0), topics.APPLY_WRENCH, topics.WRENCH_QOS)
        probe.until(lambda: world._pushes, "a wrench")
        world.data.body(BOX).xmat[:] = quaternion_matrix(turned).ravel()
        probe.publish(wrench("box", x=1.0, z=2.0), topics.APPLY_WRENCH, topics.WRENCH_QOS)
        probe.until(lambda: world._pushes[0].force[2], "another one")
        thread.stop()
    world.step()
    pushed = world.data.body(BOX).xfrc_applied
    np.testing.assert_allclose(pushed[:3], [1.0, 0.0, 2.0], atol=1e-12)
    for _ in range(100):
        world.step()
    assert not pushed.any()


def test_a_wrench_on_nobody_is_told(domain, probe):
    with table(domain) as thread:
        probe.publish(wrench("bxo", z=1.0), topics.APPLY_WRENCH, topics.WRENCH_QOS)
        probe.until(lambda: thread.node._world_topics.refusal, "a refusal")
        assert "'bxo'" in thread.node._world_topics.refusal
        assert "box" in thread.node._world_topics.refusal

        def shown():
            status = probe.status("simulator: world")
            values = {} if status is None else {v.key: v.value for v in status.values}
            return "'bxo'" in values.get("wrench_refused", "")

        probe.until(shown, "diagnostics")


def test_a_wrench_needs_a_body(domain, probe):
    """A robot alone has a model without a name, which is not meant by no name."""
    with NodeThread(SimulatorNode, domain, model="roboy_arm") as thread:
        probe.publish(wrench("", z=1.0), topics.APPLY_WRENCH, topics.WRENCH_QOS)
        probe.until(lambda: thread.node._world_topics.refusal, "a refusal")
        assert "frame_id is empty" in thread.node._world_topics.refusal
        probe.publish(wrench("lower_arm", z=1.0), topics.APPLY_WRENCH, topics.WRENCH_QOS)
        probe.until(lambda: not thread.node._world_topics.refusal, "a wrench")


def test_what_is_grasped_is_a_parameter(domain, probe):
    with table(domain) as thread:
        world, change = thread.node.world.simulator, parameters_of(probe)
        assert change(grasped=f"{HAND}/{BOX}").successful
        assert world.grasped == ((HAND, BOX),)
        refused = change(grasped=f"{HAND}/{BOX}, {HAND}/desk::link")
        assert not refused.successful
        assert "desk" in refused.reason
        assert "box::link" in refused.reason
        refused = change(grasped="box")
        assert "expected: LINK/BODY" in refused.reason
        assert world.grasped == ((HAND, BOX),)
        assert change(grasped="").successful
        assert world.grasped == ()
        assert change(grasped=f"{HAND}/box").successful
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        assert world.grasped == ()
        assert thread.node.parameters["grasped"] == ""


def test_what_is_grasped_at_the_start_is_so_after_a_reset(domain, probe):
    with table(domain, grasped=f"{HAND}/box") as thread:
        world, change = thread.node.world.simulator, parameters_of(probe)
        assert world.grasped == ((HAND, BOX),)
        assert change(grasped="").successful
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        assert world.grasped == ((HAND, BOX),)
        assert thread.node.parameters["grasped"] == f"{HAND}/box"


def test_the_list_of_grasps():
    assert read_grasped("") == []
    assert read_grasped("a::b/c , d/e::f") == [("a::b", "c"), ("d", "e::f")]
    assert read_grasped(" ") == []
    for text in ("a", "a/", "/b", ",", "a/b,", ",a/b", "a/b,,c/d"):
        with pytest.raises(CardsError, match="LINK/BODY"):
            read_grasped(text)
