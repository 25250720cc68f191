"""Failure of limbs: loss of their own stability, and strain beyond the yield strain.

**Stability.** The plate's stiffness K has the rods eliminated, so it is only half of the
criterion: an equilibrium is stable if K is positive definite *and* every rod between its held base
and the held plate is stable with what its joint leaves free. (The Morse index of the whole, its
number of negative directions, is the sum of both.) Where a rod loses its own stability K has a
pole: its smallest eigenvalue falls through zero and comes back from above, often within a fraction
of a millimetre, which steps of millimetres do not see.

As in `cards_core.rods.stability`, a rod is cut into segments that cannot buckle between held ends.
Their stiffnesses H (12 x 12, from the exact derivative of end by start) are put together from the
start to the tip, all limbs at once::

    P_k = H00 + S_k      S_k+1 = H11 - H10 P_k^-1 H01      index = sum of negatives of P_k, P_free

with S the stiffness at a cut of all that lies before it, and ``P_free`` that at the joint's
centre, in the directions that the joint leaves free.

**Yield.** Strain is the equivalent one, von Mises' stress of tension, bending and torsion at the
outer fibre over Young's modulus, ``sqrt(sigma^2 + 3 tau^2) / E``: the material yields where it
exceeds the yield strain, that is the yield stress over E.
"""

from __future__ import annotations

import ctypes
import math

import numpy as np
import numpy.typing as npt

from cards_core.checks import readable
from cards_core.rods.native_library import rod_library
from cards_core.rods.robots.robot import Limb, RodRobot, TipKind, rod_lengths, rod_starts
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.shooting import scales
from cards_core.rods.status import Finding, RodStatus
from cards_core.spatial import hat
from cards_core.typing import Array

TURN = 1.5
"""Largest ``sqrt(|n|/EI) h`` and ``|m| h/EI`` of a segment; it could buckle from 2 pi on."""

STEP_ANGLE = 0.5
"""Turn of an integration step of order 8, at most about this, [rad]."""


def limb_morse_index(solver: RodRobotSolver, solution: Solution) -> npt.NDArray[np.int_]:
    """Return the number of unstable directions of each limb alone, shape (n,).

    Args:
        solver: Solver of the robot.
        solution: An equilibrium.
    """
    robot, slots = solver.robot, solver.slots
    lengths = rod_lengths(robot, solution.q)
    count = _segments(solver, solution, lengths)
    unit = [scales(limb.rod, length) for limb, length in zip(robot.limbs, lengths, strict=True)]
    whole, ends = _transfers(solver, solution, lengths, count)
    scale = np.array(unit)[:, None]
    whole *= scale[:, :, None, :] / scale[:, :, :, None]
    k, m = slots, slots + 6
    a, b = whole[..., k[:, None], k], whole[..., k[:, None], m]
    c, d = whole[..., m[:, None], k], whole[..., m[:, None], m]
    inverse = np.linalg.inv(b)
    h00, h01 = inverse @ a, -inverse
    h10, h11 = c - d @ inverse @ a, d @ inverse
    index = np.zeros(robot.n_limbs, dtype=int)
    corner = h11[:, 0]
    for i in range(1, count):
        pivot = h00[:, i] + corner
        index += (np.linalg.eigvalsh(_symmetric(pivot)) < 0.0).sum(axis=1)
        corner = h11[:, i] - h10[:, i] @ np.linalg.solve(pivot, h01[:, i])
    for i, limb in enumerate(robot.limbs):
        if limb.tip.kind is not TipKind.FIXED:
            full = np.zeros((6, 6))
            full[np.ix_(slots, slots)] = corner[i]
            full *= unit[i][6:, None] / unit[i][:6]
            index[i] += _free_negative(limb, solution, ends[i], full, robot.planar)
    return index


def _segments(solver: RodRobotSolver, solution: Solution, lengths: Array) -> int:
    """Return how many segments the limbs need, the same for all."""
    count = 2.0
    tips = solution.tip_wrenches
    for i, limb in enumerate(solver.robot.limbs):
        rod, ends = limb.rod, (solution.base_wrenches[i], tips[i])
        load = float(np.linalg.norm(limb.force_per_length(solver.gravity))) * lengths[i]
        force = max(float(np.linalg.norm(w[:3])) for w in ends) + load
        soft = min(rod.bending_stiffness, float(rod.stiffness_bt[2]))
        # between the ends the moment may be greater than at both, by the force times the sagitta
        moment = max(float(np.linalg.norm(w[3:])) for w in ends) + 0.25 * force * lengths[i]
        moment += float(np.linalg.norm(limb.moment)) * lengths[i]
        turn = max(math.sqrt(force / rod.bending_stiffness), min(moment / soft, 1e3))
        turn = max(turn, float(np.linalg.norm(rod.curvature)))
        count = max(count, turn * lengths[i] / TURN)
    return min(math.ceil(count), 64)


def _transfers(
    solver: RodRobotSolver, solution: Solution, lengths: Array, count: int
) -> tuple[Array, Array]:
    """Return the derivatives of the segments, (n, count, 12, 12), and the tips, (n, 18)."""
    robot, transfer = solver.robot, rod_library().rod_transfer
    starts = solver.base @ rod_starts(robot, solution.q)
    states = np.empty((robot.n_limbs, 18))
    states[:, :3], states[:, 3:12] = starts[:, :3, 3], starts[:, :3, :3].reshape(-1, 9)
    states[:, 12:] = solution.base_wrenches
    out = np.empty((robot.n_limbs, count, 12, 12))
    steps = max(1, round(TURN / STEP_ANGLE))
    for i, limb in enumerate(robot.limbs):
        native = limb.native(solver.gravity)
        rod, length = ctypes.byref(native), ctypes.c_double(lengths[i] / count)
        state, first = ctypes.c_void_p(states[i].ctypes.data), out[i].ctypes.data
        for segment in range(count):
            transfer(rod, length, steps, state, ctypes.c_void_p(first + 1152 * segment))
    return out, states


def _free_negative(
    limb: Limb, solution: Solution, tip: Array, stiffness: Array, planar: bool
) -> int:
    """Count the unstable directions that a joint adds to a rod held at its tip.

    With ``d = p_L - p_bar`` from the joint's centre to the tip, moves and moments there are
    ``dp_L = dp + dphi x d`` and ``dmu = dm + d x dn + (dphi x d) x n``.

    Args:
        limb: The limb.
        solution: The equilibrium.
        tip: State of the tip, shape (18,).
        stiffness: (dn, dm) of the tip by (dp, dphi), shape (6, 6).
        planar: Whether only the plane's directions count.
    """
    turn = tip[3:12].reshape(3, 3)
    bar = turn @ limb.tip.attach[:3, :3].T
    plate = solution.pose[:3, :3] @ limb.tip.joint_pose[:3, :3]
    d = bar @ limb.tip.attach[:3, 3]
    move = np.eye(6)
    move[:3, 3:] = -hat(d)
    out = move.T @ stiffness @ move
    out[3:, 3:] += hat(tip[12:15]) @ hat(d)
    axes = bar.copy()
    if limb.tip.kind is TipKind.UNIVERSAL:
        axes[:, 0] = plate[:, 0]
    columns = []
    for slot in np.flatnonzero(limb.tip.kind.free):
        if planar and slot != 5:
            continue
        column = np.zeros(6)
        column[3 * (slot // 3) : 3 * (slot // 3) + 3] = axes[:, slot % 3]
        columns.append(column)
    basis = np.array(columns).T
    return int((np.linalg.eigvalsh(_symmetric(basis.T @ out @ basis)) < 0.0).sum())


def _symmetric(matrices: Array) -> Array:
    return 0.5 * (matrices + np.swapaxes(matrices, -1, -2))


SECTIONS = 101
"""Sections of each rod at which strains are evaluated, as many as are drawn."""

TRACKED_SECTIONS = 21
"""The same while a robot moves, where a step has microseconds; strains are largest at ends."""

CHANGE = 0.01
"""Change of a moment at a rod's start, times L/EI, from which on strains are evaluated again."""


class YieldCheck:
    """Tells which rods of a moving robot yield; strains are evaluated where moments changed."""

    def __init__(self, robot: RodRobot, solver: RodRobotSolver) -> None:
        self._robot, self._solver = robot, solver
        bend = [float(np.mean(limb.rod.stiffness_bt[:2])) for limb in robot.limbs]
        self._unit = (robot.lengths / np.array(bend))[:, None]
        self._yields = any(limb.rod.yield_strain is not None for limb in robot.limbs)
        self._at: Solution | None = None
        self._findings: list[Finding] = []

    def findings(self, solution: Solution) -> list[Finding]:
        """Return YIELD for each limb that is strained too far."""
        if not self._yields:
            return []
        if self._at is not None:
            change = np.abs(solution.base_wrenches[:, 3:] - self._at.base_wrenches[:, 3:])
            if not float((change * self._unit).max()) > CHANGE:
                return self._findings
        self._at = solution
        self._findings = yield_findings(self._robot, self._solver, solution, TRACKED_SECTIONS)
        return self._findings


def yield_findings(
    robot: RodRobot, solver: RodRobotSolver, solution: Solution, points: int = SECTIONS
) -> list[Finding]:
    """Return YIELD for each limb whose strain exceeds the yield strain of its material.

    Nothing is solved; rods without a yield strain are skipped.

    Args:
        robot: The robot.
        solver: A solver of it.
        solution: An equilibrium.
        points: Sections along each rod.
    """
    if all(limb.rod.yield_strain is None for limb in robot.limbs):
        return []
    return strain_findings(robot, np.max(solver.strains(solution, points), axis=1))


def strain_findings(robot: RodRobot, strains: Array) -> list[Finding]:
    """Return YIELD for each limb whose maximum strain, of shape (n,), is beyond its yield strain.

    The message names the limb, the strain, the stress and what the material bears of both.
    """
    findings = []
    for index, (limb, strain) in enumerate(zip(robot.limbs, strains.tolist(), strict=True)):
        limit = limb.rod.yield_strain
        if limit is not None and strain > limit:
            young = 1e-6 * limb.rod.material.young
            findings.append(
                Finding(
                    RodStatus.YIELD,
                    f"limb '{limb.name}': strained by {readable(100 * strain)} % "
                    f"({young * strain:.4g} MPa), its material yields at "
                    f"{readable(100 * limit)} % ({young * limit:.4g} MPa);"
                    " the real rod would stay bent",
                    index,
                )
            )
    return findings
