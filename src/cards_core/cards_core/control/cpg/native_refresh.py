"""The refresh of a pattern generator as one call of compiled code.

Networks of feedback and goal, the kernel of the link poses, the oscillators and the set-points:
``native/pattern.c``. Operations are those of the Python form; hyperbolic tangents and cosines are
those of the C library, and sums of networks begin with the first term, while NumPy leaves both to
the processor. Set-points agree to 1e-12 of the largest; without feedback and goal only v0 differs
at all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Oscillators
from cards_core.control.native_program import callable_kernel, compiled, members, place, program
from cards_core.control.native_set_points import SET_POINTS, SetPoints
from cards_core.dynamics.interface import Dynamics
from cards_core.optimize.active_set import DOT, REAL
from cards_core.typing import Array

PATTERN = Path(__file__).parent / "native" / "pattern.c"
"""Follows `DOT` and `SET_POINTS`."""

SOURCES = (REAL, DOT, SET_POINTS, PATTERN)
"""Parts of the program text."""


class NativeRefresh:
    """Does the refreshes of one controller.

    Args:
        oscillators: Of the muscles.
        home: Lengths at home, shape (m,), [m].
        most: Largest tensions, shape (m,), [N]; may be infinite.
        terms: Is given F of all muscles, shape (m, 3).

    Attributes:
        keep: Arrays that must live as long.
        lengths, tensions: Where measurements are written, shape (m,), [m] and [N].

    Raises:
        NotNativeError: There is no C compiler.
    """

    def __init__(self, oscillators: Oscillators, home: Array, most: Array, terms: Array) -> None:
        # without the GIL, as oscillators take a tenth of a millisecond
        library = program("pattern generators", SOURCES, keep_lock=False)
        self._call = library.cards_pattern_refresh
        self._setup = setup = _Pattern(rate_scale=0.0)
        self._reference = ctypes.byref(setup)
        m = home.size
        self.keep: list[Any] = [oscillators]
        setup.advance, setup.oscillators = oscillators.in_c()
        self.lengths: Array = np.zeros(m)
        self.tensions: Array = np.zeros(m)
        place(
            setup,
            self.keep,
            state=oscillators.state,
            feedback=oscillators.feedback,
            terms=terms,
            lengths=self.lengths,
            tensions=self.tensions,
            home=home,
            most=most,
            wanted=np.zeros(m),
        )
        self._q: Array | None = None

    @property
    def told(self) -> SetPoints:
        """Where the set-points come from and go to."""
        found: SetPoints = self._setup.told
        return found

    def place_feedback(self, network: Network | None) -> None:
        """Take the network that gives F; None: no feedback."""
        self._setup.with_feedback = network is not None
        if network is not None:
            self._place_network(self._setup.muscle, network)

    def place_goal(
        self,
        network: Network,
        dynamics: Dynamics,
        *,
        goal: Array,
        tension: float,
        links: Sequence[int],
        centres: Array,
    ) -> None:
        """Take a goal.

        Args:
            network: Gives T0 of the muscles at a joint.
            dynamics: Gives the poses of the links.
            goal: x and y, [m].
            tension: Half of the largest T0, [N].
            links: Indices of the links ahead, behind, and from which the goal is seen.
            centres: Their centres of mass, shape (3, 3), [m].

        Raises:
            NotNativeError: The dynamics are not compiled.
        """
        setup = self._setup
        kernel = callable_kernel(compiled(dynamics).pose_kernel())
        self.keep.append(kernel)
        setup.poses, setup.poses_io = kernel.address, kernel.buffer.ctypes.data
        self._q = kernel.inputs["q"]
        place(
            setup,
            self.keep,
            transforms=kernel.outputs["link_poses"],
            joint=np.zeros(network.outputs),
        )
        setup.links[:], setup.centres[:] = list(links), centres.ravel().tolist()
        setup.goal_place[:], setup.goal_tension = goal.tolist(), tension
        self._place_network(setup.goal, network)
        setup.with_goal = 1

    def refresh(
        self,
        q: Array,
        elapsed: float,
        change: float,
        *,
        active: bool,
        hold: float,
        share: float,
        rate_scale: float,
    ) -> tuple[float, float] | None:
        """Do a refresh with the present measurements; return hold and share.

        None: it is not settled, and nothing was changed.

        Args:
            q: Coordinates, shape (nq,); read with a goal only.
            elapsed: Since the last one, [s].
            change: By how much ramps go on.
            active: Whether muscles oscillate.
            hold: How far muscles are held, 0 to 1.
            share: How far they oscillate, 0 to 1.
            rate_scale: v0 for an output of one, [m/s].
        """
        setup = self._setup
        if self._q is not None:
            if q.shape != self._q.shape or not np.isfinite(q).all():
                return None
            self._q[:] = q
        setup.elapsed, setup.change, setup.active = elapsed, change, active
        setup.hold, setup.share, setup.rate_scale = hold, share, rate_scale
        return (setup.hold, setup.share) if self._call(self._reference) else None

    def _place_network(self, setup: _Feedforward, network: Network) -> None:
        hidden = len(network.hidden)
        setup.inputs, setup.hidden, setup.outputs = network.inputs, hidden, network.outputs
        place(
            setup,
            self.keep,
            first=np.ascontiguousarray(network.hidden),
            second=np.ascontiguousarray(network.output),
            inner=np.zeros(hidden),
        )


class _Feedforward(ctypes.Structure):
    """``feedforward_t`` of the C text."""

    _fields_ = [
        *members(ctypes.c_long, "inputs", "hidden", "outputs"),
        *members(ctypes.c_void_p, "first", "second", "inner"),
    ]


class _Pattern(ctypes.Structure):
    """``pattern_t`` of the C text."""

    _fields_ = [
        ("told", SetPoints),
        *members(ctypes.c_void_p, "advance", "oscillators", "state", "feedback", "terms"),
        *members(_Feedforward, "muscle", "goal"),
        *members(ctypes.c_long, "with_feedback", "with_goal"),
        *members(ctypes.c_void_p, "lengths", "tensions", "home", "most"),
        *members(ctypes.c_void_p, "poses", "poses_io", "transforms"),
        ("links", ctypes.c_long * 3),
        ("centres", ctypes.c_double * 9),
        ("goal_place", ctypes.c_double * 2),
        *members(ctypes.c_double, "goal_tension"),
        *members(ctypes.c_void_p, "wanted", "joint"),
        *members(ctypes.c_double, "elapsed", "change"),
        *members(ctypes.c_long, "active"),
        *members(ctypes.c_double, "hold", "share", "rate_scale"),
    ]
