"""One rod in motion: clamped at its start, free, loaded with a body or clamped at its tip."""

from __future__ import annotations

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.dynamics.robot_dynamics import TOLERANCE, RobotDynamics
from cards_core.rods.robots.robot import Base, BaseKind, Limb, Plate, RodRobot, Tip, TipKind
from cards_core.rods.rod import Rod
from cards_core.typing import Array


def single_rod(
    rod: Rod,
    length: float,
    *,
    start: Array | None = None,
    mass: float = 0.0,
    inertia: Array | None = None,
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0),
    feed: bool = False,
) -> RodRobot:
    """Return a rod with a body at its tip as a robot with one limb; the body is its plate.

    Args:
        rod: Section, material, shape at rest, damping.
        length: Unstrained, [m].
        start: Pose of the start, shape (4, 4); z is the tangent. Default: the world's frame.
        mass: Of the body at the tip, [kg]; its centre lies on the tip.
        inertia: Of the body about the tip, shape (3, 3), [kg m^2]; default 0.
        gravity: [m/s^2].
        feed: The start is a guide that the rod is fed out of: q is its length.
    """
    start = np.eye(4) if start is None else np.asarray(start, dtype=float)
    kind = BaseKind.EXTENSIBLE if feed else BaseKind.FIXED
    limits = (1e-3 * length, np.inf) if feed else (0.0, 0.0)
    limb = Limb(
        name="rod",
        rod=rod,
        length=length,
        base=Base(kind, start, np.eye(4), *limits),
        tip=Tip(TipKind.FIXED, np.eye(4), np.eye(4)),
    )
    end = start.copy()
    end[:3, 3] += length * start[:3, 2]
    turning = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=float)
    plate = Plate("tip", mass, np.zeros(3), turning, end)
    return RodRobot("rod", (limb,), plate, np.asarray(gravity, dtype=float))


class RodDynamics(RobotDynamics):
    """Time stepping of one rod; ``pose`` and ``twist`` of an instant are those of the tip.

    Args:
        rod: A robot of `single_rod`.
        dt: Step, [s].
        tip: ``free`` (with the body that `rod` has there) or ``clamped``: ``step(pose=...)``
            moves it, else it stays.
        alpha, steps, segments, tolerance: As for `RobotDynamics`.
    """

    def __init__(
        self,
        rod: RodRobot,
        dt: float,
        *,
        tip: str = "free",
        alpha: float = -0.2,
        steps: int | None = None,
        segments: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        if tip not in ("free", "clamped"):
            raise RodError(f"tip {tip!r}; expected 'free' or 'clamped'")
        self._tip_is_plate = tip == "free"
        super().__init__(
            rod,
            dt,
            alpha=alpha,
            steps=steps,
            segments=segments,
            held=tip == "clamped",
            tolerance=tolerance,
        )
