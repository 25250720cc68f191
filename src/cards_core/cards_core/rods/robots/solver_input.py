"""Input of the solver: checks of robot and settings, states to start from, wrenches, segments."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from cards_core.checks import check_choice
from cards_core.errors import RodError, ShapeError
from cards_core.rods.robots.initial_guess import InitialGuess, hermite_guess
from cards_core.rods.robots.robot import (
    PLATE_COORDINATES,
    Limb,
    RodRobot,
    SolverSettings,
    rod_lengths,
)
from cards_core.typing import Array

FLAT = 1e-9
"""Deviation from the plane that a planar robot may have."""

MOST_SEGMENTS = 12
"""Segments that a rod is cut into at most."""


def expect_robot(robot: object) -> None:
    """Refuse anything but a robot of rods, e.g. its name.

    Raises:
        RodError: What was given, and how a robot is made of a name.
    """
    if not isinstance(robot, RodRobot):
        raise RodError(
            f"robot is {_brief(robot)}; expected a RodRobot, as read_rod_robot(name) returns it"
        )


def _brief(value: object) -> str:
    text = repr(value)
    return text if isinstance(value, str) and len(text) < 80 else f"of type {type(value).__name__}"


def controlled_indices(robot: RodRobot) -> Array:
    """Return the indices of the commanded plate coordinates, ascending.

    Raises:
        UnknownNameError: A coordinate that the robot does not have.
    """
    for name in robot.controlled:
        check_choice(name, "plate coordinate", robot.coordinates)
    return np.array(sorted({PLATE_COORDINATES.index(name) for name in robot.controlled}))


def check_robot(robot: RodRobot, settings: SolverSettings) -> None:
    """Refuse a robot or settings that cannot be solved.

    Raises:
        RodError: No limbs, more controlled coordinates than actuators, a setting out of range, or
            a planar robot with a joint across its plane.
        UnknownNameError: An unknown policy.
    """
    if not robot.limbs:
        raise RodError(f"robot '{robot.name}' has no limbs; expected one or more")
    if len(robot.controlled) > int(robot.actuated.sum()):
        raise RodError(
            f"robot '{robot.name}' has {int(robot.actuated.sum())} actuated limbs and "
            f"{len(robot.controlled)} controlled plate coordinates "
            f"({', '.join(robot.controlled)}); expected at most as many as limbs"
        )
    check_choice(settings.policy, "solver policy", ("fresh", "chord"))
    if settings.steps < 1 or settings.max_iterations < 1 or not settings.tolerance > 0.0:
        raise RodError(
            f"solver of '{robot.name}': steps {settings.steps}, max_iterations "
            f"{settings.max_iterations}, tolerance {settings.tolerance}; expected all > 0"
        )
    if settings.segments is not None and not 1 <= settings.segments <= MOST_SEGMENTS:
        raise RodError(
            f"solver of '{robot.name}': {settings.segments} segments; "
            f"expected 1 to {MOST_SEGMENTS} or none (chosen by the load)"
        )
    if robot.planar:
        for limb in robot.limbs:
            problem = out_of_plane(limb)
            if problem:
                raise RodError(
                    f"limb '{limb.name}' of planar robot '{robot.name}': {problem}; planar: false "
                    "solves it in space"
                )


def check_plane_of_base(robot: RodRobot, base: Array) -> None:
    """Refuse to stand a planar robot on edge: its equations are those of the plane XY.

    Raises:
        RodError: The z axis of a planar robot's base is not that of the world.
    """
    if robot.planar and base[2, 2] < 1.0 - FLAT:
        raise RodError(
            f"planar robot '{robot.name}' on a base tilted by "
            f"{math.degrees(math.acos(max(-1.0, min(1.0, base[2, 2])))):.3g} deg; expected a base "
            "whose z axis is that of the world"
        )


def out_of_plane(limb: Limb) -> str:
    """Return what would bend a limb of a planar robot out of the plane XY, empty if nothing.

    The normal must be a principal axis of the section (any axis of a round one is), and the only
    curvature of the rod at rest must be about it.
    """
    if abs(abs(limb.tip.joint_pose[2, 2]) - 1.0) > FLAT:
        return "the z axis of its plate joint lies across the plane's normal; expected along it"
    rod = limb.rod
    normal = (limb.base.joint_pose @ limb.base.attach)[2, :3]
    if abs(normal[2]) > 1e-6:
        return "the rod leaves its base out of the plane; expected in it"
    curvature, strain = np.array(rod.curvature), np.array(rod.strain)
    lost = curvature - normal * (normal @ curvature)
    if np.linalg.norm(lost) > 1e-6 * max(1.0, float(np.linalg.norm(curvature))):
        return (
            f"its curvature at rest, {tuple(float(u) for u in rod.curvature)} 1/m, bends or "
            "twists it out of the plane; expected curvature about the plane's normal alone, which "
            f"is ({', '.join(f'{x:.3g}' for x in normal + 0.0)}) in the axes of the section"
        )
    if abs(normal @ strain) > 1e-6:
        return "its strain at rest leads out of the plane"
    if abs(limb.force[2]) > 0.0 or np.abs(limb.moment[:2]).max() > 0.0:
        return (
            f"its load, force {limb.force.tolist()} N/m and moment {limb.moment.tolist()} N, "
            "pulls it out of the plane; expected forces along x and y and moments about z"
        )
    bending, shear = rod.stiffness_bt, rod.stiffness_se
    same = math.isclose(bending[0], bending[1]) and (
        shear[0] == shear[1] or math.isclose(shear[0], shear[1])
    )
    if not same and min(abs(normal[0]), abs(normal[1])) > 1e-6:
        return (
            "its section stands askew in the plane and would bend out of it; expected d1 or d2 "
            "along the plane's normal"
        )
    return ""


FRAMES = ("world", "plate")
"""Frames of an external wrench: dead in world axes, or following the plate."""

LONGEST_SEGMENT = 4.0
"""Slenderness ``L sqrt(|n| / EI)`` that a segment may have: errors grow by its exponential."""

MANY_SEGMENTS = 6.0
"""Slenderness from which on rods are cut into segments where the settings leave it open."""

FAR = 1e6
"""Numbers of a command beyond which nothing is guessed from it, [m], [N], [N m]."""

SHORT = 1e-3
"""Length of a rod, relative to the one it starts with, below which nothing is guessed either."""


class State(Protocol):
    """A state to start from: a `Solution` or an `InitialGuess`."""

    @property
    def q(self) -> Array:
        """Joint coordinates, (n,)."""

    @property
    def pose(self) -> Array:
        """Plate pose, (4, 4)."""

    @property
    def base_wrenches(self) -> Array:
        """n, m at the rod starts, (n, 6), world axes."""


def checked_guess(
    robot: RodRobot,
    q: Array | None,
    pose: Array,
    *,
    base: Array,
    gravity: Array,
    wrench: Array | None = None,
    frame: str = "world",
) -> InitialGuess:
    """Return a Hermite guess at a plate pose; unloaded rods where there is none.

    Args:
        robot: The robot.
        q: Joint coordinates if they are given, (n,).
        pose: Plate pose in the world, (4, 4).
        base: Pose of the robot in the world, (4, 4).
        gravity: In the world, (3,), [m/s^2].
        wrench: Load on the plate about its origin, (6,).
        frame: Of the wrench, ``world`` or ``plate``.

    Raises:
        ShapeError: Something is of the wrong shape or no numbers.
    """
    place = numbers(pose, "pose", (4, 4))
    joints = None if q is None else numbers(q, "q", (robot.n_limbs,))
    load = np.zeros(6) if wrench is None else numbers(wrench, "wrench", (6,))
    if is_follower(frame):
        load = np.concatenate([place[:3, :3] @ load[:3], place[:3, :3] @ load[3:]])
    given = np.concatenate([place.ravel(), load, np.zeros(0) if joints is None else joints])
    lengths = robot.lengths if joints is None else rod_lengths(robot, joints)
    if not (np.abs(given) < FAR).all() or not (lengths > SHORT * robot.lengths).all():
        return InitialGuess(robot.home_q, base @ robot.home_pose, np.zeros((robot.n_limbs, 6)))
    return hermite_guess(robot, place, joints, wrench=load, base=base, gravity=gravity)


def segments_for(slenderness: float, now: int) -> int:
    """Return the number of segments for this slenderness; it is `now` at present."""
    if not slenderness > (MANY_SEGMENTS if now == 1 else 0.8 * MANY_SEGMENTS):
        return 1
    wanted = min(math.ceil(min(slenderness, 1e6) / LONGEST_SEGMENT), MOST_SEGMENTS)
    return now if now == wanted + 1 else wanted


def numbers(values: Array, name: str, shape: tuple[int, ...]) -> Array:
    """Return floats of this shape.

    Args:
        values: What was given.
        name: Its name, for the error.
        shape: The shape that it must have.

    Raises:
        ShapeError: Another shape, or no numbers.
    """
    try:
        out = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} is {values!r}; expected numbers, shape {shape}") from None
    if out.shape != shape:
        raise ShapeError(f"{name} has shape {out.shape}; expected {shape}")
    return out


def shape_text(values: Array | None, name: str) -> str:
    """Return the shape of an argument in words, nothing for None."""
    return "" if values is None else f"{name} has shape {np.asarray(values).shape}"


def is_follower(frame: str) -> bool:
    """Tell whether a wrench follows the plate. Raises `UnknownNameError` for other frames."""
    check_choice(frame, "frame of a wrench", FRAMES)
    return frame == "plate"
