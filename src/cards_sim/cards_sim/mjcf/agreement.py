"""How far an imported robot agrees with MuJoCo: lengths of its muscles, and its mass matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import mujoco
import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.formats.imports.inertias import mass_matrix_change
from cards_core.formats.imports.model import Section
from cards_core.formats.sdf.writer import prepare_for_sdf
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_sim.mjcf.actuators import MuscleRow
from cards_sim.mjcf.names import SCALAR_JOINTS, Names, joint_range

POSES = 10
"""Random poses that are compared."""

SWEEP = 9
"""Poses along each joint that are compared."""

LARGEST = 150
"""Degrees of freedom of robots that are compared; larger ones take too long."""

EXACT = 1e-9
"""A difference of lengths up to this is rounding, [m]."""


def with_length_errors(
    rows: Sequence[MuscleRow], names: Names, robot: Robot, locked: Mapping[int, float], home: Array
) -> list[MuscleRow]:
    """Return the rows with the largest difference of each length from MuJoCo's, and its pose.

    It is looked for at `POSES` random poses, along every joint from home, and where it is found
    on along the joints that the muscle crosses. What is more than rounding is a warning.

    Args:
        rows: One per muscle of the robot.
        names: Of the model; gets the warnings.
        robot: What was made of it.
        locked: Joints that are none in the robot, and their coordinate, [rad] or [m].
        home: Coordinates of the home pose, shape (nq,).
    """
    if not rows or robot.tree.nv > LARGEST:
        return list(rows)
    search = _Search([row.index for row in rows], names.compiled.model, robot, locked)
    for qpos in random_poses(search.model, locked):
        search.look(qpos)
    for joint in search.joints:
        search.sweep(home, joint)
    out = []
    for k, row in enumerate(rows):
        if search.worst[k] > EXACT:
            for joint in 2 * search.crossed(k):
                search.sweep(search.poses[k], joint)
        value, text = float(search.worst[k]), row.error
        if value > EXACT:
            where = ", ".join(
                f"{names.name('joint', j) or j} {search.poses[k][search.model.jnt_qposadr[j]]:.4g}"
                for j in search.crossed(k)
            )
            said = f"length differs by up to {1e3 * value:.3g} mm"
            said += f" (at {where})" if where else ""
            names.warn("length", "tendon", row.index, f"{said} from MuJoCo's")
            text += ("; " if text else "") + said
        out.append(replace(row, error=text, errors={**row.errors, "length": value}))
    return out


class _Search:
    """Looks for the poses where lengths differ most from MuJoCo's.

    Attributes:
        model: MuJoCo's.
        joints: Those of one coordinate that are not locked.
        worst: Largest difference of each muscle, shape (m,), [m].
        poses: ``qpos`` of these, m arrays.
    """

    def __init__(
        self,
        tendons: list[int],
        model: mujoco.MjModel,
        robot: Robot,
        locked: Mapping[int, float],
    ) -> None:
        self.model, self._tendons = model, tendons
        self._data = mujoco.MjData(model)
        self._dynamics = make_dynamics(robot, "numeric")
        self._engine = MuscleEngine(robot, "numeric")
        self._still = np.zeros((len(robot.links), 6))
        free = [joint for joint in range(model.njnt) if joint not in locked]
        sizes = {joint: {0: 7, 1: 4}.get(int(model.jnt_type[joint]), 1) for joint in free}
        self._entries = [
            entry
            for joint in free
            for entry in range(model.jnt_qposadr[joint], model.jnt_qposadr[joint] + sizes[joint])
        ]
        self.joints = [joint for joint in free if sizes[joint] == 1]
        self.worst: Array = np.zeros(len(tendons))
        self.poses: list[Array] = [np.array(model.qpos0)] * len(tendons)

    def _at(self, qpos: Array) -> mujoco.MjData:
        """Return lengths and moment arms of MuJoCo's tendons at a pose."""
        model, data = self.model, self._data
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_tendon(model, data)
        return data

    def look(self, qpos: Array) -> None:
        """Compare all lengths at a pose."""
        data = self._at(qpos)
        poses = self._dynamics.link_poses(qpos[self._entries])
        lengths, _ = self._engine.motion(poses, self._still)
        error = np.abs(lengths[: len(self._tendons)] - data.ten_length[self._tendons])
        for k in np.flatnonzero(error > self.worst):
            self.worst[k], self.poses[k] = error[k], np.array(qpos)

    def sweep(self, qpos: Array, joint: int) -> None:
        """Compare all lengths at `SWEEP` poses along a joint, the others as they are."""
        place = self.model.jnt_qposadr[joint]
        here = float(qpos[place])
        low, high = joint_range(self.model, joint) or (here - 0.5, here + 0.5)
        for value in np.linspace(low, high, SWEEP):
            moved = np.array(qpos)
            moved[place] = value
            self.look(moved)

    def crossed(self, muscle: int) -> list[int]:
        """Return the joints that move a muscle where its length differs most."""
        model, data = self.model, self._at(self.poses[muscle])
        row = self._tendons[muscle]
        first, count = int(model.ten_J_rowadr[row]), int(model.ten_J_rownnz[row])
        columns = model.ten_J_colind[first : first + count]
        arms = data.ten_J[first : first + count]
        moved = {int(c) for c, arm in zip(columns, arms, strict=True) if abs(arm) > 1e-12}
        return [joint for joint in self.joints if int(model.jnt_dofadr[joint]) in moved]


def random_poses(model: mujoco.MjModel, locked: Mapping[int, float]) -> list[Array]:
    """Return random values of ``qpos`` within the joint limits.

    Joints without limits stay near the reference.

    Args:
        model: The model.
        locked: Joints that stay, and their coordinate, [rad] or [m].
    """
    rng = np.random.default_rng(0)
    out = []
    for _ in range(POSES):
        qpos = np.array(model.qpos0)
        mujoco.mj_integratePos(model, qpos, rng.uniform(-0.5, 0.5, model.nv), 1.0)
        for joint in range(model.njnt):
            place = model.jnt_qposadr[joint]
            if joint in locked:
                qpos[place] = locked[joint]
            elif model.jnt_type[joint] in SCALAR_JOINTS and (ends := joint_range(model, joint)):
                qpos[place] = rng.uniform(*ends)
        out.append(qpos)
    return out


def inertia_section(robot: Robot) -> Section:
    """Say how much M changes by what SDF demands: a mass of every link."""
    if robot.tree.nv > LARGEST:
        text = f"M was not compared: more than {LARGEST} degrees of freedom."
        return Section("mass_matrix_change", "Inertia", None, text)
    worst = mass_matrix_change(robot, prepare_for_sdf(robot), samples=POSES, steps=0)
    text = (
        "Links between the joints of one body have no mass in MuJoCo, and a small one in SDF. "
        f"Largest change of `M_ij/sqrt(M_ii M_jj)` by it in {POSES} poses: {worst:.2g}."
    )
    return Section("mass_matrix_change", "Inertia", worst, text)
