"""The page of a rod robot: what its controls command and say; one test in a real browser.

With ``CARDS_SCREENSHOTS=<folder>`` the pictures are kept for looking at.
"""

import io
import os
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rod_page_rate import ARGUMENTS, open_page, swing

from cards_core.errors import CardsError
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.tracker import Tracker
from cards_core.spatial import matrix_quaternion, matrix_rpy, rpy_matrix
from cards_viz.pages.states import next_name
from cards_viz.rods.interface import RodSnapshot
from cards_viz.rods.page import RodPage
from cards_viz.rods.panels import (
    WORDS,
    joint_axes,
    pose_axes,
    status_html,
    target_pose,
    wrench_axes,
)

pytestmark = pytest.mark.serial

POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


class Recorder:
    """Commands that only remember what was asked for."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *values: self.calls.append((name, *values))


@pytest.fixture(scope="module")
def robot():
    return read_rod_robot("stewart_gough")


@pytest.fixture(scope="module")
def solved(robot):
    solver = RodRobotSolver(robot)
    return solver, solver.igm(robot.home_pose)


def snapshot(solved, time=0.0, points=51, **changes):
    solver, solution = solved
    lines = solver.shapes(solution, points).table
    return RodSnapshot(time, np.array(solution.q), np.array(solution.pose), lines, **changes)


def target_values(robot, pose, q):
    """Return a pose (4, 4) and joint coordinates under the names that a target has."""
    names = [*POSE, *robot.joint_names]
    numbers = [*pose[:3, 3], *matrix_quaternion(pose[:3, :3]), *q]
    return dict(zip((f"target/{name}" for name in names), numbers, strict=True))


def until(condition, what, patience=20.0):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"waited {patience} s for {what}"
        time.sleep(0.02)


def move(group, index, value):
    """Do what a user's hand does: the value comes with an event of a client."""
    group.sliders[index].value = value
    group._moved(index, by_user=True)


def test_sliders_reach_from_limit_to_limit(robot):
    axes = joint_axes(robot)
    assert [axis.lower for axis in axes] == pytest.approx(robot.q_lower)
    assert [axis.upper for axis in axes] == pytest.approx(robot.q_upper)
    assert [(axis.low, axis.high) for axis in axes] == 6 * [(200.0, 800.0)]
    assert [axis.label.split()[0] for axis in pose_axes(robot)] == [
        "x", "y", "z", "roll", "pitch", "yaw",
    ]  # fmt: skip
    assert len(wrench_axes(robot)) == 6
    # in the plane there are three; an angle is in degrees; a fixed base has no slider
    planar = read_rod_robot("planar_rfr_fr")
    assert [axis.label.split()[0] for axis in pose_axes(planar)] == ["x", "y", "yaw"]
    assert [axis.label.split()[0] for axis in wrench_axes(planar)] == ["fx", "fy", "mz"]
    assert [axis.label.split()[-1] for axis in joint_axes(planar)] == ["[°]", "[°]", "[mm]"]
    # what fewer joints than coordinates cannot prescribe only follows
    few = read_rod_robot("spatial_3pfr")
    assert {axis.label.split()[0] for axis in pose_axes(few) if not axis.fixed} == {
        {"x": "x", "y": "y", "z": "z", "rx": "roll", "ry": "pitch", "rz": "yaw"}[name]
        for name in few.controlled
    }


def test_a_slider_changes_its_own_entry_only(robot, solved):
    commands = Recorder()
    with RodPage(robot, commands, port=0) as page:
        shown = snapshot(solved)
        page.show(shown)
        until(lambda: page.settled, "an update")
        move(page._joints.group, 2, 412.3)
        ((name, q),) = commands.calls
        assert name == "joints"
        # the others keep their value to the last digit, not that of the rounded slider
        assert q == pytest.approx([*shown.q[:2], 0.4123, *shown.q[3:]], abs=1e-15)
        commands.calls.clear()
        move(page._pose.group, 5, 10.0)
        ((name, pose),) = commands.calls
        assert name == "pose"
        assert pose[:3, 3] == pytest.approx(shown.pose[:3, 3], abs=1e-15)
        assert matrix_rpy(pose[:3, :3]) == pytest.approx([0.0, 0.0, np.radians(10.0)])
        commands.calls.clear()
        move(page._wrench.group, 2, -3.0)
        ((name, wrench, frame),) = commands.calls
        assert (name, frame) == ("wrench", "world")
        assert wrench == pytest.approx([0.0, 0.0, -3.0, 0.0, 0.0, 0.0])
        # what the page itself sets is no command
        commands.calls.clear()
        page._joints.group._moved(0, by_user=False)
        assert commands.calls == []


def test_sliders_and_gizmo_follow_the_robot_or_its_target(robot, solved):
    shown = snapshot(solved)
    turn = rpy_matrix(0.1, 0.2, 0.3)
    target = np.eye(4)
    target[:3, :3], target[:3, 3] = turn, (0.01, 0.02, 0.43)
    values = target_values(robot, target, np.full(6, 0.5))
    told = snapshot(solved, values=values, mode="igm")
    assert target_pose(told)[:3, :3] == pytest.approx(turn)
    assert target_pose(shown) is shown.pose
    with RodPage(robot, Recorder(), port=0) as page:
        page._draw_texts()  # nothing yet, and no harm
        page.show(told)
        until(lambda: page.settled, "an update")
        assert [s.value for s in page._pose.group.sliders[:3]] == [10.0, 20.0, 430.0]
        assert page._joints.group.sliders[0].value == pytest.approx(1e3 * shown.q[0], abs=0.05)
        page.show(snapshot(solved, values=values, mode="dgm"))
        until(lambda: page.settled, "an update")
        assert page._joints.group.sliders[0].value == 500.0
        until(lambda: abs(page._nodes.gizmo_pose()[2, 3] - shown.pose[2, 3]) < 1e-4, "the gizmo")


def test_another_number_of_points_and_nothing_to_draw(robot, solved):
    with RodPage(robot, Recorder(), port=0) as page:
        for points in (51, 9, 30):
            page.show(snapshot(solved, points=points))
            until(lambda: page.settled, "an update")
            count = len(page._nodes._tubes.batched_positions)
            assert count == robot.n_limbs * min(points - 1, 20)
        broken = snapshot(solved, time=1.0, status=RodStatus.NOT_CONVERGED)
        broken.lines[0, 0, 0] = np.nan
        page.show(broken)
        until(lambda: page.settled, "an update")
        assert "No equilibrium found" in page._status.content


def test_words_for_every_status_and_what_is_missing(solved):
    assert set(WORDS) == set(RodStatus)
    said = status_html(
        snapshot(
            solved,
            status=RodStatus.UNREACHABLE,
            held=True,
            limb="limb_3",
            missing=0.0123,
            message="limb 'limb_3' <lacks> 12.3 mm",
            values={"min_eigenvalue": 5.0, "start_eigenvalue": 100.0, "solve_us": 42.0},
        )
    )
    for text in ("Cannot be reached: stopped here", "limb_3: 12.3 mm missing", "&lt;lacks&gt;"):
        assert text in said
    assert "5 % of the start" in said
    assert "42 µs" in said
    # what a turning joint lacks may be an angle
    turning = snapshot(solved, status=RodStatus.LIMIT, limb="limb_3", missing=0.0123)
    assert "mm missing" not in status_html(turning, frozenset({"limb_3"}))
    assert "Waiting for the node" in status_html(snapshot(solved, alive=False))


def test_states_and_buttons(robot, solved):
    commands = Recorder()
    with RodPage(robot, commands, port=0) as page:
        page.show(snapshot(solved, states=("up", "down")))
        until(lambda: page.settled, "an update")
        panel = page._states
        assert panel._choice.options == ("up", "down")
        assert (panel._choice.value, panel._load.disabled) == ("down", False)
        page.show(snapshot(solved, status=RodStatus.BRANCH_CHANGED))
        until(lambda: page.settled, "an update")
        assert panel._load.disabled
        assert page._run_panel._back.visible
    names = [next_name(name) for name in ("a", "a 2", "9", "x 1 b")]
    assert names == ["a 2", "a 3", "9 2", "x 1 b 2"]


def test_a_refusal_is_told(robot):
    class Refusing(Recorder):
        def joints(self, q):
            raise CardsError("limb_1 = 900 mm is above 800 mm")

    with RodPage(robot, Refusing(), port=0) as page:
        told = []
        page.notify = told.append
        # the panels were built with the page's own `notify`: a client would see it
        client = SimpleNamespace(add_notification=lambda title, text, **_: told.append(text))
        page.server.get_clients = lambda: {0: client}
        move(page._joints.group, 0, 800.0)
        assert told == ["limb_1 = 900 mm is above 800 mm"]


class Solving(Recorder):
    """Commands that a tracker carries out, in a thread of its own."""

    def __init__(self, robot):
        super().__init__()
        self.tracker = Tracker(robot)
        self.result = self.tracker.start()
        self.page = None
        self.mode = "dgm"
        self.target_pose, self.target_q = robot.home_pose, robot.home_q
        self._todo = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def joints(self, q):
        self.mode, self.target_q = "dgm", q
        self._todo = lambda: self.tracker.command_joints(q)

    def pose(self, pose):
        self.mode, self.target_pose = "igm", pose
        self._todo = lambda: self.tracker.command_pose(pose)

    def _run(self):
        begin = time.monotonic()
        while not self._stop.wait(0.012):
            todo, self._todo = self._todo, None
            if todo is not None:
                todo()
            self.result = result = self.tracker.step()
            if self.page is None:
                continue
            finding = result.findings[0] if result.findings else None
            values = {
                "min_eigenvalue": result.min_eigenvalue,
                "start_eigenvalue": result.reference_eigenvalue,
                **target_values(self.tracker.robot, self.target_pose, self.target_q),
            }
            self.page.show(
                RodSnapshot(
                    time.monotonic() - begin,
                    np.array(result.solution.q),
                    np.array(result.solution.pose),
                    self.tracker.solver.shapes(result.solution, 51).table,
                    values,
                    status=result.status,
                    message=result.message,
                    held=result.held,
                    mode=self.mode,
                    limb=None
                    if finding is None or finding.limb is None
                    else self.tracker.robot.limbs[finding.limb].name,
                    missing=None if finding is None else finding.missing,
                )
            )

    def stop(self):
        self._stop.set()
        self._thread.join()


def near(picture, rgb, tolerance=60.0):
    return int((np.abs(picture - np.asarray(rgb, dtype=float)).max(axis=-1) < tolerance).sum())


@pytest.mark.browser
def test_dragged_sliders_move_the_rods_in_a_browser(robot):
    """The rate is printed, not judged: it is that of this machine (rod_page_rate.py)."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    image = pytest.importorskip("PIL.Image")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        pytest.skip("needs chromium (Debian and Ubuntu: apt install chromium)")
    commands = Solving(robot)
    with playwright.sync_playwright() as driver, RodPage(robot, commands, port=0) as view:
        commands.page = view
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        errors = []
        try:
            page = open_page(browser, view.url, (1100, 520))
            page.on("pageerror", lambda error: errors.append(str(error)))

            def picture(name):
                page.wait_for_timeout(500)
                data = page.screenshot(timeout=120e3)
                if folder := os.environ.get("CARDS_SCREENSHOTS"):
                    (Path(folder) / f"{name}.png").write_bytes(data)
                rgb = np.asarray(image.open(io.BytesIO(data)).convert("RGB")).astype(float)
                return rgb[:, 340:750]

            start = commands.result.solution.q[0]
            plain = picture("rods")
            counted = swing(page, "limb_1 [mm]", 1.5)
            print("\n", counted)
            assert counted["redraws"] > 0.0
            assert commands.result.solution.q[0] != start
            row = page.locator("label", has_text="roll [°]")
            field = row.locator("xpath=ancestor::div[.//input][1]").locator("input").last

            def shown():
                roll = matrix_rpy(commands.result.solution.pose[:3, :3])[0]
                return abs(float(field.input_value()) - np.degrees(roll)) < 0.06

            # fields follow the robot while it moves, whatever somebody types there
            page.wait_for_timeout(1000)
            until(lambda: commands.result.arrived and shown(), "rest, on the page too", 60.0)

            def told():
                """Type a pose, again if the last movement came late and took the field over."""
                field.fill("60")
                field.press("Enter")
                page.wait_for_timeout(500)
                roll = matrix_rpy(commands.target_pose[:3, :3])[0]
                return commands.mode == "igm" and np.degrees(roll) == pytest.approx(60.0)

            # a pose that the sliders reach and the robot does not: it says so, and rods turn red
            until(told, "the command", 60.0)
            until(lambda: commands.result.held, "the limit", 60.0)
            page.get_by_text("stopped here").wait_for()
            alarmed = picture("alarm")
            assert near(alarmed, (200, 30, 30)) > 5 * near(plain, (200, 30, 30)) + 100
            assert errors == []
            rods = near(plain, (90, 0, 150)) + near(plain, (180, 50, 130))
            assert rods > 300, "coloured rods"
            assert near(plain, (64, 69, 77), 25.0) > 2000, "the base"
        finally:
            commands.page = None
            commands.stop()
            browser.close()
