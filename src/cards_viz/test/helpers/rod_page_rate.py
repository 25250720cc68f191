"""Measure how often the page of a rod robot is redrawn while its sliders are moved.

Run as a program it starts the nodes ``rod_solver`` and ``rod_view``, opens the page in a headless
Chromium, drags sliders with the mouse, and prints a JSON object::

    .venv/bin/python src/cards_viz/test/helpers/rod_page_rate.py [robot] [--size 1280x720] \
        [--rough]

A redraw is a frame of the page in which new rods went to WebGL and were drawn. Without a graphics
processor every picture is computed by the processor; compositing the rest of the page the same
way as a graphics processor would costs four times as much as doing it plainly, hence `ARGUMENTS`.
"""

import argparse
import json
import shutil
import sys
import time
import urllib.request
from pathlib import Path

ARGUMENTS = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
]

COUNT = """
window.seen = {frames: 0, drawn: 0, redraws: 0};
(() => {
    let draws = 0, uploads = 0;
    const watch = (names, note) => {
        for (const name of names) {
            const plain = WebGL2RenderingContext.prototype[name];
            WebGL2RenderingContext.prototype[name] = function (...values) {
                note();
                return plain.apply(this, values);
            };
        }
    };
    watch(['drawElements', 'drawArrays', 'drawElementsInstanced', 'drawArraysInstanced'],
          () => { draws += 1; });
    watch(['texImage2D', 'texSubImage2D', 'bufferData', 'bufferSubData'], () => { uploads += 1; });
    const frame = () => {
        window.seen.frames += 1;
        window.seen.drawn += draws > 0;
        window.seen.redraws += draws > 0 && uploads > 0;
        draws = uploads = 0;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})();
"""
"""Counts frames, those with something drawn, and those with something new drawn."""

SWING = """
([x, y, reach, seconds]) => new Promise(done => {
    const begin = performance.now();
    let moves = 0;
    const timer = setInterval(() => {
        const t = (performance.now() - begin) / 1e3;
        const at = {clientX: x + reach * Math.sin(2.4 * t), clientY: y, bubbles: true};
        document.dispatchEvent(new MouseEvent('mousemove', at));
        moves += 1;
        if (t > seconds) { clearInterval(timer); done(moves); }
    }, 16);
})
"""
"""Moves a pressed mouse to and fro sixty times a second, as a quick hand does."""


def open_page(browser, url, size=(1280, 720)):
    """Return a page whose redraws are counted, with the notice about slow drawing closed."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.set_default_timeout(120e3)
    page.add_init_script(COUNT)
    page.goto(url)
    page.wait_for_selector("canvas")
    page.get_by_text("one solve").wait_for()
    page.locator(".mantine-Notification-closeButton").first.click(force=True)
    return page


def swing(page, label, seconds=5.0, part=0.1):
    """Drag the slider ``label`` to and fro by a part of its range; return what was counted."""
    row = page.locator("label", has_text=label).locator("xpath=ancestor::div[.//input][1]")
    thumb = row.locator("[role=slider]").bounding_box()
    track = row.locator(".mantine-Slider-root").bounding_box()
    x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before, begin = page.evaluate("({...window.seen})"), time.monotonic()
    moves = page.evaluate(SWING, [x, y, part * track["width"], seconds])
    duration = time.monotonic() - begin
    after = page.evaluate("window.seen")
    page.mouse.up()
    rates = {name: round((after[name] - before[name]) / duration, 1) for name in after}
    return {"slider": label, **rates, "moves": round(moves / duration, 1)}


def wait_for_url(url, patience=60.0):
    """Wait until a page answers."""
    end = time.monotonic() + patience
    while True:
        try:
            return urllib.request.urlopen(url, timeout=1.0)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def main():
    """Measure; see the module."""
    from playwright.sync_api import sync_playwright

    from cards_core.rods.robots.reader import read_rod_robot
    from cards_ros.testing import end_process, private_domain, start_process
    from cards_viz.pages.access import page_url, token
    from cards_viz.pages.page import free_port
    from cards_viz.rods.panels import joint_axes

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", nargs="?", default="stewart_gough")
    parser.add_argument("--size", default="1280x720", help="of the window, in pixels")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each slider")
    parser.add_argument("--rough", action="store_true", help="without antialiasing")
    parser.add_argument("--pictures", type=Path, help="folder for a picture of the page")
    given = parser.parse_args()
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        sys.exit("needs chromium (Debian and Ubuntu: apt install chromium)")
    model, port = {"model": given.robot}, free_port("127.0.0.1", 8450)
    size = tuple(int(x) for x in given.size.split("x"))
    arguments = [*ARGUMENTS, *(["--webgl-antialiasing-mode=none"] if given.rough else [])]
    joint = joint_axes(read_rod_robot(given.robot))[0].label
    token()  # made here, for the nodes
    with private_domain(), sync_playwright() as driver:
        nodes = [
            start_process("cards_rods.rod_solver", model),
            start_process("cards_viz.rods.view_node", {**model, "port": port}),
        ]
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            url = page_url("127.0.0.1", port)
            wait_for_url(url)
            page = open_page(browser, url, size)
            time.sleep(3.0)  # the first pictures compile the shaders
            found = [swing(page, label, given.seconds) for label in (joint, "y [mm]")]
            if given.pictures:
                page.screenshot(path=given.pictures / f"{given.robot}.png")
        finally:
            browser.close()
            for node in nodes:
                end_process(node)
    print(json.dumps({"robot": given.robot, "size": given.size, "sliders": found}, indent=2))


if __name__ == "__main__":
    main()
