"""The 3-D scene of the page of a robot with muscles: viser nodes that follow a `Scene`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import trimesh
import viser

from cards_core.robot.elements import WORLD
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array, Vector3
from cards_viz.colors import TensionScale, linear_light
from cards_viz.muscles.scene import DASH, SPACING, Scene, SceneFrame, Shape, Trail
from cards_viz.muscles.world_scene import WorldScene
from cards_viz.pages.ground import Ground
from cards_viz.pages.scene import Camera, frame_points, set_up, viewing_direction, with_length

ARROW_COLOR = (20, 150, 90)
DESIRED_COLOR = (90, 94, 102)
ACTUAL_COLOR = (31, 95, 168)

SMALL = 0.05
"""Extent of a link below which axes show where it is, relative to the size of the robot."""


class MusclePageScene:
    """The scene nodes of one robot.

    Node names: ``/robot/<link>/<visual>``, ``/robot/<link>/wrap_surfaces/<surface>``,
    ``/muscles/paths``, ``/muscles/points``, ``/muscles/forces``, ``/path/desired``,
    ``/path/actual``, ``/grid``, ``/world/<model>::<link>/<visual>``, all below ``root``.

    Args:
        server: Of the page.
        scene: What is drawn.
        scale: Range of the colours.
        world: What is around the robot, if anything.
        root: Name of the node that all others are below; empty: none.
        offset: Where that node is, shape (3,), [m].
        with_muscles: False leaves muscles, wrap surfaces and the path of the end-effector to the
            caller.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        scene: Scene,
        scale: TensionScale,
        world: WorldScene | None = None,
        *,
        root: str = "",
        offset: Vector3 | None = None,
        with_muscles: bool = True,
    ) -> None:
        self.scene = scene
        self.world = world
        self._scale = scale
        self._server = server
        self._api = server.scene
        self._root = root
        if root:
            place = np.zeros(3) if offset is None else offset
            self._api.add_frame(root, show_axes=False, position=place)
        self.desired = Trail(SPACING * scene.size)
        self.actual = Trail(SPACING * scene.size)
        self._add_lights_and_ground()
        self._links = self._add_links()
        self.shapes = [(shape, self._add_shape(shape)) for shape in scene.shapes]
        self._surfaces: list[viser.MeshHandle] = []
        self._has_muscles = False
        self._add_axes()
        if with_muscles:
            self._surfaces = [self._add_shape(shape) for shape in scene.surfaces]
            frame = scene.frame(scene.tree.home, np.zeros(len(scene.robot.muscles)), 1.0)
            self._add_muscles(frame)
            self._add_paths()
            self.set_arrows_visible(False)
        self._add_world()

    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets the robot and its world fill a picture of this aspect."""
        points = self.scene.outline
        # the robot says from where: ground, which is flat, would be seen from above
        direction = viewing_direction(self.scene.lower, self.scene.upper)
        if self.world is not None:
            points = np.concatenate([points, self.world.outline])
        return frame_points(points, aspect=aspect, direction=direction)

    def _add_lights_and_ground(self) -> None:
        scene, size = self.scene, self.scene.size
        set_up(self._api)
        center = 0.5 * (scene.lower + scene.upper)
        # floor below everything that hangs, at z = 0 for robots that stand
        height = min(0.0, float(scene.lower[2]) - 0.02 * size)
        if self.world is not None and self.world.ground is not None:
            height = self.world.ground
        self.ground = Ground(
            self._server, f"{self._root}/grid", np.array([*center[:2], height]), size
        )

    def _add_links(self) -> list[viser.FrameHandle]:
        # shapes are children of these in name and place; the world's frame stays where it is
        self._api.add_frame(f"{self._root}/robot/{WORLD}", show_axes=False)
        links = self.scene.robot.links
        return [
            self._api.add_frame(f"{self._root}/robot/{link.name}", show_axes=False)
            for link in links
        ]

    def _add_shape(self, shape: Shape, parent: str = "/robot") -> viser.MeshHandle:
        opacity = shape.rgba[3]
        return self._api.add_mesh_simple(
            f"{self._root}{parent}/{shape.name}",
            shape.vertices,
            shape.faces,
            color=tuple(round(255 * c) for c in shape.rgba[:3]),
            opacity=None if opacity >= 1.0 else opacity,
            cast_shadow=opacity >= 1.0,
            wxyz=matrix_quaternion(shape.pose.rotation),
            position=shape.pose.translation,
        )

    def _add_axes(self) -> None:
        """Add axes to the operational frame where its link could be overlooked, as a platform."""
        scene, name = self.scene, self.scene.robot.operational_frame
        if name is None:
            return
        frame = scene.robot.frame(name)
        index = next((i for i, li in enumerate(scene.robot.links) if li.name == frame.link), None)
        points = [shape.vertices for shape in scene.shapes if shape.link == index]
        extent = np.ptp(np.concatenate(points), axis=0).max() if points else 0.0
        if index is not None and extent < SMALL * scene.size:
            self._api.add_frame(
                f"{self._root}/robot/{frame.link}/axes",
                axes_length=0.06 * scene.size,
                axes_radius=0.9 * scene.radius,
                origin_radius=1.5 * scene.radius,
                wxyz=matrix_quaternion(frame.pose.rotation),
                position=frame.pose.translation,
            )

    def _add_muscles(self, frame: SceneFrame) -> None:
        radius = self.scene.radius
        ball = trimesh.creation.icosphere(subdivisions=2, radius=1.0)
        points = len(frame.points)
        self._has_muscles = points > 0
        if not self._has_muscles:
            return
        # lines are not lit: their colour is that of the scale, from every side
        self._lines = self._api.add_line_segments(
            f"{self._root}/muscles/paths",
            frame.segments,
            np.zeros_like(frame.segments, dtype=np.uint8),
            thickness=2.2 * radius,
        )
        self._balls = self._api.add_batched_meshes_simple(
            f"{self._root}/muscles/points",
            ball.vertices,
            ball.faces,
            batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (points, 1)),
            batched_positions=frame.points,
            batched_scales=np.full(points, 1.9 * radius),
            batched_colors=(72, 76, 84),
            lod="off",
        )
        self._arrows = self._api.add_arrows(
            f"{self._root}/muscles/forces",
            frame.arrows,
            ARROW_COLOR,
            shaft_radius=1.25 * radius,
            head_radius=2.8 * radius,
            head_length=6.5 * radius,
        )

    def _add_world(self) -> None:
        self._bodies: list[viser.FrameHandle] = []
        if (world := self.world) is None:
            return
        self._world = self._api.add_frame(f"{self._root}/world", show_axes=False)
        for body in world.bodies:
            # not before it is known where it is
            frame = self._api.add_frame(
                f"{self._root}/world/{body}", show_axes=False, visible=False
            )
            self._bodies.append(frame)
        for shape in (*world.fixed, *world.moving):
            self._add_shape(shape, "/world")

    def _add_paths(self) -> None:
        # both paths lie within a millimetre: the desired one is thick dashes around the actual one
        radius = self.scene.radius
        self._dash = DASH * self.scene.size
        self._desired = self._api.add_line_segments(
            f"{self._root}/path/desired",
            self.desired.segments(),
            DESIRED_COLOR,
            thickness=1.7 * radius,
        )
        self._actual = self._api.add_line_segments(
            f"{self._root}/path/actual",
            self.actual.segments(),
            ACTUAL_COLOR,
            thickness=1.0 * radius,
        )
        self._tip = self._api.add_icosphere(
            f"{self._root}/path/tip", 2.2 * radius, ACTUAL_COLOR, subdivisions=2
        )
        self._tip.visible = self.scene.robot.operational_frame is not None

    def make_plain(self, client: viser.ClientHandle) -> None:
        """Leave out what a page that computes its pictures takes long for."""
        self.ground.make_plain(client)

    def draw(self, frame: SceneFrame, tensions: Array) -> None:
        """Move everything; ``tensions`` colour the muscles, shape (m,), [N]."""
        self.draw_links(frame.link_poses)
        if self._has_muscles:
            self._draw_muscles(frame, tensions)
        if frame.end_effector is not None:
            self._tip.position = frame.end_effector

    def draw_links(self, link_poses: Array) -> None:
        """Move the links, shape (n, 4, 4)."""
        for handle, pose in zip(self._links, link_poses, strict=True):
            handle.wxyz = matrix_quaternion(pose[:3, :3])
            handle.position = pose[:3, 3]
        if len(link_poses):
            self.ground.follow(link_poses[:, :3, 3].mean(axis=0))

    def draw_world(self, known: Mapping[str, Array]) -> None:
        """Move the bodies of the world whose poses are known, by name, shape (4, 4)."""
        if self.world is None:
            return
        for handle, pose in zip(self._bodies, self.world.poses(known), strict=True):
            if pose is not None:
                handle.wxyz = matrix_quaternion(pose[:3, :3])
                handle.position = pose[:3, 3]
                handle.visible = True

    def _draw_muscles(self, frame: SceneFrame, tensions: Array) -> None:
        scene = self.scene
        # viser takes one colour for all as sRGB, but a colour for each vertex as linear light
        colors = linear_light(self._scale.colors(tensions))[scene.segment_muscle]
        self._lines.points = frame.segments.astype(np.float32)
        self._lines.colors = np.repeat(colors[:, None], 2, axis=1)
        self._balls.batched_positions = frame.points.astype(np.float32)
        if self._arrows.visible:
            self._arrows.points = with_length(frame.arrows).astype(np.float32)

    def draw_paths(self) -> None:
        """Send the paths to the browser if they have changed."""
        lines = (self.desired, self._desired, self._dash), (self.actual, self._actual, 0.0)
        for trail, handle, dash in lines:
            if trail.changed:
                trail.changed = False
                handle.points = trail.segments(dash).astype(np.float32)

    def clear_paths(self) -> None:
        """Forget the end-effector paths."""
        self.desired.clear()
        self.actual.clear()

    def set_arrows_visible(self, visible: bool) -> None:
        """Show or hide the force arrows."""
        if self._has_muscles:
            self._arrows.visible = visible

    def set_muscles_visible(self, visible: bool) -> None:
        """Show or hide the muscles and their via points."""
        if self._has_muscles:
            self._lines.visible = visible
            self._balls.visible = visible

    def set_surfaces_visible(self, visible: bool) -> None:
        """Show or hide the wrap surfaces."""
        for handle in self._surfaces:
            handle.visible = visible

    def set_path_visible(self, visible: bool) -> None:
        """Show or hide the end-effector paths."""
        for handle in (self._desired, self._actual):
            handle.visible = visible
        self._tip.visible = visible and self.scene.robot.operational_frame is not None

    def set_world_visible(self, visible: bool) -> None:
        """Show or hide what is around the robot."""
        if self.world is not None:
            self._world.visible = visible

    def set_grid_visible(self, visible: bool) -> None:
        """Show or hide the ground."""
        self.ground.visible = visible
