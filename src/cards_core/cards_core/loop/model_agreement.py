"""Whether the models that nodes tell each other agree, and who stops if not; works without ROS.

`differences` says in words what is not the same in two models. `Agreement` decides what follows
from it. Who listens to whom:

========== =====================================================================================
controller the hosts; the compiler only where no host has said what it moves
host       other hosts (two bodies on the same topics), and the controllers that send commands
compiler   none: it neither moves nor commands
observer   as a controller: what it computes of the states needs the host's model
========== =====================================================================================

A host is the authority about the physics. A compiler says what a description gives now, so where a
host has spoken, another model of the compiler is a remark: the file was changed, or it compiles
something else. It never stops a robot that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cards_core.checks import listed
from cards_core.errors import CardsError
from cards_core.loop.model_identity import Announcement, Limits, ModelIdentity, decode
from cards_core.parameters.declaration import Parameter

# Differences -----------------------------------------------------------------------------------


def differences(own: ModelIdentity, other: ModelIdentity) -> list[str]:
    """Return what is not the same in two models, in words; empty if they are the same.

    Names of robots and versions of CARDS do not count, nor does what one side does not know.

    Args:
        own: The model "here".
        other: The model "there".
    """
    found = []
    if own.joint_names != other.joint_names:
        found.append(_name_difference("joints", own.joint_names, other.joint_names))
    elif None not in (own.joint_limits, other.joint_limits):
        pairs = (own.joint_limits or (), other.joint_limits or ())
        found += _limit_difference("joint limits", own.joint_names, *pairs)
    if own.muscle_names != other.muscle_names:
        found.append(_name_difference("muscles", own.muscle_names, other.muscle_names))
    else:
        found += _entries(
            "muscle types",
            [
                f"{name} {mine} here, {theirs} there"
                for name, mine, theirs in zip(
                    own.muscle_names, own.muscle_types, other.muscle_types, strict=True
                )
                if mine != theirs
            ],
        )
        found += _limit_difference(
            "tension limits [N]", own.muscle_names, own.tension_limits, other.tension_limits
        )
    found += _motor_difference(own, other)
    if None not in (own.gravity, other.gravity) and own.gravity != other.gravity:
        found.append(f"gravity: {_vector(own.gravity)} here, {_vector(other.gravity)} there")
    return found + _equation_difference(own, other)


def _motor_difference(own: ModelIdentity, other: ModelIdentity) -> list[str]:
    if own.motor_names is None or other.motor_names is None:
        return []
    if own.motor_names != other.motor_names:
        return [_name_difference("joint motors", own.motor_names, other.motor_names)]
    if own.effort_limits is None or other.effort_limits is None:
        return []
    return _limit_difference(
        "effort limits [Nm or N]",
        own.motor_names,
        tuple((-x, x) for x in own.effort_limits),
        tuple((-x, x) for x in other.effort_limits),
    )


def _equation_difference(own: ModelIdentity, other: ModelIdentity) -> list[str]:
    if None in (own.hash, other.hash) or own.hash == other.hash:
        return []
    if own.bodies_hash != other.bodies_hash:
        part = "masses, inertias or placements of links and joints"
    elif own.muscles_hash != other.muscles_hash:
        part = "muscle paths"
    else:
        part = "named frames"
    text = f"equations ({part}): hash {own.hash} here, {other.hash} there"
    if own.cards_version != other.cards_version:
        text += f", of CARDS {own.cards_version} here, {other.cards_version} there"
    return [text]


def _name_difference(what: str, own: Sequence[str], other: Sequence[str]) -> str:
    here = [name for name in own if name not in other]
    there = [name for name in other if name not in own]
    parts = [
        f"{listed(names)} only {place}"
        for names, place in ((here, "here"), (there, "there"))
        if names
    ]
    return f"{what}: {'; '.join(parts) or 'in another order'}"


def _limit_difference(what: str, names: Sequence[str], own: Limits, other: Limits) -> list[str]:
    return _entries(
        what,
        [
            f"{name} {_range(mine)} here, {_range(theirs)} there"
            for name, mine, theirs in zip(names, own, other, strict=True)
            if mine != theirs
        ],
    )


def _entries(what: str, entries: Sequence[str]) -> list[str]:
    return [f"{what}: {listed(entries, '; ')}"] if entries else []


def _range(pair: tuple[float, float]) -> str:
    # as many digits as tell the two sides apart
    return f"{pair[0]!r} .. {pair[1]!r}"


def _vector(values: tuple[float, ...] | None) -> str:
    return "(" + ", ".join(f"{x:.12g}" for x in values or ()) + ")"


# Agreement -------------------------------------------------------------------------------------


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
        period: Of the states of the host that was heard of last, [s]; None: it is not known.
    """

    period: float | None = None

    def __init__(self, own: Announcement) -> None:
        self.own = own
        self._heard: dict[str, Announcement] = {}
        self._different: dict[str, Disagreement] = {}
        self._unready: dict[str, None] = {}  # hosts, by name: one that restarts is the same
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
        self.period = other.period or self.period
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
