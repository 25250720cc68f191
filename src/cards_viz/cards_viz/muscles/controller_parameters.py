"""What the page shows of a controller's parameters: switches, and the limits of the bars.

A boolean parameter that its node lets change while it runs is a switch: nodes say so in the
parameter's descriptor, so a controller of your own has its switches on the page too.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import ParameterType
from rclpy.parameter_client import AsyncParameterClient

from cards_core.loop.model_agreement import ACCEPT
from cards_viz.muscles.interface import BarLimits, Switch

LOG = logging.getLogger(__name__)

ASK_PERIOD = 0.5
"""Time between two looks at the values, [s]."""

ANSWER_TIME = 5.0
"""Time after which a question that got no answer is asked again, [s]."""

LIMITS = {"dl_max": "released", "soft_temperature": "soft", "hard_temperature": "hard"}
"""Parameters that say where bars end, and the `BarLimits` they set."""

FOREIGN = frozenset({"use_sim_time", ACCEPT})
"""Boolean parameters about the node among others, not about how it controls."""


class ControllerParameters:
    """Follows the parameters of the present controller; ask it from the node's own thread.

    Args:
        client_of: Returns a client of a node's parameters.

    Attributes:
        switches: Boolean live parameters, in the order in which the node lists them.
        limits: Of the bars; defaults where the controller does not say.
    """

    def __init__(self, client_of: Callable[[str], AsyncParameterClient]) -> None:
        self._client_of = client_of
        self._node: str | None = None
        self._forget()

    def _forget(self) -> None:
        self.switches: tuple[Switch, ...] = ()
        self.limits = BarLimits()
        self._described: dict[str, str] | None = None  # name to description
        self._asked = self._answer_due = -math.inf

    def follow(self, node: str | None) -> None:
        """Ask for what is not known yet of a node, or may have changed.

        Args:
            node: Name of the controller's node, None if there is none.
        """
        if node != self._node:
            self._node = node
            self._forget()
        now = time.monotonic()
        if node is None or now < self._answer_due or now - self._asked < ASK_PERIOD:
            return
        client = self._client_of(node)
        if not client.services_are_ready():
            return
        self._asked, self._answer_due = now, now + ANSWER_TIME
        if self._described is None:
            client.list_parameters(callback=self._answer(node, self._describe))
        elif self._described:
            client.get_parameters(list(self._described), self._answer(node, self._take))

    def _answer(self, node: str, then: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return what takes an answer, unless another controller has taken over since."""

        def answered(future: Any) -> None:
            if node != self._node:
                return
            self._answer_due = -math.inf
            if future.exception() is not None:
                LOG.warning("parameters of %s: %s", node, future.exception())
            else:
                then(future.result())

        return answered

    def _describe(self, listed: Any) -> None:
        names = [name for name in listed.result.names if name not in FOREIGN]
        node = self._node
        assert node is not None

        def take(described: Any) -> None:
            self._described = {
                item.name: item.description
                for item in described.descriptors
                if item.name in LIMITS or not item.read_only
            }
            self._asked = -math.inf  # their values at once

        self._client_of(node).describe_parameters(names, self._answer(node, take))

    def _take(self, answer: Any) -> None:
        described = self._described or {}
        if len(answer.values) != len(described):
            self._described = None  # the node was restarted, with other parameters
            return
        limits: dict[str, float] = {}
        switches = []
        self._described = {}  # those that are shown: others need not be asked for again
        for (name, description), value in zip(described.items(), answer.values, strict=True):
            if value.type == ParameterType.PARAMETER_BOOL:
                switches.append(Switch(name, value.bool_value, description))
                self._described[name] = description
            elif name in LIMITS and value.type == ParameterType.PARAMETER_DOUBLE:
                limits[LIMITS[name]] = value.double_value
                self._described[name] = description
        self.switches = tuple(switches)
        self.limits = BarLimits(**limits)
