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
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_sim.mjcf.actuators import MuscleRow
from cards_sim.mjcf.files import CompiledMjcf
from cards_sim.mjcf.names import SCALAR_JOINTS, joint_range

POSES = 10
"""Random poses that are compared."""

LARGEST = 150
"""Degrees of freedom of robots that are compared; larger ones take too long."""

EXACT = 1e-9
"""A difference of lengths up to this is rounding, [m]."""


def with_length_errors(
    rows: Sequence[MuscleRow], compiled: CompiledMjcf, robot: Robot, locked: Mapping[int, float]
) -> list[MuscleRow]:
    """Return the rows with the largest difference of each length from MuJoCo's.

    Args:
        rows: One per muscle of the robot.
        compiled: The model.
        robot: What was made of it.
        locked: Joints that are none in the robot, and their coordinate, [rad] or [m].
    """
    model, tree = compiled.model, robot.tree
    if not rows or tree.nv > LARGEST:
        return list(rows)
    data = mujoco.MjData(model)
    dynamics = make_dynamics(robot, "numeric")
    entries = [
        entry
        for joint in range(model.njnt)
        if joint not in locked
        for entry in range(
            int(model.jnt_qposadr[joint]),
            int(model.jnt_qposadr[joint]) + {0: 7, 1: 4}.get(int(model.jnt_type[joint]), 1),
        )
    ]
    index = [row.index for row in rows]
    worst = np.zeros(len(rows))
    for qpos in random_poses(model, locked):
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        state = dynamics.update(qpos[entries], np.zeros(tree.nv))
        worst = np.maximum(
            worst, np.abs(state.muscle_lengths[: len(rows)] - data.ten_length[index])
        )
    out = []
    for row, value in zip(rows, worst.tolist(), strict=True):
        errors = {**row.errors, "length": value}
        text = row.error
        if value > EXACT:
            text += ("; " if text else "") + f"length differs by up to {1e3 * value:.3g} mm"
        out.append(replace(row, error=text, errors=errors))
    return out


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
