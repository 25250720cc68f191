"""The longest step at which muscles that are stepped explicitly are stable.

Forces are those at the start of a step, positions follow from the velocities at its end
(symplectic Euler). With stiffness k and damping c of every muscle as weights, L its Jacobian and M
the mass matrix, the motion is stable if

    dt^2 L' diag(k) L + 2 dt L' diag(c) L < 4 M

for a single mass and spring alone dt < 2 sqrt(m/k). Cables with ``contact`` are always stepped so,
see `cards_core.muscles.implicit` for the others.
"""

from __future__ import annotations

import warnings

import numpy as np

from cards_core.muscles.engine import MuscleEngine
from cards_core.typing import Array

BOUND = 4.0
"""Of the eigenvalues of dt^2 K + 2 dt C over mass."""


def free_mobility(engine: MuscleEngine, link_poses: Array) -> Array:
    """Return L M^-1 L' of a robot whose links are free bodies, straight cables, (m, m), [1/kg].

    Args:
        engine: Its muscles.
        link_poses: Link-to-world matrices, shape (n, 4, 4).
    """
    links, count = engine.robot.links, len(engine.robot.muscles)
    rows = np.zeros((count, len(links), 6))
    still = np.zeros((len(links), 6))
    for row, tensions in zip(rows, np.eye(count), strict=True):
        row[:] = engine.straight_update(link_poses, still, tensions).wrenches
    half = np.zeros_like(rows)
    for i, link in enumerate(links):
        inertia, turn = link.inertia, link_poses[i, :3, :3]
        force, moment = rows[:, i, :3], rows[:, i, 3:]
        moment = moment - np.cross(turn @ inertia.com, force)
        half[:, i, :3] = force / np.sqrt(inertia.mass)
        factor = np.linalg.cholesky(turn @ inertia.tensor @ turn.T)
        half[:, i, 3:] = np.linalg.solve(factor, moment.T).T
    flat = half.reshape(count, -1)
    mobility: Array = flat @ flat.T
    return mobility


def fastest_motion(
    mobility: Array, stiffness: Array, damping: Array, dt: float
) -> tuple[float, Array]:
    """Return the largest eigenvalue of dt^2 K + 2 dt C over mass, and each muscle's share of it.

    Args:
        mobility: L M^-1 L', shape (m, m), [1/kg].
        stiffness: Largest usual dT/dl of every muscle, shape (m,), [N/m].
        damping: Largest usual dT/dl', shape (m,), [N s/m].
        dt: Time step, [s].
    """
    weight = np.sqrt(dt * dt * stiffness + 2.0 * dt * damping)
    values, vectors = np.linalg.eigh(weight[:, None] * mobility * weight)
    return float(values[-1]), vectors[:, -1] ** 2


def longest_stable_step(
    mobility: Array, stiffness: Array, damping: Array, unstable: float
) -> float:
    """Return the longest stable step, [s], below an unstable one; see `fastest_motion`.

    Args:
        mobility: L M^-1 L', shape (m, m), [1/kg].
        stiffness: Largest usual dT/dl of every muscle, shape (m,), [N/m].
        damping: Largest usual dT/dl', shape (m,), [N s/m].
        unstable: A step for which `fastest_motion` exceeds `BOUND`, [s].
    """
    from scipy.optimize import brentq

    def excess(log_step: float) -> float:
        dt = float(np.exp(log_step))
        return float(np.log(fastest_motion(mobility, stiffness, damping, dt)[0] / BOUND))

    # the eigenvalue grows at least as dt and at most as dt^2
    top = float(np.log(unstable))
    return float(np.exp(brentq(excess, top - excess(top) - 1e-9, top, xtol=1e-6)))


def warn_if_unstable(
    engine: MuscleEngine, link_poses: Array, stiffness: Array, damping: Array, dt: float
) -> None:
    """Warn if a step is too long for the cables of a robot of free bodies, some with contact.

    Links without mass or inertia, which are parts of others, are not judged: no warning.

    Args:
        engine: Muscles of the robot, whose links are all free bodies.
        link_poses: Link-to-world matrices, shape (n, 4, 4).
        stiffness: Largest usual dT/dl of every muscle, shape (m,), [N/m].
        damping: Largest usual dT/dl', shape (m,), [N s/m].
        dt: Time step, [s].
    """
    robot = engine.robot
    for link in robot.links:
        if not (link.inertia.mass > 0.0 and np.linalg.eigvalsh(link.inertia.tensor)[0] > 0.0):
            return
    mobility = free_mobility(engine, link_poses)
    growth, shares = fastest_motion(mobility, stiffness, damping, dt)
    if growth < BOUND:
        return
    longest = longest_stable_step(mobility, stiffness, damping, dt)
    stiffest = np.argsort(-shares, kind="stable")[:3]
    names = ", ".join(f"'{robot.muscles[i].name}'" for i in stiffest)
    warnings.warn(
        f"'{robot.name}' has cables with contact, so all of its cables are stepped explicitly: "
        f"with their stiffness and damping over the masses that they move, a step of {dt:g} s is "
        f"unstable (expected: less than {longest:.3g} s, heavier bodies or softer cables; "
        f"stiffest are {names})",
        RuntimeWarning,
        stacklevel=3,
    )
