"""The spring with which a link is pushed on the page."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cards_core.errors import CardsError
from cards_viz.muscles import pushing
from cards_viz.muscles.pushing import Push, PushPanel, usual_limit

pytest.importorskip("viser", reason="viser is not installed")


def pose(seed=0):
    rng = np.random.default_rng(seed)
    out = np.eye(4)
    out[:3, :3] = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    out[:3, 3] = rng.normal(size=3)
    return out


@pytest.mark.parametrize("seed", range(5))
def test_the_force_is_the_gradient_of_the_energy_of_the_spring(seed):
    """Within reach ``F = -d/dx (k/2) |target - x|^2``, and the wrench does the same work."""
    rng = np.random.default_rng(seed)
    link, point = pose(seed), 0.1 * rng.normal(size=3)
    at = link[:3, :3] @ point + link[:3, 3]
    push = Push("link", point, at + 0.05 * rng.normal(size=3), 12.0, 0.5)

    def energy(where):
        d = push.target - push.caught(where)
        return 0.5 * push.limit / push.reach * d @ d

    wrench, step = push.wrench(link), 1e-6
    for k in range(6):
        turn = np.zeros(6)
        turn[k] = step
        ends = []
        for sign in (1.0, -1.0):
            moved = link.copy()
            moved[:3, 3] += sign * turn[:3]
            moved[:3, :3] = Rotation.from_rotvec(sign * turn[3:]).as_matrix() @ link[:3, :3]
            ends.append(energy(moved))
        assert wrench[k] == pytest.approx(-(ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_the_force_is_limited():
    far = Push("link", np.zeros(3), np.array([3.0, 4.0, 0.0]), 10.0, 0.5)
    np.testing.assert_allclose(far.force(np.eye(4)), [6.0, 8.0, 0.0])
    np.testing.assert_array_equal(
        Push("link", np.zeros(3), np.zeros(3), 10.0, 0.5).force(np.eye(4)), np.zeros(3)
    )
    odd = Push("link", np.zeros(3), np.full(3, np.nan), 10.0, 0.5)
    np.testing.assert_array_equal(odd.force(np.eye(4)), np.zeros(3))


def test_the_limit_is_half_the_weight_of_what_moves(planar_2r):
    moving = sum(link.inertia.mass for link in planar_2r.links if link.name != "frame")
    assert 0.5 * 9.81 * moving <= usual_limit(planar_2r) <= 5.0 * 9.81 * moving


class Gui:
    """Just enough of viser's."""

    def __getattr__(self, name):
        def add(*given, **options):
            value = options.get("initial_value", given[1] if len(given) > 1 else None)
            control = SimpleNamespace(value=value, visible=True, content="")
            control.on_update = control.on_click = lambda _: None
            control.__dict__["__enter__"] = lambda: control
            return Folder(control) if name == "add_folder" else control

        return add


class Folder:
    def __init__(self, control):
        self.visible = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def made():
    told, refusal = [], []

    class Commands:
        def push(self, push):
            if refusal:
                raise CardsError("no")
            told.append(push)

    def run(command):
        try:
            command()
        except CardsError as error:
            told.append(str(error))

    panel = PushPanel(Gui(), Commands(), run, limit=10.0, size=2.0, pose_of=lambda _: pose())
    return panel, told, refusal


def test_a_drag(made):
    panel, told, _ = made
    at = pose() @ [0.1, 0.2, 0.3, 1.0]
    panel.drag("upper", "start", 1, tuple(at[:3]), tuple(at[:3]))
    np.testing.assert_allclose(told[-1].point, [0.1, 0.2, 0.3])
    assert told[-1].reach == 0.5
    # where the link was caught stays, wherever it has moved since
    panel.drag("upper", "update", 1, (9.0, 9.0, 9.0), (1.0, 2.0, 3.0))
    np.testing.assert_allclose(told[-1].point, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(told[-1].target, [1.0, 2.0, 3.0])
    # another page does not take it away
    count = len(told)
    panel.drag("lower", "start", 2, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    panel.drag("lower", "update", 2, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    panel.drag("lower", "end", 2, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert len(told) == count
    panel.drag("upper", "end", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert told[-1] is None
    panel.drag("upper", "update", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert told[-1] is None
    assert len(told) == count + 1


def test_where_it_is_refused_the_drag_ends(made):
    panel, told, refusal = made
    refusal.append(True)
    for phase in ("start", "update", "update", "end"):
        panel.drag("upper", phase, 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert told == ["no"]


def test_switched_off_nothing_is_pushed(made):
    panel, told, _ = made
    panel._on.value = False
    panel.drag("upper", "start", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    panel._on.value = True
    panel.set_visible(False)
    panel.drag("upper", "start", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert told == []


def test_a_page_that_falls_silent_lets_go(made, monkeypatch):
    panel, told, _ = made
    now = [0.0]
    monkeypatch.setattr(pushing.time, "monotonic", lambda: now[0])
    panel.drag("upper", "start", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    silent = [False]
    pace = SimpleNamespace(waiting=lambda _: silent[0])
    for _ in range(10):  # it answers: however long the mouse stands still
        now[0] += 2.0
        panel.watch(pace)
    assert len(told) == 1
    silent[0] = True
    now[0] += 2.0
    panel.watch(pace)
    assert len(told) == 1
    now[0] += 2.0
    panel.watch(pace)
    assert told[1:] == [None]
