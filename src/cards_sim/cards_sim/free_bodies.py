"""Free bodies that keep momentum and energy as they tumble.

MuJoCo's Euler step takes the gyroscopic torque at its start: the energy of a body that tumbles at
6 rad/s with steps of 1 ms grows by percents in a minute. Here each free body without joints below
it is turned by the midpoint rule. With the angular velocity w in axes of the body, constant within
a step, its inertia I about the centre of mass, and the step h,

    exp(h/2 w+) I w+ = exp(-h/2 w) I w

so that ``|I w|`` stays to rounding, in a direction that is off by ``h/2 |w|`` at most, and the
energy within a share of the order of ``(h w)^2``, without a drift: the rule is its own inverse
[Hairer2006]_. The centre of mass moves straight on. What else acts, muscles, weight, contacts,
MuJoCo adds as before: the rule is a generalised force for the time of its step.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.codegen.library import load_library
from cards_core.typing import Array

Integration: TypeAlias = Literal["Euler", "implicit", "implicitfast", "midpoint"]
"""MuJoCo's integrators, or ``midpoint``: Euler's with `FreeBodies`."""


class FreeBodies:
    """Turns the free bodies of a model by the midpoint rule.

    Args:
        model: The model; every other body moves as MuJoCo moves it.
        data: Its state.

    Attributes:
        count: Number of bodies that are turned.
        turn, restore: Addresses of the functions around ``mj_step2``.
        setup: Their argument.

    Raises:
        CompilationError: There is no C compiler.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        free = model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
        first = model.jnt_dofadr
        parents = set(model.dof_parentid.tolist())
        joints = [j for j in np.flatnonzero(free) if int(first[j]) + 5 not in parents]
        self.count = len(joints)
        mass, com, inertia = _inertias(model, [int(first[j]) for j in joints], joints)
        self._library = _library()
        setup = self._setup = _Setup(count=self.count, dt=model.opt.timestep)
        self._keep: dict[str, npt.NDArray[Any]] = {
            "q": data.qpos,
            "qd": data.qvel,
            "applied": data.qfrc_applied,
            "kept": np.zeros((self.count, 6)),
            "centres": np.zeros((self.count, 3)),
            "place_q": model.jnt_qposadr[joints].astype(np.int_),
            "place_v": first[joints].astype(np.int_),
            "mass": mass,
            "com": com,
            "inertia": inertia,
        }
        for name, array in self._keep.items():
            setattr(setup, name, array.ctypes.data)
        self.setup = ctypes.addressof(setup)
        self.turn, self.restore = (
            ctypes.cast(function, ctypes.c_void_p).value
            for function in (self._library.free_bodies_turn, self._library.free_bodies_restore)
        )

    def step2(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Do ``mj_step2`` with the forces of the rule."""
        self._library.free_bodies_turn(self.setup)
        try:
            mujoco.mj_step2(model, data)
        finally:
            self._library.free_bodies_restore(self.setup)


def _inertias(
    model: mujoco.MjModel, places: list[int], joints: list[Any]
) -> tuple[Array, Array, Array]:
    """Return mass, centre and inertia of free bodies, with all that is fixed to them."""
    data, count = mujoco.MjData(model), len(joints)
    for joint in joints:
        at = model.jnt_qposadr[joint]
        data.qpos[at + 3 : at + 7] = (1.0, 0.0, 0.0, 0.0)
    mujoco.mj_fwdPosition(model, data)
    unit, column = np.zeros(model.nv), np.zeros(model.nv)
    mass, com, inertia = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3, 3))
    for k, at in enumerate(places):
        block = np.zeros((6, 6))
        for i in range(6):
            unit[at + i] = 1.0
            mujoco.mj_mulM(model, data, column, unit)
            unit[at + i], block[:, i] = 0.0, column[at : at + 6]
        mass[k] = block[0, 0]
        moment = block[:3, 3:]  # minus m [c]x
        com[k] = np.array([moment[1, 2], moment[2, 0], moment[0, 1]]) / mass[k]
        about = com[k] @ com[k] * np.eye(3) - np.outer(com[k], com[k])
        inertia[k] = block[3:, 3:] - mass[k] * about
    return mass, com, inertia


class _Setup(ctypes.Structure):
    """``free_t`` of ``native/free_bodies.c``."""

    _fields_ = [
        ("count", ctypes.c_long),
        ("dt", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("q", "qd", "applied", "kept", "centres")),
        *((n, ctypes.c_void_p) for n in ("place_q", "place_v", "mass", "com", "inertia")),
    ]


@cache
def _library() -> ctypes.PyDLL:
    text = (Path(__file__).parent / "native" / "free_bodies.c").read_text(encoding="utf-8")
    loaded = load_library("the motion of free bodies", text)
    # PyDLL keeps the GIL: releasing and taking it costs more than a call
    library = ctypes.PyDLL(loaded._name)
    for function in (library.free_bodies_turn, library.free_bodies_restore):
        function.argtypes, function.restype = [ctypes.c_void_p], None
    return library
