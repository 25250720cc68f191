"""Closed-form wrapping against MuJoCo's spatial tendons: length 1e-9, moment arms 1e-7."""

from __future__ import annotations

import math

import numpy as np
import pytest
from wrap_cases import path_length

from cards_core.paths.wrapping.closed_forms import Contact, cylinder_contact, sphere_contact

mujoco = pytest.importorskip("mujoco")

RADIUS = 0.1
POSES = 1000

SCENE = """
<mujoco>
  <worldbody>
    <body name="p"><freejoint/><geom size=".01"/><site name="p" pos=".02 .01 -.03"/></body>
    <body name="surface"><freejoint/>
      <geom name="surface" type="{kind}" size="{size}" pos=".01 -.02 .03" euler="20 40 -30"/>
      <site name="side" pos="{side}"/>
    </body>
    <body name="q"><freejoint/><geom size=".01"/><site name="q" pos="-.01 .03 .02"/></body>
  </worldbody>
  <tendon><spatial name="t">
    <site site="p"/><geom geom="surface" {sidesite}/><site site="q"/>
  </spatial></tendon>
</mujoco>
"""

ELBOW = """
<mujoco>
  <worldbody>
    <site name="p" pos=".03 .02 .25"/>
    <geom name="surface" type="{kind}" size="{size}" euler="90 0 0"/>
    <site name="side" pos=".2 0 0"/>
    <body name="forearm">
      <joint axis="0 1 0"/><joint axis="0 0 1"/><geom size=".01" pos="0 0 -.2"/>
      <site name="q" pos=".04 -.01 -.2"/>
    </body>
    <body name="surface"/>
  </worldbody>
  <tendon><spatial name="t">
    <site site="p"/><geom geom="surface" {sidesite}/><site site="q"/>
  </spatial></tendon>
</mujoco>
"""


class Tendon:
    """A tendon of MuJoCo and the same path by our closed forms."""

    def __init__(self, scene: str, kind: str, side: str | None = None) -> None:
        size = f"{RADIUS}" if kind == "sphere" else f"{RADIUS} 1"
        sidesite = 'sidesite="side"' if side else ""
        text = scene.format(kind=kind, size=size, side=side or "0 0 1", sidesite=sidesite)
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        self.kind = kind
        self.with_side = side is not None

    def pose(self, qpos: np.ndarray) -> None:
        self.data.qpos[:] = qpos
        mujoco.mj_forward(self.model, self.data)
        geom = self.data.geom("surface")
        self.rotation, self.origin = geom.xmat.reshape(3, 3), geom.xpos
        self.p, self.q = self.local("p"), self.local("q")
        self.side = self.local("side") if self.with_side else None

    def local(self, site: str) -> np.ndarray:
        return self.rotation.T @ (self.data.site(site).xpos - self.origin)

    @property
    def length(self) -> float:
        return float(self.data.ten_length[0])

    @property
    def moment_arms(self) -> np.ndarray:
        model, data = self.model, self.data
        row = np.zeros(model.nv)
        start, count = model.ten_J_rowadr[0], model.ten_J_rownnz[0]
        row[model.ten_J_colind[start : start + count]] = data.ten_J[start : start + count]
        return row

    def contact(self) -> Contact:
        if self.kind == "sphere":
            return sphere_contact(self.p, self.q, RADIUS, self.side)
        return cylinder_contact(self.p, self.q, RADIUS, side=self.side)

    def contact_without_side(self) -> Contact:
        if self.kind == "sphere":
            return sphere_contact(self.p, self.q, RADIUS)
        return cylinder_contact(self.p, self.q, RADIUS)

    def our_moment_arms(self, contact: Contact) -> np.ndarray:
        """Rate of the straight pieces per unit joint velocity, tangent points on the surface."""
        row = np.zeros(self.model.nv)
        for (link_a, a), (link_b, b) in (
            (("p", self.p), ("surface", contact.start)),
            (("surface", contact.end), ("q", self.q)),
        ):
            u = self.rotation @ (b - a)
            u /= np.linalg.norm(u)
            row += u @ (self._jacobian(link_b, b) - self._jacobian(link_a, a))
        return row

    def _jacobian(self, link: str, local: np.ndarray) -> np.ndarray:
        if link == "surface":
            body = self.model.body("surface").id
        else:
            body = self.model.site(link).bodyid[0]
        jacobian = np.zeros((3, self.model.nv))
        point = self.rotation @ local + self.origin
        mujoco.mj_jac(self.model, self.data, jacobian, None, point, body)
        return jacobian


def random_poses(rng: np.random.Generator, tendon: Tendon, count: int = POSES):
    """Poses of three free bodies with both sites outside the surface."""
    found = 0
    while found < count:
        qpos = rng.normal(size=tendon.model.nq)
        for k in (0, 7, 14):
            direction = rng.normal(size=3)
            qpos[k : k + 3] = direction / np.linalg.norm(direction) * rng.uniform(0.05, 0.5)
        qpos[7:10] *= 0.1
        tendon.pose(qpos)
        n = 3 if tendon.kind == "sphere" else 2
        if min(np.linalg.norm(tendon.p[:n]), np.linalg.norm(tendon.q[:n])) > RADIUS:
            found += 1
            yield


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_random_poses_without_side(kind: str) -> None:
    tendon = Tendon(SCENE, kind)
    wrapped = 0
    for _ in random_poses(np.random.default_rng(1), tendon):
        contact = tendon.contact()
        wrapped += contact.wrapped
        assert abs(path_length(tendon.p, tendon.q, contact) - tendon.length) < 1e-9
        arms = tendon.our_moment_arms(contact)
        np.testing.assert_allclose(arms, tendon.moment_arms, rtol=0, atol=1e-7)
    assert wrapped > 100


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_random_poses_with_side(kind: str) -> None:
    tendon = Tendon(SCENE, kind, side=".15 .2 -.1")
    wrapped = far = 0
    for _ in random_poses(np.random.default_rng(2), tendon):
        contact = tendon.contact()
        wrapped += contact.wrapped
        shorter = tendon.contact_without_side()
        far += contact.angle > shorter.angle + 1e-3
        assert abs(path_length(tendon.p, tendon.q, contact) - tendon.length) < 1e-9
        arms = tendon.our_moment_arms(contact)
        np.testing.assert_allclose(arms, tendon.moment_arms, rtol=0, atol=1e-7)
    assert wrapped > 300
    assert far > 100  # the longer way, which only the side site asks for


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_elbow_with_side(kind: str) -> None:
    """A joint as models have it."""
    tendon = Tendon(ELBOW, kind, side="yes")
    rng = np.random.default_rng(3)
    wrapped = 0
    for _ in range(POSES):
        tendon.pose(np.array([rng.uniform(-1.2, 1.7), rng.uniform(-0.4, 0.4)]))
        contact = tendon.contact()
        wrapped += contact.wrapped
        assert abs(path_length(tendon.p, tendon.q, contact) - tendon.length) < 1e-9
        arms = tendon.our_moment_arms(contact)
        np.testing.assert_allclose(arms, tendon.moment_arms, rtol=0, atol=1e-7)
    assert wrapped > 200


def rim_residual(p: np.ndarray, q: np.ndarray, bend: np.ndarray, n: int) -> float:
    """Difference of the angles of both pieces with the normal of the rim, [rad]."""
    angles = []
    for end in (p, q):
        out = (end - bend)[:n]
        cross = np.linalg.norm(np.cross(np.append(bend[:n], 0.0)[:3], np.append(out, 0.0)[:3]))
        angles.append(math.atan2(float(cross), float(bend[:n] @ out)))
    return abs(angles[0] - angles[1])


@pytest.mark.parametrize("kind", ["cylinder", "sphere"])
def test_random_poses_through_the_bore(kind: str) -> None:
    tendon = Tendon(SCENE, kind, side=".012 -.02 .03")
    n = 2 if kind == "cylinder" else 3
    wrapped = unconverged = 0
    for _ in random_poses(np.random.default_rng(4), tendon):
        if kind == "cylinder":
            contact = cylinder_contact(tendon.p, tendon.q, RADIUS, inside=True)
        else:
            contact = sphere_contact(tendon.p, tendon.q, RADIUS, inside=True)
        assert abs(path_length(tendon.p, tendon.q, contact) - tendon.length) < 1e-9
        if contact.wrapped:
            wrapped += 1
            assert rim_residual(tendon.p, tendon.q, contact.start, n) < 1e-9
        error = np.abs(tendon.our_moment_arms(contact) - tendon.moment_arms).max()
        if error > 1e-7:
            # MuJoCo's iteration is content with a residual of 1e-6 in its own equation
            bend = tendon.rotation.T @ (tendon.data.wrap_xpos[0, 3:6] - tendon.origin)
            residual = rim_residual(tendon.p, tendon.q, bend, n)
            assert 1e-7 < error < residual < 1e-5
            unconverged += 1
    print(f"{kind}: MuJoCo's iteration stopped early in {unconverged} of {POSES} poses")
    assert wrapped > 500
    assert unconverged < 0.1 * POSES
