"""The browser view of a run in one process: pages whose buttons act between two steps."""

import threading
import urllib.request

import numpy as np
import pytest

from cards_bringup.nodes.in_process import VIEW, InProcessRun
from cards_bringup.nodes.muscle_session import MuscleSession
from cards_bringup.nodes.plan import make_plan
from cards_core.errors import CardsError, UnknownNameError
from cards_core.loop.closed_loop import run_closed_loops
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.pacing import Pacer
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import own_parameters
from cards_core.trajectories.live import TARGET_SPEEDS
from cards_sim.build import build_simulation
from cards_viz.muscles.pushing import Push
from cards_viz.pages.page import free_port


class Run:
    """A robot, its controller and its page, stepped by hand."""

    def __init__(
        self, name="planar_2r", controller="ctc_joint", pacer=None, reference="wiggle", **given
    ):
        store = ParameterSet({"model": name, **given}, "simulator")
        self.simulation = build_simulation(store, lambda *_: store)
        (robot,) = self.simulation.robots
        self.host = robot.host
        self.control = self.parameters = None
        if controller:
            self.parameters = ParameterSet(
                {"model": name, "backend": "numeric", "reference": reference, "kp": 100.0},
                controller,
            )
            self.control = make_control_loop(controller, self.parameters)
        self.session = MuscleSession(self.simulation, pacer)
        self.url = self.session.open(robot, self.control, self.parameters, port=0)
        (self.page,) = self.session.pages
        self.step = self.session.stepping(self.simulation.world.step)

    def steps(self, count):
        for _ in range(count):
            if self.control is not None:
                self.host.submit(self.control.step(self.host.state))
            self.step()


@pytest.fixture
def made():
    runs = []

    def make(*arguments, **options):
        runs.append(Run(*arguments, **options))
        return runs[-1]

    yield make
    for run in runs:
        run.session.close()


def test_the_page_answers_and_shows_the_state(made):
    run = made()
    with urllib.request.urlopen(run.url, timeout=10.0) as answer:
        assert answer.status == 200
    run.steps(50)
    shown = run.page.snapshot()
    assert shown.time == pytest.approx(0.05)
    np.testing.assert_array_equal(shown.q, run.host.state.q)
    np.testing.assert_array_equal(shown.tensions, run.host.state.tensions)
    assert shown.controller == "ctc_joint"
    assert shown.names == ("joint_1", "joint_2")
    np.testing.assert_array_equal(shown.desired, run.control.controller.output.desired)
    np.testing.assert_array_equal(shown.actual, shown.q)
    assert shown.desired_position.shape == (3,)


def test_a_run_with_a_page_is_the_same_to_the_last_bit(made):
    run, other = made(), made()
    run.steps(200)
    for _ in range(200):
        other.host.submit(other.control.step(other.host.state))
        other.simulation.world.step()
    np.testing.assert_array_equal(run.host.state.q, other.host.state.q)


def test_pause_step_and_resume(made):
    run = made()
    run.steps(5)
    run.page.pause(True)
    worker = threading.Thread(target=lambda: run.steps(3), daemon=True)
    worker.start()  # one step, then it waits
    done = threading.Event()
    run.session.later(done.set)
    assert done.wait(10.0)
    assert run.host.stamp == 6_000_000
    assert run.page.snapshot().paused
    run.page.step()
    again = threading.Event()
    run.page.pause(True)
    run.session.later(again.set)
    assert again.wait(10.0)
    assert run.host.stamp == 7_000_000
    run.page.pause(False)
    worker.join(10.0)
    assert run.host.stamp == 8_000_000
    assert not run.page.snapshot().paused


def test_emergency_stop_and_release_by_reset(made):
    run = made()
    run.steps(20)
    run.page.estop(True)
    run.steps(1)
    assert run.page.snapshot().stopped
    with pytest.raises(CardsError):
        run.steps(1)  # commands are refused
    run.step()
    np.testing.assert_allclose(run.host.state.tensions, 10.0)  # the least of all cables
    run.page.estop(False)
    run.step()
    assert run.host.stamp == 0
    assert not run.page.snapshot().stopped
    run.steps(20)
    assert run.host.stamp == 20_000_000
    assert run.control.steps == 20


def test_gains_and_what_does_not_fit(made):
    run = made()
    run.page.set_gains([300.0, 200.0], [30.0, 20.0])
    run.steps(1)
    np.testing.assert_array_equal(run.control.controller.gains.kp, [300.0, 200.0])
    with pytest.raises(CardsError, match="kp"):
        run.page.set_gains([-1.0, 200.0], [30.0, 20.0])
    with pytest.raises(UnknownNameError, match="relaxation"):
        run.page.set_switch("relaxation", True)
    with pytest.raises(CardsError, match="as fast as it can"):
        run.page.set_speed(2.0)
    with pytest.raises(CardsError, match="ctc_joint commands the muscles"):
        run.page.set_command("cable_1", "force", 20.0)


def test_tensions_by_hand_without_a_controller(made):
    run = made(controller="")
    run.steps(1)
    run.page.set_command("cable_2", "force", 40.0)
    run.steps(3)
    np.testing.assert_allclose(run.host.state.tensions, [10.0, 40.0, 10.0, 10.0])
    with pytest.raises(UnknownNameError, match="cable_1"):
        run.page.set_command("rope", "force", 1.0)
    with pytest.raises(CardsError, match="no controller"):
        run.page.set_gains([1.0], [1.0])


def test_a_pushed_link_goes_to_the_cursor_and_comes_back(made):
    """The controller's stiffness and the spring's balance; afterwards nothing is left of it."""
    run = made()
    run.steps(300)
    names = [link.name for link in run.host.robot.links]
    row = names.index("link_2")

    def tip():
        pose = run.host.simulator.link_poses()[row]
        return pose[:3, :3] @ point + pose[:3, 3]

    point = np.array([0.0, 0.0, 0.3])
    before = tip()
    sideways = before + np.array([0.2, 0.0, 0.0])
    push = Push("link_2", point, sideways, 5.0, 0.5)
    run.page.push(push)
    run.steps(1)
    force = run.host.simulator.data.xfrc_applied.copy()
    run.steps(400)
    assert tip()[0] - before[0] > 1e-3
    run.page.push(None)
    run.steps(1)
    pushed = run.host.simulator.data.xfrc_applied - force
    assert np.abs(pushed).max() > 0.5  # that of the spring is gone
    run.steps(1500)
    free = made()
    free.steps(300 + 1 + 400 + 1 + 1500)
    np.testing.assert_allclose(run.host.state.q, free.host.state.q, atol=2e-3)


def test_gains_are_saved_in_the_parameter_file(made, tmp_path):
    run = made()
    with pytest.raises(CardsError, match="no parameter file"):
        run.page.save_gains()
    file = tmp_path / "robot.yaml"
    file.write_text("ctc_joint:\n  ros__parameters:\n    kp: 100.0  # by hand\n")
    run.session.parameter_file = file
    run.page.set_gains([250.0, 250.0], [30.0, 20.0])
    run.steps(1)
    run.page.save_gains()
    assert own_parameters(file, "ctc_joint") == {"kp": [250.0, 250.0], "kd": [30.0, 20.0]}
    assert "# by hand" in file.read_text()
    assert [one.suffix for one in sorted(tmp_path.iterdir())] == [".yaml", ".bak"]
    shared = tmp_path / "standard" / "robot.yaml"
    shared.parent.mkdir()
    shared.write_text(file.read_text())
    run.session.parameter_file = shared
    with pytest.raises(CardsError, match="all robots share it"):
        run.page.save_gains()


def test_a_target_is_reached_smoothly_and_held_until_a_reset(made):
    run = made()
    run.steps(200)
    names = run.host.robot.tree.position_names
    target = np.array([-0.3, 0.7])
    run.page.set_target(names, target)
    desired = []
    for _ in range(2500):
        run.steps(1)
        desired.append(run.control.controller.output.desired.copy())
    # speeds within that of targets, from the first step on (the reference moved at 1 mrad a step)
    assert np.abs(np.diff(desired, axis=0)).max() <= 1.05 * 0.001 * TARGET_SPEEDS["rad"]
    np.testing.assert_allclose(desired[-1], target, atol=1e-12)
    np.testing.assert_allclose(run.host.state.q, target, atol=2e-3)
    assert run.page.snapshot().desired == pytest.approx(target)
    # another on the way takes over where the first is
    run.page.set_target(names, -target)
    run.steps(300)
    before = run.control.controller.output.desired.copy()
    run.page.set_target(names, target)
    run.steps(2)
    assert np.abs(run.control.controller.output.desired - before).max() < 3e-3
    with pytest.raises(CardsError, match="no target set for x"):
        run.page.set_target(("x", "y"), target)
    run.page.reset()
    run.steps(2)
    wiggle = run.control.controller.output.desired.copy()
    free = made()
    free.steps(1)
    np.testing.assert_allclose(wiggle, free.control.controller.output.desired, atol=5e-3)


def test_a_target_of_the_hand(made):
    run = made("roboy_arm", "ctc_operational", reference="flower")
    run.steps(100)
    goal = run.control.controller.output.desired[:3] + np.array([0.0, 0.02, 0.02])
    run.page.set_target(("x", "y", "z"), goal)
    run.steps(800)
    np.testing.assert_allclose(run.control.controller.output.desired[:3], goal, atol=1e-12)


def test_a_reset_lets_go(made):
    run = made()
    run.page.push(Push("link_2", np.zeros(3), np.ones(3), 5.0, 0.5))
    run.steps(3)
    run.page.reset()
    run.steps(1)
    assert run.host.state.time == 0.0
    free = made()
    run.steps(50)
    free.steps(50)
    np.testing.assert_allclose(run.host.state.q, free.host.state.q, atol=1e-9)


def test_states_are_saved_and_restored(made):
    """With what was commanded by hand; time begins again, and the motion is the same."""
    run = made(controller="")
    run.steps(1)
    run.page.set_command("cable_2", "force", 40.0)
    run.steps(200)
    run.page.save("bent")
    run.steps(1)
    bent = run.host.state.q.copy()
    assert run.page.snapshot().saved == ("bent",)
    run.steps(100)
    after = run.host.state.q.copy()
    run.page.reset()
    run.steps(50)
    run.page.load("bent")
    run.step()  # takes the step before it serves the page
    assert run.host.state.time == 0.0
    np.testing.assert_array_equal(run.host.state.q, bent)
    run.steps(100)
    np.testing.assert_array_equal(run.host.state.q, after)
    assert np.abs(after - bent).max() > 1e-3
    run.page.delete("bent")
    run.steps(1)
    assert run.page.snapshot().saved == ()
    said = []
    run.page.page.notify = said.append
    for action in (run.page.load, run.page.delete):
        action("bent")
    run.page.save(" ")
    run.steps(1)
    assert ["bent" in text for text in said] == [True, True, False]
    assert run.host.state.time > 0.0, "a refusal changes nothing"


def test_a_controller_begins_its_reference_from_a_restored_state(made):
    run = made()
    run.steps(400)
    run.page.save("moved")
    run.steps(1)
    moved = run.host.state.q.copy()
    run.steps(600)
    run.page.load("moved")
    run.steps(1)
    np.testing.assert_array_equal(run.host.state.q, moved)
    run.steps(2000)
    assert np.abs(run.control.controller.output.error).max() < 2e-2


def test_the_speed_is_the_pacers(made):
    pacer = Pacer(0.001)
    run = made(pacer=pacer)
    run.page.set_speed(4.0)
    run.steps(1)
    assert pacer.interval == pytest.approx(0.00025)


def test_a_closed_loop_goes_on_after_a_reset(made):
    run = made()
    asked = []

    def on_step():
        run.step()
        if run.host.stamp == 30_000_000 and not asked:
            asked.append(True)
            run.page.reset()

    run_closed_loops([(run.host, run.control)], on_step, 0.05)
    assert asked
    assert run.host.stamp == 50_000_000
    assert run.control.steps == 50  # since the reset


def test_a_plan_with_a_view_opens_its_page(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(
        MuscleSession, "stepping", lambda session, step: opened.extend(session.pages) or step
    )
    given = {"simulator": "mujoco", "rviz": "false", "view": "true", "world": "table"}
    plan = make_plan({**given, "mode": "as_fast_as_possible"}, "roboy_arm")
    port = free_port("127.0.0.1", 0)
    overrides = {VIEW: {"port": port}, "simulator": {"log_dir": str(tmp_path)}}
    InProcessRun(plan, overrides, 0.01, tmp_path).run(lambda _time: None)
    (page,) = opened
    assert page.page.port == port
    assert "box" in " ".join(page.snapshot().bodies)
