"""One step of a robot under the impedance law of its muscles, as one kernel.

    T = min(max(max(T_floor, T0 + K (l - l0) + B (l' - v0)), T_min), T_max),     l' = L qd
    A = s M + dt D + dt^2 K_j + dt B_j
    A qd+ = s M qd - dt (s (C + G) + L' T + K_j d)
    q+ = q (+) dt qd+

Symplectic Euler with implicit damping, as MuJoCo's integrator ``Euler``: D is the damping of the
joints, s a factor of all masses, (+) turns quaternions by the angle ``dt |w|``. A joint that is
beyond a limit by d is pushed back by a spring and a damper of its own inertia M_jj, critically
damped with the time constant t: ``K_j = M_jj/t^2``, ``B_j = 2 M_jj/t``; both implicit.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from cards_core.codegen.kernel import Expr, Kernel
from cards_core.dynamics.symbolic.outputs import muscle_kinematics
from cards_core.dynamics.symbolic.tree import SymbolicTree, inverse_dynamics, mass_matrix
from cards_core.robot.model import Robot
from cards_core.typing import Array

SMALL = 1e-30
"""Added to a squared rotation rate, whose root is divided by, [rad^2/s^2]."""


def step_kernel(robot: Robot, damping: Array, limit_time: float) -> Kernel:
    """Return the kernel ``step``.

    Its inputs are q, qd, the set-points ``tension`` (T0), ``rest_length``, ``rest_rate``, the
    numbers of the law ``stiffness``, ``damping``, ``floor``, ``least``, ``most``, each of shape
    (m,), what is multiplied with all masses, ``mass_factor`` (1,), with the moment arms,
    ``arm_factor`` (m,), and ``dt`` (1,); its outputs ``next_q``, ``next_qd`` and what the muscles
    did in this step: ``lengths``, ``rates``, ``tensions``.

    An ``arm_factor`` e stands for a path of length ``l(home) + e (l - l(home))``, which has
    moment arms ``e L``.

    Args:
        robot: The description, of joints; every path has a closed form.
        damping: D, shape (nv,), [Nms/rad] or [Ns/m].
        limit_time: t, [s].
    """
    model = SymbolicTree(robot)
    tree, m = model.tree, len(robot.muscles)
    names = ("tension", "rest_length", "rest_rate", "stiffness", "damping", "floor")
    given: dict[str, Expr] = {
        name: ca.SX.sym(name, m) for name in (*names, "least", "most", "arm_factor")
    }
    mass_factor, dt = ca.SX.sym("mass_factor"), ca.SX.sym("dt")
    path, jacobian = muscle_kinematics(model, None)
    home = ca.Function("home", [model.q], [path])(tree.home)
    arm = given["arm_factor"]
    lengths = home + arm * (path - home)
    jacobian = ca.repmat(arm, 1, tree.nv) * jacobian
    rates = jacobian @ model.qd
    law = (
        given["tension"]
        + given["stiffness"] * (lengths - given["rest_length"])
        + given["damping"] * (rates - given["rest_rate"])
    )
    tensions = ca.fmin(
        ca.fmax(ca.fmax(given["floor"], law), given["least"]),
        given["most"],
    )
    mass = mass_factor * mass_matrix(model)
    bias = inverse_dynamics(model, with_velocity=True, with_gravity=True)
    implicit = ca.SX(mass)
    push = mass @ model.qd - dt * (mass_factor * bias + jacobian.T @ tensions)
    for node in tree.nodes:
        for j in range(node.nv):
            v = node.v + j
            implicit[v, v] += dt * float(damping[v])
        if node.kind == "ball":
            continue
        beyond = ca.SX(0)
        if np.isfinite(tree.upper[node.q]):
            beyond = beyond + ca.fmax(0.0, model.q[node.q] - tree.upper[node.q])
        if np.isfinite(tree.lower[node.q]):
            beyond = beyond - ca.fmax(0.0, tree.lower[node.q] - model.q[node.q])
        if beyond.is_constant():
            continue
        inertia = mass[node.v, node.v]
        at_limit = ca.if_else(beyond == 0.0, 0.0, inertia)
        implicit[node.v, node.v] += at_limit * (2.0 * dt / limit_time + (dt / limit_time) ** 2)
        push[node.v] -= dt * at_limit * beyond / limit_time**2
    velocity = solve(implicit, push)
    outputs = (
        ("next_q", (tree.nq,), _moved(model, velocity, dt)),
        ("next_qd", (tree.nv,), velocity),
        ("lengths", (m,), lengths),
        ("rates", (m,), rates),
        ("tensions", (m,), tensions),
    )
    inputs: tuple[Any, ...] = (
        ("q", (tree.nq,), model.q),
        ("qd", (tree.nv,), model.qd),
        *((name, (m,), symbol) for name, symbol in given.items()),
        ("mass_factor", (1,), mass_factor),
        ("dt", (1,), dt),
    )
    return Kernel("step", inputs, outputs)


def solve(matrix: Expr, right: Expr) -> Expr:
    """Return A^-1 b of a symmetric positive definite matrix by ``A = L D L'``.

    Not defined (infinity, NaN) where A is not positive definite. From the last row up, which keeps
    the zeros of a tree [Featherstone2008]_ section 6.5.
    """
    n = matrix.shape[0]
    lower, x = ca.SX(matrix), [right[i] for i in range(n)]
    for k in reversed(range(n)):
        for i in reversed(range(k)):
            factor = lower[k, i] / lower[k, k]
            for j in range(i + 1):
                lower[i, j] = lower[i, j] - factor * lower[k, j]
            lower[k, i] = factor
    for k in reversed(range(n)):
        for i in range(k):
            x[i] = x[i] - lower[k, i] * x[k]
    for k in range(n):
        x[k] = x[k] / lower[k, k]
        for i in range(k):
            x[k] = x[k] - lower[k, i] * x[i]
    return ca.vertcat(*x)


def _moved(model: SymbolicTree, velocity: Expr, dt: Expr) -> Expr:
    moved: list[Expr] = []
    for node in model.tree.nodes:
        if node.kind != "ball":
            moved.append(model.q[node.q] + dt * velocity[node.v])
            continue
        turn = velocity[node.v : node.v + 3]
        speed = ca.sqrt(ca.dot(turn, turn) + SMALL)
        half = 0.5 * dt * speed
        c, axis = ca.cos(half), ca.sin(half) / speed * turn
        w, x, y, z = ca.vertsplit(model.q[node.q : node.q + 4])
        a, b, d = ca.vertsplit(axis)
        quaternion = ca.vertcat(
            w * c - x * a - y * b - z * d,
            x * c + w * a + y * d - z * b,
            y * c + w * b + z * a - x * d,
            z * c + w * d + x * b - y * a,
        )
        moved += ca.vertsplit(quaternion / ca.norm_2(quaternion))
    return ca.vertcat(*moved)
