"""The blocks of the robot's equations are the derivatives of its residual, for every joint."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from rod_robots import EVERY_LIMB, FLAT, ROUND, any_robot, plane_robot, pose

from cards_core.rods.robots.newton_solver import NativeRobot
from cards_core.rods.robots.robot import BaseKind, TipKind

Q = {
    BaseKind.FIXED: 0.0,
    BaseKind.PRISMATIC: 0.05,
    BaseKind.REVOLUTE: 0.4,
    BaseKind.EXTENSIBLE: 0.55,
}


def prepared(robot, segments, seed=2, slots=range(6)):
    """A state that is no solution, nodes within the rods included."""
    rng = np.random.default_rng(seed)
    native = NativeRobot(robot, np.eye(4), robot.gravity, segments, 16)
    native.set_options(1e-10, 12, False, np.arange(3))
    mask = np.isin(np.arange(6), slots)
    native.set_wrench(np.where(mask, rng.normal(size=6), 0.0), True)
    w = rng.normal(size=(robot.n_limbs, 6)) * [0.5, 0.5, 0.5, 0.15, 0.15, 0.15] * mask
    q = np.array([Q[limb.base.kind] for limb in robot.limbs])
    x = pose((0.02, 0.03, 0.05), (0.0, 0.0, 0.3)) if robot.planar else pose(
        (0.02, 0.03, 0.45), (0.2, -0.3, 0.4)
    )  # fmt: skip
    native.put(w, q, x)
    step = np.zeros(robot.n_limbs * (native.size + 1) + 6)
    step[: robot.n_limbs * native.size] = 0.02 * rng.normal(size=robot.n_limbs * native.size)
    native.add_step(step)
    return native


def check_blocks(robot, native, slots):
    """Compare A, b, D, G, c, E with central differences of the residuals."""
    n, size = robot.n_limbs, native.size
    A, b, D, _, G, c, E, _ = native.blocks()
    state = native.state.copy()

    def residuals(column, h):
        step = np.zeros(n * (size + 1) + 6)
        step[column] = h
        native.state[:] = state
        native.add_step(step)
        blocks = native.blocks()
        return blocks[3].copy(), blocks[7].copy()

    def compare(column, limbs, plate):
        h = 1e-5
        (r1, p1), (r0, p0) = residuals(column, h), residuals(column, -h)
        for found, want in (((r1 - r0) / (2 * h), limbs), ((p1 - p0) / (2 * h), plate)):
            scale = max(1.0, np.abs(want).max())
            np.testing.assert_allclose(found / scale, want / scale, rtol=0, atol=1e-6)

    for i, limb in enumerate(robot.limbs):
        rows = np.zeros((n, size))
        for k in range(size):
            rows[i] = A[i][:, k]
            compare(i * size + k, rows, G[i][:, k])
        if limb.base.kind is not BaseKind.FIXED:
            rows[i] = b[i]
            compare(n * size + i, rows, c[i])
        else:
            assert not b[i].any()
            assert not c[i].any()
    for k in slots:
        compare(n * (size + 1) + k, D[:, :, k], E[:, k])


@pytest.mark.parametrize("rod", [ROUND, FLAT], ids=["round", "flat and curved"])
def test_every_joint_mask(rod):
    robot = any_robot(EVERY_LIMB, rod)
    check_blocks(robot, prepared(robot, 1), range(6))


def test_rods_cut_into_segments():
    robot = any_robot(list(zip(cycle(BaseKind), TipKind, strict=False)), FLAT)
    check_blocks(robot, prepared(robot, 3), range(6))


@pytest.mark.parametrize("segments", [1, 3])
def test_in_the_plane(segments):
    robot, slots = plane_robot(), (0, 1, 5)
    native = prepared(robot, segments, slots=slots)
    assert native.size == 3 + 4 * (segments - 1)
    check_blocks(robot, native, slots)


def test_loads_and_strain_at_rest():
    rod = replace(FLAT, strain=(0.02, -0.01, 1.03))
    robot = any_robot(EVERY_LIMB, rod)
    limbs = tuple(
        replace(limb, force=np.array([0.2, -0.3, 0.1]), moment=np.array([0.01, 0.02, -0.01]))
        for limb in robot.limbs
    )
    robot = replace(robot, limbs=limbs)
    check_blocks(robot, prepared(robot, 1), range(6))
