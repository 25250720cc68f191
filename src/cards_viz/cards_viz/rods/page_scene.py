"""The 3-D scene of the page of a rod robot: bodies, coloured tubes, ground, gizmo, collapse.

Robots of all sizes are drawn with the same size, `SIZE` units of length of the page: that is what
shadows and keys of viser are made for.
"""

from __future__ import annotations

import numpy as np
import trimesh
import viser

from cards_core.rods.robots.robot import RodRobot, rod_lengths, rod_starts
from cards_core.spatial import matrix_quaternion, quaternion_matrix
from cards_core.typing import Array
from cards_viz.colors import linear_light
from cards_viz.pages.ground import LATTICE_COLOR, cell_size, cells_across, lattice
from cards_viz.pages.scene import Camera, frame_points, light_plainly, set_up, with_length
from cards_viz.rods.bodies import BodyMeshes, RodBodies
from cards_viz.rods.interface import RodSnapshot
from cards_viz.rods.tubes import PIECES, RodColors, thinned, tubes, unit_tube

SIZE = 4.0
"""Diagonal of the box around a robot at home, as drawn."""

END_COLOR = np.array([52, 56, 64], dtype=np.uint8)
GIZMO = 0.17
"""Size of the drag handles, relative to that of the robot."""

MOVES = 0.15
"""How far the plate moves without leaving the picture, relative to the length of the rods."""

COLLAPSE_COLOR = (224, 30, 30)
COLLAPSE_LENGTH = 0.1
"""Longest arrow of the way of collapse, relative to the size of the robot."""

COLLAPSE_SHOWN = 0.25
"""The way of collapse is shown where the smallest eigenvalue is below this part of the first."""


class RodPageScene:
    """The scene nodes of one rod robot.

    Node names: ``/robot/<group>/<number>`` (groups as of `RodBodies`), ``/robot/alike/<number>``
    (several bodies), ``/rods/tubes``, ``/rods/ends``, ``/plate_target``, ``/collapse``,
    ``/ground``.

    Attributes:
        bodies: The rigid bodies.
        unit: Units of the page by metre.
        outline: Points that show the extent of the robot at home, as drawn, shape (k, 3).
        size: Diagonal of the box around them, as drawn.
        lower, upper: The box around ground and robot, as drawn; grows with where the robot goes.
        gizmo: Handles to drag the plate with.
    """

    def __init__(self, server: viser.ViserServer, robot: RodRobot, colors: RodColors) -> None:
        self._api = server.scene
        self._robot = robot
        self._colors = colors
        self.bodies = RodBodies(robot)
        lines = self._straight(PIECES + 1)
        outline = self._outline(lines)
        self.unit = SIZE / (float(np.linalg.norm(np.ptp(outline, axis=0))) or 1.0)
        self.outline, lines = self.unit * outline, self.unit * lines
        self.lower, self.upper = self.outline.min(axis=0), self.outline.max(axis=0)
        self.size = float(np.linalg.norm(self.upper - self.lower)) or 1.0
        self._true_radii = self.unit * np.array([limb.rod.radius for limb in robot.limbs])
        # rods of a millimetre on a robot of metres could hardly be seen, still less their colours
        self._drawn_radii = np.maximum(self._true_radii, 0.0034 * self.size)
        self.radii = self._drawn_radii
        self._add_lights_and_ground()
        self._meshes = BodyMeshes(self._api, self.bodies, self.unit)
        self._tubes = self._add_tubes(lines)
        self._ends = self._add_ends(lines)
        self._add_gizmo()
        self._collapse = self._api.add_arrows(
            "/collapse",
            np.zeros((robot.n_limbs, 2, 3)),
            COLLAPSE_COLOR,
            shaft_radius=0.004 * self.size,
            head_radius=0.010 * self.size,
            head_length=0.022 * self.size,
            visible=False,
        )
        self.collapse_wanted = self._gizmo_wanted = True

    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets the robot fill a picture of this aspect."""
        direction = np.array([0.0, -0.25, 1.0]) if self._robot.planar else None
        return frame_points(self.outline, aspect=aspect, direction=direction, fill=0.72)

    # Building ---------------------------------------------------------------------------------

    def _straight(self, points: int) -> Array:
        """Straight rods at home, until the solver is heard, shape (n, points, 3)."""
        robot = self._robot
        starts = rod_starts(robot, robot.home_q)[:, :3, 3]
        ends = np.array(
            [
                (robot.home_pose @ limb.tip.joint_pose @ limb.tip.attach)[:3, 3]
                for limb in robot.limbs
            ]
        )
        part = np.linspace(0.0, 1.0, points)[None, :, None]
        return np.asarray(starts[:, None] * (1.0 - part) + ends[:, None] * part)

    def _outline(self, lines: Array) -> Array:
        robot = self._robot
        poses = self.bodies.poses(robot.home_q, robot.home_pose, lines)
        found = [lines.reshape(-1, 3)]
        for shape in self.bodies.shapes:
            pose = poses[shape.group]
            found.append(shape.vertices @ pose[:3, :3].T + pose[:3, 3])
        # rods bend outwards by about a tenth of their length, and the plate moves
        length = float(np.mean(rod_lengths(robot, robot.home_q)))
        bow = 0.1 * length
        middle = lines.reshape(-1, 3).mean(axis=0)
        away = lines[:, lines.shape[1] // 2] - middle
        away[:, 2] = 0.0
        norm = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)
        found.append(lines[:, lines.shape[1] // 2] + bow * away / norm)
        shift = MOVES * length * np.eye(3)[: 2 if robot.planar else 3]
        found += [lines[:, -1] + step for step in (*shift, *-shift)]
        extent = float(np.linalg.norm(np.ptp(np.concatenate(found), axis=0)))
        axes = robot.home_pose[:3, :3].T[: 2 if robot.planar else 3]
        found.append(robot.home_pose[:3, 3] + GIZMO * extent * axes)
        return np.concatenate(found)

    def _add_lights_and_ground(self) -> None:
        set_up(self._api)
        self._sun = light_plainly(self._api)
        low, high = self.lower, self.upper
        cell = self.unit * cell_size(self.size / self.unit)
        count = cells_across(float(np.max((high - low)[:2])), cell)
        middle = cell * np.round(0.5 * (low + high) / cell)
        middle[2] = min(0.0, float(low[2])) - 0.002 * self.size
        reach = np.array([0.5 * count * cell, 0.5 * count * cell, 0.0])
        self.lower, self.upper = np.minimum(low, middle - reach), np.maximum(high, middle + reach)
        self._ground = self._api.add_line_segments(
            "/ground",
            middle + cell * lattice(count),
            LATTICE_COLOR,
            thickness=1.0,
            thickness_units="screen",
        )
        self._shadows = self._api.add_grid(
            "/shadows",
            count * cell,
            count * cell,
            cell_thickness=0.0,
            section_thickness=0.0,
            shadow_opacity=0.2,
            position=middle - np.array([0.0, 0.0, 0.001 * self.size]),
            visible=False,
        )
        self.set_shadows(False)

    def _add_tubes(self, lines: Array) -> viser.BatchedMeshHandle:
        made = tubes(lines, self.radii)
        vertices, faces = unit_tube()
        return self._api.add_batched_meshes_simple(
            "/rods/tubes",
            vertices,
            faces,
            batched_wxyzs=made.wxyzs,
            batched_positions=made.positions,
            batched_scales=made.scales,
            batched_colors=np.full((len(made.positions), 3), 150, dtype=np.uint8),
            lod="off",
            receive_shadow=False,
        )

    def _add_ends(self, lines: Array) -> viser.BatchedMeshHandle:
        ball = trimesh.creation.icosphere(subdivisions=0, radius=1.0)
        ends = lines[:, (0, -1)].reshape(-1, 3)
        return self._api.add_batched_meshes_simple(
            "/rods/ends",
            ball.vertices,
            ball.faces,
            batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(ends), 1)),
            batched_positions=ends,
            batched_scales=np.repeat(1.5 * self.radii, 2),
            batched_colors=linear_light(END_COLOR),
            lod="off",
        )

    def _add_gizmo(self) -> None:
        planar = self._robot.planar
        home = self._robot.home_pose
        self.gizmo = self._api.add_transform_controls(
            "/plate_target",
            scale=GIZMO * self.size,
            line_width=2.5,
            active_axes=(True, True, not planar),
            disable_rotations=False,
            depth_test=False,
            wxyz=matrix_quaternion(home[:3, :3]),
            position=self.unit * home[:3, 3],
        )

    # Drawing ----------------------------------------------------------------------------------

    def draw(self, snapshot: RodSnapshot) -> None:
        """Move everything but the gizmo."""
        points = snapshot.lines[:, :, :3]
        poses = self.bodies.poses(snapshot.q, snapshot.pose, points)
        self._meshes.draw(poses)
        lines = thinned(snapshot.lines)
        drawn = self.unit * lines[:, :, :3]
        self.lower = np.minimum(self.lower, drawn.min(axis=(0, 1)))
        self.upper = np.maximum(self.upper, drawn.max(axis=(0, 1)))
        made = tubes(drawn, self.radii)
        colors = self._colors.colors(snapshot, lines)
        if len(made.positions) != len(self._tubes.batched_positions):
            self._tubes.remove()  # another number of points: the batch has another size
            self._tubes = self._add_tubes(drawn)
        self._tubes.batched_positions = made.positions
        self._tubes.batched_wxyzs = made.wxyzs
        self._tubes.batched_scales = made.scales
        self._tubes.batched_colors = colors
        ends = self.unit * points[:, (0, -1)].reshape(-1, 3)
        self._ends.batched_positions = ends.astype(np.float32)
        self._draw_collapse(snapshot)

    def _draw_collapse(self, snapshot: RodSnapshot) -> None:
        """Show where the joints of the plate would go: ``dp + dphi x r``, scaled."""
        vector = snapshot.eigenvector
        shown = (
            self.collapse_wanted
            and vector is not None
            and bool(np.isfinite(vector).all())
            and snapshot.margin < COLLAPSE_SHOWN
        )
        if self._collapse.visible != shown:
            self._collapse.visible = shown
        if not shown or vector is None:
            return
        at = np.array([(snapshot.pose @ limb.tip.joint_pose)[:3, 3] for limb in self._robot.limbs])
        way = vector[:3] + np.cross(vector[3:], at - snapshot.pose[:3, 3])
        longest = float(np.max(np.linalg.norm(way, axis=1)))
        way = COLLAPSE_LENGTH * self.size / max(longest, 1e-12) * way
        at = self.unit * at
        arrows = with_length(np.stack([at, at + way], axis=1))
        self._collapse.points = arrows.astype(np.float32)

    def place_gizmo(self, pose: Array) -> None:
        """Put the gizmo where the plate is, or should be; shape (4, 4)."""
        wxyz, position = matrix_quaternion(pose[:3, :3]), self.unit * pose[:3, 3]
        if np.abs(self.gizmo.position - position).max() > 1e-6 * self.size:
            self.gizmo.position = position
        if np.abs(self.gizmo.wxyz - wxyz).max() > 1e-5:
            self.gizmo.wxyz = wxyz

    def gizmo_pose(self) -> Array:
        """Return where somebody has put the gizmo: the plate's pose, shape (4, 4), [m]."""
        pose = np.eye(4)
        pose[:3, 3] = np.asarray(self.gizmo.position) / self.unit
        pose[:3, :3] = quaternion_matrix(self.gizmo.wxyz)
        return pose

    # Choices ----------------------------------------------------------------------------------

    def set_true_thickness(self, true: bool) -> None:
        """Draw the rods as thick as they are, or thick enough for their colours."""
        self.radii = self._true_radii if true else self._drawn_radii
        self._ends.batched_scales = np.repeat(1.5 * self.radii, 2).astype(np.float32)

    def set_gizmo_visible(self, visible: bool) -> None:
        """Show the gizmo when it is of use, or never."""
        self._gizmo_wanted = visible
        self.use_gizmo(visible)

    def use_gizmo(self, usable: bool) -> None:
        """Hide the gizmo while other controls move the plate: to draw it costs as much as rods."""
        visible = usable and self._gizmo_wanted
        if self.gizmo.visible != visible:
            self.gizmo.visible = visible

    def set_ground_visible(self, visible: bool) -> None:
        """Show or hide the ground."""
        self._ground.visible = visible

    def set_shadows(self, shadows: bool) -> None:
        """Cast shadows, or not: they double the time of a picture without graphics processor."""
        self._api.configure_default_lights(enabled=shadows, cast_shadow=shadows)
        self._sun.visible = not shadows
        self._shadows.visible = shadows

    def set_collapse_visible(self, visible: bool) -> None:
        """Show or hide the way of collapse where it is near."""
        self.collapse_wanted = visible
