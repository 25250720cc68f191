"""`Bodies` of any simulator: links and joints one after the other, through their ports."""

from __future__ import annotations

from collections.abc import Sequence

from cards_core.typing import Array
from cards_muscle_plugin.ports import KNOWN, MeasuredJoint, MovingLink, PulledLink


class OneByOne:
    """`Bodies` through the ports of single links and joints.

    Args:
        links: Links that are read.
        joints: Joints that are read.
        pulled: Links that are pulled.
    """

    def __init__(
        self,
        links: Sequence[MovingLink],
        joints: Sequence[MeasuredJoint],
        pulled: Sequence[PulledLink],
    ) -> None:
        self._links, self._joints, self._pulled = links, joints, pulled

    def read(self) -> int:
        """See `Bodies`."""
        for index, (link, pose, twist) in enumerate(self._links):
            if not (link.read_pose(pose) and link.read_twist(twist)):
                return index
        for index, (joint, positions, velocities) in enumerate(self._joints):
            found = joint.read()
            if found is None:
                return len(self._links) + index
            positions[:], velocities[:] = found
        return KNOWN

    def pull(self, wrenches: Array) -> None:
        """See `Bodies`."""
        for row, link in self._pulled:
            link.add_wrench(wrenches[row].tolist())
