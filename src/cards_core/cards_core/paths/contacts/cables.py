"""Cables that touch what is in their way: rods, spheres, edges; sliding with or without friction.

A cable is straight pieces and arcs, without friction of one tension. Which shapes it touches, on
which side and how often it goes around them is its state, its *contacts*: what it touches now
follows from what it touched at the last step and from the motion since. Between the contacts it is
the shortest way.

Across a rod that is a circle, along it a straight line on the developed surface; with p and q the
neighbouring points, P and Q their distances from the axis, alpha the angle from p to q about it,
counted on through full turns, and s = +1 or -1 the sense in which the cable goes around:

    a_p = sqrt(P^2 - r^2),   a_q = sqrt(Q^2 - r^2)
    theta = s alpha - atan2(a_p, r) - atan2(a_q, r)
    l = sqrt((a_p + r theta + a_q)^2 + (z_q - z_p)^2)

Several contacts are solved one after another between their neighbours until nothing moves.

- *Insertion*: a straight piece meets a rod where theta > 0. It passes the axis of a rod where
  alpha passes half a turn; the ends of the piece are taken to move in straight lines from step to
  step, so that alpha passes there at a root of a quadratic equation. A rod of any size is thus met
  from the side on which the cable was, however fast it moves. The earliest meeting counts first.
- *Release*: theta <= 0. What remains is solved again.
- *Ends*: rods end in half spheres. Over side and cap the way is a helix and a great circle that
  meet at equal angles where the side ends, the seam; with k the ratio of a neighbour's distances
  from the axis and from the centre of the cap, delta the angle about the axis from the seam to it,
  c the cosine of the angle between way and seam:

      c = k sin delta/sqrt(1 - (k cos delta)^2),   alpha = sum of delta + h_s c/(r sqrt(1 - c^2))

  with h_s the height between the seams; an end without cap has acos(r/P) - a/r in place of delta
  and its own height. Where no slope c balances, the way has no minimum and slips off.

- *Crossings*: edges of two shapes cross, as the rims of blocks of one height do, and the cable
  touches both there. One of them stays if the way over it does not pass under the other; else the
  notch between them holds the cable.

Forces, moments and rates are those of `cards_core.muscles.engine`, with the tangent points fixed
to the links of the shapes for an instant.

*Taut and slack*: hosts step velocities first and positions with them (symplectic Euler), which
conserves the energy of a spring but where it gets taut or slack within a step: that depends on
when. With stretches a before, s now and b after a step, T = k s there is multiplied by

    (max(0, b) - max(0, a))/(b - a),    b = a + 2 dt l' - dt^2 T L M^-1 L'

with which the work T (b - a)/2 of all steps sums up to nothing from slack to slack, but for what
paths that bend within a step add. Where the host says to which twists the forces led (`reached`),
what the bodies gave since the spring was slack is known,

    E = sum of f k s dt (l' before + l' after)/2,    less that of L0',

f being the share. It is chosen so that all of E comes back when the spring gets slack, and that it
never gets below zero, with e = 2 E/(k s) in place of a: c f^2 + (a - p) f = e, p = b where T = 0,
c = dt^2 T L M^-1 L'.

*Friction*: a cable that stretches evenly along its length l, with W_j the share of l of the
straight piece j and of half the arcs beside it (sum 1), L0' the rate of the rest length, which a
winch at its first end feeds, phi_i the angle of contact i and s_i the speed there towards the
second end:

    s_i = sum_{j > i} l_j' - W_j (l' - L0'),    T_i+1 = T_i exp(mu phi_i tanh(s_i/v0)),
    sum_j W_j T_j = T

with T the tension of the whole cable as its law has it. The power that is lost is then
sum_i (T_i+1 - T_i) s_i, and no term of it is negative. Where the elasticity is in an actuator at
the first end, W_0 = 1, as for muscles over via points: T is the tension there. v0 grows with the
time step as in `cards_core.paths.numeric.Paths.friction_factors`; links count as free bodies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.codegen.library import load_library
from cards_core.paths.contacts.shapes import ContactShape, shape_tables
from cards_core.robot.elements import Inertia
from cards_core.typing import Array, Vector3

LONGEST = 128
"""Most contacts of a cable; see ``native/contact_cables.c``."""


@dataclass(frozen=True, eq=False)
class ContactCable:
    """A cable.

    Attributes:
        links: Indices of the links of its ends; that of the world is the number of links.
        ends: In link coordinates, shape (2, 3), [m].
        touches: Indices of the shapes that it may touch.
        friction: Capstan coefficient mu.
        friction_speed: v0, [m/s].
        stiffness: Of a cable that stretches along its length, [N/m]; 0: at its first end.
    """

    links: tuple[int, int]
    ends: Array
    touches: tuple[int, ...]
    friction: float = 0.0
    friction_speed: float = 0.01
    stiffness: float = 0.0


@dataclass(frozen=True, eq=False)
class CableContact:
    """A place where a cable touches.

    Attributes:
        shape: Index of the shape.
        start, end: Where the cable meets and leaves it, in the world, shape (3,), [m].
        arc: Length on the shape, [m].
        turn: Angle about the axis of the rod, [rad]: more than 2 pi after a full turn.
        slide: Speed of the cable there towards its second end as of the last `pull`, [m/s]; zero
            of cables without friction, of which it is not computed.
    """

    shape: int
    start: Vector3
    end: Vector3
    arc: float
    turn: float
    slide: float = 0.0


class ContactCables:
    """Solves the contacts of cables, step by step.

    Args:
        links: Number of links, the world not counted.
        shapes: What is in the way.
        cables: The cables.
        inertias: Of the links; without them friction is as steep as described.

    Attributes:
        lengths: Of the cables, shape (c,), [m].
        rates: As of the last `pull`, shape (c,), [m/s].
        feeds: Rates of the rest lengths, set by the host before `pull`, shape (c,), [m/s].
        rests: Rest lengths of those that are springs in this step, set by the host before `pull`,
            NaN for the others, shape (c,), [m].
        rubs: Whether any of them has friction.

    Raises:
        CompilationError: There is no C compiler.
        UnknownNameError: A shape of a kind that cables do not touch.
    """

    def __init__(
        self,
        links: int,
        shapes: Sequence[ContactShape],
        cables: Sequence[ContactCable],
        inertias: Sequence[Inertia] = (),
    ) -> None:
        self.shapes, self.cables = tuple(shapes), tuple(cables)
        n, c = len(self.shapes), len(self.cables)
        self._library = _library()
        tables = shape_tables(shapes)
        touch = np.zeros((c, n), dtype=np.uint8)
        for row, cable in zip(touch, cables, strict=True):
            row[list(cable.touches)] = 1
        self.lengths: Array = np.zeros(c)
        self.rates: Array = np.zeros(c)
        self.feeds: Array = np.zeros(c)
        self.rests: Array = np.full(c, np.nan)
        self.rubs = any(cable.friction for cable in cables)
        bodies = np.zeros((links + 1, 13))
        for body, inertia in zip(bodies, inertias, strict=False):
            body[:] = _inverse(inertia)
        self._ends = np.zeros((c, 2, 3))
        self._count = np.zeros(c, dtype=np.int64)
        self._failures = np.zeros(1, dtype=np.int64)
        self._link_poses = np.zeros((links + 1, 4, 4))
        self._twists = np.zeros((links + 1, 6))
        self._tensions = np.zeros(c)
        self._wrenches = np.zeros((links + 1, 6))
        self._arrays: dict[str, Any] = {
            "shapes": tables.shapes,
            "kinds": tables.kinds,
            "edges": tables.edges,
            "heights": tables.heights,
            "ridges": tables.ridges,
            "end_link": np.array([k.links for k in cables], dtype=np.int64).reshape(c, 2),
            "end_place": np.array([k.ends for k in cables], dtype=float).reshape(c, 2, 3),
            "touch": touch,
            "link_pose": self._link_poses,
            "before": np.zeros((n, 12)),
            "now": np.zeros((n, 12)),
            "ends_before": np.zeros((c, 2, 3)),
            "ends": self._ends,
            "count": self._count,
            "contact_shape": np.zeros((c, LONGEST), dtype=np.int64),
            "contact_edge": np.zeros((c, LONGEST), dtype=np.int64),
            "sense": np.zeros((c, LONGEST)),
            "turn": np.zeros((c, LONGEST)),
            "points": np.zeros((c, LONGEST, 2, 3)),
            "arcs": np.zeros((c, LONGEST)),
            "lengths": self.lengths,
            "rates": self.rates,
            "failures": self._failures,
            "twists": self._twists,
            "tensions": self._tensions,
            "wrenches": self._wrenches,
            "friction": np.array([k.friction for k in cables], dtype=float),
            "slide_speed": np.array([k.friction_speed for k in cables], dtype=float),
            "stiffness": np.array([k.stiffness for k in cables], dtype=float),
            "feeds": self.feeds,
            "rests": self.rests,
            "lengths_before": np.full(c, np.nan),
            "springs": np.zeros((c, 3)),
            "origins": np.zeros((links + 1, 3)),
            "bodies": bodies,
            "bends": np.zeros((c, LONGEST)),
            "pieces": np.zeros((c, LONGEST + 1)),
            "slides": np.zeros((c, LONGEST)),
            "scratch": np.zeros((links + 1, 6)),
            "world": np.zeros((4, 4)),
            "still": np.zeros(1, dtype=np.int64),
            "bounds": np.zeros((n, 6)),
            "near_box": np.zeros((c, 6)),
            "near_count": np.zeros(c, dtype=np.int64),
            "near": np.zeros((c, n), dtype=np.int32),
        }
        pointers = {name: array.ctypes.data for name, array in self._arrays.items()}
        self._c = _Cables(n=n, c=c, links=links, fresh=1, **pointers)
        self._place = ctypes.byref(self._c)

    @property
    def program(self) -> tuple[int, int, int]:
        """Addresses of the C functions of `solve` and `pull`, and of their argument."""
        functions = (self._library.contact_cables_solve, self._library.contact_cables_pull)
        solve, pull = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)
        return solve, pull, ctypes.addressof(self._c)

    @property
    def buffers(self) -> dict[str, Array]:
        """What these read and write, by the names of ``steps.c`` of `cards_sim`."""
        return {
            "link_pose": self._link_poses,
            "link_twists": self._twists,
            "cable_tensions": self._tensions,
            "cable_wrenches": self._wrenches,
            "cable_lengths": self.lengths,
            "cable_rates": self.rates,
            "cable_feeds": self.feeds,
            "cable_rests": self.rests,
        }

    def set_step(self, dt: float) -> None:
        """Say how long the host's steps are, [s].

        Friction gets no steeper than they allow, and springs that get taut or slack within one
        give no energy that they do not have.
        """
        self._c.dt = dt

    @property
    def solved_poses(self) -> Array:
        """Link-to-world matrices of the last `solve`, the world last, shape (n + 1, 4, 4)."""
        return self._link_poses

    @property
    def failures(self) -> int:
        """Steps of cables since the last reset that found no end of changes."""
        return int(self._failures[0])

    def reset(self) -> None:
        """Forget all contacts: the next poses are the first, cables straight where they can be."""
        self._c.fresh = 1
        self._count[:] = 0
        self._failures[:] = 0
        self.feeds[:] = 0.0
        self.rests[:] = np.nan

    def solve(self, link_poses: Array, reached: Array | None = None) -> Array:
        """Advance the contacts to new poses and return `lengths`.

        Args:
            link_poses: Link-to-world matrices, the world last, shape (n + 1, 4, 4).
            reached: Twists as of `pull`, to which the forces since the last call led before the
                links moved. With them springs give back what they took, to rounding.
        """
        self._link_poses[:] = link_poses
        self._c.reached = reached is not None
        if reached is not None:
            self._twists[:] = reached
        self._library.contact_cables_solve(self._place)
        self._c.fresh = 0
        return self.lengths

    def pull(self, twists: Array, tensions: Array) -> Array:
        """Return wrenches on the links, shape (n + 1, 6), [N] and [Nm] about their origins.

        Args:
            twists: World velocity of each link's origin, then angular velocity, the world last,
                shape (n + 1, 6), [m/s] and [rad/s]. They give `rates`.
            tensions: shape (c,), [N].
        """
        self._twists[:], self._tensions[:] = twists, tensions
        self._wrenches[:] = 0.0
        self._library.contact_cables_pull(self._place)
        return self._wrenches

    def contacts(self, cable: int) -> list[CableContact]:
        """Return the contacts of a cable from its first end to its second."""
        found = self._arrays
        return [
            CableContact(
                int(found["contact_shape"][cable, i]),
                found["points"][cable, i, 0].copy(),
                found["points"][cable, i, 1].copy(),
                float(found["arcs"][cable, i]),
                float(found["turn"][cable, i]),
                float(found["slides"][cable, i]) if self.cables[cable].friction else 0.0,
            )
            for i in range(self._count[cable])
        ]

    def piece_tensions(self, cable: int) -> Array:
        """Return the tensions of the straight pieces of a cable as of the last `pull`, [N].

        From its first end on, one more than there are contacts.
        """
        tensions: Array = self._arrays["pieces"][cable, : self._count[cable] + 1]
        return tensions.copy()

    def ends(self, cable: int) -> Array:
        """Return the ends of a cable in the world, shape (2, 3), [m]."""
        return np.array(self._ends[cable])


class _Cables(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_long) for name in ("n", "c", "links", "fresh")],
        ("dt", ctypes.c_double),
        ("reached", ctypes.c_long),
        *[
            (name, ctypes.c_void_p)
            for name in (
                "shapes",
                "kinds",
                "edges",
                "heights",
                "ridges",
                "end_link",
                "end_place",
                "touch",
                "link_pose",
                "before",
                "now",
                "ends_before",
                "ends",
                "count",
                "contact_shape",
                "contact_edge",
                "sense",
                "turn",
                "points",
                "arcs",
                "lengths",
                "rates",
                "failures",
                "twists",
                "tensions",
                "wrenches",
                "friction",
                "slide_speed",
                "stiffness",
                "feeds",
                "rests",
                "lengths_before",
                "springs",
                "origins",
                "bodies",
                "bends",
                "pieces",
                "slides",
                "scratch",
                "world",
                "still",
                "bounds",
                "near_box",
                "near_count",
                "near",
            )
        ],
    ]


def _inverse(inertia: Inertia) -> Array:
    """Return inverse mass [1/kg], inverse inertia [1/(kg m^2)] and centre of mass, shape (13,)."""
    mass, tensor = inertia.mass, np.asarray(inertia.tensor, dtype=float)
    inverse = np.zeros((3, 3))
    if mass > 0.0 and np.all(np.linalg.eigvalsh(tensor) > 0.0):
        inverse = np.linalg.inv(tensor)
    return np.array([1.0 / mass if mass > 0.0 else 0.0, *inverse.ravel(), *inertia.com])


@cache
def _library() -> ctypes.CDLL:
    text = (Path(__file__).parent / "native" / "contact_cables.c").read_text(encoding="utf-8")
    library = load_library("contact of cables", text)
    for function in (library.contact_cables_solve, library.contact_cables_pull):
        function.argtypes = [ctypes.POINTER(_Cables)]
        function.restype = None
    return library
