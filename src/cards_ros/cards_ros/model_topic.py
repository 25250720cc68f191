"""The topic ``model`` of a node: says which model it has, hears which ones the others have."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from cards_core.loop.model_agreement import ACCEPT, Agreement
from cards_core.loop.model_identity import Announcement, ModelIdentity, Role, encode
from cards_ros import topics
from cards_ros.diagnostics import Level, Status
from cards_ros.loop import HotSubscription

LOOK_PERIOD = 1.0
"""Time between two looks whether a node that had another model is gone, [s] of real time."""

PATIENCE = 1.0
"""Longest wait for what the others, whose publishers are known, have to say, [s] of real time."""


class ModelTopic:
    """Publisher and subscription of the topic ``model``.

    Make it before the topics with states: who hears of those has then heard of this one too.

    Args:
        node: The node.
        role: What the node is.
        model: The model that it has; None for one that has none yet and says nothing.
        accepts: Tells whether other models are accepted.
        ready: Whether a host obeys commands from the start, see `ready`.
    """

    def __init__(
        self,
        node: Node,
        role: Role,
        model: ModelIdentity | None,
        accepts: Callable[[], bool] = lambda: True,
        *,
        ready: bool = True,
    ) -> None:
        self._node = node
        self._role: Role = role
        self._accepts = accepts
        self._instance = uuid.uuid4().hex[:12]
        self._agreement: Agreement | None = None
        self._publisher: Publisher | None = None
        if model is not None:
            self._advertise()
        self._subscribe()
        self._first: float | None = None
        self._looked = time.monotonic()
        self._settled = False
        self._held = ""  # refusal that holds until the others have been heard again
        self._ready = ready
        if model is not None:
            self.announce(model)

    def _advertise(self) -> None:
        # not before there is something to say: others wait for what a publisher has to say
        self._publisher = self._node.create_publisher(String, topics.MODEL, topics.LATCHED_QOS)

    def _subscribe(self) -> None:
        self._heard = HotSubscription(self._node, String, topics.MODEL, topics.MODEL_QOS)

    def announce(self, model: ModelIdentity) -> None:
        """Say which model the node has, in place of what it said before."""
        name = self._node.get_fully_qualified_name()
        ready = self._ready if self._agreement is None else self._agreement.own.ready
        own = Announcement(name, self._instance, self._role, model, ready=ready)
        if self._agreement is not None:
            self._resubscribe()  # to compare again with what was heard
        self._agreement = Agreement(own)
        self._publish(own)

    def commanding(self, commands: bool) -> None:
        """Say whether the node sends commands, if that changed."""
        if self._agreement is not None and self._agreement.own.commands != commands:
            self._say(replace(self._agreement.own, commands=commands))

    def ready(self, ready: bool) -> None:
        """Say whether the node, a host, obeys commands, if that changed."""
        if self._agreement is not None and self._agreement.own.ready != ready:
            self._say(replace(self._agreement.own, ready=ready))

    def states_every(self, period: float) -> None:
        """Say the time from one state of the node, a host, to the next [s], if that changed."""
        if self._agreement is not None and self._agreement.own.period != period:
            self._say(replace(self._agreement.own, period=period))

    def _say(self, own: Announcement) -> None:
        assert self._agreement is not None
        self._agreement.own = own
        self._publish(own)

    def _publish(self, own: Announcement) -> None:
        if self._publisher is None:
            self._advertise()
        assert self._publisher is not None
        self._publisher.publish(String(data=encode(own)))

    # Hearing ----------------------------------------------------------------------------------

    def take(self) -> None:
        """Take the messages that have come."""
        while self._agreement is not None and (data := self._heard.take()) is not None:
            self._agreement.hear(deserialize_message(data, String).data)

    def update(self) -> None:
        """Take messages, and see whether who is in the way is gone; call it now and then."""
        self.take()
        now = time.monotonic()
        agreement = self._agreement
        if agreement is None or now - self._looked < LOOK_PERIOD:
            return
        if not (agreement.uneasy or agreement.unready):
            return
        self._looked = now
        if agreement.others > self._publishers():
            # who is still there says it again to a new reader
            self._held = self.refusal
            self._resubscribe()
            agreement.forget()
            self._settled, self._first = False, None

    def _resubscribe(self) -> None:
        self._node.destroy_subscription(self._heard.subscription)
        self._subscribe()

    def _publishers(self) -> int:
        """Number of other publishers of the topic in the ROS graph."""
        own = self._publisher is not None
        return self._node.count_publishers(self._heard.subscription.topic_name) - own

    def settled(self) -> bool:
        """Tell whether all those that publish have been heard, or had `PATIENCE` to be.

        A controller asks before its first command: state and model come on two topics, and no
        order holds between them.
        """
        if self._settled or self._agreement is None:
            return True
        now = time.monotonic()
        if self._first is None:
            self._first = now
        self.take()
        heard = self._agreement.others >= self._publishers()
        self._settled = heard or now - self._first > PATIENCE
        return self._settled

    @property
    def period(self) -> float | None:
        """Period of the host's states, [s]; None: no host has said it."""
        return None if self._agreement is None else self._agreement.period

    @property
    def unready(self) -> str:
        """Name of a host that obeys no commands now, empty if there is none."""
        return "" if self._agreement is None else self._agreement.unready

    @property
    def refusal(self) -> str:
        """Why commands must neither be sent nor obeyed; empty if they may."""
        agreement = self._agreement
        # asked for every state, a thousand times a second
        if agreement is None or not (agreement.uneasy or self._held) or self._accepts():
            return ""
        found = agreement.disagreements
        if not found:
            if self._held and self.settled():
                self._held = ""
            return self._held
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"{found[0]}{more}"

    def report(self, status: Status, stopped: str = "no commands") -> None:
        """Say on ``/diagnostics`` whether all agree.

        Args:
            status: Where.
            stopped: What another model stops.
        """
        agreement = self._agreement
        if agreement is None:
            return
        values: dict[str, Any] = {
            "hash": agreement.own.model.hash or "unknown",
            "others": agreement.others,
        }
        if refusal := self.refusal:
            advice = f"start all with the same model, or set {ACCEPT}"
            status.report(Level.ERROR, f"{stopped}: {refusal}; {advice}", **values)
        elif agreement.problem:
            status.report(Level.ERROR, agreement.problem, **values)
        elif agreement.uneasy:
            found = [*agreement.disagreements, *agreement.remarks]
            status.report(Level.WARN, "; ".join(map(str, found[:2])), **values)
        else:
            status.ok(**values)
