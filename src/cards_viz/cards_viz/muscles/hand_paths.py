"""Where the operational frame has been, and where the controller wanted it: for viewers."""

from __future__ import annotations

from cards_viz.muscles.scene import SPACING, Scene, SceneFrame, Trail
from cards_viz.muscles.tracking import tracked
from cards_viz.muscles.watcher import MuscleWatcher


class HandPaths:
    """The two paths of one run.

    Args:
        scene: Geometry of the robot.

    Attributes:
        desired, actual: The paths.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stamp = -1
        self.desired = Trail(SPACING * scene.size)
        self.actual = Trail(SPACING * scene.size)

    def follow(self, watcher: MuscleWatcher, frame: SceneFrame) -> None:
        """Add the state that a watcher has.

        Args:
            watcher: With a new state.
            frame: The scene in that state.
        """
        if watcher.stamp < self._stamp:
            # the simulator was reset: another run, another path
            self.desired.clear()
            self.actual.clear()
        self._stamp = watcher.stamp
        self.actual.add(frame.end_effector)
        if watcher.tracking is not None:
            goal = tracked(watcher.tracking, self._scene, watcher.q)
            self.desired.add(None if goal is None else goal.position)

    @property
    def changed(self) -> bool:
        """Whether a path is another than at the last call of `seen`."""
        return self.actual.changed or self.desired.changed

    def seen(self) -> None:
        """Note that both paths have been shown."""
        self.actual.changed = self.desired.changed = False
