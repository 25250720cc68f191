"""Joints that a motor of their own drives, beside the muscles: where they are in qd, how strong.

Every host, controller and analysis of a hybrid robot (muscles and motors) asks here, so the order
of the motors, their names and their limits are decided once. With S (nv x k) the columns of the
identity that `Motors.rows` names,

    M qdd + C + G = -L' f + S tau,   |tau| <= efforts
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.robot.joint_coordinates import joint_slices
from cards_core.robot.model import Tree
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class Motors:
    """The k motors of a robot, one for each velocity of a joint with ``motor``.

    Attributes:
        names: As in `Tree.velocity_names`: the joint's own, with a suffix where it has several.
        rows: Where they are in qd, increasing, shape (k,).
        efforts: Maximum torque or force in either direction, shape (k,), [Nm] or [N]; infinite
            where the joint states none.
    """

    names: tuple[str, ...]
    rows: npt.NDArray[np.intp]
    efforts: Array

    def __len__(self) -> int:
        return len(self.names)


def motors_of(tree: Tree) -> Motors:
    """Return the motors of a robot."""
    slices = joint_slices(tree)
    efforts = np.full(tree.nv, np.inf)
    driven = np.zeros(tree.nv, dtype=bool)
    for joint in tree.robot.joints:
        if not joint.motor or joint.name not in slices:
            continue
        own = slices[joint.name][1]
        driven[own] = True
        if joint.axes:  # ball and free joints have none, and state no effort
            efforts[own] = [axis.effort for axis in joint.axes]
    rows = np.flatnonzero(driven)
    return Motors(tuple(tree.velocity_names[i] for i in rows), rows, efforts[rows])
