"""Measure how often the muscle editor is redrawn and analyses while a point is dragged.

Run as a program it opens the page of a robot, in a headless Chromium without a graphics processor
if there is one, moves a via point 60 times a second, and prints a JSON object::

    .venv/bin/python src/cards_viz/test/helpers/editor_page_rate.py [robot] [--no-browser]

Without a browser the page sends as if one kept up: what the server can do by itself.
"""

import argparse
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from muscle_page_rate import computed
from rod_page_rate import ARGUMENTS, COUNT
from viser.infra._async_message_buffer import AsyncMessageBuffer

from cards_core.editing.editor import MuscleEditor
from cards_core.formats.locate import find_model
from cards_viz.editor.page import EditorPage
from cards_viz.editor.session import Selection
from cards_viz.pages import page as pages


def sent_messages():
    """Return a counter of the messages of all servers from now on, by type."""
    counts, push = Counter(), AsyncMessageBuffer.push

    def counted(self, message):
        counts[type(message).__name__] += 1
        push(self, message)

    AsyncMessageBuffer.push = counted
    return counts


def measure(view, seconds, seen, messages):
    """Drag the selected point for a while; return what happened a second, and what it took.

    The processor times are those that the server and the processes of the browser compute for one
    update and one redraw: what to compare on a machine that does other things too.
    """
    session = view.session
    place = session.point_place()
    session.drag_point("start", place)
    before = view.updates, view.analyses, seen(), messages.total(), time.process_time()
    used = computed(os.getpid())
    begin, events, now = time.monotonic(), 0, 0.0
    while now < seconds:
        now = time.monotonic() - begin
        step = 0.02 * view.size * np.array([np.sin(3 * now), np.cos(2 * now), np.sin(now)])
        session.drag_point("update", place + step)
        events += 1
        time.sleep(max(0.0, events / 60.0 - (time.monotonic() - begin)))
    after = view.updates, view.analyses, seen(), messages.total(), time.process_time()
    now_used = computed(os.getpid())
    session.drag_point("end", place)
    session.undo()
    sent, analyses, redraws, queued, server = (
        (b - a) / now for a, b in zip(before, after, strict=True)
    )
    return {
        "events": round(events / now, 1),
        "updates": round(sent, 1),
        "analyses": round(analyses, 1),
        "redraws": round(redraws, 1),
        "messages_per_update": round(queued / sent, 1),
        "server_ms_per_update": round(1e3 * server / sent, 1),
        "browser_ms_per_redraw": {
            kind: round(1e3 * (time - used.get(kind, 0.0)) / (redraws * now), 1)
            for kind, time in now_used.items()
            if redraws
        },
        "load": round(os.getloadavg()[0], 1),
    }


def main():
    """Measure; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robot", nargs="?", default="roboy_arm")
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--size", default="1280x720", help="of the window, in pixels")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of measurements")
    given = parser.parse_args()
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    with contextlib.ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "model.sdf")
        shutil.copyfile(find_model(given.robot), file)
        view = stack.enter_context(EditorPage(MuscleEditor(file), port=0))
        view.session.select(Selection(view.session.editor.robot.muscles[0].name, 0))

        messages = sent_messages()

        def seen():
            return 0

        if given.no_browser or path is None:
            pages.UNWATCHED_PERIOD = 0.0
            time.sleep(3.0)
        else:
            from playwright.sync_api import sync_playwright

            driver = stack.enter_context(sync_playwright())
            browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
            width, height = map(int, given.size.split("x"))
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(120e3)
            page.add_init_script(COUNT)
            page.goto(view.url)
            page.wait_for_selector("canvas[data-engine]")  # charts have one too
            time.sleep(8.0)  # the first pictures compile the shaders

            def seen():
                return page.evaluate("window.seen.redraws")

        rounds = [measure(view, given.seconds, seen, messages) for _ in range(given.rounds)]
    print(json.dumps({"robot": given.robot, "rounds": rounds}, indent=2))


if __name__ == "__main__":
    main()
