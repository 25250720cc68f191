"""What the page of the muscle editor does, without a browser: selection, clicks, drags, commands.

Callbacks of the page come from several threads; each method takes the lock for a moment and leaves
a new `EditorView`, which whoever draws reads at leisure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cards_core.editing import operations as edits
from cards_core.editing import surfaces as shapes
from cards_core.editing.block_checks import is_draft
from cards_core.editing.editor import MuscleEditor, Operation, Saved
from cards_core.editing.live_analysis import HeldLoad
from cards_core.editing.pose_set import PoseSet
from cards_core.errors import CardsError
from cards_core.formats.sdf.muscle_text import EditedBlock
from cards_core.robot.elements import WORLD, Muscle, Pulley, ViaPoint, Wrap, WrapSurface
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, rotation_z_to
from cards_core.typing import Array, Vector3

MODES = ("selects", "adds a via point", "adds a wrap surface")
"""What a click on a link does."""

SELECT, ADD_POINT, ADD_SURFACE = MODES

NEW_RADIUS = 0.03
"""Radius of a new wrap surface, relative to the size of the robot."""


@dataclass(frozen=True)
class Selection:
    """What is selected: a muscle and perhaps an element of its path, or a wrap surface."""

    muscle: str | None = None
    element: int | None = None
    surface: str | None = None


@dataclass(frozen=True, eq=False)
class EditorView:
    """All that the page shows, at one instant.

    Attributes:
        block: Muscles and surfaces, drafts included.
        robot: The robot with them, without drafts.
        q: Its pose, shape (nq,).
        selection: What is selected.
        mode: Of `MODES`.
        load: What the robot holds.
        dragging: Whether a handle is held.
        unsaved: Whether there is something to save.
        undoable, redoable: What undo would take back and redo would do, None if nothing.
        message: What was refused while dragging; empty if nothing.
    """

    block: EditedBlock
    robot: Robot
    q: Array
    selection: Selection
    mode: str
    load: HeldLoad | None
    dragging: bool
    unsaved: bool
    undoable: str | None
    redoable: str | None
    message: str

    @property
    def muscle(self) -> Muscle | None:
        """The selected muscle."""
        name = self.selection.muscle
        return next((e.muscle for e in self.block.muscles if e.muscle.name == name), None)

    @property
    def surface(self) -> WrapSurface | None:
        """The selected wrap surface."""
        name = self.selection.surface
        return next((e.surface for e in self.block.surfaces if e.surface.name == name), None)


class EditorSession:
    """The state of an open editor.

    Args:
        editor: Muscles and file.
        size: Of the robot, [m].

    Attributes:
        tell: Called with every new view.
    """

    def __init__(self, editor: MuscleEditor, size: float) -> None:
        self.editor = editor
        self.size = size
        self.tree = editor.base.tree
        self.tell: Callable[[EditorView], None] = lambda _: None
        self._lock = threading.RLock()
        self._mode = SELECT
        self._dragging: str | None = None
        self._message = ""
        frame = editor.base.operational_frame
        self._load = None if frame is None else HeldLoad(frame, 0.0)
        muscles = editor.block.muscles
        self._selection = Selection(muscles[0].muscle.name if muscles else None)
        self._row = self._surface_row = 0  # of what is selected, for when it gets another name
        self._surfaces = len(editor.block.surfaces)
        self._q = self.tree.home.copy()
        self._poses = PoseSet(self.tree, self._q[None])

    def view(self) -> EditorView:
        """Return what there is to show."""
        with self._lock:
            editor = self.editor
            return EditorView(
                editor.block, editor.robot, self._q, self._selection, self._mode, self._load,
                self._dragging is not None, editor.unsaved, editor.undoable, editor.redoable,
                self._message,
            )  # fmt: skip

    def _changed(self) -> None:
        self._repair_selection()
        self.tell(self.view())

    # Pose and load ----------------------------------------------------------------------------

    def pose(self, q: Array) -> None:
        """Pose the robot, shape (nq,)."""
        with self._lock:
            self._q = self.tree.check_q(q)
            self._poses = PoseSet(self.tree, self._q[None])
            self._changed()

    def hold(self, frame: str | None, mass: float) -> None:
        """Let the robot hold a mass, [kg], at a frame or link; None: nothing."""
        with self._lock:
            if frame is not None:
                self.tree.locate(frame)
            self._load = None if frame is None else HeldLoad(frame, mass)
            self._changed()

    @property
    def poses(self) -> PoseSet:
        """The motion of the joints as the robot is posed: a set of one pose."""
        return self._poses

    def link_pose(self, link: str) -> Pose:
        """Return the pose of a link, or of the world, as the robot is posed."""
        with self._lock:
            node, pose = self.tree.link_node[link]
            placed = Pose(self._poses.rotation[0, node], self._poses.position[0, node])
            return placed @ pose

    # Selection --------------------------------------------------------------------------------

    def set_mode(self, mode: str) -> None:
        """Set what a click on a link does."""
        with self._lock:
            self._mode = mode
            self._changed()

    def select(self, selection: Selection) -> None:
        """Select something."""
        with self._lock:
            if self._dragging is None:
                self._selection = selection
                self._changed()

    def _repair_selection(self) -> None:
        """Let go of what is not there any more; what has another name now is still selected."""
        chosen, block = self._selection, self.editor.block
        names = [e.muscle.name for e in block.muscles]
        if chosen.muscle is not None and chosen.muscle not in names:
            chosen = Selection(names[min(self._row, len(names) - 1)] if names else None)
        if chosen.muscle is not None:
            self._row = names.index(chosen.muscle)
            length = len(block.muscles[self._row].muscle.path)
            if chosen.element is not None and chosen.element >= length:
                chosen = replace(chosen, element=length - 1 if length else None)
        others = [e.surface.name for e in block.surfaces]
        if chosen.surface is not None and chosen.surface not in others:
            same = len(others) == self._surfaces
            chosen = replace(chosen, surface=others[self._surface_row] if same else None)
        if chosen.surface is not None:
            self._surface_row = others.index(chosen.surface)
        self._surfaces = len(others)
        self._selection = chosen

    def _chosen_muscle(self) -> str:
        if self._selection.muscle is None:
            raise CardsError("no muscle is selected (expected: 'New muscle', or select one)")
        return self._selection.muscle

    def _chosen_element(self) -> tuple[str, int]:
        name = self._chosen_muscle()
        if self._selection.element is None:
            raise CardsError(f"no point of muscle '{name}' is selected (expected: click on one)")
        return name, self._selection.element

    def _chosen_surface(self) -> str:
        if self._selection.surface is None:
            raise CardsError("no wrap surface is selected (expected: click on one)")
        return self._selection.surface

    # Clicks -----------------------------------------------------------------------------------

    def click_link(self, link: str, point: Vector3) -> None:
        """Do what a click on a link does.

        Args:
            link: The link.
            point: Where its surface was hit, in the world, shape (3,), [m].

        Raises:
            CardsError: It is refused.
        """
        with self._lock:
            if self._mode == ADD_POINT:
                self._add_point(link, point)
            elif self._mode == ADD_SURFACE:
                self._add_surface(link, point)

    def click_surface(self, name: str) -> None:
        """Select a wrap surface, or let the path that is being drawn go over it.

        Raises:
            CardsError: It is refused.
        """
        with self._lock:
            muscle = self.view().muscle
            if self._mode == ADD_POINT and muscle is not None and muscle.path:
                self._append(muscle, Wrap(name), f"wrap '{muscle.name}' over '{name}'")
            else:
                self.select(Selection(surface=name))

    def _add_point(self, link: str, point: Vector3) -> None:
        muscle = self.view().muscle
        if muscle is None:
            raise CardsError("no muscle is selected (expected: 'New muscle', or select one)")
        local = _rounded(self.link_pose(link).inverse().apply(point))
        self._append(muscle, ViaPoint(link, local), f"add a point to '{muscle.name}'")

    def _append(self, muscle: Muscle, item: ViaPoint | Wrap, text: str) -> None:
        """Add an element behind the selected one; behind the last one while it is drawn."""
        chosen = self._selection.element
        at = len(muscle.path) if chosen is None or is_draft(muscle) else chosen + 1
        self.editor.change(text, lambda b: edits.insert_element(b, muscle.name, at, item))
        self._selection = Selection(muscle.name, at)
        self._changed()

    def _add_surface(self, link: str, point: Vector3) -> None:
        local = _rounded(self.link_pose(link).inverse().apply(point))
        taken = [e.surface.name for e in self.editor.block.surfaces]
        name = edits.unused_name("wrap", [*taken, *self.editor.fixed])
        geometry = shapes.first_shape("sphere", float(_rounded(NEW_RADIUS * self.size)))
        surface = WrapSurface(name, link, geometry, Pose(translation=local))
        self.editor.change(f"add '{name}'", lambda b: shapes.add_surface(b, surface))
        self._mode = SELECT
        self._selection = Selection(surface=name)
        self._changed()

    # Drags ------------------------------------------------------------------------------------

    def drag_point(self, phase: str, point: Vector3) -> None:
        """Move the selected via point with its handle.

        Args:
            phase: ``start``, ``update`` or ``end``.
            point: Where the handle is, in the world, shape (3,), [m].
        """
        with self._lock:
            muscle, index = self.view().muscle, self._selection.element
            if muscle is None or index is None or index >= len(muscle.path):
                return
            item = muscle.path[index]
            if isinstance(item, Wrap):
                return
            local = _moved(item.position, self.link_pose(item.link).inverse().apply(point))
            self._drag(
                phase,
                f"move point {index + 1} of '{muscle.name}'",
                lambda b: edits.place_point(b, muscle.name, index, item.link, local),
            )

    def drag_surface(self, phase: str, pose: Pose) -> None:
        """Move the selected wrap surface with its handle; pose in the world, phase as above."""
        with self._lock:
            surface = self.view().surface
            if surface is None:
                return
            local = self.link_pose(surface.link).inverse() @ pose
            turned = np.abs(local.rotation - surface.pose.rotation).max() > 1e-6
            place = _moved(surface.pose.translation, local.translation)
            placed = surface.pose
            if turned or place is not surface.pose.translation:
                placed = Pose(local.rotation if turned else surface.pose.rotation, place)
            self._drag(
                phase,
                f"move '{surface.name}'",
                lambda b: shapes.change_surface(b, surface.name, pose=placed),
            )

    def drag_radius(self, phase: str, radius: float) -> None:
        """Resize the selected wrap surface with its handle; [m], phase as above."""
        with self._lock:
            surface = self.view().surface
            if surface is None:
                return

            def resize(block: EditedBlock) -> EditedBlock:
                old = shapes.radius_of(surface.geometry)
                if old is not None and abs(radius - old) < STILL:
                    return shapes.change_surface(block, surface.name, geometry=surface.geometry)
                geometry = shapes.resized(surface.geometry, float(_rounded(radius)))
                return shapes.change_surface(block, surface.name, geometry=geometry)

            self._drag(phase, f"resize '{surface.name}'", resize)

    def _drag(self, phase: str, text: str, operation: Operation) -> None:
        if phase == "start":
            self._dragging = text
        elif self._dragging is None:
            return  # it was undone under the mouse
        try:
            self.editor.preview(operation)
            self._message = ""
        except CardsError as error:
            self._message = str(error)  # what was shown last still is
        if phase == "end":
            self.let_go()
        else:
            self._changed()

    def let_go(self) -> None:
        """End a drag where it is, also one of a page that was closed."""
        with self._lock:
            if self._dragging is not None:
                self.editor.keep(self._dragging)
                self._dragging, self._message = None, ""
                self._changed()

    # Commands ---------------------------------------------------------------------------------

    def change(self, text: str, operation: Operation) -> None:
        """Do something that can be undone. Raises `CardsError` if it is refused."""
        with self._lock:
            self.editor.change(text, operation)
            self._changed()

    def undo(self) -> None:
        """Take back the last step."""
        with self._lock:
            self._dragging = None
            self.editor.undo()
            self._changed()

    def redo(self) -> None:
        """Do again what was undone last."""
        with self._lock:
            self._dragging = None
            self.editor.redo()
            self._changed()

    def save(self) -> Saved:
        """Save. Raises `CardsError` or `OSError`."""
        with self._lock:
            self._dragging = None
            saved = self.editor.save()
            self._changed()
            return saved

    def keep_unsaved(self) -> None:
        """Keep what nobody has saved in a file of its own. Raises `OSError`."""
        with self._lock:
            if self._dragging is None:
                self.editor.keep_unsaved()

    def new_muscle(self) -> None:
        """Begin a muscle: the next clicks add its points."""
        with self._lock:
            taken = [e.muscle.name for e in self.editor.block.muscles]
            name = edits.unused_name("muscle", [*taken, *self.editor.fixed])
            self.editor.change(f"new '{name}'", lambda b: edits.add_muscle_draft(b, name))
            self._selection, self._mode = Selection(name), ADD_POINT
            self._changed()

    def remove_muscle(self) -> None:
        """Remove the selected muscle."""
        with self._lock:
            name = self._chosen_muscle()
            self.change(f"remove '{name}'", lambda b: edits.remove_muscle(b, name))

    def remove_element(self) -> None:
        """Remove the selected element of a path."""
        with self._lock:
            name, index = self._chosen_element()
            text = f"remove element {index + 1} of '{name}'"
            self.change(text, lambda b: edits.remove_element(b, name, index))

    def insert_point(self) -> None:
        """Insert a point halfway between the selected one and the next, on the selected link."""
        with self._lock:
            name, index = self._chosen_element()
            muscle = self.view().muscle
            assert muscle is not None
            ends = [
                i for i in range(index, len(muscle.path)) if self._place(muscle, i) is not None
            ]
            first = self._place(muscle, index)
            if first is None or len(ends) < 2:
                raise CardsError("no point follows here (expected: select a point before another)")
            second = self._place(muscle, ends[1])
            assert second is not None
            item = muscle.path[index]
            assert isinstance(item, ViaPoint | Pulley)
            local = self.link_pose(item.link).inverse().apply(0.5 * (first + second))
            new = ViaPoint(item.link, _rounded(local))
            text = f"insert a point into '{name}'"
            self.change(text, lambda b: edits.insert_element(b, name, index + 1, new))
            self.select(Selection(name, index + 1))

    def _place(self, muscle: Muscle, index: int) -> Vector3 | None:
        item = muscle.path[index]
        if isinstance(item, Wrap):
            return None
        return self.link_pose(item.link).apply(item.position)

    def point_place(self) -> Vector3 | None:
        """Return where the selected point is in the world, shape (3,), [m]; None without one."""
        with self._lock:
            muscle, index = self.view().muscle, self._selection.element
            if muscle is None or index is None or index >= len(muscle.path):
                return None
            return self._place(muscle, index)

    def length_of(self, muscle: Muscle) -> float:
        """Return the length of a muscle as the robot is posed, [m]; 0 while it is drawn."""
        with self._lock:
            if is_draft(muscle):
                return 0.0
            return float(self._poses.rows(self.editor.robot, muscle).lengths[0])

    def move_element(self, by: int) -> None:
        """Give the selected element another place in its path, ``by`` steps later."""
        with self._lock:
            name, index = self._chosen_element()
            text = f"reorder '{name}'"
            self.change(text, lambda b: edits.move_element(b, name, index, index + by))
            self.select(Selection(name, index + by))

    def attach(self, link: str) -> None:
        """Attach the selected point to another link, where it is now."""
        with self._lock:
            name, index = self._chosen_element()
            place = self.point_place()
            if place is None:
                raise CardsError("a wrap is attached by its surface (expected: a via point)")
            local = _rounded(self.link_pose(link).inverse().apply(place))
            text = f"attach point {index + 1} of '{name}' to {link}"
            self.change(text, lambda b: edits.place_point(b, name, index, link, local))

    def wrap(self, surface: str) -> None:
        """Let the selected muscle wrap over a surface behind the selected point."""
        with self._lock:
            name, index = self._chosen_element()
            text = f"wrap '{name}' over '{surface}'"
            new = Wrap(surface)
            self.change(text, lambda b: edits.insert_element(b, name, index + 1, new))
            self.select(Selection(name, index + 1))

    def flip_side(self) -> None:
        """Let the selected wrap pass its surface on the other side."""
        with self._lock:
            name, index = self._chosen_element()
            muscle = self.view().muscle
            assert muscle is not None
            item = muscle.path[index]
            if not isinstance(item, Wrap):
                raise CardsError(f"element {index + 1} of '{name}' is no wrap (expected: a wrap)")
            surface = self.editor.robot.wrap_surface(item.surface)
            middle = surface.pose.translation
            if item.side is not None:
                side = 2.0 * middle - item.side
            else:  # against the straight line between its neighbours
                ends = [self._place(muscle, i) for i in (index - 1, index + 1)]
                known = [end for end in ends if end is not None]
                line = self.link_pose(surface.link).inverse().apply(np.mean(known, axis=0))
                away = middle - line
                radius = shapes.radius_of(surface.geometry) or 0.1 * self.size
                length = float(np.linalg.norm(away))
                direction = away / length if length > 1e-9 else surface.pose.rotation[:, 0]
                side = middle + 2.0 * radius * direction
            flipped = _rounded(side)
            text = f"other side of '{item.surface}' for '{name}'"
            self.change(
                text,
                lambda b: edits.set_wrap(b, name, index, side=flipped, inside=item.inside),
            )

    def remove_surface(self) -> None:
        """Remove the selected wrap surface."""
        with self._lock:
            name = self._chosen_surface()
            self.change(f"remove '{name}'", lambda b: shapes.remove_surface(b, name))

    def centre_on_joint(self, joint: str) -> None:
        """Put the selected surface on a joint of its link, its axis z along the joint's."""
        with self._lock:
            name = self._chosen_surface()
            surface = self.view().surface
            assert surface is not None
            found = self.editor.base.joint(joint)
            if found.child == surface.link:
                frame = found.joint_to_child.inverse()
            elif found.parent == surface.link:
                frame = found.parent_to_joint
            else:
                raise CardsError(
                    f"joint '{joint}' does not touch link '{surface.link}' (expected: one of "
                    f"{', '.join(self.joints_of(surface.link))})"
                )
            turn = rotation_z_to(found.axes[0].axis) if found.axes else np.eye(3)
            pose = frame @ Pose(turn)
            text = f"put '{name}' on {joint}"
            self.change(text, lambda b: shapes.change_surface(b, name, pose=pose))

    def joints_of(self, link: str) -> list[str]:
        """Return the names of the joints at a link that move."""
        joints = self.editor.base.joints
        return [j.name for j in joints if link in (j.parent, j.child) and j.kind != "fixed"]

    @property
    def link_names(self) -> list[str]:
        """The world and all links."""
        return [WORLD, *self.editor.links]


STILL = 0.6e-6
"""A handle that moved less than this did not move, [m]: places are rounded to a micrometre."""


def _moved(old: Vector3, new: Vector3) -> Vector3:
    """Return a new place, rounded; the old one, with all its digits, if it is the same."""
    if np.abs(new - old).max() < STILL:
        return old
    rounded: Vector3 = _rounded(new)
    return rounded


def _rounded(values: Any) -> Any:
    """Round lengths to a micrometre: a mouse is no more exact, and files stay readable."""
    return np.round(np.asarray(values, dtype=float), 6)
