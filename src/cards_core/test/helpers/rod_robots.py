"""Rod robots of tests: any base joint, any plate joint, any section, any number of limbs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cards_core.rods.robots.robot import (
    Base,
    BaseKind,
    Limb,
    Plate,
    RodRobot,
    Tip,
    TipKind,
    rod_lengths,
    rod_starts,
)
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.solution import shape
from cards_core.spatial import axis_rotation

STEEL = Material(200e9, shear=80e9, density=8000.0)
ROUND = Rod(Section.circle(1e-3), STEEL)
FLAT = Rod(Section.rectangle(1e-3, 3e-3), STEEL, curvature=(0.3, -0.5, 0.8))


def pose(position, rotation_vector=(0.0, 0.0, 0.0)):
    T = np.eye(4)
    angle = float(np.linalg.norm(rotation_vector))
    if angle > 0.0:
        T[:3, :3] = axis_rotation(np.asarray(rotation_vector) / angle, angle)
    T[:3, 3] = position
    return T


def random_pose(rng, size, angle):
    return pose(size * rng.normal(size=3), angle * rng.normal(size=3))


def any_robot(kinds, rod=ROUND, seed=0):
    """A robot with limbs (base kind, tip kind) and frames in all directions."""
    rng = np.random.default_rng(seed)
    limbs = []
    for i, (base, tip) in enumerate(kinds):
        joint, attach = random_pose(rng, 0.1, 0.2), random_pose(rng, 0.03, 0.2)
        if base is BaseKind.REVOLUTE:  # across the rod, which still goes up
            joint, attach = (
                joint @ pose((0, 0, 0), (1.5, 0, 0)),
                pose((0, 0, 0), (-1.5, 0, 0)) @ attach,
            )
        limbs.append(
            Limb(
                f"limb_{i}",
                rod,
                0.5,
                Base(base, joint, attach, joint=f"q{i}"),
                Tip(tip, random_pose(rng, 0.1, 0.3), random_pose(rng, 0.03, 0.3)),
            )
        )
    plate = Plate("plate", 0.4, np.array([0.01, -0.02, 0.03]), np.eye(3) * 1e-3, np.eye(4))
    return RodRobot("any", tuple(limbs), plate, np.array([0.3, -0.2, -9.7]))


class Start:
    """A state to start from."""

    def __init__(self, q, x, base_wrenches):
        self.q, self.pose, self.base_wrenches = q, x, base_wrenches


def matched(robot, q, x, wrenches=None):
    """The robot with its plate joints moved to where its rods end, and the state.

    Without wrenches the rods are unloaded; with wrenches at their starts, shape (n, 6), only what
    the joints cannot hold is left over.
    """
    wrenches = np.zeros((robot.n_limbs, 6)) if wrenches is None else wrenches
    limbs = []
    for limb, start, length, wrench in zip(
        robot.limbs, rod_starts(robot, q), rod_lengths(robot, q), wrenches, strict=True
    ):
        tip = shape(limb.rod, length, start, wrench, points=2).tip
        joint = np.linalg.inv(x) @ tip @ np.linalg.inv(limb.tip.attach)
        limbs.append(replace(limb, tip=replace(limb.tip, joint_pose=joint)))
    return replace(robot, limbs=tuple(limbs)), Start(q, x, wrenches)


def ring_robot(n, tip=TipKind.FIXED, base=BaseKind.EXTENSIBLE, *, controlled=None, mass=0.3):
    """Limbs on a ring of radius 0.15 m, leaning alternately left and right to the plate's."""
    limbs, height = [], 0.5
    for i in range(n):
        angle = 2.0 * np.pi * i / n
        lean = 0.5 * (-1) ** i * np.pi / n
        foot = pose((0.15 * np.cos(angle), 0.15 * np.sin(angle), 0.0))
        head = pose((0.1 * np.cos(angle + lean), 0.1 * np.sin(angle + lean), 0.0))
        limbs.append(
            Limb(
                f"limb_{i}", ROUND, height, Base(base, foot, np.eye(4)), Tip(tip, head, np.eye(4))
            )
        )
    plate = Plate("plate", mass, np.zeros(3), np.eye(3) * 1e-3, pose((0, 0, height)))
    names = ("x", "y", "z", "rx", "ry", "rz") if controlled is None else controlled
    gravity = np.array([0.0, 0.0, -9.81])
    return RodRobot(f"ring_{n}", tuple(limbs), plate, gravity, controlled=names)


def along(axis):
    """Frame rotation whose z axis is this unit vector in the plane XY, and whose x axis is z."""
    T = np.eye(4)
    T[:3, 2] = axis
    T[:3, 0] = (0.0, 0.0, 1.0)
    T[:3, 1] = np.cross(T[:3, 2], T[:3, 0])
    return T


def plane_robot(planar=True):
    """Three limbs in the plane XY: a turning, a feeding and a sliding base; pinned and clamped."""
    up = along((0.0, 1.0, 0.0))
    slide = along((1.0, 0.0, 0.0))
    sideways = np.linalg.inv(slide) @ up
    spin = pose((-0.2, 0.0, 0.0))
    limbs = (
        Limb(
            "turning",
            ROUND,
            0.6,
            Base(BaseKind.REVOLUTE, spin, pose((0.0, 0.02, 0.0)) @ up),
            Tip(TipKind.REVOLUTE, pose((-0.15, 0.0, 0.0)), pose((0.0, -0.02, 0.0)) @ up),
        ),
        Limb(
            "feeding",
            ROUND,
            0.6,
            Base(BaseKind.EXTENSIBLE, up, np.eye(4)),
            Tip(TipKind.FIXED, np.eye(4), up),
        ),
        Limb(
            "sliding",
            ROUND,
            0.6,
            Base(BaseKind.PRISMATIC, pose((0.2, 0.0, 0.0)) @ slide, sideways),
            Tip(TipKind.REVOLUTE, pose((0.15, 0.0, 0.0)), up),
        ),
    )
    plate = Plate("plate", 0.1, np.zeros(3), np.eye(3) * 1e-3, pose((0.0, 0.6, 0.0)))
    if planar:
        return RodRobot("plane", limbs, plate, np.zeros(3), True, ("x", "y", "rz"))
    return RodRobot("space", limbs, plate, np.zeros(3), controlled=("x", "y", "rz"))


EVERY_LIMB = [(base, tip) for base in BaseKind for tip in TipKind]
