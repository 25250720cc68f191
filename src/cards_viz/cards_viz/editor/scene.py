"""The muscles of the editor in 3-D: paths, points to click on, wrap surfaces, handles to drag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import trimesh
import viser

from cards_core.editing.block_checks import is_draft
from cards_core.editing.surfaces import radius_of
from cards_core.robot.elements import Muscle, Wrap, WrapSurface
from cards_core.spatial import Pose, matrix_quaternion, quaternion_matrix
from cards_core.typing import Array
from cards_viz.colors import LINE_COLORS, linear_light
from cards_viz.editor.session import EditorSession, EditorView, Selection
from cards_viz.meshes import drawn_surface, surface_triangles
from cards_viz.muscles.scene import SURFACE

SELECTED = (225, 0, 190)
"""Colour of what is selected: none that a muscle has."""

PLAIN = (72, 76, 84)

POINT = 0.007
"""Radius of a via point, relative to the size of the robot: large enough for a finger."""

HANDLE = 0.13
"""Length of the arrows of a handle, likewise."""

RADIUS_SIDE = np.array([-1.0, 0.0, 0.0])
"""Where the handle of the radius is, in axes of the surface: not where those of its place are."""

Report = Callable[[Callable[[], None]], None]
"""Runs what a click does, and shows its refusal."""


def muscle_color(index: int) -> tuple[int, int, int]:
    """Return the colour of a muscle in 3-D and in charts."""
    text = LINE_COLORS[index % len(LINE_COLORS)]
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


@dataclass(frozen=True, eq=False)
class DrawnMuscles:
    """Muscles to draw at one pose.

    Attributes:
        view: What they are of.
        paths: Of the muscles of ``view.block``, drafts too, shape (k, 3), [m].
    """

    view: EditorView
    paths: Sequence[Array]


class EditorScene:
    """The nodes of muscles, surfaces and handles; names begin with ``/edit``.

    Args:
        server: Of the page.
        session: What clicks and drags do.
        run: Shows refusals.
        size: Of the robot, [m].
    """

    def __init__(
        self, server: viser.ViserServer, session: EditorSession, run: Report, size: float
    ) -> None:
        self._api, self._session, self._run, self._size = server.scene, session, run, size
        ball = trimesh.creation.icosphere(subdivisions=2, radius=1.0)
        self._ball = ball.vertices, ball.faces
        self._lines: Any = None
        self._chosen: Any = None
        self._balls: Any = None
        self._at: list[tuple[str, int]] = []  # muscle and element of each ball
        self._surfaces: dict[str, tuple[tuple[Any, ...], Any]] = {}
        self._muscles_visible = self._surfaces_visible = True
        api = server.scene
        self._point_handle = api.add_transform_controls(
            "/edit/point", HANDLE * size, disable_rotations=True, depth_test=False, visible=False
        )
        self._pose_handle = api.add_transform_controls(
            "/edit/pose", HANDLE * size, depth_test=False, visible=False
        )
        self._radius_handle = api.add_transform_controls(
            "/edit/radius", 0.7 * HANDLE * size, active_axes=(True, False, False),
            disable_rotations=True, disable_sliders=True, depth_test=False, visible=False,
        )  # fmt: skip
        self._holder: int | None = None
        self._connect()
        server.on_client_disconnect(self._let_go)

    # Handles ----------------------------------------------------------------------------------

    def _connect(self) -> None:
        session = self._session

        # async: in the order of the phases; what they do takes a millisecond
        async def moved_point(event: viser.TransformControlsEvent) -> None:
            self._hold(event)
            self._run(lambda: session.drag_point(event.phase, np.array(event.target.position)))

        async def moved_surface(event: viser.TransformControlsEvent) -> None:
            self._hold(event)
            rotation = quaternion_matrix(event.target.wxyz)
            pose = Pose(rotation, np.array(event.target.position))
            self._run(lambda: session.drag_surface(event.phase, pose))

        async def moved_radius(event: viser.TransformControlsEvent) -> None:
            self._hold(event)
            surface = session.view().surface
            if surface is not None:
                middle = session.link_pose(surface.link) @ surface.pose
                away = np.array(event.target.position) - middle.translation
                radius = max(float(away @ middle.rotation @ RADIUS_SIDE), 1e-4)
                self._run(lambda: session.drag_radius(event.phase, radius))

        self._point_handle.on_update(moved_point)
        self._pose_handle.on_update(moved_surface)
        self._radius_handle.on_update(moved_radius)

    def _hold(self, event: viser.TransformControlsEvent) -> None:
        self._holder = None if event.phase == "end" else event.client_id

    def _let_go(self, client: viser.ClientHandle) -> None:
        """End the drag of a page that is gone."""
        if client.client_id == self._holder:
            self._holder = None
            self._run(self._session.let_go)

    def _place_handles(self, view: EditorView) -> None:
        place = self._session.point_place()
        surface = view.surface
        self._point_handle.visible = place is not None and surface is None
        radius = None if surface is None else radius_of(surface.geometry)
        self._pose_handle.visible = surface is not None
        self._radius_handle.visible = radius is not None
        if self._holder is not None or view.dragging:
            return
        if place is not None:
            self._point_handle.position = place
        if surface is not None:
            pose = self._session.link_pose(surface.link) @ surface.pose
            turn = matrix_quaternion(pose.rotation)
            self._pose_handle.position, self._pose_handle.wxyz = pose.translation, turn
            if radius is not None:
                self._radius_handle.position = pose.apply(radius * RADIUS_SIDE)
                facing = pose.rotation @ np.diag([-1.0, -1.0, 1.0])
                self._radius_handle.wxyz = matrix_quaternion(facing)

    # Drawing ----------------------------------------------------------------------------------

    def draw(self, drawn: DrawnMuscles) -> None:
        """Show muscles, surfaces and handles."""
        self._draw_lines(drawn)
        self._draw_points(drawn.view)
        self._draw_surfaces(drawn)
        self._place_handles(drawn.view)

    def _draw_lines(self, drawn: DrawnMuscles) -> None:
        view = drawn.view
        segments, colors = [np.zeros((0, 2, 3))], [np.zeros((0, 2, 3), np.uint8)]
        chosen = np.zeros((0, 2, 3))
        for i, (edited, path) in enumerate(zip(view.block.muscles, drawn.paths, strict=True)):
            pieces = np.stack([path[:-1], path[1:]], axis=1)
            if edited.muscle.name == view.selection.muscle:
                chosen = pieces
                continue
            color = linear_light(np.array(muscle_color(i), dtype=np.uint8))
            segments.append(pieces)
            colors.append(np.broadcast_to(color, pieces.shape))
        thickness = 0.006 * self._size
        self._lines = self._put_lines(
            self._lines, "/edit/muscles", np.concatenate(segments), np.concatenate(colors),
            thickness,
        )  # fmt: skip
        color = linear_light(np.array(SELECTED, dtype=np.uint8))
        self._chosen = self._put_lines(
            self._chosen, "/edit/chosen", chosen, np.broadcast_to(color, chosen.shape),
            1.7 * thickness,
        )  # fmt: skip

    def _put_lines(
        self, handle: Any, name: str, points: Array, colors: Any, thickness: float
    ) -> Any:
        if not len(points):  # a page draws no empty set of lines
            if handle is not None:
                handle.visible = False
            return handle
        points, colors = points.astype(np.float32), np.ascontiguousarray(colors, dtype=np.uint8)
        if handle is None or handle.points.shape != points.shape:
            # lines are made anew where their number changes
            return self._api.add_line_segments(
                name, points, colors, thickness=thickness, visible=self._muscles_visible
            )
        handle.points, handle.colors = points, colors
        handle.visible = self._muscles_visible
        return handle

    def _draw_points(self, view: EditorView) -> None:
        places, colors, at = [], [], []
        chosen = view.selection
        for i, edited in enumerate(view.block.muscles):
            muscle = edited.muscle
            for k, item in enumerate(muscle.path):
                if isinstance(item, Wrap):
                    continue
                places.append(self._session.link_pose(item.link).apply(item.position))
                one = muscle.name == chosen.muscle
                colors.append(
                    SELECTED if one and k == chosen.element else muscle_color(i) if one else PLAIN
                )
                at.append((muscle.name, k))
        if not places:
            if self._balls is not None:
                self._balls.remove()
            self._balls, self._at = None, []
            return
        positions = np.array(places, dtype=np.float32)
        rgb = np.array(colors, dtype=np.uint8)
        if self._balls is None or len(at) != len(self._at):
            self._balls = self._api.add_batched_meshes_simple(
                "/edit/points",
                *self._ball,
                batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(at), 1)),
                batched_positions=positions,
                batched_scales=np.full(len(at), POINT * self._size),
                batched_colors=rgb,
                lod="off",
                visible=self._muscles_visible,
            )
            self._balls.on_click(self._clicked_point)
        else:
            self._balls.batched_positions = positions
            self._balls.batched_colors = rgb
        self._at = at

    def _clicked_point(self, event: Any) -> None:
        at, index = self._at, event.instance_index
        if index is not None and 0 <= index < len(at):
            self._run(lambda: self._session.select(Selection(*at[index])))

    def _draw_surfaces(self, drawn: DrawnMuscles) -> None:
        view = drawn.view
        robot = view.robot
        there = {surface.name: surface for surface in robot.wrap_surfaces}
        for name in [name for name in self._surfaces if name not in there]:
            self._surfaces.pop(name)[1].remove()
        for surface in there.values():
            self._draw_surface(surface, chosen=surface.name == view.selection.surface)

    def _draw_surface(self, surface: WrapSurface, *, chosen: bool) -> None:
        geometry, placement = drawn_surface(surface, np.zeros((0, 3)))
        pose = self._session.link_pose(surface.link) @ placement
        key = (surface.geometry, chosen)
        known = self._surfaces.get(surface.name)
        if known is not None and known[0][0] is key[0] and known[0][1] == chosen:
            handle = known[1]
            handle.position, handle.wxyz = pose.translation, matrix_quaternion(pose.rotation)
            handle.visible = self._surfaces_visible
            return
        mesh = surface_triangles(geometry, self._session.editor.base.source)
        if mesh is None:
            return
        color = SELECTED if chosen else tuple(round(255 * c) for c in SURFACE[:3])
        handle = self._api.add_mesh_simple(
            f"/edit/surfaces/{surface.name}",
            *mesh,
            color=color,
            opacity=SURFACE[3] + 0.1,
            cast_shadow=False,
            position=pose.translation,
            wxyz=matrix_quaternion(pose.rotation),
            visible=self._surfaces_visible,
        )
        name = surface.name
        handle.on_click(lambda _: self._run(lambda: self._session.click_surface(name)))
        self._surfaces[name] = key, handle

    def set_muscles_visible(self, visible: bool) -> None:
        """Show or hide muscles and points."""
        self._muscles_visible = visible
        for handle in (self._lines, self._chosen, self._balls):
            if handle is not None:
                handle.visible = visible

    def set_surfaces_visible(self, visible: bool) -> None:
        """Show or hide wrap surfaces."""
        self._surfaces_visible = visible
        for _, handle in self._surfaces.values():
            handle.visible = visible


def drawn_muscles(
    view: EditorView, session: EditorSession, finished: Sequence[Array]
) -> DrawnMuscles:
    """Return what to draw.

    Args:
        view: What there is.
        session: Knows the poses of links.
        finished: Paths of the muscles of ``view.robot``, arcs sampled, shape (k, 3), [m].
    """
    by_name = {m.name: path for m, path in zip(view.robot.muscles, finished, strict=True)}
    muscles = [edited.muscle for edited in view.block.muscles]
    paths = [straight_path(session, m) if is_draft(m) else by_name[m.name] for m in muscles]
    return DrawnMuscles(view, paths)


def straight_path(session: EditorSession, muscle: Muscle) -> Array:
    """Return the points of a muscle in the world, shape (k, 3), [m]."""
    points = [
        session.link_pose(item.link).apply(item.position)
        for item in muscle.path
        if not isinstance(item, Wrap)
    ]
    return np.array(points, dtype=float).reshape(-1, 3)
