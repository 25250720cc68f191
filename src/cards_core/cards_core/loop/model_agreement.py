"""Whether the models that nodes tell each other fit, and who stops if not; works without ROS.

Who listens to whom:

========== =====================================================================================
controller the hosts; the compiler only where no host has said what it moves
host       other hosts (two bodies on the same topics), and the controllers that send commands
compiler   nobody: it neither moves nor commands
observer   as a controller: what it computes of the states needs the host's model
========== =====================================================================================

A host is the authority about the physics. A compiler says what a description gives now, so where a
host has spoken, another model of the compiler is a remark: the file was changed, or it compiles
something else. It never stops a robot that runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from cards_core.errors import CardsError
from cards_core.loop.model_differences import differences
from cards_core.loop.model_identity import Announcement, decode
from cards_core.parameters.declaration import Parameter

ACCEPT = "accept_other_model"
"""Name of the parameter that lets a node work with others that have another model."""


def accept_parameter(allowed: str) -> Parameter:
    """Return the parameter `ACCEPT`.

    Args:
        allowed: What the node does with it, and not without.
    """
    return Parameter(ACCEPT, False, allowed, live=True)


@dataclass(frozen=True)
class Disagreement:
    """Another node has another model.

    Attributes:
        other: What it said.
        differences: In words, not empty.
    """

    other: Announcement
    differences: tuple[str, ...]

    def __str__(self) -> str:
        who = f"{self.other.role} {self.other.node}"
        return f"{who} has another model '{self.other.model.robot}': {'; '.join(self.differences)}"


class Agreement:
    """Compares the model of a node with those of all others that it hears of.

    Args:
        own: What the node itself says.

    Attributes:
        own: As given.
        problem: What the last message was that could not be understood, empty if there is none.
    """

    def __init__(self, own: Announcement) -> None:
        self.own = own
        self._heard: dict[str, Announcement] = {}
        self._different: dict[str, Disagreement] = {}
        self._unready: dict[str, None] = {}  # hosts, by name: one that starts anew is the same
        self.problem = ""

    def hear(self, text: str) -> None:
        """Take over a message; one that cannot be understood becomes the `problem`."""
        try:
            other = decode(text)
        except CardsError as error:
            self.problem = f"a message on the topic 'model' is not understood: {error}"
            return
        if other.instance == self.own.instance:
            return
        self._heard[other.instance] = other
        self._unready.pop(other.node, None)
        if other.role == "host" and not other.ready:
            self._unready[other.node] = None
        found = differences(self.own.model, other.model)
        if found:
            self._different[other.instance] = Disagreement(other, tuple(found))
        else:
            self._different.pop(other.instance, None)

    def forget(self) -> None:
        """Drop all that was heard, to hear it again from those that are still there."""
        self._heard.clear()
        self._different.clear()
        self._unready.clear()
        self.problem = ""

    @property
    def others(self) -> int:
        """Number of nodes heard of; one that is not understood counts."""
        return len(self._heard) + bool(self.problem)

    @property
    def uneasy(self) -> bool:
        """Whether anything is not as it should be."""
        return bool(self._different or self.problem)

    @property
    def unready(self) -> str:
        """Name of a host that obeys no commands now, empty if all that were heard of do."""
        return next(iter(self._unready), "")

    @property
    def disagreements(self) -> list[Disagreement]:
        """Those that forbid to command, or to obey commands."""
        return [one for one in self._different.values() if self._counts(one.other)]

    @property
    def remarks(self) -> list[Disagreement]:
        """Those that forbid nothing."""
        return [one for one in self._different.values() if not self._counts(one.other)]

    def _counts(self, other: Announcement) -> bool:
        if self.own.role == "compiler":
            return False
        if other.role == "host":
            return True
        if self.own.role == "host":
            return other.role == "controller" and other.commands
        host_known = any(one.role == "host" for one in self._heard.values())
        return other.role == "compiler" and not host_known
