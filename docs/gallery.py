"""Make the gallery of README.md and pictures of pages: ``python docs/gallery.py [NAME ...]``.

Robots are simulated, shown on their pages and photographed in headless Chromium, which renders in
software. Needs Chromium, playwright and Pillow, as the tests of the pages do.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image
from playwright.sync_api import sync_playwright

import cards
from cards.viewer import View
from cards_core.editing.editor import MuscleEditor
from cards_core.formats.locate import find_model
from cards_viz.editor.page import EditorPage
from cards_viz.editor.session import Selection

IMAGES = Path(__file__).with_name("images")

WIDTH, HEIGHT = 480, 360
"""Of a picture, [px]."""

PANELS = 744
"""Width of the panels on both sides of it, [px]."""

ARGUMENTS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)

PICTURES = {
    "ipanema_1": ("ctc_joint", "pick_and_place", 4.0),
    "musashi_like": ("ctc_joint", "gestures", 2.6),
    "wrap_elbow": ("ctc_joint", "bend", 3.0),
    "superball": ("impedance", None, 2.0),
    "tetraspine": ("impedance", None, 2.0),
    "stewart_gough": (None, None, 2.5),
}
"""Robots with their controller, what it tracks, and when the picture is taken, [s]."""

MOVING = ("roboy_arm", "ctc_operational", "flower", 30.0, 24)
"""The animated picture: robot, controller, reference, duration [s], number of pictures."""


CAD = "cad_arm"
"""The pictures of `docs/tutorial_cad.md`."""

EDITOR = "muscle_editor"
"""The picture of `docs/muscle_editor.md`."""


def run_of(name: str, controller: str | None, reference: str | None, duration: float) -> Any:
    """Simulate a robot."""
    robot = cards.load(name)
    options = {"terrain": "flat:friction=0.5"} if controller == "impedance" else {}
    sim = cards.Simulator(robot, **options)
    if controller is None:
        return cards.simulate(sim, duration=duration)
    tension = {"tension": 60.0} if controller == "impedance" else {}
    control = cards.Controller(controller, robot, reference=reference, **tension)
    return cards.simulate(sim, control, duration=duration)


class Camera:
    """Takes pictures of an open view."""

    def __init__(self, browser: Any, view: View) -> None:
        self._view = view
        self._page = browser.new_page(viewport={"width": WIDTH + PANELS, "height": HEIGHT})
        self._page.set_default_timeout(120e3)
        self._page.goto(view.url)
        self._page.wait_for_selector("canvas")
        # "Software WebGL rendering detected": true here, and in the way
        self._page.locator(".mantine-Notification-closeButton").first.click(force=True)
        self._page.wait_for_function(
            "getComputedStyle(document.querySelector('canvas')).opacity === '1'"
        )
        time.sleep(3.0)  # until the camera fits the picture without the panels

    def take(self) -> Image.Image:
        """Return the 3-D view."""
        end = time.monotonic() + 60.0
        while not self._view.page.settled and time.monotonic() < end:
            time.sleep(0.05)
        # an answer from the page means that it has worked off everything before the question
        for client in self._view.page.server.get_clients().values():
            client.local_storage.get_item("gallery", timeout=60.0)
        data = self._page.screenshot(clip=self._page.locator("canvas").first.bounding_box())
        return Image.open(io.BytesIO(data)).convert("RGB")


def still(view: View, frame: Callable[[int, bool], Any], index: int) -> None:
    """Stop the player, and show one instant."""
    view._player.pause(True)
    time.sleep(0.2)
    view.page.show(frame(index, False))


def editor(browser: Any) -> None:
    """Take a picture of the muscle editor."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.sdf")
        shutil.copyfile(find_model("roboy_arm"), file)
        with EditorPage(MuscleEditor(file), port=8470) as view:
            page = browser.new_page(viewport={"width": 1400, "height": 820})
            page.set_default_timeout(120e3)
            page.goto(view.url)
            page.wait_for_selector("canvas")
            page.locator(".mantine-Notification-closeButton").first.click(force=True)
            time.sleep(4.0)
            view.session.select(Selection(view.session.editor.robot.muscles[0].name, 1))
            time.sleep(6.0)
            image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            image.quantize(256).save(IMAGES / "muscle_editor.png", optimize=True)
    print("muscle_editor.png")


def cad(browser: Any) -> None:
    """Take the pictures of `docs/tutorial_cad.md`: its robot, and how it follows the motion."""
    from cards_bringup.cli import main as run_cards

    page = IMAGES.with_name("tutorial_cad.md").read_text()
    blocks = re.findall(r"^`(\S+)`\n\n```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assembly = IMAGES.parents[1] / "examples" / "cad_arm" / "two_link_arm.step"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        (config, text), (motion, wave) = blocks
        Path(config).write_text(text)
        run_cards(["import", "cad", str(assembly), "--config", config, "-o", "robots"])
        Path(motion).write_text(wave)
        moved = run_of("robots/two_link_arm", "ctc_joint", "wave", 1.1)
        view = cards.show(moved, port=8470, block=False)
        still(view, view._player._frame, len(view._player._times) - 1)
        picture = Camera(browser, view).take()
        picture.quantize(128).save(IMAGES / "cad_arm.png", optimize=True)
        view.close()
        run = run_of("robots/two_link_arm", "ctc_joint", "wave", 3.0)
        figure, axes = plt.subplots(figsize=(7.0, 2.8), layout="constrained")
        for i, (name, colour) in enumerate(zip(("shoulder", "elbow"), ("C0", "C1"), strict=True)):
            axes.plot(run.time, run.q[:, i], colour, label=name)
            axes.plot(run.time, run.arrays["desired"][:, i], "k--", lw=0.8, label="desired" * i)
        axes.set(xlabel="time [s]", ylabel="angle [rad]")
        axes.legend()
        figure.savefig(IMAGES / "cad_arm_tracking.png", dpi=100)
    print("cad_arm.png, cad_arm_tracking.png")


def main(names: list[str]) -> None:
    """Make the pictures with these names, all without any."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        for name, settings in PICTURES.items():
            if not names or name in names:
                view = cards.show(run_of(name, *settings), port=8470, block=False)
                still(view, view._player._frame, len(view._player._times) - 1)
                picture = Camera(browser, view).take()
                picture.quantize(128).save(IMAGES / f"gallery_{name}.png", optimize=True)
                view.close()
                print(f"gallery_{name}.png")
        if not names or EDITOR in names:
            editor(browser)
        if not names or CAD in names:
            cad(browser)
        name, controller, reference, duration, count = MOVING
        if not names or name in names:
            run = run_of(name, controller, reference, duration)
            view = cards.show(run, port=8470, block=False)
            frame, last = view._player._frame, len(view._player._times) - 1
            still(view, frame, 0)
            camera = Camera(browser, view)
            pictures = []
            for k in range(count):
                # what is between is for the path that the hand has drawn
                for part in range(8):
                    view.page.show(frame(round(last * (k + part / 8) / count), False))
                    time.sleep(0.06)
                pictures.append(camera.take().resize((360, 270)).quantize(64))
                print(f"{k + 1} of {count}", end="\r", flush=True)
            file = IMAGES / f"gallery_{name}.gif"
            pictures[0].save(
                file,
                save_all=True,
                append_images=pictures[1:],
                duration=120,
                loop=0,
                optimize=True,
            )
            view.close()
            print(file.name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
