"""Forces that a robot is to exert, and what they ask of its joints.

A force F and a moment M that a link is to exert on what it touches or carries, F at a point p of
it, need besides the weight of the robot the joint forces

    tau = sum over links  J_p' F + J_w' M,      J_p = dp/dq,  J_w = dw/dqd

A load of mass m that is carried at p is F = -m g, which points up. A new force is reached on a
straight line within a time: lengths that jumped by T/K would make muscles jerk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_array
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError
from cards_core.spatial import hat
from cards_core.typing import Array


@dataclass(eq=False, slots=True)
class _ContactForce:
    """Of one link.

    Attributes:
        wrench: F and M that act now, shape (6,), in world axes, [N] and [Nm].
        target: What they become.
        point: p in link coordinates, [m].
        left: Time until then, [s].
    """

    wrench: Array
    target: Array
    point: Array
    left: float


class ContactForces:
    """Forces that links are to exert, one for each link or frame.

    Args:
        dynamics: Of the robot; shared with others that call it in turn.
        ramp: Time in which a new force is reached, [s]; 0: at once.
        force_max, moment_max: Largest that are taken, [N] and [Nm].
    """

    def __init__(
        self,
        dynamics: Dynamics,
        ramp: float,
        *,
        force_max: float = np.inf,
        moment_max: float = np.inf,
    ) -> None:
        self._dynamics = dynamics
        self._largest = {"force": force_max, "moment": moment_max}
        self._ramp = ramp
        self._forces: dict[str, _ContactForce] = {}
        self._still = np.zeros(dynamics.tree.nv)

    def set(
        self,
        link: str,
        force: npt.ArrayLike,
        point: npt.ArrayLike | None = None,
        moment: npt.ArrayLike | None = None,
    ) -> None:
        """Let a link exert a force; it replaces the last one of this link.

        Args:
            link: Name of a link or frame.
            force: F on what it touches, in world axes, [N].
            point: Where, in coordinates of the link, [m]; its origin without it.
            moment: M beside F, in world axes, [Nm]; none without it.

        Raises:
            UnknownNameError: No such link or frame.
            ShapeError: Not three finite numbers. The last force is kept.
            CardsError: More than the largest. Likewise.
        """
        robot = self._dynamics.robot
        name = robot.frame(link).name
        wrench = np.zeros(6)
        wrench[:3] = finite_array(force, f"force of '{link}'", (3,))
        if moment is not None:
            wrench[3:] = finite_array(moment, f"moment of '{link}'", (3,))
        for what, part, unit in (("force", wrench[:3], "N"), ("moment", wrench[3:], "Nm")):
            size, most = float(np.linalg.norm(part)), self._largest[what]
            if size > most:
                raise CardsError(
                    f"{what} of '{link}' is {size:g} {unit} (expected: at most {what}_max, "
                    f"{most:g} {unit})"
                )
        place = np.zeros(3) if point is None else finite_array(point, f"point of '{link}'", (3,))
        # builds the code of this frame, if this is the first force on it
        self._dynamics.operational(self._dynamics.tree.home, self._still, name)
        last = self._forces.get(name)
        now = np.zeros(6) if last is None else last.wrench
        if last is not None and (*last.target, *last.point) == (*wrench, *place):
            return  # a publisher that repeats itself must not put the end of the ramp off
        at_once = self._ramp == 0.0
        if at_once and not wrench.any():
            self._forces.pop(name, None)
            return
        self._forces[name] = _ContactForce(wrench if at_once else now, wrench, place, self._ramp)

    def advance(self, dt: float) -> None:
        """Let forces come nearer to what they were set to, within a time [s]."""
        for link, one in tuple(self._forces.items()):
            if one.left > 0.0:
                one.wrench = one.wrench + min(dt / one.left, 1.0) * (one.target - one.wrench)
                one.left = max(one.left - dt, 0.0)
                if one.left < 1e-9:
                    one.wrench, one.left = one.target, 0.0
            if one.left == 0.0 and not one.target.any():
                del self._forces[link]

    def torque(self, q: Array) -> Array | None:
        """Return tau at a pose, shape (nv,), [Nm] or [N]; None without forces."""
        if not self._forces:
            return None
        total = np.zeros_like(self._still)
        for link, one in self._forces.items():
            place = self._dynamics.operational(q, self._still, link)
            force, moment = one.wrench[:3], one.wrench[3:]
            if one.point.any():
                moment = moment + hat(place.rotation @ one.point) @ force
            total += force @ place.jacobian[:3] + moment @ place.jacobian[3:]
        return total
