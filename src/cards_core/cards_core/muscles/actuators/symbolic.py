"""CasADi expressions of the actuator models; see `cards_core.muscles.actuators.model`."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from cards_core.codegen.kernel import Kernel
from cards_core.muscles.actuators.arithmetic import Arithmetic, clip
from cards_core.muscles.actuators.groups import LARGEST_INPUT, LARGEST_VALUE, Group
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
) -> list[Kernel]:
    """Return the kernels of one step of all muscles, written out one by one.

    ``actuators``: tensions and advanced states. ``actuator_slopes``: also the slopes
    dT/dl + (1/dt) dT/dl'. ``springs``: stretch and energy of muscles that are springs.

    Args:
        groups: Groups of the muscles; together they have all of them.
        muscles: Number of muscles.
        states: Number of all inner states.
        dt: Step, [s].
    """
    lengths = ca.SX.sym("lengths", muscles)
    rates = ca.SX.sym("rates", muscles)
    kinds = ca.SX.sym("kinds", muscles)
    values = ca.SX.sym("values", muscles)
    state = ca.SX.sym("state", states)
    tensions = ca.SX.zeros(muscles)
    advanced = ca.SX.zeros(states)
    stretch, stored = ca.SX.zeros(muscles), ca.SX.zeros(muscles)
    for group in groups:
        for i, row in enumerate(group.rows.tolist()):
            places = group.places[:, i].tolist()
            tensions[row], new = group.model.step(
                CASADI,
                group.model.one(i),
                [state[place] for place in places],
                Inputs(
                    clip(CASADI, lengths[row], 0.0, LARGEST_INPUT),
                    clip(CASADI, rates[row], -LARGEST_INPUT, LARGEST_INPUT),
                    kinds[row],
                    clip(CASADI, values[row], -LARGEST_VALUE, LARGEST_VALUE),
                ),
            )
            for place, expression in zip(places, new, strict=True):
                advanced[place] = expression
            stretch[row], stored[row] = group.model.stretch(
                CASADI,
                group.model.one(i),
                [state[place] for place in places],
                clip(CASADI, lengths[row], 0.0, LARGEST_INPUT),
            )
    direction = ca.vertcat(ca.DM.ones(muscles), ca.DM.ones(muscles) / dt)
    slopes = ca.jtimes(tensions, ca.vertcat(lengths, rates), direction)
    inputs = (
        ("lengths", (muscles,), lengths),
        ("rates", (muscles,), rates),
        ("kinds", (muscles,), kinds),
        ("values", (muscles,), values),
        ("state", (states,), state),
    )
    results = (("tensions", (muscles,), tensions), ("advanced", (states,), advanced))
    return [
        Kernel("actuators", inputs, results),
        Kernel("actuator_slopes", inputs, (*results, ("slopes", (muscles,), slopes))),
        Kernel(
            "springs",
            (inputs[0], inputs[-1]),
            (("stretch", (muscles,), stretch), ("stored", (muscles,), stored)),
        ),
    ]
