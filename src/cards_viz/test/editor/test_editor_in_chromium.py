"""The muscle editor in a real browser, by clicks and drags: a newcomer gives a robot two muscles.

With ``CARDS_SCREENSHOTS=<folder>`` the pictures are kept for looking at.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cards_core.editing.editor import MuscleEditor
from cards_core.formats import load
from cards_core.robot.elements import ViaPoint, Wrap
from cards_viz.editor.page import EditorPage
from cards_viz.editor.session import ADD_POINT

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
PATIENCE = 120.0  # [s], for a page that two busy cores render in software

ROBOT = """<sdf version="1.11">
  <model name="newcomer">
    <!-- bought in 2026 -->
    <link name="upper">
      <inertial><mass>2.0</mass><inertia><ixx>0.02</ixx><iyy>0.02</iyy><izz>0.005</izz></inertia>
      </inertial>
      <visual name="bone"><pose>0 0 0.15 0 0 0</pose>
        <geometry><box><size>0.08 0.08 0.30</size></box></geometry></visual>
    </link>
    <joint name="mount" type="fixed"><parent>world</parent><child>upper</child></joint>
    <joint name="elbow" type="revolute">
      <pose relative_to="upper">0 0 0.30 0 0 0</pose>
      <parent>upper</parent><child>fore</child>
      <axis><xyz>0 1 0</xyz><limit><lower>-0.8</lower><upper>0.8</upper></limit>
        <dynamics><damping>0.1</damping></dynamics></axis>
    </joint>
    <link name="fore">
      <pose relative_to="elbow"/>
      <inertial><pose>0 0 0.15 0 0 0</pose><mass>0.5</mass>
        <inertia><ixx>0.004</ixx><iyy>0.004</iyy><izz>0.001</izz></inertia></inertial>
      <visual name="bone"><pose>0 0 0.17 0 0 0</pose>
        <geometry><box><size>0.06 0.06 0.26</size></box></geometry></visual>
    </link>
    <plugin filename="camera" name="somebody_elses"><zoom>1.50</zoom></plugin>
  </model>
</sdf>
"""


def wait_for(condition, what, timeout=PATIENCE):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout} s for {what}"
        time.sleep(0.02)


class Newcomer:
    """Somebody with a mouse who sees the page, and points at places of the robot."""

    def __init__(self, view, page):
        self.view, self.page, self.errors = view, page, []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)

    def drawn(self):
        """Wait until the page has drawn everything that it was sent."""
        view = self.view
        wait_for(
            lambda: view.result and view.result.robot is view.session.editor.robot, "analysis"
        )
        time.sleep(0.1)  # it is shown right after that
        wait_for(lambda: view.settled, "an update")
        for client in self.view.server.get_clients().values():
            client.local_storage.get_item("test", timeout=PATIENCE)

    def still(self):
        """Wait until the camera has come to rest: panels that dock make the picture narrower."""
        before, since = None, time.monotonic()
        end = since + PATIENCE
        while time.monotonic() < since + 0.7:
            (client,) = self.view.server.get_clients().values()
            box = self.page.locator("canvas[data-engine]").bounding_box()
            now = (*client.camera.position, *box.values())
            if now != before:
                before, since = now, time.monotonic()
            assert time.monotonic() < end
            time.sleep(0.1)

    def pixel(self, point):
        """Return where a point of the world is on the page."""
        (client,) = self.view.server.get_clients().values()
        camera = client.camera
        box = self.page.locator("canvas[data-engine]").bounding_box()
        forward = np.array(camera.look_at) - np.array(camera.position)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, np.array(camera.up_direction))
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        away = np.asarray(point) - np.array(camera.position)
        focal = 0.5 * box["height"] / np.tan(0.5 * camera.fov) / (away @ forward)
        x = box["x"] + 0.5 * box["width"] + focal * (away @ right)
        y = box["y"] + 0.5 * box["height"] - focal * (away @ up)
        return float(x), float(y)

    def click(self, point):
        """Click on a place of the world."""
        self.drawn()
        self.still()
        steps = len(self.view.session.editor._past)
        self.page.mouse.move(*self.pixel(point))
        time.sleep(0.3)  # a page that draws slowly finds what is under the mouse
        self.page.mouse.click(*self.pixel(point), delay=60)
        wait_for(lambda: len(self.view.session.editor._past) > steps, f"a click at {point}")

    def drag(self, start, end):
        """Drag what is at a place of the world to another place."""
        self.drawn()
        self.still()
        (x0, y0), (x1, y1) = self.pixel(start), self.pixel(end)
        mouse = self.page.mouse
        mouse.move(x0 + 30.0, y0 + 30.0)
        self.drawn()
        mouse.move(x0, y0)
        time.sleep(0.5)
        mouse.down()
        for k in range(1, 11):
            mouse.move(x0 + (x1 - x0) * k / 10, y0 + (y1 - y0) * k / 10)
            time.sleep(0.1)
        time.sleep(0.5)
        mouse.up()
        wait_for(lambda: not self.view.session.view().dragging, "the end of the drag")
        self.drawn()

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).first.click()
        self.drawn()

    def field(self, label):
        """Return the control beside a label; viser's labels of texts point nowhere."""
        named = f"//label[normalize-space(.)='{label}']"
        row = f"{named}/ancestor::div[contains(@class, 'mantine-Flex-root')][1]"
        return self.page.locator(f"xpath={row}//input").first

    def fill(self, label, text):
        self.drawn()
        self.field(label).fill(text)
        self.field(label).press("Enter")

    def choose(self, label, option):
        self.drawn()
        self.field(label).click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def tab(self, name):
        self.page.get_by_role("tab", name=name).click()

    def picture(self, name):
        self.drawn()
        if folder := os.environ.get("CARDS_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", timeout=1e3 * PATIENCE)


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


def open_page(chromium, view, **options):
    page = chromium.new_page(viewport={"width": 1300, "height": 760}, **options)
    page.set_default_timeout(1e3 * PATIENCE)
    newcomer = Newcomer(view, page)
    page.goto(view.url)
    page.wait_for_selector("canvas[data-engine]")
    wait_for(lambda: view.server.get_clients(), "the page to connect")
    page.locator(".mantine-Notification-closeButton").first.click(force=True)
    wait_for(lambda: view.watching == 1, "the first picture")

    def fitted():
        box = page.locator("canvas[data-engine]").bounding_box()
        shape = box["width"] / box["height"]
        return all(abs(fit / shape - 1.0) < 0.03 for fit in view._fitted.values())

    wait_for(fitted, "the camera")
    newcomer.drawn()
    return newcomer


def test_a_newcomer_makes_a_robot_with_two_muscles_move(chromium, tmp_path):
    """Twelve actions: two muscles of three points, one of them over a surface; then the demo."""
    file = tmp_path / "model.sdf"
    file.write_text(ROBOT)
    editor = MuscleEditor(file)
    with EditorPage(editor, port=0) as view:
        me = open_page(chromium, view)
        session = view.session
        # 1: a wrap surface at the elbow
        me.tab("Surfaces")
        me.press("New wrap surface")
        me.click((0.0, -0.04, 0.27))
        (surface,) = editor.robot.wrap_surfaces
        assert surface.link == "upper"
        # 2: its size, by its handle
        centre = session.link_pose("upper").apply(surface.pose.translation)
        radius = surface.geometry.radius
        reach = 0.7 * 0.13 * view.size
        grip = centre - np.array([radius + 0.7 * reach, 0.0, 0.0])
        me.drag(grip, grip - np.array([0.02, 0.0, 0.0]))
        assert editor.robot.wrap_surfaces[0].geometry.radius > radius + 0.005
        me.press("Undo")
        wait_for(
            lambda: editor.robot.wrap_surfaces[0].geometry.radius == radius, "what was pressed"
        )
        # 3: it belongs on the axis
        me.press("Centre on joint")
        wait_for(
            lambda: np.allclose(editor.robot.wrap_surfaces[0].pose.translation, (0, 0, 0.3)),
            "what was pressed",
        )
        me.picture("editor_surface")
        # 4 to 7: a muscle, upper arm, over the surface, two points of the forearm
        me.tab("Muscles")
        me.press("New muscle")
        wait_for(lambda: session.view().mode == ADD_POINT, "a new muscle")
        me.click((0.03, -0.04, 0.08))
        front = session.link_pose("upper").apply(np.array([0.0, 0.0, 0.3]))
        me.click(front + np.array([0.0, -0.9 * radius, 0.0]))
        me.click((0.02, -0.03, 0.36))
        me.click((0.02, -0.03, 0.44))
        (one,) = editor.robot.muscles
        assert [type(item) for item in one.path] == [ViaPoint, Wrap, ViaPoint, ViaPoint]
        assert [p.link for p in one.via_points] == ["upper", "fore", "fore"]
        assert one.path[0].position == pytest.approx((0.03, -0.04, 0.08), abs=2e-3)
        # 8 to 10: another one
        me.press("New muscle")
        me.click((-0.03, -0.04, 0.08))
        me.click((-0.03, -0.04, 0.20))
        me.click((-0.02, -0.03, 0.40))
        two = editor.robot.muscles[1]
        assert len(two.via_points) == 3
        wait_for(lambda: view.result and len(view.result.lengths) == 2, "the analysis")
        # 11: its point, by the arrow along x
        before = two.path[2].position
        place = session.point_place()
        grip = place + np.array([0.7 * 0.13 * view.size, 0.0, 0.0])
        analyses = view.analyses
        me.drag(grip, grip - np.array([0.03, 0.0, 0.0]))
        moved = editor.robot.muscles[1].path[2].position
        assert moved[0] < before[0] - 0.015
        assert moved[1:] == pytest.approx(before[1:], abs=1e-5)
        assert view.analyses > analyses + 1  # while it was dragged
        me.press("Undo")
        wait_for(
            lambda: np.array_equal(editor.robot.muscles[1].path[2].position, before),
            "what was pressed",
        )
        me.press("Redo")
        wait_for(
            lambda: np.array_equal(editor.robot.muscles[1].path[2].position, moved),
            "what was pressed",
        )
        wait_for(lambda: view.result.robot is editor.robot, "the analysis")
        # on both sides of the axis: every small push can be resisted
        assert view.result.here[0, 0] * view.result.here[1, 0] < 0.0
        me.tab("Check")
        me.page.get_by_text("force closure").wait_for()
        me.picture("editor_check")
        # 12: save
        assert editor.unsaved
        me.press("Save")
        me.page.get_by_text("saved", exact=False).first.wait_for()
        wait_for(lambda: not editor.unsaved, "the file")
        assert me.errors == []
        me.page.close()
    saved = file.read_text()
    assert "<!-- bought in 2026 -->" in saved
    assert '<plugin filename="camera" name="somebody_elses"><zoom>1.50</zoom></plugin>' in saved
    assert (tmp_path / "model.sdf.~1~").read_text() == ROBOT
    assert [len(m.via_points) for m in load(file).muscles] == [3, 3]
    out = tmp_path / "run"
    done = subprocess.run(
        [
            sys.executable, "-m", "cards_bringup", "demo", str(file), "--headless", "--no-ros",
            "--mode", "lockstep", "--duration", "1", "--out", str(out),
        ],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((out / "summary.json").read_text())["robot"] == "newcomer"


def test_enter_right_after_the_last_letter_applies_all_of_them(chromium, tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(Path(load("wrap_elbow").source).read_bytes())
    editor = MuscleEditor(file)
    with EditorPage(editor, port=0) as view:
        me = open_page(chromium, view)
        for name in ("brachialis", "anconeus", "coracobrachialis"):
            me.drawn()
            me.field("name").click()
            me.page.keyboard.press("Control+a")
            me.page.keyboard.type(name)
            me.page.keyboard.press("Enter")
            wait_for(lambda: editor.robot.muscles[0].name != "biceps", "a name")
            assert editor.robot.muscles[0].name == name
            me.press("Undo")
            wait_for(lambda: editor.robot.muscles[0].name == "biceps", "the old name")


def test_what_is_typed_and_chosen_is_applied(chromium, tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(Path(load("wrap_elbow").source).read_bytes())
    editor = MuscleEditor(file)
    with EditorPage(editor, port=0) as view:
        me = open_page(chromium, view)

        def biceps():
            return editor.robot.muscles[0]

        me.fill("tension max [N]", "900")
        wait_for(lambda: biceps().tension_max == 900.0, "the tension")
        # several fields are one step
        me.drawn()
        me.field("max_isometric_force [N]").fill("650")
        me.field("name").fill("brachialis")
        me.drawn()  # the page sends what is typed a moment later
        me.field("name").press("Enter")
        wait_for(lambda: biceps().name == "brachialis", "the name")
        assert biceps().actuator.max_isometric_force == 650.0
        me.press("Undo")
        wait_for(
            lambda: (biceps().name, biceps().actuator.max_isometric_force) == ("biceps", 600.0),
            "what was pressed",
        )
        # what is wrong is said, and changes nothing
        me.fill("pennation_angle [rad]", "3")
        me.page.get_by_text("'pennation_angle' is 3.0 (expected: finite, 0 .. 1.4)").wait_for()
        me.fill("pennation_angle [rad]", "much")
        me.page.get_by_text("pennation_angle is 'much' (expected: a number)").wait_for()
        assert biceps().actuator.pennation_angle == 0.0
        # another actuator has other fields
        me.choose("actuator", "series_elastic")
        wait_for(lambda: biceps().kind == "series_elastic", "the actuator")
        me.field("spring.stiffness [N/m]").wait_for()
        me.field("with thermal").check()
        wait_for(lambda: biceps().actuator.thermal is not None, "the group")
        # a point by its numbers
        me.choose("point", "3: point forearm")
        wait_for(lambda: me.field("y [mm]").input_value() == "0", "the place of the point")
        me.fill("y [mm]", "2.5")
        wait_for(lambda: biceps().path[2].position[1] == 0.0025, "the point")
        assert biceps().path[2].position[0] == 0.012  # not touched, all its digits
        me.drawn()
        box = me.page.locator("canvas[data-engine]").bounding_box()
        me.page.mouse.click(box["x"] + 20.0, box["y"] + 20.0)  # beside the robot
        me.page.keyboard.press("Control+z")
        wait_for(lambda: biceps().path[2].position[1] == 0.0, "Ctrl-Z")
        me.page.keyboard.press("Control+s")
        wait_for(lambda: not editor.unsaved, "Ctrl-S")
        assert me.errors == []
        me.page.close()
    assert load(file).muscles[0].kind == "series_elastic"


COUNT_SHEETS = """
window.drawn = {sheets: 0, others: 0, known: 0};
(() => {
    const gl = WebGL2RenderingContext.prototype;
    const {linkProgram, useProgram, drawElements} = gl;
    const sheets = new Set();
    let current = null;
    gl.linkProgram = function (program) {
        linkProgram.call(this, program);
        const texts = this.getAttachedShaders(program).map(s => this.getShaderSource(s));
        if (texts.some(text => /readDepth/.test(text))) sheets.add(program);
        window.drawn.known = sheets.size;
    };
    gl.useProgram = function (program) { current = program; useProgram.call(this, program); };
    gl.drawElements = function (...values) {
        window.drawn[sheets.has(current) ? "sheets" : "others"] += 1;
        drawElements.apply(this, values);
    };
})();
"""
"""Counts what is drawn: the sheet that viser has for a background image, and all else."""


def test_a_page_without_graphics_processor_draws_no_background_image(chromium, tmp_path):
    """It would take a third of the time of a picture of roboy_arm."""
    file = tmp_path / "model.sdf"
    file.write_bytes(Path(load("wrap_elbow").source).read_bytes())
    with EditorPage(MuscleEditor(file), port=0) as view:
        page = chromium.new_page(viewport={"width": 900, "height": 600})
        page.set_default_timeout(1e3 * PATIENCE)
        page.add_init_script(COUNT_SHEETS)
        page.goto(view.url)
        page.wait_for_selector("canvas[data-engine]")
        wait_for(lambda: view.watching == 1, "the first picture")
        wait_for(lambda: page.evaluate("window.drawn.others") > 20, "more pictures")
        drawn = page.evaluate("window.drawn")
        assert drawn["known"] == 1
        assert drawn["sheets"] == 0
        page.close()


def test_the_page_of_a_phone(chromium, tmp_path):
    file = tmp_path / "model.sdf"
    file.write_bytes(Path(load("wrap_elbow").source).read_bytes())
    with EditorPage(MuscleEditor(file), port=0) as view:
        page = chromium.new_page(
            viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True
        )
        page.set_default_timeout(1e3 * PATIENCE)
        newcomer = Newcomer(view, page)
        page.goto(view.url)
        page.wait_for_selector("canvas[data-engine]")
        wait_for(lambda: view.watching == 1, "the first picture")
        page.locator(".mantine-Notification-closeButton").first.click(force=True)
        box = page.locator("canvas[data-engine]").bounding_box()
        assert box["width"] == 400
        assert box["height"] > 300
        button = page.get_by_role("button", name="New muscle").bounding_box()
        assert button["y"] > box["y"] + 0.9 * box["height"]
        newcomer.picture("editor_phone")
        page.get_by_role("button", name="New muscle").tap()
        wait_for(lambda: len(view.session.editor.block.muscles) == 4, "a new muscle")
        page.close()
