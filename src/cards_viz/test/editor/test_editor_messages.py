"""What a drag costs: messages to the pages and analyses, by number and size, not by time."""

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest
from viser.infra._async_message_buffer import AsyncMessageBuffer

from cards_core.editing.editor import MuscleEditor
from cards_core.formats import load
from cards_viz.editor.page import EditorPage
from cards_viz.editor.session import Selection
from cards_viz.pages import page as pages

EVENTS = 300


def wait_for(condition):
    end = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def view(tmp_path, monkeypatch):
    """A page that sends as if somebody looked, with the first point of a muscle selected."""
    monkeypatch.setattr(pages, "UNWATCHED_PERIOD", 0.0)
    file = tmp_path / "model.sdf"
    file.write_bytes(Path(load("roboy_arm").source).read_bytes())
    with EditorPage(MuscleEditor(file), port=0) as page:
        page.session.select(Selection(page.session.editor.robot.muscles[0].name, 0))
        wait_for(lambda: page.result is not None and page.analyses > 0)
        wait_for(lambda: page.settled)
        yield page


@pytest.fixture
def sent(monkeypatch):
    """Messages that go to the pages."""
    found, push = [], AsyncMessageBuffer.push

    def note(self, message):
        found.append(message)
        push(self, message)

    monkeypatch.setattr(AsyncMessageBuffer, "push", note)
    return found


def size(message):
    """Return the bytes of the arrays of a message."""
    values = [getattr(message, field.name) for field in dataclasses.fields(message)]
    values = [
        v for value in values for v in (value.values() if isinstance(value, dict) else [value])
    ]
    return sum(v.nbytes for v in values if isinstance(v, np.ndarray))


def test_a_drag_sends_what_moves_and_only_the_newest(view, sent):
    # no analysis until the drag is over, and so no charts: what moves is left
    view.text_period = 1e6
    session, updates, analyses = view.session, view.updates, view.analyses
    place = session.point_place()
    sent.clear()
    session.drag_point("start", place)
    for k in range(EVENTS):
        session.drag_point("update", place + np.array([1e-4 * k, 0.0, 0.0]))
    wait_for(lambda: view._seen == view._box.get()[0] and not view._scene_due)
    updates = view.updates - updates
    assert 1 <= updates < EVENTS / 2
    assert view.analyses - analyses <= 1
    moved = [message for message in sent if hasattr(message, "name")]
    assert {message.name for message in moved} == {"/edit/chosen", "/edit/points"}
    assert len(moved) <= 2 * updates
    points = 3 * sum(len(m.via_points) for m in session.editor.robot.muscles)
    assert max(map(size, moved)) <= 4 * points
    last = [m for m in moved if m.name == "/edit/points"][-1].updates["batched_positions"]
    assert last[0] == pytest.approx(session.point_place(), abs=1e-6)


def test_what_came_while_nothing_was_analysed_is_analysed_after_that(view):
    session = view.session
    place = session.point_place()
    session.drag_point("start", place)
    for k in range(EVENTS):
        session.drag_point("update", place + np.array([1e-4 * k, 0.0, 0.0]))
    session.drag_point("end", place + np.array([1e-4 * EVENTS, 0.0, 0.0]))
    analyses = view.analyses
    wait_for(lambda: view.result.robot is session.editor.robot)
    assert view.analyses - analyses <= 3
    assert view.problem == ""
