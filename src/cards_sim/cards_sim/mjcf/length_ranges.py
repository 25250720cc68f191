"""Over which lengths an actuator moves, where MuJoCo does not find out."""

from __future__ import annotations

import math
from collections.abc import Iterable

import mujoco
import numpy as np

from cards_core.typing import Array
from cards_sim.mjcf.names import joint_range

SAMPLES = 4000
"""Poses over which the length of a tendon is sampled."""

NO_EXTENT = 1e-6
"""Largest extent of a range, over its upper end, that counts as none: rounding, wraps."""

_JOINT = mujoco.mjtJoint


def has_extent(low: float, high: float) -> bool:
    """Return whether a length changes by more than errors of its computation.

    Args:
        low: Smallest length, [m].
        high: Largest length, [m].
    """
    return high - low > NO_EXTENT * max(abs(low), abs(high))


def sampled_ranges(model: mujoco.MjModel, joints: Iterable[int], home: Array) -> Array:
    """Return the range of the length of every actuator over random poses, [m].

    Joints are within their limits. Those without go all round their axis or, a slide, to both
    sides of its reference by the extent of the model; balls and free joints take all directions.

    Args:
        model: The model.
        joints: Those that move, by index; the others stay where they are at home.
        home: Coordinates of the home pose, shape (nq,).

    Returns:
        Shape (nactuator, 2).
    """
    data = mujoco.MjData(model)
    data.qpos[:] = home
    rng = np.random.default_rng(0)
    least = np.full(model.nactuator, np.inf)
    most = np.full(model.nactuator, -np.inf)
    moving = sorted(joints)
    for sample in range(SAMPLES):
        corner = sample < SAMPLES // 4
        for joint in moving:
            _place(model, joint, data.qpos, rng, corner=corner)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_tendon(model, data)
        mujoco.mj_transmission(model, data)
        least = np.minimum(least, data.actuator_length)
        most = np.maximum(most, data.actuator_length)
    return np.column_stack([least, most])


def _place(
    model: mujoco.MjModel, joint: int, qpos: Array, rng: np.random.Generator, *, corner: bool
) -> None:
    """Set a joint's coordinates at random; at an end of its range if it has one and `corner`."""
    first = int(model.jnt_qposadr[joint])
    kind = int(model.jnt_type[joint])
    if kind in (_JOINT.mjJNT_BALL, _JOINT.mjJNT_FREE):
        if kind == _JOINT.mjJNT_FREE:
            size = float(model.stat.extent)
            qpos[first : first + 3] = model.qpos0[first : first + 3] + rng.uniform(-size, size, 3)
            first += 3
        ends = joint_range(model, joint)
        most = math.pi if ends is None else ends[1]
        angle = most if corner else most * rng.uniform()
        axis = rng.standard_normal(3)
        axis *= math.sin(0.5 * angle) / np.linalg.norm(axis)
        qpos[first : first + 4] = (math.cos(0.5 * angle), *axis)
        return
    if (ends := joint_range(model, joint)) is not None:
        low, high = ends
        share = rng.uniform()
        qpos[first] = low + (round(share) if corner else share) * (high - low)
        return
    reach = math.pi if kind == _JOINT.mjJNT_HINGE else float(model.stat.extent)
    qpos[first] = model.qpos0[first] + rng.uniform(-reach, reach)
