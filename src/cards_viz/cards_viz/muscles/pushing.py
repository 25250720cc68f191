"""Pushing a robot on its page: a spring from the point of a link that was caught to the cursor.

The page says what pulls where (`Push`); the host evaluates the spring as often as it can, at least
as often as the page is drawn, so that the force follows the link too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser

from cards_core.errors import CardsError
from cards_core.robot.model import WORLD_NODE, Robot
from cards_core.typing import Array, Vector3
from cards_viz.colors import nice_ceiling
from cards_viz.muscles.interface import MuscleCommands
from cards_viz.pages.page import ClientPace
from cards_viz.pages.widgets import Guard

LOG = logging.getLogger(__name__)

REACH = 0.25
"""Length of the spring at its maximum force, relative to the size of the robot."""

SILENCE = 3.0
"""Time for which a page that pushes may give no sign of life, [s]; then it lets go."""

GRAVITY = 9.81  # [m/s^2]


@dataclass(frozen=True, eq=False)
class Push:
    """A spring without damping from a point of a link to a point in space, with limited force.

    ``F = limit min(|d| / reach, 1) d / |d|``, ``d = target - point``.

    Attributes:
        link: Name of the link.
        point: Where it was caught, in link coordinates, shape (3,), [m].
        target: Where the cursor is, in the axes of the robot, shape (3,), [m].
        limit: Maximum force, [N].
        reach: Length at which the spring has it, [m].
    """

    link: str
    point: Vector3
    target: Vector3
    limit: float
    reach: float

    def force(self, link_pose: Array) -> Vector3:
        """Return the force on the link, shape (3,), [N], in the axes of the robot.

        Args:
            link_pose: Of the link in these axes, shape (4, 4).
        """
        d = self.target - self.caught(link_pose)
        length = float(np.linalg.norm(d))
        if not 0.0 < length < np.inf:
            return np.zeros(3)
        return np.asarray(self.limit * min(length / self.reach, 1.0) * d / length)

    def caught(self, link_pose: Array) -> Vector3:
        """Return where the point is now, shape (3,), [m]; argument as of `force`."""
        return np.asarray(link_pose[:3, :3] @ self.point + link_pose[:3, 3])

    def wrench(self, link_pose: Array) -> Array:
        """Return force and moment about the link's origin, shape (6,), [N] and [Nm]."""
        force = self.force(link_pose)
        return np.concatenate([force, np.cross(link_pose[:3, :3] @ self.point, force)])


def usual_limit(robot: Robot) -> float:
    """Return a force that moves a robot and breaks nothing, [N]: half the weight of what moves."""
    nodes = robot.tree.link_node
    mass = sum(link.inertia.mass for link in robot.links if nodes[link.name][0] != WORLD_NODE)
    return nice_ceiling(max(0.5 * GRAVITY * mass, 1.0))


class PushPanel:
    """Lets links be dragged, and says how hard they are pulled.

    Args:
        gui: Where to add the controls.
        commands: Told of every push, and None at its end.
        run: Runs commands.
        limit: Maximum force at first, [N].
        size: Of the robot, [m].
        pose_of: Returns the pose of a link as it is drawn, shape (4, 4); None if none is.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        commands: MuscleCommands,
        run: Guard,
        *,
        limit: float,
        size: float,
        pose_of: Callable[[str], Array | None],
    ) -> None:
        self._commands, self._run = commands, run
        self._reach = REACH * size
        self._pose_of = pose_of
        self._lock = threading.Lock()
        self._push: Push | None = None
        self._client: int | None = None
        self._heard = 0.0
        self._folder = gui.add_folder("Push")
        with self._folder:
            self._on = gui.add_checkbox(
                "Drag links to push", True, hint="Beside the robot, dragging turns the camera"
            )
            self.limit = gui.add_slider(
                "force [N]", min=round(limit / 20.0, 3), max=5.0 * limit, step=limit / 20.0,
                initial_value=limit, hint="Maximum force of the spring",
            )  # fmt: skip
            self._text = gui.add_html("", visible=False)
        self._on.on_update(lambda _: self.end())

    @property
    def push(self) -> Push | None:
        """The present push."""
        return self._push

    def set_visible(self, visible: bool) -> None:
        """Show or hide the controls; hidden ones push nothing."""
        self._folder.visible = visible

    def attach(self, handle: Any, link: str) -> None:
        """Let a shape of a link be dragged."""

        async def dragged(event: Any) -> None:
            # in the order of the phases; what it does takes microseconds
            self.drag(link, event.phase, event.client_id, event.start_position, event.end_position)

        handle.on_drag("left")(dragged)

    def drag(
        self,
        link: str,
        phase: str,
        client: int,
        caught: tuple[float, float, float],
        cursor: tuple[float, float, float],
    ) -> None:
        """Take over what a mouse or finger does.

        Args:
            link: Name of the link.
            phase: ``start``, ``update`` or ``end``.
            client: The page.
            caught: Where the link was caught, [m].
            cursor: Where the cursor is, in a plane parallel to the picture, [m].
        """
        with self._lock:
            if phase == "end":
                if client == self._client:
                    self._finish()
                return
            if phase == "start":
                pose = self._pose_of(link)
                if self._client is not None or not (self._on.value and self._folder.visible):
                    return  # somebody else pushes, or nobody may
                if pose is None:
                    return
                point = pose[:3, :3].T @ (np.array(caught) - pose[:3, 3])
                self._client = client
            elif self._client != client or self._push is None:
                return
            else:
                point = self._push.point
            self._heard = time.monotonic()
            limit = float(self.limit.value)
            self._push = Push(link, point, np.array(cursor), limit, self._reach)
            push = self._push
        self._run(lambda: self._tell(push))

    def _tell(self, push: Push) -> None:
        try:
            self._commands.push(push)
        except CardsError:
            with self._lock:  # refused once is enough
                self._push = self._client = None
            raise

    def end(self) -> None:
        """Let go."""
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        if self._client is None:
            return
        pushed, self._push, self._client = self._push, None, None
        if pushed is not None:
            self._run(lambda: self._commands.push(None))

    def watch(self, pace: ClientPace) -> None:
        """Let go where the page that pushes gives no sign of life; called while it is drawn."""
        client = self._client
        if client is None:
            return
        now = time.monotonic()
        if not pace.waiting(client):
            self._heard = now
        if now - self._heard > SILENCE:
            LOG.warning("the page that pushes does not answer: the push has ended")
            self.end()

    def draw(self) -> None:
        """Say what is pushed, and how hard."""
        push = self._push
        pose = None if push is None else self._pose_of(push.link)
        self._text.visible = pose is not None
        if push is not None and pose is not None:
            force = float(np.linalg.norm(push.force(pose)))
            self._text.content = (
                '<div style="padding:0 12px;font-size:12px;font-variant-numeric:tabular-nums">'
                f"pushing {push.link}: <b>{force:.3g} N</b></div>"
            )
