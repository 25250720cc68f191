"""Several steps of a robot that is alone in its world, in one native call.

What Python does between the kernels of a step takes longer than most of them. Where commands stay
as they are for some steps, as between the states that a controller sees, a C program calls the
same kernels in the same order with the same numbers: the trajectory is the same to the last bit.
It takes no step in which something else is to be done: pushes, decaying commands, gains on their
way, springs in winders, paths without a closed form, friction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.codegen.library import load_library
from cards_core.codegen.model import BoundKernel
from cards_core.errors import CompilationError
from cards_core.muscles.actuators.groups import LARGEST_INPUT
from cards_core.muscles.command import FORCE, IMPEDANCE
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.muscles.implicit import ImplicitTensions
from cards_core.muscles.system import MuscleSystem
from cards_core.robot.model import Robot, Tree
from cards_core.typing import Array
from cards_sim.world_simulator import SeveralSteps, WorldSimulator


class Simulated(Protocol):
    """What is needed of a robot in its world; see `cards_sim.simulator.Simulator`.

    Attributes:
        robot, tree, muscles, world, model, data: As there.
        views: Arrays in MuJoCo's memory and of the robot, by the names of ``steps.c``; ``applied``
            is None where links and bodies are in different orders.
    """

    robot: Robot
    tree: Tree
    muscles: MuscleSystem
    world: WorldSimulator
    model: mujoco.MjModel
    data: mujoco.MjData
    views: dict[str, Any]

    def begun_natively(self, begun: int) -> None:
        """Take over what acted, after the program began some steps."""

    @property
    def told(self) -> tuple[Array, npt.NDArray[np.intp] | None, ImpedanceLaw | None]:
        """Values, kinds and law."""


class NativeSteps:
    """Calls the program for a robot.

    Args:
        simulator: The robot in its world.

    Attributes:
        tensions: Of the last step that was begun, shape (m,), [N].
        last_tensions: Of the step before.

    Raises:
        CompilationError: There is no C compiler, or MuJoCo's library cannot be called.
    """

    def __init__(self, simulator: Simulated) -> None:
        self._simulator = simulator
        self._library = _library()
        physics = _mujoco()
        world, muscles = simulator.world, simulator.muscles
        engine, bank = muscles.engine, muscles.actuators
        m = len(simulator.robot.muscles)
        setup = self._setup = _Steps()
        self._keep: list[Any] = []

        def place(name: str, array: npt.NDArray[Any]) -> None:
            self._keep.append(array)
            setattr(setup, name, array.ctypes.data)

        def kernel(name: str, bound: BoundKernel | None, slots: tuple[str, ...]) -> None:
            assert bound is not None
            self._keep.append(bound)
            setattr(setup, name, _Call(bound.address, bound.buffer.ctypes.data))
            for slot in slots:
                setattr(setup, f"{name}_{slot}", bound.place(slot))

        data = simulator.data
        setup.links, setup.m = len(simulator.robot.links), m
        setup.nq, setup.nv = simulator.tree.nq, simulator.tree.nv
        setup.states, setup.published = len(bank.state), len(bank.state_names)
        setup.coordinates, setup.velocities = world.model.nq, world.model.nv
        counters = world.warnings
        setup.warnings, setup.stride = len(counters), counters.strides[0]
        setup.step1, setup.step2 = physics
        free = world.free_bodies
        if free is not None:
            setup.turn, setup.restore, setup.free_bodies = free.turn, free.restore, free.setup
        setup.model, setup.data = simulator.model._address, data._address
        place("warned", counters)
        for name, array in (("all_q", data.qpos), ("all_qd", data.qvel)):
            place(name, array)
        place("last_q", world.last[0])
        place("last_qd", world.last[1])
        views = simulator.views
        for name in ("q", "qd", "sensed", "twists", "poses", "applied", "last_actuators"):
            place(name, views[name])
        self.tensions: Array = np.zeros(m)
        place("tensions", self.tensions)
        self.last_tensions: Array = np.zeros(m)
        place("last_tensions", self.last_tensions)
        kernel("motion", engine.motion_kernel, ("poses", "twists", "lengths", "rates"))
        kernel("pull", engine.pull_kernel, ("poses", "twists", "tensions", "wrenches"))
        for name in ("told", "lengths", "rates"):
            place(name, np.zeros(m))
        place("told_kinds", np.zeros(m, dtype=np.int_))
        place("law_kinds", bank.impedance_kinds.astype(np.int_))
        place("winches", bank.winches.astype(np.int_))
        setup.has_bank = int(not bank.ideal)
        if not bank.ideal:
            slots = ("lengths", "rates", "kinds", "values", "state", "advanced", "tensions")
            kernel("bank", bank.step_kernel, slots)
        setup.largest_length = LARGEST_INPUT
        implicit = muscles.implicit
        setup.has_implicit = int(implicit is not None)
        if implicit is not None:
            self._bind_implicit(implicit, place, kernel)
        cables = engine.contacts
        setup.touching = 0 if cables is None else len(cables.cables)
        if cables is not None:
            place("touched", engine.touching.astype(np.int_))
            setup.touch, setup.drag, setup.cables = cables.program
            for name, array in cables.buffers.items():
                place(name, array)
            if muscles.feeding is not None and not bank.ideal:
                place("feeding", muscles.feeding.astype(np.int_))
        setup.dt = bank.dt
        setup.force, setup.impedance = FORCE, IMPEDANCE
        setup.near = len(views["near_rows"])
        for name in ("near_rows", "near_bodies"):
            place(name, views[name].astype(np.int_))
        for name in ("all_sensed", "all_twists", "all_applied"):
            place(name, views[name])
        place("near_poses", np.tile(np.eye(4), (setup.near, 1, 1)))
        self._kinds = np.zeros(m, dtype=np.int_)
        place("kinds", self._kinds)
        self._values: Array = np.zeros(m)
        place("values", self._values)
        self._law: dict[str, Array] = {}
        self._active = np.zeros(m, dtype=np.uint8)
        place("active", self._active)

    def _bind_implicit(self, implicit: ImplicitTensions, place: Any, kernel: Any) -> None:
        setup, native = self._setup, implicit.native
        assert native is not None
        kernel("state", native.state, ("q", "qd"))
        setup.solve = ctypes.cast(native.solve, ctypes.c_void_p).value
        self._keep.append(native)
        setup.setup = ctypes.addressof(native.setup)
        setup.bent = int(native.bent)
        for name, array in native.arrays.items():
            place(name, array)
        slopes = self._simulator.muscles.actuators.slope_kernel
        setup.has_slopes = int(slopes is not None)
        if slopes is not None:
            self._keep.append(slopes)
            setup.slopes_io = slopes.buffer.ctypes.data
            for slot in ("kinds", "values", "state", "tensions", "advanced"):
                setattr(setup, f"slopes_{slot}", slopes.place(slot))

    @classmethod
    def suits(cls, simulator: Simulated) -> bool:
        """Whether there is a native form of everything that a step of this robot does."""
        muscles, engine = simulator.muscles, simulator.muscles.engine
        bank, implicit = muscles.actuators, muscles.implicit
        layout = engine.layout
        if simulator.views["applied"] is None or not len(simulator.robot.muscles):
            return False
        if len(layout.geodesics) or layout.friction or bank.winders:
            return False
        kernels = [engine.motion_kernel, engine.pull_kernel]
        if not bank.ideal:
            kernels.append(bank.step_kernel)
        if any(kernel is None or not kernel.address for kernel in kernels):
            return False
        return implicit is None or (implicit.native is not None and not bank.ideal)

    def advance(self, count: int, rows: Array | None) -> int:
        """Begin up to ``count`` steps with what the robot is told; see ``native/steps.c``.

        Args:
            count: At least 1.
            rows: Takes what all steps but the last led to, shape (count - 1, ...); None: nobody
                wants to know.

        Returns:
            How many were begun.
        """
        self.prepare(rows)
        begun = int(self._library.steps_advance(ctypes.byref(self._setup), count))
        self.close(begun)
        return begun

    @property
    def address(self) -> int:
        """Of what the program works on, between `prepare` and `close`."""
        return ctypes.addressof(self._setup)

    def prepare(self, rows: Array | None = None, *, whole: bool = False) -> None:
        """Tell the program what the robot is told; see `advance`.

        Args:
            rows: As there.
            whole: Whether the last step is done to its end, past the contact forces in it.
        """
        setup, simulator = self._setup, self._simulator
        values, kinds, law = simulator.told
        m = self._values.size
        self._values[:] = values[:m]
        self._kinds[:] = 0 if kinds is None else kinds
        setup.has_law = int(law is not None and law.any_active and kinds is not None)
        if setup.has_law:
            assert law is not None
            self._active[:] = law.active
            for name, array in law.arrays.items():
                if self._law.get(name) is not array:  # the address of an array is slow to get
                    self._law[name] = array
                    setattr(setup, name, array.ctypes.data)
        setup.rows = None if rows is None else rows.ctypes.data
        setup.straight, setup.whole = 0, int(whole)

    def close(self, begun: int) -> None:
        """Take over what the program did to the robot, after it began some steps."""
        setup, simulator = self._setup, self._simulator
        implicit = simulator.muscles.implicit
        if implicit is not None:
            implicit.straight += setup.straight
        if setup.touching:
            simulator.muscles.engine.contacts_are_solved()
        simulator.begun_natively(begun)


def advance_all(
    robots: Sequence[SeveralSteps], count: int, pool: ThreadPoolExecutor | None, threads: int
) -> npt.NDArray[np.int_]:
    """Begin steps of robots of different worlds, each prepared, side by side.

    A thread that is done with a robot takes the next one that nobody has.

    Args:
        robots: Prepared by `NativeSteps.prepare`.
        count: Of steps, at least 1.
        pool: Shares the work; None: this thread does it.
        threads: Of the pool.

    Returns:
        How many steps each began; `NativeSteps.close` takes it.
    """
    begun = np.zeros(len(robots), dtype=np.int_)
    if not robots:
        return begun
    addresses = np.array([robot.address for robot in robots], dtype=np.uintp)
    advance = _library().steps_advance_all
    following = np.zeros(1, dtype=np.int_)
    work = (addresses.ctypes.data, len(robots), following.ctypes.data, count, begun.ctypes.data)
    if pool is None:
        advance(*work)
    else:
        list(pool.map(lambda _: advance(*work), range(threads)))
    return begun


class _Call(ctypes.Structure):
    _fields_ = [("call", ctypes.c_void_p), ("io", ctypes.c_void_p)]


def _fields(kind: Any, *names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names]


class _Steps(ctypes.Structure):
    """``steps_t`` of ``native/steps.c``."""

    _fields_ = [
        *_fields(ctypes.c_long, "links", "m", "nq", "nv", "states", "published", "touching"),
        *_fields(ctypes.c_long, "coordinates", "velocities", "warnings", "stride"),
        *_fields(ctypes.c_long, "has_law", "has_bank", "has_implicit", "whole"),
        *_fields(ctypes.c_void_p, "step1", "step2", "turn", "restore", "free_bodies"),
        *_fields(ctypes.c_void_p, "model", "data", "warned"),
        *_fields(ctypes.c_void_p, "all_q", "all_qd", "last_q", "last_qd", "q", "qd", "sensed"),
        *_fields(ctypes.c_void_p, "twists", "poses", "applied", "tensions", "last_tensions"),
        *_fields(ctypes.c_void_p, "last_actuators"),
        *_fields(_Call, "motion", "pull"),
        *_fields(ctypes.c_long, *(f"motion_{n}" for n in ("poses", "twists", "lengths", "rates"))),
        *_fields(ctypes.c_long, *(f"pull_{n}" for n in ("poses", "twists", "tensions"))),
        *_fields(ctypes.c_long, "pull_wrenches"),
        *_fields(ctypes.c_void_p, "active", "kinds", "law_kinds", "values", "stiffness"),
        *_fields(ctypes.c_void_p, "damping", "floor", "rest_length", "rest_rate", "least", "most"),
        *_fields(ctypes.c_void_p, "winches", "told", "told_kinds"),
        ("bank", _Call),
        *_fields(ctypes.c_long, *(f"bank_{n}" for n in ("lengths", "rates", "kinds", "values"))),
        *_fields(ctypes.c_long, "bank_state", "bank_advanced", "bank_tensions"),
        ("largest_length", ctypes.c_double),
        ("state", _Call),
        *_fields(ctypes.c_long, "state_q", "state_qd", "bent"),
        *_fields(ctypes.c_void_p, "solve", "setup", "implicit_lengths", "implicit_rates"),
        *_fields(ctypes.c_void_p, "slip", "last", "pause", "slopes_io"),
        *_fields(ctypes.c_long, *(f"slopes_{n}" for n in ("kinds", "values", "state"))),
        *_fields(ctypes.c_long, "slopes_tensions", "slopes_advanced", "has_slopes", "straight"),
        *_fields(ctypes.c_void_p, "touch", "drag", "cables", "touched", "link_pose"),
        *_fields(ctypes.c_void_p, "link_twists", "cable_tensions", "cable_wrenches"),
        *_fields(ctypes.c_void_p, "cable_lengths", "cable_rates", "feeding", "cable_feeds"),
        ("cable_rests", ctypes.c_void_p),
        ("dt", ctypes.c_double),
        *_fields(ctypes.c_long, "force", "impedance"),
        ("near", ctypes.c_long),
        *_fields(ctypes.c_void_p, "near_rows", "near_bodies", "all_sensed", "all_twists"),
        *_fields(ctypes.c_void_p, "near_poses", "all_applied"),
        *_fields(ctypes.c_void_p, "rows", "lengths", "rates"),
    ]


@cache
def _library() -> ctypes.CDLL:
    text = (Path(__file__).parent / "native" / "steps.c").read_text(encoding="utf-8")
    library = load_library("the steps of a simulated robot", text)
    library.steps_advance.argtypes = [ctypes.POINTER(_Steps), ctypes.c_long]
    library.steps_advance.restype = ctypes.c_long
    library.steps_advance_all.argtypes = [
        *(ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p),
    ]
    library.steps_advance_all.restype = None
    return library


@cache
def _mujoco() -> tuple[int, int]:
    """Return the addresses of ``mj_step1`` and ``mj_step2``.

    Raises:
        CompilationError: MuJoCo's own library is not where its package has it.
    """
    folder = Path(mujoco.__file__).parent
    files = sorted(folder.glob("libmujoco.so.*")) or sorted(folder.glob("libmujoco*.dylib"))
    if len(files) != 1:
        raise CompilationError(f"{len(files)} libraries of MuJoCo in {folder} (expected: one)")
    # loaded already: this is the same one
    library = ctypes.CDLL(str(files[0]))
    functions = (library.mj_step1, library.mj_step2)
    one, two = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return one, two
