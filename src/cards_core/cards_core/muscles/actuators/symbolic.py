"""CasADi expressions of the actuator models; see `cards_core.muscles.actuators.model`."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import casadi as ca
import numpy as np

from cards_core.codegen.kernel import Repeated, RepeatedKernel
from cards_core.muscles.actuators.arithmetic import Arithmetic, clip
from cards_core.muscles.actuators.groups import INPUTS, LARGEST_INPUT, LARGEST_VALUE, Group
from cards_core.muscles.actuators.model import Inputs


class CasadiArithmetic:
    """The functions on CasADi SX expressions."""

    exp = staticmethod(ca.exp)
    log = staticmethod(ca.log)
    sqrt = staticmethod(ca.sqrt)
    tanh = staticmethod(ca.tanh)
    asinh = staticmethod(ca.asinh)
    minimum = staticmethod(ca.fmin)
    maximum = staticmethod(ca.fmax)
    where = staticmethod(ca.if_else)


CASADI: Arithmetic = CasadiArithmetic()


def actuator_kernels(
    groups: Sequence[Group], muscles: int, states: int, dt: float
) -> list[RepeatedKernel]:
    """Return the kernels of one step of all muscles, which loop over those of a group.

    ``actuators``: tensions and advanced states. ``actuator_slopes``: also the slopes
    dT/dl + (1/dt) dT/dl'. ``springs``: stretch and energy of muscles that are springs.

    Args:
        groups: Groups of the muscles; together they have all of them.
        muscles: Number of muscles.
        states: Number of all inner states.
        dt: Step, [s].
    """
    told = [(name, (muscles,)) for name in INPUTS]
    inner, pull = ("state", (states,)), ("tensions", (muscles,))
    shapes = {
        "actuators": ((*told, inner), (pull, ("advanced", (states,)))),
        "actuator_slopes": (
            (*told, inner),
            (pull, ("advanced", (states,)), ("slopes", (muscles,))),
        ),
        "springs": ((told[0], inner), (("stretch", (muscles,)), ("stored", (muscles,)))),
    }
    parts: dict[str, list[Repeated]] = {name: [] for name in shapes}
    for group in groups:
        length, rate, kind, value = (ca.SX.sym(name) for name in INPUTS)
        x = [ca.SX.sym(f"x{k}") for k in range(len(group.places))]
        table = {name: getattr(group.model.p, name) for name in vars(group.model.one(0))}
        # what is the same for all is a number: CasADi simplifies what it can with it
        own = {name: ca.SX.sym(name) for name, values in table.items() if np.ptp(values) != 0.0}
        p = SimpleNamespace(**{name: float(values[0]) for name, values in table.items()} | own)
        inside = clip(CASADI, length, 0.0, LARGEST_INPUT)
        given = Inputs(
            inside,
            clip(CASADI, rate, -LARGEST_INPUT, LARGEST_INPUT),
            kind,
            clip(CASADI, value, -LARGEST_VALUE, LARGEST_VALUE),
        )
        tension, advanced = group.model.step(CASADI, p, x, given)
        slope = ca.jtimes(tension, ca.vertcat(length, rate), ca.DM([1.0, 1.0 / dt]))
        stretch = group.model.stretch(CASADI, p, x, inside)
        rows, places = group.rows[:, None], group.places.T
        values = np.array([table[name] for name in own]).T.reshape(len(group.rows), len(own))
        constants = ca.vertcat(*own.values())
        every, stepped = [length, rate, kind, value, *x], [tension, *advanced]
        reads = np.hstack([rows + muscles * np.arange(4), 4 * muscles + places])
        writes = np.hstack([rows, muscles + places])
        sloped = np.hstack([writes, muscles + states + rows])
        measured = np.hstack([rows, muscles + places])
        for name, inputs, given_by, outputs, taken_by in (
            ("actuators", every, reads, stepped, writes),
            ("actuator_slopes", every, reads, [*stepped, slope], sloped),
            ("springs", [length, *x], measured, stretch, np.hstack([rows, muscles + rows])),
        ):
            one = ca.vertcat(*inputs), constants, ca.vertcat(*outputs)
            parts[name].append(Repeated(*one, given_by, values, taken_by))
    return [RepeatedKernel(name, *shapes[name], tuple(found)) for name, found in parts.items()]
