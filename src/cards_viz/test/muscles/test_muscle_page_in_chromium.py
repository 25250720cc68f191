"""The page in a real browser: headless Chromium with software rendering, so everything is slow.

With ``CARDS_SCREENSHOTS=<folder>`` the pictures are kept for looking at.
"""

import io
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cards_core.errors import CardsError
from cards_viz.colors import colors
from cards_viz.muscles.interface import MuscleSnapshot, Switch
from cards_viz.muscles.page import MusclePage
from cards_viz.pages.widgets import TOUCHED

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
PATIENCE = 120.0  # [s], for a page that two busy cores render in software


class Recorder:
    """Commands that only remember what was asked for."""

    def __init__(self):
        self.calls = []
        self.refuse = False

    def _note(self, *call):
        if self.refuse:
            raise CardsError("tension 7000 N of 'cable_1' is above 100 N")
        self.calls.append(call)

    def pause(self, paused):
        self._note("pause", paused)

    def step(self):
        self._note("step")

    def reset(self):
        self._note("reset")

    def estop(self, active):
        self._note("estop", active)

    def set_command(self, name, kind, value):
        self._note("set_command", name, kind, value)

    def push(self, push):
        self._note("push", push)

    def set_gains(self, kp, kd):
        self._note("set_gains", kp, kd)

    def set_target(self, names, target):
        self._note("set_target", names, target)

    def save_gains(self):
        self._note("save_gains")

    def set_switch(self, name, on):
        self._note("set_switch", name, on)

    def set_speed(self, factor):
        self._note("set_speed", factor)

    def save(self, name):
        self._note("save", name)

    def load(self, name):
        self._note("load", name)

    def delete(self, name):
        self._note("delete", name)


def wait_for(condition, what, timeout=PATIENCE):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout} s for {what}"
        time.sleep(0.02)


class Opened:
    """A view, its page and what the page said."""

    def __init__(self, view, commands, page):
        self.view = view
        self.commands = commands
        self.page = page
        self.messages = []
        self.errors = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _console(self, message):
        self.messages.append(message.text)
        if message.type == "error":
            self.errors.append(message.text)

    def draw(self, snapshot):
        """Show a snapshot and wait until the view has sent it."""
        self.view.show(snapshot)
        wait_for(lambda: self.view.settled, "an update")

    def picture(self, name):
        """Return the rendered page as RGB."""
        # an answer from the page means that it has worked off everything before the question
        for client in self.view.server.get_clients().values():
            client.local_storage.get_item("test", timeout=PATIENCE)
        self._frames(2)
        # viser fades the canvas in over its first frames
        self.page.wait_for_function(
            "getComputedStyle(document.querySelector('canvas')).opacity === '1'",
            timeout=1e3 * PATIENCE,
        )
        self._frames(2)
        data = self.page.screenshot(timeout=1e3 * PATIENCE)
        if folder := os.environ.get("CARDS_SCREENSHOTS"):
            (Path(folder) / f"{name}.png").write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(float)

    def _frames(self, count):
        """Wait until the page has rendered some frames."""
        self.page.evaluate(
            """count => new Promise(done => {
                const next = () => count-- > 0 ? requestAnimationFrame(next) : done();
                next();
            })""",
            count,
        )

    def fitted(self):
        """Whether the camera has been placed for the canvas as it is."""
        box = self.page.locator("canvas").first.bounding_box()
        shape = box["width"] / box["height"]
        return all(abs(fit / shape - 1.0) < 0.03 for fit in self.view._fitted.values())

    def canvas(self, picture):
        """Cut the 3-D view out of a picture."""
        box = self.page.locator("canvas").first.bounding_box()
        x, y, w, h = (round(box[key]) for key in ("x", "y", "width", "height"))
        return picture[y : y + h, x : x + w]


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        pytest.skip("needs chromium (Debian and Ubuntu: apt install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def open_page(chromium, view, commands, height=720):
    page = chromium.new_page(viewport={"width": 1400, "height": height}, has_touch=True)
    page.set_default_timeout(1e3 * PATIENCE)
    opened = Opened(view, commands, page)
    page.goto(view.url)
    page.wait_for_selector("canvas")
    wait_for(lambda: view.server.get_clients(), "the page to connect")
    # "Software WebGL rendering detected": true here, and in the way
    page.locator(".mantine-Notification-closeButton").first.click(force=True)
    return opened


@pytest.fixture(scope="module")
def opened(chromium, planar_2r):
    commands = Recorder()
    with MusclePage(planar_2r, commands, port=0) as view:
        view.show(snapshot())
        yield open_page(chromium, view, commands)


def snapshot(time=0.0, tension=40.0, **changes):
    return MuscleSnapshot(time, np.array([0.3, -0.5]), np.full(4, tension), **changes)


def tracking(time=1.0, **changes):
    q = np.array([0.3, -0.5])
    return snapshot(
        time,
        names=("joint_1", "joint_2"),
        units=("rad", "rad"),
        desired=q + 0.01,
        actual=q,
        error=np.array([0.01, 0.01]),
        controller="ctc_joint",
        **changes,
    )


def near(picture, rgb, tolerance=45.0):
    """Number of pixels whose colour is near ``rgb`` (tone mapping shifts colours somewhat)."""
    return int((np.abs(picture - np.asarray(rgb, dtype=float)).max(axis=-1) < tolerance).sum())


def test_arm_with_eleven_muscles_and_update_rate(chromium, arm):
    """Streams a moving arm; the rate is reported, not judged: it is that of this machine.

    It comes first because it has a page of its own: two open ones slow each other down.
    """
    commands = Recorder()
    with MusclePage(arm, commands, port=0) as view:
        opened = open_page(chromium, view, commands)
        stop = threading.Event()

        def stream():
            begin = time.monotonic()
            scene = view.scene
            while not stop.is_set():
                t = time.monotonic() - begin
                q = scene.tree.home + 0.25 * np.sin(0.9 * t + np.arange(4))
                here = scene.end_effector(scene.link_poses(q))
                error = 1e-3 * np.array([np.sin(9 * t), np.cos(7 * t), np.sin(5 * t)])
                view.show(
                    MuscleSnapshot(
                        t,
                        q,
                        60.0 + 50.0 * np.sin(1.3 * t + np.arange(11)),
                        names=("x", "y", "z"),
                        desired=here + error,
                        actual=here,
                        units=("m", "m", "m"),
                        error=error,
                        desired_position=here + error,
                        controller="ctc_operational",
                        real_time_factor=1.0,
                        control_rate=1000.0,
                    )
                )
                time.sleep(0.01)

        opened.page.evaluate(
            """() => {
                window.frames_seen = 0;
                const count = () => { window.frames_seen += 1; requestAnimationFrame(count); };
                requestAnimationFrame(count);
            }"""
        )
        thread = threading.Thread(target=stream)
        before, begin = view.updates, time.monotonic()
        thread.start()
        time.sleep(3.0)
        stop.set()
        thread.join()
        duration = time.monotonic() - begin
        sent = view.updates - before
        frames = opened.page.evaluate("window.frames_seen")
        print(
            f"\n{sent / duration:.1f} updates/s sent, {frames / duration:.1f} frames/s in software"
        )
        assert sent >= 1
        picture = opened.picture("arm")
        canvas = opened.canvas(picture)
        # the robot is in the middle although the panels came after the page had connected
        wide = opened.page.locator("canvas").first.bounding_box()
        (fitted,) = view._fitted.values()
        assert fitted == pytest.approx(wide["width"] / wide["height"], rel=0.05)
        # the path of the hand, in its blue
        assert near(canvas, (0, 95, 178), 40.0) > 100
        assert opened.errors == []
        opened.page.close()


def test_wrapped_muscles_surfaces_and_states(chromium, wrap_arm):
    """The translucent surfaces come and go with their box; states stand in a table."""
    with MusclePage(wrap_arm, Recorder(), port=0) as view:
        opened = open_page(chromium, view, None, height=420)  # a small picture is a fast one
        states = {"extensor/activation": 0.31, "ring/pressure": 2.1e5}
        q, tensions = np.array([0.3, -1.2]), np.array([30.0, 60.0, 90.0, 120.0])
        opened.draw(MuscleSnapshot(0.0, q, tensions, states))
        opened.page.get_by_role("tab", name="Muscles").click()
        opened.page.get_by_text("210.00").wait_for()
        assert opened.page.get_by_text("pressure").count() == 2  # slider and state
        opened.page.get_by_role("tab", name="View").click()
        shown = opened.canvas(opened.picture("wrap_surfaces"))
        opened.page.get_by_label("Wrap surfaces").uncheck()
        wait_for(lambda: not view._nodes._surfaces[0].visible, "the box")
        hidden = opened.canvas(opened.picture("no_wrap_surfaces"))
        # light blue: the blue channel stands out from the white ground
        blue = lambda picture: int((picture[..., 2] - picture[..., 0] > 12.0).sum())  # noqa: E731
        assert blue(shown) > blue(hidden) + 1500
        # the arc over the elbow has the colour of its muscle, with and without the surface
        color = view.scale.colors(tensions)[0]
        assert near(hidden, color) > 50
        assert opened.errors == []
        opened.page.close()


def test_a_page_that_computes_its_pictures_is_plain(opened):
    """No antialiasing and a lattice for a ground: this browser has no graphics processor."""
    assert opened.view.in_software
    smooth = opened.page.evaluate(
        """[...document.querySelectorAll('canvas')].map(canvas => canvas.getContext('webgl2'))
            .filter(gl => gl?.drawingBufferWidth > 1)
            .map(gl => gl.getContextAttributes().antialias)"""
    )
    assert smooth == [False]
    (lattice,) = opened.view._nodes.ground._lattices.values()
    opened.draw(snapshot(0.0))
    opened.page.get_by_role("tab", name="View").click()
    shown = opened.canvas(opened.picture("lattice"))
    opened.page.get_by_label("Ground").click()
    wait_for(lambda: not lattice.visible, "the box")
    hidden = opened.canvas(opened.picture("no_lattice"))
    opened.page.get_by_label("Ground").click()
    wait_for(lambda: lattice.visible, "the box")
    opened.page.get_by_role("tab", name="Run").click()
    white = lambda picture: int((picture.min(axis=-1) > 250.0).sum())  # noqa: E731
    assert white(hidden) > white(shown) + 2000


def test_robot_muscles_and_plots_are_on_the_page(opened, planar_2r):
    names = set(opened.view.server.scene._handle_from_node_name)
    assert {"/robot/lower/bone", "/robot/upper/bone", "/muscles/paths", "/muscles/forces"} <= names
    for k in range(60):
        opened.view.show(tracking(0.1 * k))
        time.sleep(0.03)
    opened.draw(tracking(6.0))
    page = opened.page
    page.get_by_text("Tracking error [mrad]").wait_for()
    page.get_by_text("running").wait_for()
    page.get_by_text("10 mrad").wait_for()
    wait_for(opened.fitted, "the camera")
    picture = opened.picture("tracking")
    canvas = opened.canvas(picture)
    # muscles are the only saturated colours: they span the robot's 3 m by 1.8 m
    rows, columns = np.nonzero(np.ptp(canvas, axis=2) > 90.0)
    height, width = canvas.shape[:2]
    assert 0.6 * width < np.ptp(columns) < 0.95 * width, "the robot fills the view"
    assert 0.2 * height < np.ptp(rows) < 0.95 * height
    assert abs(columns.min() + columns.max() - width) < 0.15 * width, "in the middle"
    # grey links: about 1100 pixels, fewer where the page drew its last picture coarsely
    assert near(canvas, (190, 190, 190), 30.0) > 500
    # live plots: each has lines in its own colours, left of the canvas
    box = page.locator("canvas").first.bounding_box()
    panel = picture[:, : int(box["x"]) or 380]
    assert near(panel, (0x1F, 0x5F, 0xA8), 30.0) > 100
    assert near(panel, (0xE0, 0x7B, 0x1A), 30.0) > 100


def test_muscles_have_the_colour_of_their_tension(opened):
    opened.view.scale.high = 100.0
    found = {}
    for tension in (5.0, 60.0, 100.0):
        opened.draw(snapshot(2.0, tension))
        canvas = opened.canvas(opened.picture(f"tension_{tension:g}"))
        found[tension] = [near(canvas, colors(np.array(t / 100.0))) for t in found or (tension,)]
        own = near(canvas, colors(np.array(tension / 100.0)))
        others = [
            near(canvas, colors(np.array(t / 100.0))) for t in (5.0, 60.0, 100.0) if t != tension
        ]
        assert own > 300, f"{tension} N: {own} pixels in its colour"
        assert own > 5 * max(others), f"{tension} N: {own} pixels against {others}"


def test_force_arrows_appear(opened):
    page = opened.page
    opened.draw(snapshot(3.0, 80.0))
    before = near(opened.canvas(opened.picture("arrows_off")), (60, 190, 140), 60.0)
    page.get_by_role("tab", name="View").click()
    page.get_by_label("Force arrows").click()
    wait_for(
        lambda: opened.view.server.scene._handle_from_node_name["/muscles/forces"].visible,
        "the check box",
    )
    opened.draw(snapshot(3.1, 80.0))
    after = near(opened.canvas(opened.picture("arrows_on")), (60, 190, 140), 60.0)
    page.get_by_label("Force arrows").click()
    assert after > before + 200


def test_buttons(opened):
    page, commands = opened.page, opened.commands
    page.get_by_role("tab", name="Run").click()
    commands.calls.clear()
    opened.draw(snapshot(4.0))
    page.get_by_role("button", name="Pause").click()
    wait_for(lambda: ("pause", True) in commands.calls, "pause")
    # the button changes when the host says that it is paused
    opened.draw(snapshot(4.0, paused=True))
    page.get_by_role("button", name="Step").click()
    wait_for(lambda: ("step",) in commands.calls, "step")
    page.get_by_role("button", name="Continue").click()
    wait_for(lambda: ("pause", False) in commands.calls, "continue")
    opened.draw(snapshot(4.1))
    page.get_by_role("button", name="Reset").click()
    wait_for(lambda: ("reset",) in commands.calls, "reset")
    page.get_by_role("button", name="Emergency stop").click()
    wait_for(lambda: ("estop", True) in commands.calls, "estop")
    # as long as the host does not confirm, another click asks for it again
    page.get_by_role("button", name="Emergency stop").click()
    wait_for(lambda: commands.calls.count(("estop", True)) == 2, "estop again")
    opened.draw(snapshot(4.2, stopped=True))
    page.get_by_text("EMERGENCY STOP").wait_for()
    page.get_by_role("button", name="Release stop").click()
    wait_for(lambda: ("estop", False) in commands.calls, "release")
    opened.draw(snapshot(4.3))


def test_states(opened):
    """Saved by name, listed when the host has them, restored; grey with the reason without."""
    page, commands = opened.page, opened.commands
    page.get_by_role("tab", name="States").click()
    commands.calls.clear()
    field = page.locator("input[value='state 1']")
    field.fill("bent")
    wait_for(lambda: opened.view._states._name.value == "bent", "the name")
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: ("save", "bent") in commands.calls, "save")
    wait_for(lambda: opened.view._states._name.value == "bent 2", "the next name")
    assert page.get_by_role("button", name="Restore").is_disabled()
    opened.draw(snapshot(4.4, saved=("bent",)))
    page.get_by_role("button", name="Restore").click()
    wait_for(lambda: ("load", "bent") in commands.calls, "restore")
    page.get_by_role("button", name="Delete").click()
    wait_for(lambda: ("delete", "bent") in commands.calls, "delete")
    opened.draw(snapshot(4.5, not_saved="States are kept elsewhere"))
    page.get_by_text("States are kept elsewhere").wait_for()
    for name in ("Save", "Restore", "Delete"):
        assert page.get_by_role("button", name=name, exact=True).is_disabled()
    page.get_by_role("tab", name="Run").click()
    opened.draw(snapshot(4.6))


def slider_input(page, label):
    """The number field beside a slider."""
    row = page.locator("label", has_text=label).locator("xpath=ancestor::div[.//input][1]")
    return row.locator("input").last


def test_tension_sliders_command_only_without_a_controller(opened):
    page, commands = opened.page, opened.commands
    opened.draw(snapshot(5.0))
    page.get_by_role("tab", name="Muscles").click()
    commands.calls.clear()
    field = slider_input(page, "cable_2")
    field.fill("73.5")
    field.press("Enter")
    wait_for(lambda: ("set_command", "cable_2", "force", 73.5) in commands.calls, "set_command")
    commands.calls.clear()
    opened.draw(tracking(5.1))
    page.get_by_text("commanded by").wait_for()
    page.locator("[role=slider][aria-disabled=true]").nth(3).wait_for(state="attached")
    # the sliders now show what the controller commands
    wait_for(lambda: float(field.input_value()) == 40.0, "the commanded value")
    # viser lets the number beside a disabled slider be typed over: that must command nothing
    field.fill("60")
    field.press("Enter")
    slider = opened.view._muscle_panel._sliders[1]
    wait_for(lambda: slider.value == 60.0, "the typed value")
    opened.draw(tracking(5.2))
    wait_for(lambda: float(field.input_value()) == 40.0, "the commanded value again")
    assert commands.calls == []


def on_page(opened, point):
    """Where a point in space is on the page, [px]."""
    (client,) = opened.view.server.get_clients().values()
    camera = client.camera
    box = opened.page.locator("canvas").first.bounding_box()
    forward = camera.look_at - camera.position
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    away = point - camera.position
    scale = 0.5 * box["height"] / np.tan(0.5 * camera.fov) / (away @ forward)
    x = box["x"] + 0.5 * box["width"] + scale * (away @ right)
    y = box["y"] + 0.5 * box["height"] - scale * (away @ np.cross(right, forward))
    return float(x), float(y)


def middle_of_upper(opened):
    """Middle of the upper link as it is drawn."""
    view = opened.view
    place = [link.name for link in view.robot.links].index("upper")
    shapes = [shape for shape in view.scene.shapes if shape.link == place]
    points = np.concatenate([shape.pose.apply(shape.vertices) for shape in shapes])
    pose = view._frame.link_poses[place]
    return pose[:3, :3] @ (0.5 * (points.min(axis=0) + points.max(axis=0))) + pose[:3, 3]


def mouse(opened):
    """Return what presses, moves and releases the mouse, as a hand does: not all in one frame."""
    hand = opened.page.mouse

    def press(x, y):
        hand.move(x - 3, y)
        opened._frames(2)
        hand.move(x, y)
        opened._frames(2)
        hand.down()

    return press, hand.move, hand.up


def finger(opened):
    """The same for a finger."""
    channel = opened.page.context.new_cdp_session(opened.page)

    def send(kind, *points):
        touched = [{"x": x, "y": y} for x, y in points]
        channel.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})

    return (
        lambda x, y: send("touchStart", (x, y)),
        lambda x, y: send("touchMove", (x, y)),
        lambda: send("touchEnd"),
    )


@pytest.mark.parametrize("hand", [mouse, finger])
def test_dragging_a_link_pushes_it(opened, hand):
    page, commands = opened.page, opened.commands
    page.get_by_role("tab", name="Run").click()
    opened.draw(snapshot(5.5))
    opened.picture("before_push")
    wait_for(opened.fitted, "the camera")
    commands.calls.clear()
    middle = middle_of_upper(opened)
    x, y = on_page(opened, middle)
    press, move, release = hand(opened)
    press(x, y)
    for way in range(10, 100, 10):
        opened._frames(1)
        move(x + way, y)
    wait_for(lambda: len(commands.calls) > 1, "a push")
    opened.draw(snapshot(5.6))  # what is pushed is said with the next state
    page.get_by_text("pushing upper").wait_for()
    opened.picture("push")
    release()
    wait_for(lambda: commands.calls[-1] == ("push", None), "the end of the push")
    pushes = [push for _, push in commands.calls[:-1]]
    assert {name for name, _ in commands.calls} == {"push"}
    assert {push.link for push in pushes} == {"upper"}
    place = [link.name for link in opened.view.robot.links].index("upper")
    pose = opened.view._frame.link_poses[place]
    # it was caught where the mouse went down, on the surface of the link
    assert np.linalg.norm(pushes[0].caught(pose) - middle) < 0.15 * opened.view.size
    # and is pulled to the right, in the plane of the picture
    x2, y2 = on_page(opened, pushes[-1].target)
    assert x2 - x == pytest.approx(90.0, abs=6.0)
    assert y2 - y == pytest.approx(0.0, abs=6.0)
    assert 0.0 < np.linalg.norm(pushes[-1].force(pose)) <= pushes[-1].limit
    # beside the robot the mouse turns the camera, and pushes nothing
    commands.calls.clear()
    box = page.locator("canvas").first.bounding_box()
    (client,) = opened.view.server.get_clients().values()
    before = np.array(client.camera.position)
    page.mouse.move(box["x"] + 15, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 75, box["y"] + 220, steps=5)
    page.mouse.up()
    wait_for(lambda: np.linalg.norm(client.camera.position - before) > 0.01, "the camera to turn")
    assert commands.calls == []
    opened.view._place_client_camera(client)


def test_keys(opened):
    page, commands = opened.page, opened.commands
    opened.draw(snapshot(5.7))
    page.get_by_role("tab", name="Run").click()
    page.get_by_role("button", name="Reset").click()
    wait_for(lambda: ("reset",) in commands.calls, "reset")
    commands.calls.clear()
    page.keyboard.press("Space")
    wait_for(lambda: commands.calls, "the space bar")
    # the button that was clicked last is not pressed again
    assert commands.calls == [("pause", True)]
    page.keyboard.press("?")
    page.get_by_text("Pause or go on").wait_for()
    page.get_by_text("One step").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("One step").wait_for(state="hidden")
    # with a real robot it stops, whatever its state; and never goes on
    opened.draw(snapshot(5.8, real=True))
    page.get_by_text("REAL ROBOT").wait_for()
    commands.calls.clear()
    page.keyboard.press("Space")
    wait_for(lambda: commands.calls == [("estop", True)], "the emergency stop")
    opened.draw(snapshot(5.9))


def test_targets(opened):
    page, commands = opened.page, opened.commands
    opened.draw(tracking(5.95))
    page.get_by_role("tab", name="Run").click()
    page.get_by_text("Target", exact=True).click()
    field = slider_input(page, "joint_2 [°]")
    commands.calls.clear()
    field.fill("30")
    field.press("Enter")
    wait_for(lambda: commands.calls, "a target")
    (name, names, target) = commands.calls[-1]
    assert (name, tuple(names)) == ("set_target", ("joint_1", "joint_2"))
    assert target[1] == pytest.approx(np.pi / 6.0)
    # the other stays where the reference is
    assert target[0] == pytest.approx(opened.view._last.desired[0])
    page.get_by_text("Target", exact=True).click()


def test_gains_and_speed(opened):
    page, commands = opened.page, opened.commands
    opened.view.set_gains([400.0, 400.0], [40.0, 40.0], ["joint_1", "joint_2"])
    page.get_by_role("tab", name="Run").click()
    commands.calls.clear()
    field = slider_input(page, "kp")
    field.fill("250")
    field.press("Enter")
    wait_for(lambda: ("set_gains", [250.0], [40.0]) in commands.calls, "set_gains")
    opened.view.set_gains([400.0, 900.0], [40.0, 60.0], ["joint_1", "joint_2"])
    field = slider_input(page, "kd joint_2")
    field.fill("50")
    field.press("Enter")
    wait_for(lambda: ("set_gains", [400.0, 900.0], [40.0, 50.0]) in commands.calls, "set_gains")
    field = slider_input(page, "speed")
    field.fill("0.5")
    field.press("Enter")
    wait_for(lambda: ("set_speed", 0.5) in commands.calls, "set_speed")


def test_switches_follow_the_controller(opened):
    page, commands = opened.page, opened.commands
    page.get_by_role("tab", name="Run").click()
    opened.draw(tracking(6.0, switches=[Switch("relaxation", True, "Muscles are released.")]))
    box = page.get_by_label("Relaxation")
    box.wait_for()
    assert box.is_checked()
    commands.calls.clear()
    box.uncheck()
    wait_for(lambda: ("set_switch", "relaxation", False) in commands.calls, "set_switch")
    # the node did not take it over: the box shows what the node has
    time.sleep(TOUCHED)
    commands.calls.clear()
    opened.draw(tracking(6.1, switches=[Switch("relaxation", True)]))
    wait_for(box.is_checked, "the value of the node")
    assert commands.calls == []
    # another controller has none
    opened.draw(tracking(6.2))
    box.wait_for(state="hidden")


def test_refusals_are_shown(opened):
    opened.commands.refuse = True
    try:
        opened.page.get_by_role("tab", name="Run").click()
        opened.page.get_by_role("button", name="Reset").click()
        opened.page.get_by_text("tension 7000 N of 'cable_1' is above 100 N").wait_for()
    finally:
        opened.commands.refuse = False


def test_a_page_that_has_drawn_is_counted(opened):
    wait_for(lambda: opened.view.watching == 1, "the page to be counted")


def test_a_page_is_found_again_by_browsers_and_seen_whole(chromium, planar_2r):
    """As the replay of a run that takes the place of the live page."""
    with MusclePage(planar_2r, Recorder(), port=0) as first:
        first.show(snapshot())
        browser = open_page(chromium, first, Recorder()).page
        port = first.port
    with MusclePage(planar_2r, Recorder(), port=port) as second:
        second.show(snapshot(state="finished: results in run"))
        wait_for(lambda: second.watching == 1, "the page to come back")
        browser.wait_for_selector("text=finished: results in run")
        seen = Opened(second, Recorder(), browser)

        def whole():
            box = browser.locator("canvas").first.bounding_box()
            wanted = second.camera(box["width"] / box["height"]).position
            (client,) = second.server.get_clients().values()
            return np.linalg.norm(client.camera.position - wanted) < 0.02 * second.size

        wait_for(lambda: seen.fitted() and whole(), "the camera")
        browser.close()


TRY = """url => new Promise(done => {
    const socket = new WebSocket(url, ["viser-v%s"]);
    socket.onopen = () => done("open");
    socket.onerror = () => done("refused");
})"""


def test_hostile_pages_and_spectators_command_nothing(chromium, opened):
    import viser

    view, commands = opened.view, opened.commands
    opened.draw(snapshot(9.0))
    commands.calls.clear()
    # a page of somebody else, who has even got hold of the token
    hostile = chromium.new_page()
    hostile.route(
        "http://evil.example/**",
        lambda route: route.fulfill(body="<p>hi</p>", content_type="text/html"),
    )
    hostile.goto("http://evil.example/")
    query = view.url.partition("?")[2]
    for host in ("127.0.0.1", "localhost"):
        url = f"ws://{host}:{view.port}/?{query}"
        assert hostile.evaluate(TRY % viser.__version__, url) == "refused"
    hostile.close()
    # the page itself, without the token
    page = chromium.new_page()
    page.goto(view.url.partition("?")[0])
    page.get_by_text("This page needs its link").wait_for()
    # what is in that page's origin, but does not know the token
    assert page.evaluate(TRY % viser.__version__, f"ws://127.0.0.1:{view.port}/") == "refused"
    watching = len(view.server.get_clients())
    page.set_default_timeout(4e3 * PATIENCE)  # two pages are drawn in software
    page.goto(view.spectator_url)
    wait_for(lambda: len(view.server.get_clients()) == watching + 1, "the spectator", 4 * PATIENCE)
    button = page.get_by_role("button", name="Emergency stop")
    assert button.evaluate("one => getComputedStyle(one).pointerEvents") == "none"
    button.dispatch_event("click")  # as a script could
    client = list(view.server.get_clients().values())[-1]
    client.local_storage.get_item("test", timeout=PATIENCE)  # after that click
    assert commands.calls == []
    page.close()


def test_no_console_errors(opened):
    """Last: whatever the tests above did, the page did not complain."""
    assert opened.messages
    # what Chromium says of the camera controls of viser at a touch
    ours = [error for error in opened.errors if "Unable to preventDefault" not in error]
    assert ours == []
