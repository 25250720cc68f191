"""The newest state of a robot, assembled from the messages of two topics.

A host publishes ``joint_states`` and ``muscle_states`` with one stamp, one after the other. The
newest pair with the same stamp counts; where the stamps of two devices never agree, the newest of
each, and the time between them is part of the state. What is wrong or missing in a message is
NaN in the state and is described in words.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.robot.model import Tree
from cards_core.robot.motors import motors_of
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_model_compiler.live_analysis.analyses import RobotState
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.messages import FIELDS, JointSetError, JointStateSample, MuscleStateNames, NameOrder

KEPT = 20
"""Messages of each topic among which pairs are looked for."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with the states."""

    level: Level
    text: str


class _Topic:
    """The last messages of one topic, and what the one in use says.

    Attributes:
        recent: The last messages.
        new: Those of the last look.
        came: When the last one came, [s].
        stamp: Of the message in use, [ns].
        values: Rows position, velocity, effort; NaN where nothing is known.
        problem: What is wrong with the message in use.
    """

    def __init__(
        self,
        name: str,
        entries: tuple[str, ...],
        places: Callable[[tuple[str, ...]], Any],
        needed: tuple[str, ...],
    ) -> None:
        self.name = name
        self._entries = entries
        self._places = places
        self._needed = needed
        self.recent: deque[JointStateSample] = deque(maxlen=KEPT)
        self.new: list[JointStateSample] = []
        self.came = -math.inf
        self.values = np.full((len(FIELDS), len(entries)), np.nan)
        self.stamp = 0
        self.problem: Problem | None = None

    def add(self, samples: Iterable[JointStateSample], now: float) -> bool:
        self.new = list(samples)
        self.recent.extend(self.new)
        if self.new:
            self.came = now
        return bool(self.new)

    def use(self, sample: JointStateSample) -> None:
        """Take over a message; what cannot be used becomes the problem."""
        self.stamp = sample.stamp
        self.values = np.full((len(FIELDS), len(self._entries)), np.nan)
        self.problem = None
        try:
            self._read(sample)
        except CardsError as error:
            self.values[:] = np.nan
            self.problem = Problem(Level.ERROR, f"{self.name}: {error}")

    def _read(self, sample: JointStateSample) -> None:
        places = self._places(sample.names)
        for row, field in enumerate(FIELDS):
            numbers: Array = getattr(sample, field)
            if numbers.size == len(sample.names):
                self.values[row] = numbers[places]
            elif numbers.size:
                raise JointSetError(
                    f"{numbers.size} values of {field} for {len(sample.names)} names"
                )
            if field not in self._needed:
                continue
            if not numbers.size and self._entries:
                self.problem = self.problem or Problem(
                    Level.WARN, f"{self.name}: no {field} in the message"
                )
            elif not np.isfinite(self.values[row]).all():
                bad = int(np.argmin(np.isfinite(self.values[row])))
                self.problem = Problem(
                    Level.ERROR,
                    f"{self.name}: {field} of '{self._entries[bad]}' is {self.values[row, bad]}",
                )

    def lose(self) -> None:
        """Forget what was said: it is too old."""
        self.values[:] = np.nan
        self.recent.clear()


class LiveState:
    """Follows a robot's messages.

    Args:
        tree: Of the robot.
        timeout: Time after which a state that nothing follows is not known any more, [s].

    Attributes:
        state: The newest one, None before the first message.
    """

    def __init__(self, tree: Tree, timeout: float) -> None:
        self._tree = tree
        self._motor_slots = tree.velocity_slots[motors_of(tree).rows]
        self._timeout = timeout
        muscles = tuple(muscle.name for muscle in tree.robot.muscles)
        joint_order, names = NameOrder(tree.position_names), MuscleStateNames(muscles)
        self._joints = _Topic(
            topics.JOINT_STATES, tree.position_names, joint_order.order, ("position", "velocity")
        )
        self._muscles = _Topic(
            topics.MUSCLE_STATES, muscles, lambda given: names.places(given)[0], FIELDS
        )
        self._topics = (self._joints, self._muscles) if muscles else (self._joints,)
        self.state: RobotState | None = None

    def take(
        self,
        joints: Iterable[JointStateSample],
        muscles: Iterable[JointStateSample],
        now: float,
    ) -> bool:
        """Take over messages; return whether there is a new state.

        Args:
            joints: What came on ``joint_states``, in order.
            muscles: What came on ``muscle_states``, in order.
            now: [s] of the monotonic clock.
        """
        new_joints = self._joints.add(joints, now)
        new_muscles = self._muscles.add(muscles, now)
        if not (new_joints or (new_muscles and len(self._topics) > 1)):
            return False
        for topic in self._topics:
            if self._old(topic, now):
                topic.lose()
        for topic, sample in zip((self._joints, self._muscles), self._pair(), strict=True):
            if sample is not None:
                topic.use(sample)
        self.state = self._made(now)
        return True

    def _old(self, topic: _Topic, now: float) -> bool:
        return now - topic.came > self._timeout

    def _pair(self) -> tuple[JointStateSample | None, JointStateSample | None]:
        """Return the newest messages of one stamp, else the newest ones."""
        joints, muscles = self._joints.recent, self._muscles.recent
        by_stamp = {sample.stamp: sample for sample in muscles}
        new = [*self._joints.new, *self._muscles.new]
        for sample in reversed(joints):
            other = by_stamp.get(sample.stamp)
            # a pair of old messages says nothing about now
            if other is not None and (sample in new or other in new):
                return sample, other
        return (joints[-1] if joints else None), (muscles[-1] if muscles else None)

    def _made(self, now: float) -> RobotState:
        tree, joints, muscles = self._tree, self._joints, self._muscles
        q, qd = joints.values[0], joints.values[1][tree.velocity_slots]
        if np.isfinite(q).all():
            try:
                q = tree.check_q(q)
            except CardsError as error:
                joints.problem = Problem(Level.ERROR, f"{joints.name}: {error}")
                q = np.full(tree.nq, np.nan)
        both = len(joints.recent) and len(muscles.recent)
        stamp = joints.stamp if joints.recent else muscles.stamp
        return RobotState(
            number=0 if self.state is None else self.state.number + 1,
            came=now,
            stamp=stamp,
            time_difference=seconds(muscles.stamp - joints.stamp) if both else math.nan,
            q=q,
            qd=qd,
            lengths=muscles.values[0],
            rates=muscles.values[1],
            tensions=muscles.values[2],
            efforts=joints.values[2][self._motor_slots],
        )

    def stale(self, now: float) -> bool:
        """Whether no topic has a state that is not too old."""
        return all(self._old(topic, now) for topic in self._topics)

    def problem(self, now: float) -> Problem | None:
        """Return the worst of what is wrong, None if nothing is."""
        found = [self._problem_of(topic, now) for topic in self._topics]
        return max((p for p in found if p is not None), key=lambda p: p.level, default=None)

    def _problem_of(self, topic: _Topic, now: float) -> Problem | None:
        if math.isinf(topic.came):
            return Problem(Level.STALE, f"no {topic.name} yet")
        if self._old(topic, now):
            return Problem(Level.STALE, f"no {topic.name} for {self._timeout:g} s")
        return topic.problem
