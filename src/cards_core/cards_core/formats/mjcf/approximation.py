"""Muscle paths that MuJoCo can have, near those of a robot, with their error.

MuJoCo wraps over one sphere or endless cylinder between two sites. Where a path asks for more (an
ellipsoid, a torus, a mesh, several surfaces in a row, the end of a cylinder, a pulley), the piece
of it between two points is replaced by what comes nearest: a cylinder, a sphere, a site, or a
straight line. Centre, radius, direction and place are fitted to lengths and moment arms over
random poses within the joint limits; the error that is stated is that over other random poses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import least_squares

from cards_core.dynamics import Dynamics, make_dynamics
from cards_core.errors import CardsError
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Muscle,
    PathElement,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, quaternion_matrix, rotation_exp
from cards_core.typing import Array, Vector3

FIT_POSES = 24
"""Random poses that a piece is fitted to."""

CHECK_POSES = 50
"""Other random poses over which its error is stated."""

RANGE = 0.5
"""How far from home a coordinate without limits goes, [rad] or [m]."""

STEPS = 15
"""Most iterations of a fit."""

FITTED = 3
"""How many of the nearest forms are fitted."""

JUMP = 0.003
"""Differences beyond this count with their size, smaller ones with its square, [m]."""

EXACT = 1e-9
"""An error up to this is rounding, [m] and [m/rad]."""


@dataclass(frozen=True)
class Approximation:
    """What a muscle lost.

    Attributes:
        muscle: Its name.
        text: What became what.
        length_error: Largest difference of its length, [m].
        jacobian_error: Largest difference of an entry of L = dl/dq, [m/rad] or [1].
    """

    muscle: str
    text: str
    length_error: float
    jacobian_error: float

    def __str__(self) -> str:
        """Return one line."""
        if max(self.length_error, self.jacobian_error) <= EXACT:
            return f"{self.text}: the same in {CHECK_POSES} poses within the joint limits"
        return (
            f"{self.text}: length differs by up to {1e3 * self.length_error:.2g} mm, moment arm "
            f"by {1e3 * self.jacobian_error:.2g} mm in {CHECK_POSES} poses within the joint limits"
        )


@dataclass(frozen=True, eq=False)
class _Form:
    """A way to replace a piece of a path.

    Attributes:
        text: In words.
        start: Parameters, shape (p,), may be none; lengths in [m].
        make: Parameters to path elements, and the new surfaces.
    """

    text: str
    make: Callable[[Array], tuple[list[PathElement], list[WrapSurface]]]
    start: Array = field(default_factory=lambda: np.zeros(0))


def with_native_paths(robot: Robot) -> tuple[Robot, tuple[Approximation, ...]]:
    """Return a robot whose muscles MuJoCo can have, and what that changed.

    Args:
        robot: The robot; it comes back itself if nothing has to change.

    Returns:
        The robot, its muscles in the same order, and one entry per muscle that changed.
    """
    muscles: list[Muscle] = []
    surfaces = list(robot.wrap_surfaces)
    changes: list[Approximation] = []
    poses: tuple[Array, Array] | None = None
    for muscle in robot.muscles:
        if not any(True for _ in _pieces(robot, muscle)):
            muscles.append(muscle)
            continue
        if poses is None:
            rng = np.random.default_rng(0)
            poses = _random_poses(robot, FIT_POSES, rng), _random_poses(robot, CHECK_POSES, rng)
        path = list(muscle.path)
        texts: list[str] = []
        # from the end, so that places before it stay
        for first, last in reversed(list(_pieces(robot, muscle))):
            text, elements, new = _nearest(robot, muscle, (first, last), poses[0])
            path[first : last + 1] = elements
            known = {surface.name for surface in surfaces}
            surfaces += [surface for surface in new if surface.name not in known]
            texts.insert(0, text)
        changed = replace(muscle, path=tuple(path))
        muscles.append(changed)
        made = replace(robot, muscles=(changed,), wrap_surfaces=tuple(surfaces))
        before = _values(replace(robot, muscles=(muscle,)), poses[1])
        after = _values(made, poses[1])
        errors = [float(np.max(np.abs(a - b))) for a, b in zip(after, before, strict=True)]
        changes.append(Approximation(muscle.name, "; ".join(texts), errors[0], errors[1]))
    if not changes:
        return robot, ()
    out = replace(robot, muscles=tuple(muscles), wrap_surfaces=tuple(surfaces))
    return out, tuple(changes)


def _pieces(robot: Robot, muscle: Muscle) -> Iterator[tuple[int, int]]:
    """Yield first and last index of the pieces that MuJoCo cannot have, ends left out.

    A pulley is the first element of its piece.
    """
    path = muscle.path
    index = 0
    while index < len(path):
        first = index
        if isinstance(path[index], Pulley | Wrap):
            while index + 1 < len(path) and isinstance(path[index + 1], Wrap):
                index += 1
            run = path[first : index + 1]
            if len(run) > 1 or not _is_native(robot, run[0]):
                yield first, index
        index += 1


def _is_native(robot: Robot, item: PathElement) -> bool:
    if not isinstance(item, Wrap):
        return not isinstance(item, Pulley)
    geometry = robot.wrap_surface(item.surface).geometry
    return isinstance(geometry, Sphere) or (
        isinstance(geometry, Cylinder) and math.isinf(geometry.length)
    )


# Fit -----------------------------------------------------------------------------------------


def _nearest(
    robot: Robot, muscle: Muscle, piece: tuple[int, int], poses: Array
) -> tuple[str, list[PathElement], list[WrapSurface]]:
    """Return the nearest replacement of a piece: in words, its elements, new surfaces."""
    first, last = piece
    pulley = isinstance(muscle.path[first], Pulley)
    before = [] if pulley else [muscle.path[first - 1]]
    after = [muscle.path[last + 1]]
    run = list(muscle.path[first : last + 1])
    segment = replace(muscle, path=(*before, *run, *after), contact=False, friction=0.0)
    target = np.concatenate([a.ravel() for a in _values(_alone(robot, segment, []), poses)])
    best: tuple[float, str, Array, _Form] | None = None

    def residual(form: _Form, parameters: Array) -> Array:
        elements, new = form.make(parameters)
        part = replace(segment, path=(*before, *elements, *after))
        try:
            values = _values(_alone(robot, part, new), poses)
        except CardsError:
            return np.full(target.shape, 1.0)  # two points at one place, say
        found: Array = np.concatenate([a.ravel() for a in values]) - target
        return np.where(np.isfinite(found), found, 1.0)

    forms = list(_forms(robot, muscle, piece))
    errors = [_size(residual(form, form.start)) for form in forms]
    order = np.argsort(errors, kind="stable")
    fitted = 0
    for index in order:
        form, parameters, error = forms[index], forms[index].start, errors[index]
        if len(parameters) and fitted < FITTED and error > EXACT:
            fitted += 1
            found = least_squares(
                lambda x, form=form: residual(form, x),
                parameters,
                x_scale=0.01,
                diff_step=1e-5,
                # a path may jump in few poses, where nothing can follow it
                loss="soft_l1",
                f_scale=JUMP,
                max_nfev=STEPS,
            )
            parameters, error = found.x, _size(found.fun)
        if best is None or error < best[0]:
            best = error, form.text, parameters, form
    assert best is not None
    elements, new = best[3].make(best[2])
    return best[1], elements, new


def _size(residual: Array) -> float:
    """Return how large differences are, as `JUMP` says, [m]."""
    return float(JUMP * np.sqrt(np.sum(np.sqrt(1.0 + (residual / JUMP) ** 2) - 1.0)))


def _alone(robot: Robot, muscle: Muscle, new: list[WrapSurface]) -> Robot:
    known = {surface.name for surface in new}
    others = [surface for surface in robot.wrap_surfaces if surface.name not in known]
    return replace(robot, muscles=(muscle,), wrap_surfaces=(*others, *new))


def _values(robot: Robot, poses: Array) -> tuple[Array, Array]:
    """Return lengths, shape (n,), and Jacobians, shape (n, nv), of the one muscle."""
    dynamics: Dynamics = make_dynamics(robot, "numeric")
    zero = np.zeros(robot.tree.nv)
    lengths, jacobians = [], []
    for q in poses:
        state = dynamics.update(q, zero)
        lengths.append(float(state.muscle_lengths[0]))
        jacobians.append(np.array(state.muscle_jacobian[0]))
    return np.array(lengths), np.array(jacobians)


def _random_poses(robot: Robot, count: int, rng: np.random.Generator) -> Array:
    """Return home and random poses within the joint limits, shape (count, nq)."""
    tree = robot.tree
    low = np.where(np.isfinite(tree.lower), tree.lower, tree.home - RANGE)
    high = np.where(np.isfinite(tree.upper), tree.upper, tree.home + RANGE)
    q = rng.uniform(low, high, (count, tree.nq))
    for node in tree.nodes:
        if node.kind == "ball":
            place = slice(node.q, node.q + 4)
            turns = tree.home[place] + RANGE * rng.uniform(-1.0, 1.0, (count, 4))
            q[:, place] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    q[0] = tree.home
    return q


# Forms ---------------------------------------------------------------------------------------


def _forms(robot: Robot, muscle: Muscle, piece: tuple[int, int]) -> Iterator[_Form]:
    """Yield what may replace a piece of a path."""
    first, last = piece
    run = muscle.path[first : last + 1]
    head = run[0]
    if isinstance(head, Pulley):
        yield from _pulley_forms(head)
        return
    wraps = [item for item in run if isinstance(item, Wrap)]
    names = ", ".join(f"'{item.surface}'" for item in wraps)
    yield _Form(f"wrap over {names} left out", lambda _: ([], []))
    native = [_endless(robot, item) for item in wraps]
    for wrap, as_native in zip(wraps, native, strict=True):
        others = [f"'{item.surface}'" for item in wraps if item is not wrap]
        rest = f", {', '.join(others)} left out" if others else ""
        label = f"{muscle.name} {first}"
        if as_native is not None:
            element, new = as_native
            text = f"'{wrap.surface}' as an endless cylinder" if new else f"'{wrap.surface}' alone"
            yield _Form(text + rest, _constant([element], new))
        else:
            yield from _surface_forms(robot, wrap, label, rest)
        yield _site_form(robot, wrap, rest)
    if len(wraps) > 1 and all(native):
        yield _between(robot, wraps, [item for item in native if item is not None])


def _constant(
    elements: list[PathElement], new: list[WrapSurface]
) -> Callable[[Array], tuple[list[PathElement], list[WrapSurface]]]:
    return lambda _: (elements, new)


def _endless(robot: Robot, wrap: Wrap) -> tuple[PathElement, list[WrapSurface]] | None:
    """Return a wrap over a sphere or endless cylinder, and that surface if it is new."""
    surface = robot.wrap_surface(wrap.surface)
    if _is_native(robot, wrap):
        return wrap, []
    if not isinstance(surface.geometry, Cylinder):
        return None
    name = f"{surface.name} endless"
    endless = replace(surface, name=name, geometry=replace(surface.geometry, length=math.inf))
    return replace(wrap, surface=name), [endless]


def _pulley_forms(pulley: Pulley) -> Iterator[_Form]:
    text = "the wheel of its pulley became a site"
    yield _Form(f"{text} where the cable enters", _constant([_point(pulley)], []))

    def make(x: Array) -> tuple[list[PathElement], list[WrapSurface]]:
        return [replace(_point(pulley), position=pulley.position + x)], []

    yield _Form(text, make, np.zeros(3))


def _point(pulley: Pulley) -> ViaPoint:
    return ViaPoint(pulley.link, pulley.position)


def _site_form(robot: Robot, wrap: Wrap, rest: str) -> _Form:
    surface = robot.wrap_surface(wrap.surface)
    start: Vector3 = np.array(surface.pose.translation)
    if wrap.side is not None and not wrap.inside:
        start = np.array(wrap.side)

    def make(x: Array) -> tuple[list[PathElement], list[WrapSurface]]:
        return [ViaPoint(surface.link, np.array(x))], []

    return _Form(f"wrap over '{wrap.surface}' became a site{rest}", make, start)


def _surface_forms(robot: Robot, wrap: Wrap, label: str, rest: str) -> Iterator[_Form]:
    """Yield a sphere, and cylinders along the three axes, in place of a surface."""
    surface = robot.wrap_surface(wrap.surface)
    if wrap.inside:
        return
    match surface.geometry:
        case Ellipsoid(radii):
            sizes = np.array(radii, dtype=float)
        case Torus(radius, tube_radius):
            sizes = np.array([radius + tube_radius, radius + tube_radius, tube_radius])
        case _:
            sizes = np.full(3, 0.03)
    for axis in range(3):
        across = [i for i in range(3) if i != axis]
        radius = float(np.mean(sizes[across]))
        turn = quaternion_matrix(rotation_exp(_TURNS[axis]))
        yield _round_form(wrap, surface, (label, rest), radius, turn)
    yield _round_form(wrap, surface, (label, rest), float(np.mean(sizes)), None)


_TURNS = (
    np.array([0.0, 0.5 * math.pi, 0.0]),
    np.array([0.5 * math.pi, 0.0, 0.0]),
    np.zeros(3),
)
"""Rotations of the z axis to x, y and z."""


def _round_form(
    wrap: Wrap,
    surface: WrapSurface,
    said: tuple[str, str],
    radius: float,
    turn: Array | None,
) -> _Form:
    """Return a cylinder, or without ``turn`` a sphere, whose place and radius are fitted."""
    label, rest = said
    kind = "sphere" if turn is None else "cylinder"
    name = f"{label} {kind}"

    def make(x: Array) -> tuple[list[PathElement], list[WrapSurface]]:
        size = radius * math.exp(float(np.clip(x[3] / radius, -2.0, 2.0)))
        rotation = np.eye(3)
        geometry: Sphere | Cylinder = Sphere(size)
        if turn is not None:
            rotation = turn @ quaternion_matrix(rotation_exp(np.array([x[4], x[5], 0.0]) / radius))
            geometry = Cylinder(size, math.inf)
        pose = surface.pose @ Pose(rotation, np.array(x[:3]))
        return (
            [replace(wrap, surface=name)],
            [WrapSurface(name, surface.link, geometry, pose)],
        )

    text = f"'{wrap.surface}' as a {kind}{rest}"
    return _Form(text, make, np.zeros(4 if turn is None else 6))


def _between(
    robot: Robot, wraps: list[Wrap], native: list[tuple[PathElement, list[WrapSurface]]]
) -> _Form:
    """Return all surfaces of a run with a site between any two, on the link of the second."""
    pairs = [robot.wrap_surface(wrap.surface) for wrap in wraps[1:]]
    starts = [np.array(surface.pose.translation) for surface in pairs]
    for start, wrap in zip(starts, wraps[1:], strict=True):
        if wrap.side is not None and not wrap.inside:
            start[:] = wrap.side

    def make(x: Array) -> tuple[list[PathElement], list[WrapSurface]]:
        elements: list[PathElement] = [native[0][0]]
        new = list(native[0][1])
        for k, surface in enumerate(pairs):
            elements += [ViaPoint(surface.link, np.array(x[3 * k : 3 * k + 3])), native[k + 1][0]]
            new += native[k + 1][1]
        return elements, new

    names = ", ".join(f"'{wrap.surface}'" for wrap in wraps)
    return _Form(f"a site between {names}", make, np.concatenate(starts))
