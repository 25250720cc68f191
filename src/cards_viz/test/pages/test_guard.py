"""What clients of a page may send."""

import math
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

pytest.importorskip("viser", reason="viser is not installed")
from viser import _messages as messages

from cards_viz.pages.access import Role
from cards_viz.pages.guard import LONGEST, GuardedConnection

pytestmark = pytest.mark.filterwarnings(r"ignore:\[viser\] ")

CAMERA = messages.ViewerCameraMessage(
    wxyz=(1.0, 0.0, 0.0, 0.0),
    position=(1.0, 2, 3.0),
    fov=0.8,
    near=0.1,
    far=1000,
    image_height=600,
    image_width=800,
    look_at=(0.0, 0.0, 0.0),
    up_direction=(0.0, 0.0, 1.0),
)


def sent(message, role=Role.SPECTATOR):
    """Return whether a message is let through, and what was noted of it."""
    noted = []
    connection = SimpleNamespace(role=role, refusals=SimpleNamespace(note=noted.append))
    connection._dropped = lambda what: GuardedConnection._dropped(connection, what)
    raw = message if isinstance(message, bytes) else packed(message)
    return GuardedConnection._may_send(connection, raw), noted


def packed(message):
    return msgspec.msgpack.encode({"type": type(message).__name__, **vars(message)})


@pytest.mark.parametrize("role", Role)
def test_a_camera_is_let_through(role):
    assert sent(CAMERA, role) == (True, [])


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(
    "wrong",
    [
        {"position": {"a": 1}},
        {"position": ["x", 0.0, 0.0]},
        {"position": [0.0, 0.0]},
        {"position": [1e308, 0.0, 0.0]},
        {"look_at": [[1, "A" * 10_000]]},
        {"up_direction": None},
        {"wxyz": "wxyz"},
        {"fov": math.nan},
        {"image_width": [800]},
    ],
)
def test_a_camera_of_other_things_is_dropped(role, wrong):
    passed, (noted,) = sent(replace(CAMERA, **wrong), role)
    assert not passed
    assert noted in ("a message with wrong values", "a message that cannot be read")


def test_stored_values_are_texts():
    good = messages.LocalStorageGetItemResponseMessage("drawn", None, "7")
    assert sent(good) == (True, [])
    for wrong in ({"value": 1}, {"error": ["x"]}, {"request_uuid": None}):
        assert sent(replace(good, **wrong)) == (False, ["a message with wrong values"])


def test_long_messages_of_spectators_are_dropped_unread():
    long = messages.LocalStorageGetItemResponseMessage("x" * LONGEST, None, "7")
    assert sent(long) == (False, ["a message that is too long"])
    assert sent(long, Role.OPERATOR) == (True, [])
