"""A page in the browser that shows a robot, or plays a recorded run."""

from __future__ import annotations

import atexit
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, cast

import numpy as np
import numpy.typing as npt

from cards.robots import AnyRobot
from cards.run_log import Recording, RodRunLog, RunLog
from cards_core.checks import check_kind
from cards_core.errors import CardsError
from cards_core.robot.model import Robot
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_viz.muscles.comparison_page import ComparisonPage
from cards_viz.muscles.interface import MuscleCommands, MuscleSnapshot
from cards_viz.muscles.page import MusclePage
from cards_viz.pages.access import network_note
from cards_viz.pages.widgets import add_key
from cards_viz.rods.interface import RodCommands, RodSnapshot
from cards_viz.rods.page import RodPage
from cards_viz.runs.comparison import check_same_robot
from cards_viz.runs.replay import Replay

RATE = 30.0
"""Frames a second."""

SLIDER_PERIOD = 0.2
"""How often the slider of the time follows what is played, [s]."""

LONGEST_WINDOW = 30.0
"""Greatest length of the plots of two runs, [s]."""

ROD_POINTS = 61
"""Points that are drawn along each rod."""


class _Place(TypedDict):
    """Where a page listens."""

    host: str
    port: int


class Player:
    """Plays snapshots over and over, and obeys the buttons of the page.

    Args:
        times: Of the snapshots, increasing, [s].
        frame: Returns the snapshot of an index; told whether the player is paused.
    """

    def __init__(self, times: npt.ArrayLike, frame: Callable[[int, bool], Any]) -> None:
        self._times = np.asarray(times, dtype=float)
        self._frame = frame
        self._speed = 1.0
        self._paused = len(self._times) < 2
        self._shown = self._times[0]
        self._changed = threading.Condition()
        self._changes = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="player", daemon=True)

    def start(self, show: Callable[[Any], None]) -> None:
        """Begin to play.

        Args:
            show: Told each snapshot.
        """
        self._show = show
        self._thread.start()

    def stop(self) -> None:
        """End for good."""
        with self._changed:
            self._ended = True
            self._notify()
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        before = time.monotonic()
        while not self._ended:
            seen = self._changes
            index = int(np.searchsorted(self._times, self._shown, side="right")) - 1
            self._show(self._frame(max(index, 0), self._paused))
            with self._changed:
                # what was changed while the snapshot was shown has been notified already
                wait = None if self._paused else 1.0 / RATE
                self._changed.wait_for(partial(self._differs, seen), wait)
                now = time.monotonic()
                if not self._paused:
                    self._shown += self._speed * (now - before)
                    if self._shown > self._times[-1] + 1.0:
                        self._shown = self._times[0]
                before = now

    def _differs(self, changes: int) -> bool:
        return self._changes != changes

    def _notify(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    # Buttons of the pages ---------------------------------------------------------------------

    def pause(self, paused: bool) -> None:
        """Pause or go on."""
        with self._changed:
            self._paused = paused
            self._notify()

    def play(self, on: bool) -> None:
        """Go on, or pause."""
        self.pause(not on)

    def step(self) -> None:
        """Show the next snapshot."""
        with self._changed:
            after = int(np.searchsorted(self._times, self._shown, side="right"))
            self._shown = self._times[min(after, len(self._times) - 1)]
            self._notify()

    def home(self) -> None:
        """Go back to the first snapshot."""
        self.reset()

    def hold(self) -> None:
        """Pause."""
        self.pause(True)

    def reset(self) -> None:
        """Go back to the first snapshot."""
        with self._changed:
            self._shown = self._times[0]
            self._notify()

    @property
    def span(self) -> tuple[float, float]:
        """First and last time, [s]."""
        return float(self._times[0]), float(self._times[-1])

    @property
    def shown(self) -> float:
        """Time that is shown, [s]."""
        out: float = min(self._shown, float(self._times[-1]))
        return out

    def seek(self, time: float) -> None:
        """Go to a time, [s], and go on from there, or stay there if paused."""
        with self._changed:
            first, last = self.span
            self._shown = min(max(time, first), last)
            self._notify()

    def set_speed(self, factor: float) -> None:
        """Set the speed, 1: as recorded."""
        with self._changed:
            self._speed = factor

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return what refuses all other buttons: what is recorded cannot be changed."""
        if name.startswith("_"):
            raise AttributeError(name)

        def refuse(*_: Any, **__: Any) -> None:
            raise CardsError("this is a recording: it can be paused, stepped and reset")

        return refuse


class View:
    """An open page. Close it with `close`, or leave it to the end of the program.

    Attributes:
        url: Address of the page.
        page: The page, whose viser ``server`` takes things of one's own.
    """

    def __init__(self, page: MusclePage | ComparisonPage | RodPage, player: Player) -> None:
        self.page = page
        self.url = page.url
        self._player = player
        first, last = player.span
        self._time = None
        if last > first:
            self._time = page.server.gui.add_slider(
                "time [s]", min=first, max=last, step=(last - first) / 1000.0,
                initial_value=first, hint="Drag to any moment of the run",
            )  # fmt: skip
            self._time.on_update(self._dragged)
            self._add_keys(first, last)
        self._told = -math.inf
        player.start(self._show)
        # else viser closes it, with a line on the terminal
        atexit.register(self.close)

    def _add_keys(self, first: float, last: float) -> None:
        """Let the arrow keys go through the run."""
        gui, player, step = self.page.server.gui, self._player, (last - first) / 50.0

        def by(change: float) -> Callable[[], None]:
            return lambda: player.seek(player.shown + change)

        add_key(gui, "Back", "arrowleft", by(-step), "By a fiftieth of the run")
        add_key(gui, "Forward", "arrowright", by(step), "By a fiftieth of the run")
        add_key(gui, "To the start", "home", lambda: player.seek(first))
        add_key(gui, "To the end", "end", lambda: player.seek(last))

    def _dragged(self, event: Any) -> None:
        if event.client is not None:  # moved in the browser, not by what is played
            self._player.seek(float(event.target.value))

    def _show(self, snapshot: Any) -> None:
        """Show a snapshot, and now and then where in the run it is."""
        self.page.show(snapshot)
        now = time.monotonic()
        if self._time is not None and now - self._told > SLIDER_PERIOD:
            self._told = now
            self._time.value = self._player.shown

    def seek(self, time: float) -> None:
        """Go to a time of the run, [s], and pause there; as dragging its slider does.

        Raises:
            CardsError: The time is not finite.
        """
        if not math.isfinite(time):
            raise CardsError(f"time is {time} (expected: a finite number of seconds)")
        self._player.pause(True)
        self._player.seek(time)

    def play(self) -> None:
        """Go on from the time that is shown."""
        self._player.play(True)

    def close(self) -> None:
        """Close the page."""
        atexit.unregister(self.close)
        self._player.stop()
        self.page.stop()

    def wait(self) -> None:
        """Wait until Ctrl-C, then close the page."""
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="600" frameborder="0"></iframe>'


def show(
    what: AnyRobot | Recording,
    beside: RunLog | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    block: bool | None = None,
    state: str = "recorded run",
) -> View:
    """Open a page that shows a robot at home, or plays a run, or two of them side by side.

    Args:
        what: A robot of `cards.load`, or a run of `cards.simulate` or `cards.read_run`.
        beside: Another run of the same robot with muscles, played at the same time.
        host: Address to listen on; 0.0.0.0 opens the page to the network, for those who have its
            link.
        port: Wanted port; a busy one is replaced by the next free one.
        block: Wait for Ctrl-C. None: only in a terminal, where the page would otherwise close
            with the end of the program.
        state: What the page of a run of a robot with muscles says that it shows.

    Raises:
        CardsError: There is nothing to show, the runs are of different robots, or there is no port
            to listen on.
    """
    place: _Place = {"host": host, "port": port}
    if beside is not None:
        view = _side_by_side(what, beside, place)
    elif isinstance(what, RunLog):
        view = _muscles(what.robot, place, what, state)
    elif isinstance(what, RodRunLog):
        view = _rods(what.robot, place, what)
    elif isinstance(what, Robot):
        view = _muscles(what, place, None, "")
    elif isinstance(what, RodRobot):
        view = _rods(what, place, None)
    else:
        raise CardsError(f"nothing to show of {what!r:.80} (expected: a robot or a run)")
    if block is None:
        block = sys.stdin.isatty() and not hasattr(sys, "ps1") and "ipykernel" not in sys.modules
    if note := network_note(host):
        print(f"{note}{view.page.spectator_url}", flush=True)
    if block:
        print(f"{view.url} (Ctrl-C closes it)", flush=True)
        view.wait()
    return view


def _muscles(robot: Robot, place: _Place, run: RunLog | None, state: str) -> View:
    if run is None:
        still = MuscleSnapshot(0.0, robot.tree.home.copy(), np.zeros(len(robot.muscles)))
        player = Player([0.0], lambda _index, _paused: still)
    else:
        replay = Replay(run.recorded())
        times = replay.times
        player = Player(
            times, lambda i, paused: replace(replay.at(times[i], paused=paused), state=state)
        )
    return View(MusclePage(robot, cast(MuscleCommands, player), live=False, **place), player)


def _side_by_side(what: AnyRobot | Recording, beside: RunLog, place: _Place) -> View:
    for which, run in (("first", what), ("second", beside)):
        check_kind(run, RunLog, f"the {which} run", "a run of a robot with muscles")
    runs = cast(RunLog, what).recorded(), beside.recorded()
    check_same_robot(*runs)
    first, second = replays = Replay(runs[0]), Replay(runs[1])
    times = np.union1d(first.times, second.times)

    def pair(i: int, paused: bool) -> tuple[MuscleSnapshot, MuscleSnapshot]:
        return first.at(times[i], paused=paused), second.at(times[i], paused=paused)

    player = Player(times, pair)
    robots = runs[0].robot, runs[1].robot
    labels = f"A: {runs[0].name}", f"B: {runs[1].name}"
    end = max(float(replay.times[-1]) for replay in replays)
    commands = cast(MuscleCommands, player)
    page = ComparisonPage(robots, labels, commands, **place, window=min(end, LONGEST_WINDOW))
    return View(page, player)


def _rods(robot: RodRobot, place: _Place, run: RodRunLog | None) -> View:
    solver = RodRobotSolver(robot)
    if run is None:
        from cards.models import RodModel

        solution = RodModel(robot).tracker.solution
        lines = _lines(solver, solution)
        still = RodSnapshot(0.0, solution.q.copy(), solution.pose.copy(), lines)
        player = Player([0.0], lambda _index, _paused: still)
        return View(RodPage(robot, cast(RodCommands, player), **place), player)
    log = run

    def frame(i: int, paused: bool) -> RodSnapshot:
        q, pose = log.q[i], log["pose"][i].reshape(4, 4)
        start = InitialGuess(q, pose, log["base_wrenches"][i].reshape(-1, 6))
        solution = solver.dgm(q, wrench=log["wrench"][i], start=start)
        values = {
            "min_eigenvalue": float(log["min_eigenvalue"][i]),
            "start_eigenvalue": float(log["start_eigenvalue"][i]),
        }
        status = RodStatus(int(log["status"][i]))
        lines = _lines(solver, solution)
        time = float(log.time[i])
        return RodSnapshot(time, q, pose, lines, values, status, playing=not paused)

    player = Player(run.time, frame)
    return View(RodPage(robot, cast(RodCommands, player), **place), player)


def _lines(solver: RodRobotSolver, solution: Any) -> np.ndarray:
    """Return what `RodSnapshot.lines` holds; NaN where there is no equilibrium."""
    if not solution.converged:
        return np.full((solution.limbs, ROD_POINTS, 6), math.nan)
    shapes = solver.shapes(solution, ROD_POINTS)
    columns = (shapes.curvature, shapes.stress, shapes.strain)
    return np.concatenate([shapes.positions, *(c[..., None] for c in columns)], axis=-1)
