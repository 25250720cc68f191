"""State and history of a moving robot: the C library, its structures and arrays, what follows.

The library is compiled on first use, then cached.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.codegen.library import load_library
from cards_core.rods.native_library import NativeRod
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.solution import equivalent_stress
from cards_core.typing import Array

SOURCES = (
    "rod",
    "dynamics_formula",
    "dynamics_point*",
    "dynamics_rod",
    "dynamics_variation",
    "frames",
    "dynamics_algebra",
    "dynamics_limb",
    "dynamics_rows",
    "dynamics_robot",
    "dynamics_step",
)
"""Files of ``rods/native/``, each using those before it. The name that ends in ``*`` is compiled
for one section and again for 8 side by side."""

ONE = """
#define REAL double
#define NAME(name) name
"""

EIGHT = """
#undef REAL
#undef NAME
#define REAL lanes
#define NAME(name) name##8
"""

WIDTH = 8
"""Rods that are integrated side by side."""

STAGES = 12
"""Stages of one step along a rod; each has a history of its own."""

STATE = 13
"""Position, quaternion, force, moment of a section."""

_double = ctypes.c_double

_DOUBLES = ctypes.POINTER(ctypes.c_double)

_INTS = ctypes.POINTER(ctypes.c_int)


class Formula(ctypes.Structure):
    """``struct dynamic_formula``: coefficients of the difference formula."""

    _fields_ = tuple((name, _double) for name in ("c0", "c1", "c2", "d1", "lambda_"))


class Point(ctypes.Structure):
    """``struct dynamic_point``: history of one stage (or of the plate)."""

    _fields_ = (
        ("z", _double * 15),
        ("old", _double * 15),
        ("rate", _double * 15),
        ("q", _double * 4),
        ("turn", _double * 3),
        ("spin", _double * 3),
        ("h", _double * 15),
        ("h_turn", _double * 3),
        ("now", _double * 15),
        ("q_now", _double * 4),
    )


POINT = ctypes.sizeof(Point) // 8
"""Numbers of a point; `AT` tells where they start."""

AT = {name: getattr(Point, name).offset // 8 for name, _ in Point._fields_}

GROUP = 25 * WIDTH + 8
"""Numbers of a ``struct dynamic_group``: vectors, then a flag and two pointers, padded."""

GROUP_POINTS = 25 * WIDTH + 1
"""Where its pointers are."""

STAGE = 45 * WIDTH
"""Numbers of a ``struct dynamic_stage``."""


class Limb(ctypes.Structure):
    """``struct dynamic_limb``."""

    _fields_ = (
        ("rod", NativeRod),
        ("mass", _double),
        ("inertia", _double * 3),
        ("damping", _double),
        ("length", _double),
        ("speed", _double),
        ("scale_length", _double),
        ("scale_force", _double),
        ("start_p", _double * 3),
        ("start_R", _double * 9),
        ("joint_p", _double * 3),
        ("joint_R", _double * 9),
        ("back_p", _double * 3),
        ("back_R", _double * 9),
        ("free", ctypes.c_int * 6),
        ("state", _DOUBLES),
        ("before", _DOUBLES),
        ("keep", _DOUBLES),
        ("nodes", _DOUBLES),
        ("nodes_keep", _DOUBLES),
        ("blocks", _DOUBLES),
        ("sides", _DOUBLES),
        ("swaps", _INTS),
    )


class Robot(ctypes.Structure):
    """``struct dynamic_robot``."""

    _fields_ = (
        ("formula", Formula),
        ("limbs", ctypes.c_int),
        ("segments", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("held", ctypes.c_int),
        ("follower", ctypes.c_int),
        ("mass", _double),
        ("com", _double * 3),
        ("inertia", _double * 6),
        ("gravity", _double * 3),
        ("wrench", _double * 6),
        ("scale_length", _double),
        ("scale_force", _double),
        ("p", _double * 3),
        ("q", _double * 4),
        ("p_before", _double * 3),
        ("q_before", _double * 4),
        ("p_keep", _double * 3),
        ("q_keep", _double * 4),
        ("plate", Point),
        ("limb", ctypes.POINTER(Limb)),
        ("group", ctypes.c_void_p),
        ("residual", _double),
        ("stiffness", _double * 36),
        ("reduced", _double * 36),
        ("tips", _DOUBLES),
        ("reduced_swaps", ctypes.c_int * 6),
        ("tip_swaps", _INTS),
        ("factored", ctypes.c_int),
        ("runs", ctypes.c_long),
        ("variations", ctypes.c_long),
    )


TIP_SIZE = 384
"""Numbers of the workspace ``tips`` per limb."""


@cache
def dynamics_library() -> ctypes.CDLL:
    """Return the library; its functions release the GIL and keep nothing between calls.

    Raises:
        CompilationError: There is no C compiler, or it refused the sources.
    """
    library = load_library("moving rods", source())
    robot = ctypes.POINTER(Robot)
    library.dynamic_rest.argtypes = [robot, ctypes.c_int, ctypes.c_double]
    library.dynamic_step.argtypes = [robot, *[ctypes.c_int] * 3, ctypes.c_double]
    library.dynamic_linearise.argtypes = [robot]
    library.dynamic_fill.argtypes = [robot]
    library.dynamic_fill.restype = None
    return library


def source() -> str:
    """Return the program text of the library."""
    folder = Path(__file__).parent.parent / "native"
    parts: list[str] = []
    for name in SOURCES:
        text = (folder / f"{name.rstrip('*')}.c").read_text(encoding="utf-8")
        parts += [ONE, text, EIGHT, text] if name.endswith("*") else [text]
    return "\n".join(parts)


def aligned(*shape: int) -> Array:
    """Return zeros, aligned for vectors of 8."""
    size = 1
    for extent in shape:
        size *= extent
    raw = np.zeros(size + WIDTH)
    shift = -(raw.ctypes.data // 8) % WIDTH
    return raw[shift : shift + size].reshape(shape)


STEP_WEIGHTS = np.array(
    [
        0.054293734116568765, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003,
        -5.801203960010585, 0.3111643669578199, -0.1521609496625161, 0.20136540080403034,
        0.04471061572777259,
    ]
)  # fmt: skip
"""Weights of the stages in a step: the last row of the tableau in ``native/rod.c``."""


class NativeState:
    """State and history of a moving robot.

    Args:
        robot: The robot.
        segments: Of multiple shooting, per rod.
        steps: Along each segment.
        held: The plate's pose is given.

    Attributes:
        c: ``struct dynamic_robot``.
        limbs: Its ``struct dynamic_limb``, one per limb (and one spare if there is none).
        states: p, quaternion, n, m at the ends of the segments: now, one instant earlier, and a
            copy; shape (3, n, segments + 1, 13).
    """

    def __init__(self, robot: RodRobot, segments: int, steps: int, held: bool) -> None:
        n, per_rod, groups = robot.n_limbs, segments * steps, -(-robot.n_limbs // WIDTH)
        self.robot, self.per_rod = robot, per_rod
        self._nodes = np.zeros((2, n, per_rod + 1, STATE))
        self._points = aligned(groups, per_rod * STAGES, POINT, WIDTH)
        self._points[:, :, AT["q"]] = 1.0  # until the first solution: any rotation, not 0
        self._stages = aligned(groups, per_rod * STAGES, STAGE)
        self._groups = aligned(groups, GROUP)
        addresses = self._groups.view(np.uint64)[:, GROUP_POINTS:]
        for k in range(groups):
            addresses[k, 0] = self._points[k].ctypes.data
            addresses[k, 1] = self._stages[k].ctypes.data
        self._tips = np.zeros((n, TIP_SIZE))
        self._tip_swaps = np.zeros((n, 12), dtype=np.int32)
        self.limbs = (Limb * max(n, 1))()
        self.c = Robot()
        self._fill_robot(held)
        for i in range(n):
            self._fill_limb(i)
        self.cut(segments)

    def refine(self) -> bool:
        """Cut the rods into more segments of the same steps, where they are; False: no more."""
        if self.c.steps == 1:
            return False
        self.cut(self.c.segments * (2 if self.c.steps % 2 == 0 else self.c.steps))
        return True

    def cut(self, segments: int) -> None:
        """Share the steps among segments, whose states are those at the ends of steps."""
        n, c = self.robot.n_limbs, self.c
        c.segments, c.steps = segments, self.per_rod // segments
        self.states = np.repeat(self._nodes[:1, :, :: c.steps], 3, axis=0)
        self._blocks = np.zeros((n, segments, 18 * 24))
        self._sides = np.zeros((n, segments, 18))
        self._swaps = np.zeros((n, segments + 1, 12), dtype=np.int32)
        for i, item in enumerate(self.limbs[:n]):
            item.state, item.before, item.keep = (_doubles(self.states[k, i]) for k in range(3))
            item.blocks = _doubles(self._blocks[i])
            item.sides = _doubles(self._sides[i])
            item.swaps = _ints(self._swaps[i])

    def _fill_robot(self, held: bool) -> None:
        robot, c = self.robot, self.c
        c.limbs, c.held = robot.n_limbs, held
        plate = robot.plate
        c.mass = plate.mass
        c.com[:] = plate.com
        c.inertia[:] = plate.inertia[np.triu_indices(3)]
        c.gravity[:] = robot.gravity
        stiffness = [limb.rod.bending_stiffness for limb in robot.limbs]
        c.scale_length = float(np.mean(robot.lengths))
        c.scale_force = float(np.mean(stiffness)) / c.scale_length**2
        c.limb = ctypes.cast(self.limbs, ctypes.POINTER(Limb))
        c.group = self._groups.ctypes.data
        c.tips = _doubles(self._tips)
        c.tip_swaps = _ints(self._tip_swaps)
        c.plate.q[0] = 1.0

    def _fill_limb(self, i: int) -> None:
        limb, item = self.robot.limbs[i], self.limbs[i]
        rod, tip = limb.rod, limb.tip
        item.rod = limb.native(np.asarray(self.robot.gravity))
        item.mass = rod.mass_per_length
        item.inertia[:] = rod.inertia_per_length
        item.damping = rod.damping
        item.scale_length = limb.length
        item.scale_force = rod.bending_stiffness / limb.length**2
        item.joint_p[:] = tip.joint_pose[:3, 3]
        item.joint_R[:] = tip.joint_pose[:3, :3].ravel()
        back = np.linalg.inv(tip.attach)
        item.back_p[:] = back[:3, 3]
        item.back_R[:] = back[:3, :3].ravel()
        item.free[:] = [int(value) for value in tip.kind.free]
        item.nodes, item.nodes_keep = (_doubles(self._nodes[k, i]) for k in range(2))

    def points(self, limb: int) -> Array:
        """Return the histories along a rod, one row per stage, shape (stages, `POINT`)."""
        return self._points[limb // WIDTH, :, :, limb % WIDTH]

    def positions(self) -> Array:
        """Return points of the centre-lines, shape (n, steps + 1, 3), [m]."""
        place = slice(AT["z"], AT["z"] + 3)
        starts = [self.points(i)[::STAGES, place] for i in range(len(self.states[0]))]
        return np.concatenate([np.array(starts), self.states[0, :, -1:, :3]], axis=1)

    def strains(self) -> Array:
        """Return the maximum strains; see `RobotDynamics.strains`."""
        worst = []
        for i, limb in enumerate(self.robot.limbs):
            rod, z = limb.rod, self._channels(i)
            v = np.broadcast_to(rod.strain, z["v"].shape) if rod.inextensible else z["v"]
            worst.append(float(equivalent_stress(rod, v, z["u"]).max()) / rod.material.young)
        return np.array(worst)

    def energy(self) -> dict[str, float]:
        """Return energies; see `RobotDynamics.energy`."""
        kinetic, elastic, gravity, load = 0.0, 0.0, 0.0, 0.0
        g = np.asarray(self.robot.gravity)
        for i, limb in enumerate(self.robot.limbs):
            rod, weights, z = limb.rod, self._weights(i), self._channels(i)
            spin = self.points(i)[:, AT["spin"] : AT["spin"] + 3]
            density = rod.mass_per_length * np.sum(z["V"] ** 2, 1) + np.sum(z["H"] * spin, 1)
            kinetic += 0.5 * float(weights @ density)
            bend = np.sum((z["u"] - rod.curvature) ** 2 * rod.stiffness_bt, 1)
            if not rod.inextensible:
                bend = bend + np.sum((z["v"] - rod.strain) ** 2 * rod.stiffness_se, 1)
            elastic += 0.5 * float(weights @ bend)
            gravity -= rod.mass_per_length * float(weights @ (z["p"] @ g))
            load -= float(weights @ (z["p"] @ limb.force))
        plate = np.array(self.c.plate.z)
        mass = self.robot.plate.mass
        kinetic += 0.5 * mass * float(plate[3:6] @ plate[3:6])
        kinetic += 0.5 * float(plate[6:9] @ np.array(self.c.plate.spin))
        gravity -= mass * float(g @ plate[:3])
        parts = {"kinetic": kinetic, "elastic": elastic, "gravity": gravity, "load": load}
        return {**parts, "total": sum(parts.values())}

    def momentum(self) -> Array:
        """Return linear and angular momentum about the world's origin, shape (6,)."""
        plate = np.array(self.c.plate.z)
        linear = self.robot.plate.mass * plate[3:6]
        angular = plate[6:9] + np.cross(plate[:3], linear)
        for i, limb in enumerate(self.robot.limbs):
            z, weights = self._channels(i), self._weights(i)
            linear = linear + limb.rod.mass_per_length * (weights @ z["V"])
            spin = limb.rod.mass_per_length * np.cross(z["p"], z["V"]) + z["H"]
            angular = angular + weights @ spin
        return np.concatenate([linear, angular])

    def _channels(self, limb: int) -> dict[str, Array]:
        z = self.points(limb)[:, AT["z"] : AT["z"] + 15].reshape(-1, 5, 3)
        return dict(zip("pVHuv", z.transpose(1, 0, 2), strict=True))

    def _weights(self, limb: int) -> Array:
        return np.tile(STEP_WEIGHTS * self.limbs[limb].length / self.per_rod, self.per_rod)


def _doubles(values: Array) -> Any:
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _ints(values: np.ndarray[Any, Any]) -> Any:
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_int))
