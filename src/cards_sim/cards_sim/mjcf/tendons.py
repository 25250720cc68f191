"""Muscle paths and wrap surfaces from spatial tendons."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np

from cards_core.formats.sdf.muscle_path import SAME_PLACE, depth_inside
from cards_core.robot.elements import (
    Cylinder,
    PathElement,
    Sphere,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.spatial import Pose
from cards_core.typing import Vector3
from cards_sim.mjcf.names import Names, pose_of

_SITE = int(mujoco.mjtWrap.mjWRAP_SITE)
_PULLEY = int(mujoco.mjtWrap.mjWRAP_PULLEY)
_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)

BESIDE = 1.5
"""Distance of a side point from the centre or axis, in radii, where only its direction counts."""


class Paths:
    """Makes the paths of muscles.

    Args:
        names: Of the model; gets remarks and the names of surfaces.
        qpos: Coordinates of the home pose, shape (nq,).

    Attributes:
        home: Coordinates of the home pose, shape (nq,).
        used_sites: Sites that the paths go through or beside, by MuJoCo's index.
    """

    def __init__(self, names: Names, qpos: Vector3) -> None:
        self._names = names
        self._model = model = names.compiled.model
        self._data = mujoco.MjData(model)
        self._data.qpos[:] = qpos
        self.home = qpos
        mujoco.mj_kinematics(model, self._data)
        self._surfaces: dict[tuple[int, int], WrapSurface] = {}
        self.used_sites: set[int] = set()

    @property
    def surfaces(self) -> tuple[WrapSurface, ...]:
        """The wrap surfaces that the paths name."""
        return tuple(self._surfaces.values())

    def is_spatial(self, tendon: int) -> bool:
        """Return whether a tendon has a path, not a sum of joint coordinates."""
        return bool(self._model.wrap_type[self._model.tendon_adr[tendon]] != _JOINT)

    def coefficients(self, tendon: int) -> dict[int, float]:
        """Return joint to coefficient of a fixed tendon."""
        model = self._model
        first = int(model.tendon_adr[tendon])
        items = range(first, first + int(model.tendon_num[tendon]))
        return {int(model.wrap_objid[i]): float(model.wrap_prm[i]) for i in items}

    def path(self, tendon: int) -> tuple[PathElement, ...] | None:
        """Return the path of a spatial tendon; None, with a warning, if no muscle has it."""
        model, names = self._model, self._names
        first = int(model.tendon_adr[tendon])
        items = range(first, first + int(model.tendon_num[tendon]))
        divisors = [float(model.wrap_prm[i]) for i in items if model.wrap_type[i] == _PULLEY]
        if divisors:
            text = ", ".join(f"{value:g}" for value in divisors)
            names.warn(
                "pulley",
                "tendon",
                tendon,
                f"left out: it has pulleys with divisors {text}, and branches that share a "
                "tension are no muscle here",
            )
            return None
        path: list[PathElement] = []
        for i in items:
            if model.wrap_type[i] == _SITE:
                self._add_site(path, tendon, int(model.wrap_objid[i]))
                continue
            wrap = self._wrap(tendon, i)
            if wrap is not None:
                path.append(wrap)
        points = [item for item in path if isinstance(item, ViaPoint)]
        if len(points) < 2:
            names.warn("tendon", "tendon", tendon, "left out: all of its sites are at one place")
            return None
        for i in items:
            if model.wrap_type[i] == _SITE:
                self.used_sites.add(int(model.wrap_objid[i]))
            elif model.wrap_prm[i] >= 0:  # a surface with a side site
                self.used_sites.add(round(float(model.wrap_prm[i])))
        return tuple(path)

    def _add_site(self, path: list[PathElement], tendon: int, site: int) -> None:
        model = self._model
        link = self._names.links[int(model.site_bodyid[site])]
        point = ViaPoint(link, np.array(model.site_pos[site]))
        last = path[-1] if path else None
        if (
            isinstance(last, ViaPoint)
            and last.link == link
            and np.linalg.norm(last.position - point.position) < SAME_PLACE
        ):
            self._names.note("same-site", "tendon", tendon, "sites at one place became one")
            return
        path.append(point)

    def _wrap(self, tendon: int, index: int) -> Wrap | None:
        model, names = self._model, self._names
        geom = int(model.wrap_objid[index])
        what = names.label("geom", geom)
        side_site = round(float(model.wrap_prm[index]))
        body = self._carrier(tendon, geom, side_site)
        surface = self._surface(geom, body)
        place = self._placed(body)
        side, inside = self._side(tendon, geom, side_site, body, surface)
        sites = [int(model.wrap_objid[i]) for i in (index - 1, index + 1)]
        depths = [
            depth_inside(surface, place.inverse().apply(self._at_home(site))) for site in sites
        ]
        within = not inside and max(depths) >= SAME_PLACE
        if within:
            weld = model.body_weldid
            ends = [
                weld[model.site_bodyid[site]]
                for site, depth in zip(sites, depths, strict=True)
                if depth >= SAME_PLACE
            ]
            if weld[body] in ends:
                names.note("never-wraps", "tendon", tendon, f"never wraps over {what}, left out")
                return None
            names.note(
                "inside",
                "tendon",
                tendon,
                f"does not wrap over {what} at home, where an end is {1e3 * max(depths):.3g} mm "
                "inside, as in MuJoCo",
            )
        if (geom, body) not in self._surfaces:
            name = names.surfaces.claim(surface.name)
            self._surfaces[geom, body] = replace(surface, name=name)
        return Wrap(self._surfaces[geom, body].name, side, inside, free_ends=within)

    def _placed(self, body: int) -> Pose:
        """Return the pose of a body at home."""
        return Pose(self._data.xmat[body].reshape(3, 3).copy(), self._data.xpos[body].copy())

    def _at_home(self, site: int) -> Vector3:
        model = self._model
        return self._placed(int(model.site_bodyid[site])).apply(model.site_pos[site])

    def _carrier(self, tendon: int, geom: int, side_site: int) -> int:
        """Return the body that carries a surface: that of its side site where this is the same.

        MuJoCo's side site may be on another body than the surface. Where all joints between them
        turn the surface into itself, such as a cylinder about its own hinge, it can as well be on
        the body of the site, and the length of the tendon is the same function of the pose.
        """
        model = self._model
        body = int(model.geom_bodyid[geom])
        other = int(model.site_bodyid[side_site]) if side_site >= 0 else body
        if other == body:
            return body
        if model.body_weldid[body] == model.body_weldid[other] or self._invariant(geom, other):
            return other
        self._names.warn(
            "moving-side",
            "tendon",
            tendon,
            f"side {self._names.label('site', side_site)} moves against "
            f"{self._names.label('geom', geom)}: its place at home counts",
        )
        return body

    def _invariant(self, geom: int, body: int) -> bool:
        """Return whether a surface is at one place in a body in all poses of the robot."""
        model = self._model
        data = mujoco.MjData(model)
        rng = np.random.default_rng(0)
        span = 1.0 + float(model.stat.extent)
        first: tuple[Vector3, Vector3] | None = None
        for _ in range(8):
            data.qpos[:] = model.qpos0
            mujoco.mj_integratePos(model, data.qpos, rng.standard_normal(model.nv), 1.0)
            mujoco.mj_kinematics(model, data)
            frame = Pose(data.xmat[body].reshape(3, 3), data.xpos[body]).inverse()
            centre = frame.apply(data.geom_xpos[geom])
            axis = frame.rotation @ data.geom_xmat[geom].reshape(3, 3)[:, 2]
            if first is None:
                first = centre, axis
                continue
            offset = centre - first[0]
            if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CYLINDER:
                if np.linalg.norm(np.cross(axis, first[1])) > 1e-12:
                    return False
                offset = offset - (offset @ axis) * axis
            if np.linalg.norm(offset) > 1e-12 * span:
                return False
        return True

    def _surface(self, geom: int, body: int) -> WrapSurface:
        if (geom, body) in self._surfaces:
            return self._surfaces[geom, body]
        model, names = self._model, self._names
        radius = float(model.geom_size[geom, 0])
        ball = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE
        own = int(model.geom_bodyid[geom])
        pose = pose_of(model.geom_pos[geom], model.geom_quat[geom])
        if own != body:
            pose = self._placed(body).inverse() @ self._placed(own) @ pose
        return WrapSurface(
            names.name("geom", geom) or f"geom_{geom}",
            names.links[body],
            Sphere(radius) if ball else Cylinder(radius, math.inf),
            pose,
            names.line("geom", geom),
        )

    def _side(
        self, tendon: int, geom: int, site: int, body: int, surface: WrapSurface
    ) -> tuple[Vector3 | None, bool]:
        """Return the side point in the link of the surface, and whether the wrap is inside."""
        if site < 0:
            return None, False
        model = self._model
        if int(model.site_bodyid[site]) == body:
            side = np.array(model.site_pos[site])
        else:
            side = self._placed(body).inverse().apply(self._at_home(site))
        radius = float(model.geom_size[geom, 0])
        local = surface.pose.inverse().apply(side)
        if float(np.linalg.norm(local)) < radius:
            return None, True
        # only its direction counts: away from the centre, or the axis
        across = local.copy()
        if isinstance(surface.geometry, Cylinder):
            across[2] = 0.0
        away = float(np.linalg.norm(across))
        if away < SAME_PLACE:
            text = "side site on the axis of its surface left out"
            self._names.warn("side", "tendon", tendon, text)
            return None, False
        if away < radius + SAME_PLACE:
            side = surface.pose.apply(local + across * (BESIDE * radius / away - 1.0))
        return side, False
