"""First guess of the shape of a single rod between its end conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cards_core.rods.ends import End, state_of
from cards_core.rods.loads import Loading, pieces
from cards_core.rods.rod import Rod
from cards_core.rods.solution import advance, pose_matrix
from cards_core.spatial import hat, quaternion_matrix, rotation_exp
from cards_core.typing import Array, Matrix3, Vector3

SAMPLES = 201
"""Points of the curve that is fitted between two held ends."""


@dataclass(frozen=True)
class InitialShape:
    """States, shape (k, 18), at the given arc lengths.

    Attributes:
        states: (p, R by rows, n, m) per section.
        arbitrary: A buckled rod whose side was not given bends towards an arbitrary one.
        relax: Go downhill from here first, since this is no equilibrium.
    """

    states: Array
    arbitrary: bool = False
    relax: bool = True


def initial_shapes(
    rod: Rod, length: float, ends: tuple[End, End], at: Array, bulge: Vector3 | None
) -> Iterator[InitialShape]:
    """Yield states to start from, the most natural first.

    Between two ends of known position it is a cubic curve along the held tangents, with a bulge
    where it would be shorter than the rod. Otherwise it is the free rod, bent towards `bulge`.
    Further guesses are for those who found these to lead nowhere, or to something unstable.

    Args:
        rod: The rod.
        length: Unstrained length, [m].
        ends: Start and tip.
        at: Rising arc lengths, shape (k,), [m].
        bulge: Direction in the world in which a compressed rod gives way, shape (3,), or None.
    """
    start, tip = ends
    axes = start.pose[:3, :2].T
    if start.holds_position and tip.holds_position:
        yield _between(rod, length, ends, at, bulge)
        for side in (*axes, *-axes):
            guess = _between(rod, length, ends, at, side)
            yield InitialShape(guess.states, arbitrary=bulge is None)
        return
    backwards = tip.holds_position and not start.holds_position
    known = tip if backwards else start
    tries = [(bulge, 0.0 if bulge is None else 1.0)]
    for side in axes if bulge is None else (bulge,):
        tries += [(side, bend) for bend in (0.5, 2.0, 3.0, 4.0)]
    for i, (side, bend) in enumerate(tries):
        states = _rest(rod, length, known, at, backwards=backwards, bulge=side, bend=bend)
        yield InitialShape(states, arbitrary=i > 0 and bulge is None)


def _rest(
    rod: Rod,
    length: float,
    known: End,
    at: Array,
    *,
    backwards: bool,
    bulge: Vector3 | None,
    bend: float,
) -> Array:
    """Return the rod at rest, bent by an angle [rad] towards `bulge`, placed by a known end."""
    moment = np.zeros(3)
    pose = known.pose
    if bulge is not None:
        moment = np.cross(pose[:3, 2], bulge)
        size = float(np.linalg.norm(moment))
        moment *= bend * rod.bending_stiffness / (length * size) if size > 0.0 else 0.0
    state = state_of(pose, np.concatenate([np.zeros(3), moment]))
    (piece,) = pieces(rod, length, Loading())
    states = advance(piece, np.append(at, length), state, np.zeros(4))
    if backwards:
        shift = pose @ np.linalg.inv(pose_matrix(states[-1, :3], states[-1, 3:12].reshape(3, 3)))
        turn = shift[:3, :3]
        states[:, :3] = states[:, :3] @ turn.T + shift[:3, 3]
        states[:, 3:12] = (turn @ states[:, 3:12].reshape(-1, 3, 3)).reshape(-1, 9)
    states[:, 12:] = 0.0
    return states[:-1]


def _between(
    rod: Rod, length: float, ends: tuple[End, End], at: Array, bulge: Vector3 | None
) -> InitialShape:
    first, last = (end.pose[:3, 3] for end in ends)
    chord = last - first
    distance = float(np.linalg.norm(chord))
    along = chord / distance if distance > 1e-9 * length else ends[0].pose[:3, 2]
    # a section that may turn about x or y settles along the chord
    tangents = [along if end.mask[3:5].any() else end.pose[:3, 2] for end in ends]
    x = np.linspace(0.0, 1.0, SAMPLES)
    # longer tangents would make the curve overshoot and come back
    speeds = [min(length, 2.0 * distance) * tangent for tangent in tangents]
    curve = _hermite(x, first, last, speeds[0], speeds[1])
    force = (
        -rod.bending_stiffness
        / length**3
        * (12.0 * (first - last) + 6.0 * (speeds[0] + speeds[1]))
    )
    arbitrary = False
    if _lengths(curve)[-1] < length * (1.0 - 1e-9):
        lateral = curve - first - np.outer((curve - first) @ along, along)
        side = lateral[np.argmax(np.linalg.norm(lateral, axis=1))]
        if bulge is not None:
            side = bulge - (bulge @ along) * along
        elif float(np.linalg.norm(side)) < 1e-3 * length:
            arbitrary = True
            side = ends[0].pose[:3, 0] - (ends[0].pose[:3, 0] @ along) * along
        size = float(np.linalg.norm(side))
        side = side / size if size > 1e-9 else _normal(along)
        curve = _buckled(curve, np.cross(along, side), length)
        force = force - 4.0 * math.pi**2 * rod.bending_stiffness / length**2 * along
    states = _states_along(rod, length, ends, at, curve=curve, force=force)
    return InitialShape(states, arbitrary)


def _buckled(curve: Array, axis: Vector3, length: float) -> Array:
    """Return a curve of this length with the same ends, by a wave of angles about an axis.

    The tangents turn by ``A sin(2 pi s/L)``: with straight ends it is the first buckling mode
    between clamps, up to ends that touch (A = 2.4).
    """
    s = _lengths(curve)
    x = np.linspace(0.0, 1.0, SAMPLES)
    even = np.column_stack([np.interp(x, s / s[-1], column) for column in curve.T])
    edges = np.diff(even, axis=0)
    edges *= length / (SAMPLES - 1) / np.linalg.norm(edges, axis=1, keepdims=True)
    wave = np.sin(2.0 * math.pi * (x[:-1] + 0.5 / (SAMPLES - 1)))
    distance = float(np.linalg.norm(curve[-1] - curve[0]))

    def turned(amplitude: float) -> Array:
        cosine, sine = np.cos(amplitude * wave)[:, None], np.sin(amplitude * wave)[:, None]
        along = np.outer(edges @ axis, axis)
        return np.asarray(along + cosine * (edges - along) + sine * np.cross(axis, edges))

    low, high = 0.0, 2.4
    for _ in range(40):
        middle = 0.5 * (low + high)
        if float(np.linalg.norm(turned(middle).sum(axis=0))) > distance:
            low = middle
        else:
            high = middle
    out = np.vstack([curve[0], curve[0] + np.cumsum(turned(high), axis=0)])
    return out + np.outer(x, curve[-1] - out[-1])


def _states_along(
    rod: Rod, length: float, ends: tuple[End, End], at: Array, *, curve: Array, force: Vector3
) -> Array:
    """Frames of least turning along a curve, the twist of the held tip spread evenly."""
    tangents = np.gradient(curve, axis=0)
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-300)
    frames = [_turn(ends[0].pose[:3, 2], tangents[0]) @ ends[0].pose[:3, :3]]
    for before, after in pairwise(tangents):
        frames.append(_turn(before, after) @ frames[-1])
    twist = 0.0
    if not ends[1].mask[5] and not ends[0].mask[5]:
        wanted = _turn(ends[1].pose[:3, 2], tangents[-1]) @ ends[1].pose[:3, 0]
        twist = math.atan2(wanted @ frames[-1][:, 1], wanted @ frames[-1][:, 0])
    step = length / (SAMPLES - 1)
    bend = np.cross(tangents, np.gradient(tangents, step, axis=0))
    positions = np.linspace(0.0, length, SAMPLES)
    out = np.empty((len(at), 18))
    for row, s in zip(out, at, strict=True):
        k = min(int(s / step + 0.5), SAMPLES - 1)
        turned = frames[k] @ quaternion_matrix(rotation_exp([0.0, 0.0, twist * s / length]))
        u = turned.T @ bend[k] + [0.0, 0.0, twist / length]
        for c in range(3):
            row[c] = np.interp(s, positions, curve[:, c])
        row[3:12] = turned.ravel()
        row[12:15] = force
        row[15:18] = turned @ (rod.stiffness_bt * (u - rod.curvature))
    return out


def _hermite(x: Array, p0: Vector3, p1: Vector3, d0: Vector3, d1: Vector3) -> Array:
    x = x[:, None]
    return np.asarray(
        (1 + 2 * x) * (1 - x) ** 2 * p0
        + x * (1 - x) ** 2 * d0
        + x * x * (3 - 2 * x) * p1
        + x * x * (x - 1) * d1
    )


def _lengths(curve: Array) -> Array:
    """Arc lengths of the points of a polyline, shape (k,)."""
    return np.append(0.0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1)))


def _turn(a: Vector3, b: Vector3) -> Matrix3:
    """Return the smallest rotation that takes the unit vector a to b."""
    axis = np.cross(a, b)
    cosine = float(a @ b)
    if cosine < -1.0 + 1e-12:
        half = _normal(a)
        return np.asarray(2.0 * np.outer(half, half) - np.eye(3))
    k = hat(axis)
    return np.asarray(np.eye(3) + k + k @ k / (1.0 + cosine))


def _normal(a: Vector3) -> Vector3:
    """Return a unit vector normal to the unit vector a."""
    b = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
    return np.asarray(b / np.linalg.norm(b))
