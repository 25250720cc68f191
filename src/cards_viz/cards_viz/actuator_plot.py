"""Plot of the inner states of a run's actuators: activation, fibre length, temperature, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.actuator_states import by_state, split, title, unit
from cards_viz.plots import STYLE, labelled, line, thin


def actuator_states(time: Array, values: Array, names: Sequence[str]) -> Figure:
    """Plot the inner states of actuators: one chart for each state, a line for each muscle.

    Args:
        time: Shape (T,), [s].
        values: Shape (T, k), k > 0, in SI units and degC.
        names: Of the states, ``muscle/state``, length k.
    """
    time, values = thin(time, values)
    groups = by_state(names)
    muscles = list(dict.fromkeys(split(name)[0] for name in names))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.0, 1.0 + 2.2 * len(groups)), layout="constrained")
        figure.suptitle("Actuator states", x=0.01, ha="left", fontweight="bold")
        axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (state, columns) in zip(axes, groups.items(), strict=True):
            name, factor = unit(state)
            for muscle, column in columns.items():
                line(axis, time, factor * values[:, column], muscle, muscles.index(muscle))
            axis.set_ylabel(labelled(title(state), name))
        axes[-1].set_xlabel("time [s]")
        axes[-1].set_xlim(time[0], max(time[-1], time[0] + 1e-9))
        curves: dict[str, Any] = {}
        for axis in axes:
            curves |= {str(curve.get_label()): curve for curve in axis.get_lines()}
        figure.legend([curves[muscle] for muscle in muscles], muscles, loc="outside right upper")
        figure.align_ylabels(list(axes))
    return figure
