"""Many robots of joints and ideal cables, stepped side by side by one compiled kernel.

The equations are those of `cards_core.dynamics.symbolic.step`: the impedance law of the muscles,
the motion of the joints, soft joint limits; nothing touches anything. Four robots at a time go
through one set of vector instructions, and a block of robots takes all its steps before the next
block begins, so that its numbers stay in the cache. Blocks are the same for any number of threads,
and so are the results, to the last bit.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_count, finite_number
from cards_core.codegen.kernel import Kernel
from cards_core.codegen.library import load_library
from cards_core.codegen.model import Variant
from cards_core.codegen.native import load_or_build
from cards_core.dynamics.differences import geodesic_muscles
from cards_core.errors import DescriptionError
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.muscles.implicit import joint_damping
from cards_core.paths.layout import fingerprint, tree_layout
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.typing import Array

BLOCK = 64
"""Robots that take all their steps together: whole vectors, and few enough for the cache."""

LIMIT_TIME = 0.005
"""Time constant of the joint limits, [s]; at least two steps. That of the embedded simulator."""

LARGEST = 1e10
"""Coordinates and velocities beyond which a robot counts as diverged: MuJoCo's bound."""

SET_POINTS = ("tension", "rest_length", "rest_rate")
GAINS = ("stiffness", "damping", "floor")


def obstacle_to_batches(robot: Robot) -> str:
    """Return why a robot cannot be stepped by this module; empty if it can."""
    for muscle in robot.muscles:
        actuator = muscle.actuator
        if not isinstance(actuator, Cable) or actuator.stiffness is not None:
            return f"muscle '{muscle.name}' is no ideal cable"
        if actuator.motor is not None or actuator.thermal is not None:
            return f"muscle '{muscle.name}' has a motor"
        if muscle.control.tension_rate is not None:
            return f"the tension of muscle '{muscle.name}' has a largest rate"
        if muscle.contact:
            return f"muscle '{muscle.name}' touches what is in its way"
    if not robot.muscles:
        return "there are no muscles"
    if tree_layout(robot.tree).friction:
        return "muscles rub over their paths"
    if len(geodesic_muscles(robot.tree)):
        return "a muscle wraps over a surface without a closed form"
    if motors_of(robot.tree):
        return "joints have motors"
    if any(axis.friction for joint in robot.joints for axis in joint.axes):
        return "joints have dry friction"
    return ""


class BatchSteps:
    """Robots side by side, each with its own state, set-points, gains and errors.

    Args:
        robot: The description they share.
        count: Number of robots, n.
        dt: Time step, [s].
        threads: How many share the work; as many as there are processors without it.

    Attributes:
        robot, dt, count, threads: As given.
        inputs: What the kernel reads, by name, shape (n, ...): ``q``, ``qd``; the set-points of
            the law ``tension`` [N], ``rest_length`` [m], ``rest_rate`` [m/s]; its numbers
            ``stiffness``, ``damping``, ``floor``, ``least``, ``most``; ``arm_factor``,
            ``mass_factor``, ``dt``. Views, to be written into.
        lengths, rates, tensions: At the start of the last step, shape (n, m).
        alive: 0 where a robot diverged, shape (n,).
        taken: Steps of each robot, shape (n,).

    Raises:
        DescriptionError: The robot has something that batches do not support; the message
            says what.
        CompilationError: There is no C compiler, and the code is not in the cache.
        CardsError: An argument out of its range.
    """

    def __init__(
        self, robot: Robot, count: int, *, dt: float = 1e-3, threads: int | None = None
    ) -> None:
        check_count(count, "n")
        self.dt = finite_number(dt, "dt", at_least=1e-6, at_most=1.0)
        if reason := obstacle_to_batches(robot):
            raise DescriptionError(
                reason, source=robot.name, expected="joints, and ideal cables in free air"
            )
        self.threads = (os.cpu_count() or 1) if threads is None else threads
        check_count(self.threads, "threads")
        self.robot, self.count = robot, count
        tree = robot.tree
        damping, limit_time = joint_damping(tree), max(LIMIT_TIME, 2.0 * dt)
        content = b"batch steps:" + damping.tobytes() + np.float64(limit_time).tobytes()

        def kernels() -> list[Kernel]:
            # casadi takes 0.3 s to import and is not needed when the code is cached
            from cards_core.dynamics.symbolic.step import step_kernel

            return [step_kernel(robot, damping, limit_time)]

        self._model = load_or_build(fingerprint(tree) + content, kernels, Variant(batch=True))
        self._layout = layout = self._model.layouts["step"]
        self._address = self._model.address("step")
        self._rows: Array = np.zeros((count, layout.input_size))
        self._out: Array = np.zeros((count, layout.size - layout.input_size))
        self.inputs: Mapping[str, Array] = {
            slot.name: self._rows[:, slot.start : slot.stop] for slot in layout.inputs
        }
        first = layout.input_size
        out = {s.name: self._out[:, s.start - first : s.stop - first] for s in layout.outputs}
        self.lengths, self.rates, self.tensions = out["lengths"], out["rates"], out["tensions"]
        self.alive: npt.NDArray[np.uint8] = np.ones(count, dtype=np.uint8)
        self.taken: npt.NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        law = ImpedanceLaw(robot.muscles)
        self.gains = {
            "stiffness": law.stiffness,
            "damping": law.damping,
            "floor": law.tension_floor,
        }
        inputs = self.inputs
        inputs["q"][:] = tree.home
        inputs["least"][:] = inputs["tension"][:] = [m.tension_min for m in robot.muscles]
        inputs["most"][:] = [m.tension_max for m in robot.muscles]
        inputs["arm_factor"][:] = inputs["mass_factor"][:] = 1.0
        inputs["dt"][:] = self.dt
        self._pool: ThreadPoolExecutor | None = None
        self.look()

    def advance(self, steps: int = 1) -> None:
        """Take some steps with the inputs as they are.

        Args:
            steps: >= 1.
        """
        library, layout = _library(), self._layout
        tree = self.robot.tree

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, BLOCK):
                part = slice(first, min(first + BLOCK, stop))
                rows, out = self._rows[part], self._out[part]
                library.batch_advance(
                    self._address,
                    rows.ctypes.data,
                    out.ctypes.data,
                    len(rows),
                    layout.input_size,
                    layout.size - layout.input_size,
                    tree.nq + tree.nv,
                    steps,
                    LARGEST,
                    self.alive[part].ctypes.data,
                    self.taken[part].ctypes.data,
                )

        blocks = -(-self.count // BLOCK)
        share = -(-blocks // self.threads) * BLOCK
        starts = range(0, self.count, share)
        if len(starts) == 1:
            work(0, self.count)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        list(self._pool.map(lambda s: work(s, min(s + share, self.count)), starts))

    def look(self) -> dict[str, Any]:
        """Return ``lengths``, ``rates`` and the law's ``tensions`` at the present states."""
        out = self._model.rows("step", self._rows, self.threads)
        first = self._layout.input_size
        return {
            slot.name: out[:, slot.start - first : slot.stop - first]
            for slot in self._layout.outputs[2:]
        }


@cache
def _library() -> ctypes.CDLL:
    text = (Path(__file__).parent / "native" / "batch.c").read_text(encoding="utf-8")
    library = load_library("steps of many robots", text)
    p, n = ctypes.c_void_p, ctypes.c_long
    library.batch_advance.argtypes = [
        *(p, p, p, ctypes.c_longlong, n, n, n, n, ctypes.c_double, p, p)
    ]
    library.batch_advance.restype = None
    return library
