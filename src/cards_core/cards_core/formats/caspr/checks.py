"""Checks of an imported robot: what no parser sees.

Inertias that belong to no rigid body, coordinates that nothing drives, cables without effect,
frames and cables that coincide, links that nothing refers to.

Inertias are repaired so that the mass matrix changes as little as possible. Planar CASPR models
often state the one moment that matters and fill in zeros or dummies for the rest. Where a link can
only turn about one axis u of its own, only ``u' I u`` enters M, C and G: that moment is kept and
the others are changed, so that the repair changes nothing that moves. Links that can turn about
more axes get the nearest valid tensor (`cards_core.robot.inertia.repair_inertia`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import DescriptionError
from cards_core.formats.caspr.bodies import Body, coordinate_names
from cards_core.formats.caspr.cables import CableFile, CableSet
from cards_core.formats.caspr.operational_spaces import OperationalFile
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.sdf.checks import unit_warning
from cards_core.formats.sdf.writer import prepare_for_sdf
from cards_core.robot.elements import Inertia, Pulley, ViaPoint
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.inertia import (
    SMALLEST_RATIO,
    InertiaRepair,
    inertia_problem,
    repair_inertia,
    repair_links,
)
from cards_core.robot.model import WORLD_NODE, Robot, Tree
from cards_core.typing import Array, Vector3

# Change of the mass matrix ---------------------------------------------------------------------


def mass_matrix_change(
    original: Robot, changed: Robot, *, samples: int = 50, steps: int = 100, seed: int = 0
) -> float:
    """Return the largest relative difference of the mass matrices of two robots that is found.

    ``max |M'_ij - M_ij| / sqrt(M_ii M_jj)`` over all entries; the scaling makes rows in metres and
    in radians comparable. Looked at are random configurations within the joint limits, and then
    steps uphill from the worst of them, because M_ii may be small in a small region only. That is
    a lower end of the largest difference over all configurations, and mostly close to it.

    Args:
        original: The robot.
        changed: One with the same coordinates and other inertias.
        samples: Number of random configurations.
        steps: Number of configurations tried on the way uphill: a random direction each, longer
            after a success, shorter after a failure.
        seed: Seed of both.
    """
    # muscles do not count in M, and are most of the work
    bare = [
        dataclasses.replace(robot, muscles=(), wrap_surfaces=()) for robot in (original, changed)
    ]
    first, second = (make_dynamics(robot, "numeric") for robot in bare)
    tree = first.tree
    still = np.zeros(tree.nv)
    rng = np.random.default_rng(seed)

    def change(q: Array) -> float:
        before = np.array(first.update(q, still).mass_matrix)
        difference = np.array(second.update(q, still).mass_matrix) - before
        scale = np.sqrt(np.maximum(np.diag(before), np.finfo(float).tiny))
        return float(np.abs(difference / np.outer(scale, scale)).max(initial=0.0))

    tried = [tree.random(rng) for _ in range(samples)]
    found = [change(q) for q in tried]
    if not any(found):
        return 0.0
    worst = max(found)
    place = tried[found.index(worst)]
    length = 0.5
    for _ in range(steps):
        q = tree.integrate(place, length * rng.normal(size=tree.nv))
        q = np.clip(q, tree.lower, tree.upper)
        if (value := change(q)) > worst:
            place, worst, length = q, value, 2.0 * length
        else:
            length *= 0.85
    return worst


# Repair of inertias ----------------------------------------------------------------------------


_AXIS_POSES = 4  # random poses at which the axes of a link are collected
_MARGIN = 1e-9  # room for rounding in the triangle inequality


def repair_inertias(robot: Robot) -> tuple[Robot, tuple[InertiaRepair, ...]]:
    """Return the robot with valid inertias, and what was changed.

    Links without mass and inertia stay: they are frames between joints.

    Raises:
        DescriptionError: A link has inertia but no mass.
    """
    axes = cache(lambda: turning_axes(robot.tree))  # most robots need no repair
    return repair_links(robot, lambda link: repair_for_motion(link.inertia, axes()[link.name]))


def turning_axes(tree: Tree) -> dict[str, Array]:
    """Return an orthonormal basis of the axes that every link can turn about, in link axes.

    Returns:
        Link name to basis, shape (k, 3) with k = 0..3.
    """
    rng = np.random.default_rng(0)
    samples: dict[str, list[Array]] = {link.name: [] for link in tree.robot.links}
    for _ in range(_AXIS_POSES):
        motion = forward_kinematics(tree, tree.random(rng), np.zeros(tree.nv))
        for name, rows in samples.items():
            node, pose = tree.link_node[name]
            if node != WORLD_NODE:
                rotation = motion.rotation[node] @ pose.rotation
                rows.append((rotation.T @ motion.angular_jacobian[node]).T)
    out: dict[str, Array] = {}
    for name, rows in samples.items():
        table = np.vstack([np.zeros((1, 3)), *rows])
        _, values, basis = np.linalg.svd(table)
        out[name] = basis[: int(np.sum(values > 1e-9))]
    return out


def repair_for_motion(inertia: Inertia, axes: Array) -> Inertia:
    """Return a valid inertia; the moment about the only axis in ``axes`` stays, if it can.

    With a = u' I u the moment about u, and b <= c the principal moments across it: c - b is cut to
    a, and b + c raised to a, by equal changes of b and c; products with u are dropped.

    Args:
        inertia: To be repaired.
        axes: From `turning_axes`, shape (k, 3).

    Raises:
        DescriptionError: The mass is not positive.
    """
    if len(axes) == 1:
        candidate = _keep_moment(inertia, axes[0])
        if candidate is not None and inertia_problem(candidate) is None:
            return candidate
    return repair_inertia(inertia)


def _keep_moment(inertia: Inertia, u: Vector3) -> Inertia | None:
    a = float(u @ inertia.tensor @ u)
    _, _, basis = np.linalg.svd(u[None, :])
    across = basis[1:]
    (b, c), directions = np.linalg.eigh(across @ inertia.tensor @ across.T)
    if c - b > a * (1.0 - _MARGIN):
        b, c = 0.5 * (b + c - a * (1.0 - _MARGIN)), 0.5 * (b + c + a * (1.0 - _MARGIN))
    lift = max(0.0, 0.5 * (a * (1.0 + _MARGIN) - b - c))
    b, c = b + lift, c + lift
    if min(a, b) < SMALLEST_RATIO * max(a, c):
        return None
    block = (directions * np.array([b, c])) @ directions.T
    tensor = a * np.outer(u, u) + across.T @ block @ across
    return replace(inertia, tensor=0.5 * (tensor + tensor.T))


# Checks ----------------------------------------------------------------------------------------


SINGULAR = 1e-12
"""M counts as singular if its smallest eigenvalue, scaled to unit diagonal, is below this."""

POSES = 5
"""Number of poses, the home position and random ones, at which M and L are looked at."""


@dataclass(frozen=True, eq=False)
class InertiaCheck:
    """Validity of the inertias and what the repair does.

    Attributes:
        repairs: One entry per link whose tensor no rigid body has.
        mass_matrix_change: The largest ``|M'_ij - M_ij| / sqrt(M_ii M_jj)`` that was found, of
            the robot for SDF against CASPR's numbers (`mass_matrix_change`); infinite if the
            file's numbers make M singular, NaN if they cannot be repaired.
        singular: True if M is singular at the home position with the numbers of the file.
        problem: Why the inertias cannot be repaired; empty if they can.
    """

    repairs: tuple[InertiaRepair, ...]
    mass_matrix_change: float
    singular: bool
    problem: str = ""


def check_inertia(
    robot: Robot, dynamics: Dynamics, bodies: Sequence[Body], findings: FindingList
) -> tuple[Robot | None, InertiaCheck]:
    """Check the inertias; return the robot for SDF (None if impossible) and the result.

    The robot for SDF has valid inertias, small ones where CASPR has none (`prepare_for_sdf`), and
    a home position within the limits.

    Args:
        robot: The robot with CASPR's inertias.
        dynamics: Its dynamics.
        bodies: The bodies of the file.
        findings: Takes remarks.
    """
    names = {body.link: body for body in bodies}
    singular = _singular(dynamics)
    try:
        repaired, repairs = repair_inertias(robot)
        ready = prepare_for_sdf(home_within_limits(repaired))
    except DescriptionError as error:
        findings.warn("inertia-not-repairable", "inertias", f"no SDF can be written: {error}")
        return None, InertiaCheck((), math.nan, singular, str(error))
    change = math.inf
    if not singular:
        change = mass_matrix_change(robot, ready)
    for item in repairs:
        body = names[item.link]
        findings.warn(
            "inertia-repaired",
            f"link '{body.original_name}'",
            f"{item.problem}; kept in the robot for M, C, G as in CASPR, repaired in the SDF",
            source=robot.source,
            line=body.line,
        )
    if singular:
        findings.warn(
            "mass-matrix-singular",
            "mass matrix",
            "M is singular at the home position: some motion has no inertia, forward dynamics "
            "needs the repaired inertias of the SDF",
            source=robot.source,
        )
    return ready, InertiaCheck(repairs, change, singular)


def home_within_limits(robot: Robot) -> Robot:
    """Return the robot with its home position moved to the nearest one within the limits."""
    home: dict[str, tuple[float, ...]] = {}
    for name, values in robot.home.items():
        axes = robot.joint(name).axes
        home[name] = tuple(
            min(max(value, axis.lower), axis.upper)
            for value, axis in zip(values, axes, strict=True)
        )
    return replace(robot, home=home)


def _singular(dynamics: Dynamics) -> bool:
    tree = dynamics.tree
    state = dynamics.update(tree.home, np.zeros(tree.nv))
    diagonal = np.diag(state.mass_matrix)
    if np.any(diagonal <= 0.0):
        return True
    scale = 1.0 / np.sqrt(diagonal)
    scaled = state.mass_matrix * np.outer(scale, scale)
    return bool(np.linalg.eigvalsh(scaled)[0] < SINGULAR)


def check_actuation(
    dynamics: Dynamics, bodies: Sequence[Body], cables: CableFile, findings: FindingList
) -> None:
    """Warn of coordinates that neither a cable nor a motor moves, and of cables without effect.

    Args:
        dynamics: Dynamics of the robot.
        bodies: The bodies of the file.
        cables: The cables of the file.
        findings: Takes remarks.
    """
    robot, tree = dynamics.robot, dynamics.tree
    jacobian = _jacobian_scale(dynamics)
    motors = {joint.name for joint in robot.joints if joint.motor}
    driven = np.array([bool(muscle.actuator.commands) for muscle in robot.muscles], dtype=bool)
    place = {name: i for i, name in enumerate(tree.velocity_names)}
    largest = max(float(jacobian.max(initial=0.0)), 1e-12)
    for body in bodies:
        if body.actuated:
            findings.note(
                "joint-motor",
                f"link '{body.original_name}'",
                f"the joint has a motor of its own ({', '.join(body.joints)}); CASPR files give "
                "no limit for its torque",
                source=robot.source,
                line=body.line,
            )
        idle = ""
        for letter, (joint, slot) in zip(body.joint_type.coordinates, body.slots, strict=True):
            column = place[coordinate_names(robot.joint(joint))[slot]]
            moved = jacobian[driven, column].max(initial=0.0) > 1e-9 * largest
            if not moved and joint not in motors:
                idle += letter
        if idle:
            findings.warn(
                "coordinate-not-driven",
                f"link '{body.original_name}'",
                f"no cable and no motor moves {' '.join(idle)}",
                source=robot.source,
                line=body.line,
            )
    for muscle, row in zip(robot.muscles, jacobian, strict=True):
        if row.max(initial=0.0) <= 1e-9 * largest:
            findings.warn(
                "cable-without-effect",
                f"cable '{muscle.name}'",
                "its length does not depend on any coordinate",
                source=cables.source,
                line=muscle.line,
            )


def check_units(robot: Robot, cables: CableFile, findings: FindingList) -> None:
    """Warn of points of cables that look as if they were in millimetres.

    Args:
        robot: The robot.
        cables: The cables of the file, for the place.
        findings: Takes remarks.
    """
    warning = unit_warning(robot)
    if warning is not None:
        findings.warn(
            "units-doubtful",
            f"cable '{warning.muscle}'",
            warning.text,
            source=cables.source,
            line=warning.line,
        )


def _jacobian_scale(dynamics: Dynamics) -> Array:
    """Return the largest |L| at the home position and some random poses, shape (m, n)."""
    tree = dynamics.tree
    rng = np.random.default_rng(0)
    poses = [tree.home, *(tree.random(rng) for _ in range(POSES - 1))]
    out = np.zeros((len(dynamics.robot.muscles), tree.nv))
    for q in poses:
        np.maximum(out, np.abs(dynamics.update(q, np.zeros(tree.nv)).muscle_jacobian), out=out)
    return out


def check_references(
    robot: Robot,
    bodies: Sequence[Body],
    chosen: CableSet,
    *,
    cables: CableFile,
    operational: OperationalFile,
    findings: FindingList,
) -> None:
    """Note frames and cables that coincide, links nothing refers to, and other cable sets.

    Args:
        robot: The robot.
        bodies: The bodies of the file.
        chosen: The cable set of the robot.
        cables: All cable sets of the file.
        operational: The operational spaces of the file.
        findings: Takes remarks.
    """
    for i, frame in enumerate(robot.frames):
        for other in robot.frames[:i]:
            if frame.link == other.link and np.array_equal(
                frame.pose.translation, other.pose.translation
            ):
                findings.note(
                    "duplicate-frame",
                    f"frame '{frame.name}'",
                    f"the same point of link '{frame.link}' as frame '{other.name}'",
                    source=operational.source,
                    line=frame.line,
                )
                break
    seen: dict[tuple[tuple[str | float, ...], ...], str] = {}
    for cable in chosen.cables:
        path = tuple(_place(item) for item in cable.path)
        if path in seen:
            findings.warn(
                "duplicate-cable",
                f"cable '{cable.original_name}'",
                f"the same path as cable '{seen[path]}'",
                source=cables.source,
                line=cable.line,
            )
        seen.setdefault(path, cable.original_name)
    used = {via.link for cable in chosen.cables for via in cable.path}
    used |= {frame.link for frame in robot.frames}
    parents = {body.parent for body in bodies}
    for body in bodies:
        if body.link not in used and body.number not in parents and not body.actuated:
            findings.note(
                "link-unreferenced",
                f"link '{body.original_name}'",
                "no cable of the chosen set, no operational space and no other link refers to it",
                source=robot.source,
                line=body.line,
            )
    others = [item.name for item in cables.sets if item is not chosen]
    if others:
        findings.note(
            "other-cable-sets",
            "<cables>",
            f"not attached: {', '.join(others)} (choose with --cable-set or cable_set=)",
            source=cables.source,
            line=cables.line,
        )


def _place(item: ViaPoint | Pulley) -> tuple[str | float, ...]:
    wheel = (*item.axis.tolist(), item.radius) if isinstance(item, Pulley) else ()
    return (item.link, *item.position.tolist(), *wheel)
