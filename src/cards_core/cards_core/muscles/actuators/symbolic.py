"""CasADi expressions of the actuator models; see `cards_core.muscles.actuators.model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from cards_core.codegen.kernel import Kernel
from cards_core.muscles.actuators.arithmetic import Arithmetic, clip
from cards_core.muscles.actuators.bank import LARGEST_INPUT, LARGEST_VALUE
from cards_core.muscles.actuators.model import Inputs

if TYPE_CHECKING:
    from cards_core.muscles.actuators.bank import Group


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


def actuator_kernel(groups: Sequence[Group], muscles: int, states: int) -> Kernel:
    """Return the kernel ``actuators``: one step of all muscles, written out one by one."""
    lengths = ca.SX.sym("lengths", muscles)
    rates = ca.SX.sym("rates", muscles)
    kinds = ca.SX.sym("kinds", muscles)
    values = ca.SX.sym("values", muscles)
    state = ca.SX.sym("state", states)
    tensions = ca.SX.zeros(muscles)
    advanced = ca.SX.zeros(states)
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
    return Kernel(
        "actuators",
        (
            ("lengths", (muscles,), lengths),
            ("rates", (muscles,), rates),
            ("kinds", (muscles,), kinds),
            ("values", (muscles,), values),
            ("state", (states,), state),
        ),
        (("tensions", (muscles,), tensions), ("advanced", (states,), advanced)),
    )
