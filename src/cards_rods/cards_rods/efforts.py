r"""Forces and moments that the actuators of the base joints carry.

By the principle of virtual work the actuator of joint i carries dV/dq_i, V being the potential of
rods, weights and loads in equilibrium. With the wrench n, m that the rod exerts on its base at
its start p, and the joint axis z through o:

=========== ==========================================================================
prismatic   -n . z
revolute    -(m + (p - o) x n) . z
extensible  W - n . p' - m . w, which feeds rod of strain energy W per length through
            a guide without friction; p' and w are dp/ds and the rotation rate
=========== ==========================================================================

The last is more than -n . t: the bent rod pushes its way out of the guide by itself (Bigoni et
al. 2015, "Eshelby-like forces acting on elastic structures"). New rod is taken from a coil at
the height of the guide. Positive q pushes in the direction of positive force.
"""

from __future__ import annotations

import numpy as np

from cards_core.rods.robots.robot import BaseKind, RodRobot, rod_starts
from cards_core.rods.rod import Rod
from cards_core.typing import Array


def actuator_efforts(robot: RodRobot, q: Array, base_wrenches: Array) -> Array:
    """Return the efforts of the base joints, shape (n,), [N] or [Nm]; 0 where nothing is actuated.

    Args:
        robot: The robot.
        q: Joint coordinates, shape (n,).
        base_wrenches: Force and moment of the rods on their bases, about the rods' starts, in
            world axes, shape (n, 6), [N, Nm].
    """
    starts = rod_starts(robot, q)
    out = np.zeros(robot.n_limbs)
    for i, (limb, start, wrench) in enumerate(
        zip(robot.limbs, starts, base_wrenches, strict=True)
    ):
        force, moment = wrench[:3], wrench[3:]
        axis, origin = limb.base.joint_pose[:3, 2], limb.base.joint_pose[:3, 3]
        match limb.base.kind:
            case BaseKind.PRISMATIC:
                out[i] = -(force @ axis)
            case BaseKind.REVOLUTE:
                out[i] = -((moment + np.cross(start[:3, 3] - origin, force)) @ axis)
            case BaseKind.EXTENSIBLE:
                out[i] = _feeding_force(limb.rod, start[:3, :3], force, moment)
    return out


def _feeding_force(rod: Rod, rotation: Array, force: Array, moment: Array) -> float:
    n, m = rotation.T @ force, rotation.T @ moment
    dv, du = n / rod.stiffness_se, m / rod.stiffness_bt
    energy = 0.5 * (n @ dv + m @ du)
    return float(energy - n @ (np.asarray(rod.strain) + dv) - m @ (np.asarray(rod.curvature) + du))
