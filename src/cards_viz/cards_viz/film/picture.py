"""Pictures of a robot, drawn off-screen by MuJoCo's renderer.

What is drawn is what the page in the browser draws: links, wrap surfaces, muscles in the colour
of their tension. MuJoCo only renders; its model has no dynamics.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Sequence
from typing import Any, Self

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError, ShapeError
from cards_core.robot.elements import Box, Capsule, Cylinder, Ellipsoid, Sphere
from cards_core.typing import Array
from cards_viz.colors import TensionScale, first_scale
from cards_viz.film.view import View
from cards_viz.muscles.scene import Scene, Shape

Image = npt.NDArray[np.uint8]
"""Shape (height, width, 3), sRGB."""

BACKEND = "MUJOCO_GL"
"""Environment variable that chooses how MuJoCo draws."""

KINDS = ("egl", "osmesa", "glfw")
"""Ways to draw, those without a window first."""

FLOOR_BELOW = 0.002
"""How far the floor is below the lowest point of the robot, relative to its size."""

MOST_TARGETS = 64

TARGET_SIZE = 0.015
"""Radius of a target, relative to the size of the robot."""

TARGET_COLOR = (0.84, 0.15, 0.16, 1.0)


class Pictures:
    """Draws a robot; a context manager.

    Args:
        scene: Geometry of the robot.
        width, height: Of the pictures, [pixel].
        view: Where the camera is.
        scale: Colours of tensions; None: that of the robot, which grows.
        ground: Height of the floor, [m]; None: just below the robot at home, or all of ``fixed``.
        fixed: Shapes of the world that do not move, e.g. a terrain.

    Raises:
        CardsError: Nothing on this machine can draw off-screen.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        width: int = 1280,
        height: int = 720,
        view: View | None = None,
        scale: TensionScale | None = None,
        ground: float | None = None,
        fixed: Sequence[Shape] = (),
    ) -> None:
        self.scene, self.view = scene, view or View()
        self.scale = scale or first_scale(scene.robot)
        self._fixed = [shape for shape in fixed if len(shape.faces)]
        if ground is None:
            lowest = [shape.pose.apply(shape.vertices)[:, 2].min() for shape in self._fixed]
            ground = float(min(scene.lower[2], *lowest, np.inf)) - FLOOR_BELOW * scene.size
        self._ground = ground
        self._size = width, height
        self._model = self._compiled()
        self._data = mujoco.MjData(self._model)
        muscles = len(scene.segment_muscle) + len(scene.point_muscle)
        shapes = self._model.ngeom + muscles + MOST_TARGETS
        self._screen = _Screen(self._model, width, height, shapes)
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth = self.view.azimuth
        self._camera.elevation = self.view.elevation
        self._camera.distance = self.view.distance * scene.size
        self._home = 0.5 * (scene.lower + scene.upper)
        self._home_poses = scene.link_poses(scene.tree.home)
        self._camera.lookat[:] = self._home

    def __enter__(self) -> Self:
        """Return the pictures."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the context of OpenGL."""
        self.close()

    def close(self) -> None:
        """Let go of the context of OpenGL; there are no more pictures then."""
        self._screen.close()

    def draw(self, q: Array, tensions: Array, targets: Array | None = None) -> Image:
        """Return a picture.

        Args:
            q: Joint coordinates, shape (nq,).
            tensions: Of the muscles, shape (m,), [N].
            targets: Points that are marked by spheres, shape (k, 3), k <= `MOST_TARGETS`, [m].

        Raises:
            ShapeError: More targets, or another shape.
        """
        marked = np.zeros((0, 3)) if targets is None else np.asarray(targets, dtype=float)
        if marked.ndim != 2 or marked.shape[1] != 3 or len(marked) > MOST_TARGETS:
            raise ShapeError(
                f"targets has shape {marked.shape}, expected (k, 3) with k at most {MOST_TARGETS}"
            )
        scene = self.scene
        frame = scene.frame(q, tensions, self.scale.high)
        self.scale.include(tensions)
        for place, shape in enumerate((*scene.shapes, *scene.surfaces)):
            body = self._bodies[place]
            if body < 0:
                continue
            pose = shape.link_pose(frame.link_poses) @ _matrix(shape)
            self._data.mocap_pos[body] = pose[:3, 3]
            mujoco.mju_mat2Quat(self._data.mocap_quat[body], pose[:3, :3].ravel())
        mujoco.mj_forward(self._model, self._data)
        if self.view.follow and len(frame.link_poses):
            moved = (frame.link_poses[:, :3, 3] - self._home_poses[:, :3, 3]).mean(axis=0)
            self._camera.lookat[:2] = self._home[:2] + moved[:2]
        self._screen.place(self._data, self._camera)
        self._add_muscles(frame.segments, frame.points, self.scale.colors(tensions) / 255.0)
        for target in marked:
            self._add_sphere(target, TARGET_SIZE * self.scene.size, TARGET_COLOR)
        return self._screen.read()

    def _add_sphere(self, place: Array, radius: float, rgba: Sequence[float]) -> None:
        drawn = self._screen.scene
        color = np.array(rgba, dtype=np.float32)
        sphere, size = mujoco.mjtGeom.mjGEOM_SPHERE, np.full(3, radius)
        mujoco.mjv_initGeom(drawn.geoms[drawn.ngeom], sphere, size, place, _TURN, color)
        drawn.ngeom += 1

    def _add_muscles(self, segments: Array, points: Array, colors: Array) -> None:
        drawn = self._screen.scene
        radius = self.scene.radius
        for (a, b), muscle in zip(segments, self.scene.segment_muscle.tolist(), strict=True):
            geom = drawn.geoms[drawn.ngeom]
            rgba = np.array([*colors[muscle], 1.0], dtype=np.float32)
            mujoco.mjv_initGeom(
                geom, mujoco.mjtGeom.mjGEOM_CAPSULE, _NOWHERE, _NOWHERE, _TURN, rgba
            )
            mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_CAPSULE, radius, a, b)
            drawn.ngeom += 1
        for point, muscle in zip(points, self.scene.point_muscle.tolist(), strict=True):
            self._add_sphere(point, 1.6 * radius, [*(0.7 * colors[muscle]), 1.0])

    def _compiled(self) -> Any:
        """Return a model of MuJoCo in which every shape is a body that is put somewhere."""
        scene = self.scene
        spec = mujoco.MjSpec()
        width, height = self._size
        spec.visual.global_.offwidth, spec.visual.global_.offheight = width, height
        spec.visual.map.znear, spec.visual.map.zfar = 0.005, 50.0
        spec.visual.headlight.ambient = [0.35, 0.35, 0.35]
        spec.visual.headlight.diffuse = [0.45, 0.45, 0.45]
        spec.visual.headlight.specular = [0.1, 0.1, 0.1]
        spec.visual.quality.shadowsize = 2048
        spec.stat.extent, spec.stat.center = scene.size, 0.5 * (scene.lower + scene.upper)
        spec.add_texture(
            name="sky",
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
            rgb1=[0.92, 0.94, 0.97],
            rgb2=[0.72, 0.78, 0.86],
            width=128,
            height=768,
        )
        spec.add_texture(
            name="floor",
            type=mujoco.mjtTexture.mjTEXTURE_2D,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
            rgb1=[0.86, 0.87, 0.88],
            rgb2=[0.80, 0.81, 0.83],
            width=256,
            height=256,
        )
        material = spec.add_material(name="floor", texuniform=True)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "floor"
        # fields of a round size that the eye can count
        field = 10.0 ** math.floor(math.log10(scene.size))
        material.texrepeat = [0.5 / field, 0.5 / field]
        world = spec.worldbody
        world.add_light(
            pos=[0.6 * scene.size, -0.8 * scene.size, self._ground + 2.5 * scene.size],
            dir=[-0.25, 0.3, -1.0],
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            diffuse=[0.5, 0.5, 0.5],
            castshadow=True,
        )
        world.add_geom(
            name="floor",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0.0, 0.0, 1.0],
            pos=[0.0, 0.0, self._ground],
            material="floor",
        )
        self._bodies: list[int] = []
        for number, shape in enumerate((*scene.shapes, *scene.surfaces)):
            if not len(shape.faces):
                self._bodies.append(-1)
                continue
            body = world.add_body(name=f"shape_{number}", mocap=True)
            body.add_geom(
                contype=0, conaffinity=0, rgba=list(shape.rgba), **self._form(spec, number, shape)
            )
            self._bodies.append(sum(b >= 0 for b in self._bodies))
        for number, shape in enumerate(self._fixed, len(self._bodies)):
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, shape.pose.rotation.ravel())
            world.add_geom(
                contype=0,
                conaffinity=0,
                pos=shape.pose.translation,
                quat=quaternion,
                rgba=list(shape.rgba),
                **self._form(spec, number, shape),
            )
        return spec.compile()

    def _form(self, spec: Any, number: int, shape: Shape) -> dict[str, Any]:
        """Return what a geom needs for the form of a shape."""
        kinds = mujoco.mjtGeom
        match shape.geometry:
            case Box(size=size):
                return {"type": kinds.mjGEOM_BOX, "size": [0.5 * x for x in size]}
            case Sphere(radius=radius):
                return {"type": kinds.mjGEOM_SPHERE, "size": [radius, 0.0, 0.0]}
            case Cylinder(radius=radius, length=length):
                return {"type": kinds.mjGEOM_CYLINDER, "size": [radius, 0.5 * length, 0.0]}
            case Capsule(radius=radius, length=length):
                return {"type": kinds.mjGEOM_CAPSULE, "size": [radius, 0.5 * length, 0.0]}
            case Ellipsoid(radii=radii):
                return {"type": kinds.mjGEOM_ELLIPSOID, "size": list(radii)}
        name = f"mesh_{number}"
        spec.add_mesh(
            name=name,
            uservert=np.asarray(shape.vertices, dtype=float).ravel(),
            userface=np.asarray(shape.faces, dtype=int).ravel(),
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
        )
        return {"type": kinds.mjGEOM_MESH, "meshname": name}


_NOWHERE = np.zeros(3)
_TURN = np.eye(3).ravel()


def _matrix(shape: Shape) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = shape.pose.rotation, shape.pose.translation
    return out


class _Screen:
    """What MuJoCo draws on: memory of the graphics card, or of the processor.

    Args:
        model: MuJoCo's model.
        width, height: [pixel].
        shapes: Most shapes that are drawn at once.

    Raises:
        CardsError: Nothing on this machine can draw off-screen.
    """

    def __init__(self, model: Any, width: int, height: int, shapes: int) -> None:
        self._context = _context(width, height)
        self._context.make_current()
        self._model = model
        self._picture = np.zeros((height, width, 3), dtype=np.uint8)
        self._whole = mujoco.MjrRect(0, 0, width, height)
        self._drawing = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._drawing)
        self._option = mujoco.MjvOption()
        self.scene = mujoco.MjvScene(model, maxgeom=shapes)

    def place(self, data: Any, camera: Any) -> None:
        """Put all shapes of the model into the scene, and nothing else."""
        mujoco.mjv_updateScene(
            self._model, data, self._option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, self.scene
        )

    def read(self) -> Image:
        """Draw the scene; return a picture of its own."""
        self._context.make_current()
        mujoco.mjr_render(self._whole, self.scene, self._drawing)
        mujoco.mjr_readPixels(self._picture, None, self._whole, self._drawing)
        return np.ascontiguousarray(self._picture[::-1])

    def close(self) -> None:
        """Let go of it."""
        self._context.make_current()
        self._drawing.free()
        self._context.free()


def _context(width: int, height: int) -> Any:
    """Return a context of OpenGL: of the kind that `BACKEND` asks for, else the first there is."""
    asked = os.environ.get(BACKEND, "").lower()
    problems = []
    for kind in (asked,) if asked in KINDS else KINDS:
        try:
            return importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
        except Exception as error:  # whatever libraries say that are not there
            problems.append(f"{kind}: {error}")
    raise CardsError(
        f"pictures cannot be drawn here: {'; '.join(problems)} (expected: EGL or OSMesa, e.g. "
        "the packages libegl1 and libgl1-mesa-dri)"
    )
