"""Measure how often the page of a robot with muscles is redrawn while ``./cards demo`` runs.

Run as a program it starts the demo, opens its page in a headless Chromium without a graphics
processor, and prints a JSON object::

    .venv/bin/python src/cards_viz/test/helpers/muscle_page_rate.py [robot] [--size 1280x720]

A redraw is a frame in which something went to WebGL and was drawn. The time that Chromium's
processes compute for one is what to compare on a machine that does other things too.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rod_page_rate import ARGUMENTS, COUNT

ROOT = Path(__file__).resolve().parents[4]
TICK = os.sysconf("SC_CLK_TCK")


def computed(parent):
    """Return the processor time of the processes of Chromium below one, [s], by their type."""
    found, parents, chromium = {}, {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # a process that has renamed itself separates its words by spaces
            words = (folder / "cmdline").read_text().replace("\0", " ").split(" ")
            numbers = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(numbers[1])
        if "chrom" in words[0]:
            chromium.append((int(folder.name), words, numbers))
    for number, words, numbers in chromium:
        while number not in (0, parent):
            number = parents.get(number, 0)
        if number == parent:
            kind = next((w[7:] for w in words if w.startswith("--type=")), "main")
            found[kind] = found.get(kind, 0.0) + (int(numbers[11]) + int(numbers[12])) / TICK
    return found


def measure(page, seconds):
    """Return redraws a second, and the time that one takes."""
    before, used, begin = (
        page.evaluate("({...window.seen})"),
        computed(os.getpid()),
        time.monotonic(),
    )
    time.sleep(seconds)
    after, now = page.evaluate("({...window.seen})"), computed(os.getpid())
    duration, redraws = time.monotonic() - begin, after["redraws"] - before["redraws"]
    return {
        "redraws": round(redraws / duration, 1),
        "ms": {
            kind: round(1e3 * (now[kind] - used.get(kind, 0.0)) / max(redraws, 1), 1)
            for kind in now
        },
        "load": os.getloadavg()[0],
    }


def main():
    """Measure; see the module."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", nargs="?", default="roboy_arm")
    parser.add_argument("--size", default="1280x720", help="of the window, in pixels")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of measurements")
    parser.add_argument("--picture", type=Path, help="file for a picture of the page")
    given = parser.parse_args()
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        sys.exit("needs chromium (Debian and Ubuntu: apt install chromium)")
    width, height = map(int, given.size.split("x"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        demo = subprocess.Popen(
            [ROOT / "cards", "demo", given.robot, "--duration", "0", "--port", "8480",
             "--out", f"{folder}/run"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            found = filter(None, (re.search(r"watch at (\S+)", line) for line in demo.stdout))
            url = next(found)[1]
            browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(120e3)
            page.add_init_script(COUNT)
            page.goto(url)
            page.get_by_text("running").first.wait_for()
            time.sleep(5.0)  # the first pictures compile the shaders
            rounds = [measure(page, given.seconds) for _ in range(given.rounds)]
            if given.picture:
                page.screenshot(path=given.picture)
            browser.close()
        finally:
            os.killpg(demo.pid, signal.SIGINT)
            demo.wait(30.0)
    print(json.dumps({"robot": given.robot, "size": given.size, "rounds": rounds}, indent=2))


if __name__ == "__main__":
    main()
