"""Plots of a run: tracking, path, tensions, muscle lengths, actuators, loop time, latency.

Figures are made without pyplot's global state, so that they work in any thread and leave nothing
behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from cards_core.typing import Array
from cards_viz.colors import ACTUAL, DESIRED, ERROR, LINE_COLORS, nice_ceiling
from cards_viz.labels import Labels, by_state, split_state, state_title, state_unit
from cards_viz.plots.drawing import STYLE, TENSION_COLORMAP, labelled, styled_figure, thin


def tracking(
    time: Array,
    desired: Array,
    actual: Array,
    error: Array,
    *,
    labels: Labels,
    title: str,
) -> Figure:
    """Plot desired and actual value of each coordinate (left) and its error (right).

    Args:
        time: Shape (K,), [s].
        desired: Shape (K, d).
        actual: Shape (K, d).
        error: Shape (K, e); e < d where coordinates are quaternions.
        labels: Names and units of coordinates and errors.
        title: Of the figure.
    """
    largest = np.abs(error).max(axis=0, initial=0.0, where=np.isfinite(error))
    time, desired, actual, error = thin(time, desired, actual, error)
    rows = max(desired.shape[1], error.shape[1], 1)
    with styled_figure(10.0, 1.0 + 1.65 * rows, title) as figure:
        axes = figure.subplots(rows, 2, sharex=True, squeeze=False)
        for i in range(desired.shape[1]):
            axes[i, 0].plot(time, desired[:, i], color=DESIRED, lw=3.0, label="desired")
            axes[i, 0].plot(time, actual[:, i], color=ACTUAL, label="actual")
            axes[i, 0].set_ylabel(labelled(labels.names[i], labels.units[i]))
        aligned = error.shape[1] == desired.shape[1]
        _level_ranges([axes[i, 0] for i in range(desired.shape[1])], labels.units)
        for i in range(error.shape[1]):
            factor, unit = _small_unit(largest[[i]], labels.error_units[i])
            name = "error" if aligned else f"error {labels.error_names[i]}"
            _error_axes(axes[i, 1], time, factor * error[:, i], labelled(name, unit))
            if np.isfinite(error[:, i]).any():
                peak = f"max |e| = {factor * largest[i]:.3g} {unit}"
                axes[i, 1].text(
                    0.99, 0.97, peak, transform=axes[i, 1].transAxes, ha="right", va="top",
                    color="#444444", fontsize=8.0,
                )  # fmt: skip
        for axis in [*axes[desired.shape[1] :, 0], *axes[error.shape[1] :, 1]]:
            axis.set_visible(False)
        for column in (0, 1):
            axes[-1, column].set_xlabel("time [s]")
            axes[-1, column].set_xlim(time[0], max(time[-1], time[0] + 1e-9))
        handles, texts = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper right", ncols=2)
        figure.align_ylabels()
    return figure


def _small_unit(values: Array, unit: str) -> tuple[float, str]:
    """Return the factor and name of the unit that suits small values in ``m`` or ``rad``."""
    if unit not in ("m", "rad"):
        return 1.0, unit
    finite = np.abs(values[np.isfinite(values)])
    tiny = finite.size and finite.max() < 2e-5
    return (1e6, f"µ{unit}") if tiny else (1e3, f"m{unit}")


def _level_ranges(axes: Sequence[Axes], units: Sequence[str]) -> None:
    """Widen the ranges of coordinates that hardly move, so that they do not look restless.

    The range of an axis is at least a tenth of the largest one of the same unit.
    """
    for unit in set(units):
        group = [axis for axis, name in zip(axes, units, strict=True) if name == unit]
        least = 0.1 * max(float(np.ptp(axis.get_ylim())) for axis in group)
        for axis in group:
            low, high = axis.get_ylim()
            missing = 0.5 * max(least - (high - low), 0.0)
            axis.set_ylim(low - missing, high + missing)


def _error_axes(axis: Axes, time: Array, values: Array, label: str) -> None:
    axis.axhline(0.0, color="#b0b0b0", lw=0.8)
    axis.plot(time, values, color=ERROR)
    axis.set_ylabel(label)
    axis.margins(y=0.22)


def path(desired: Array, actual: Array, names: Sequence[str], title: str) -> Figure:
    """Plot an operational path, desired and actual, the latter coloured by its error.

    A path in a plane of two axes is drawn in that plane, any other in three views.

    Args:
        desired: Positions, shape (K, 2) or (K, 3), [m].
        actual: Likewise.
        names: Names of the axes.
        title: Of the figure.
    """
    _, desired, actual = thin(np.arange(len(desired), dtype=float), desired, actual)
    error = np.linalg.norm(desired - actual, axis=1)
    factor, unit = _small_unit(error, "m")
    error = factor * error
    views = _views(desired)
    with mpl.rc_context(STYLE):
        width = 6.4 if len(views) == 1 else 4.1 * len(views)
        figure = Figure(figsize=(width, 5.6 if len(views) == 1 else 4.8), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        axes = figure.subplots(1, len(views), squeeze=False)[0]
        for view, axis in zip(views, axes, strict=True):
            a, b = view
            axis.plot(desired[:, a], desired[:, b], color="#c9c9c9", lw=5.0, label="desired")
            points = np.column_stack([actual[:, a], actual[:, b]])
            segments = np.stack([points[:-1], points[1:]], axis=1)
            lines = LineCollection(list(segments), cmap=TENSION_COLORMAP, linewidths=1.6)
            lines.set_array(0.5 * (error[:-1] + error[1:]))
            top = np.nanmax(error) if np.isfinite(error).any() else 1.0
            lines.set_clim(0.0, max(float(top), 1e-6))
            axis.add_collection(lines)
            axis.plot(*points[0], "o", color="#222222", ms=5.0, label="start", zorder=5)
            axis.set_aspect("equal", adjustable="datalim")
            axis.set_xlabel(f"{names[a]} [m]")
            axis.set_ylabel(f"{names[b]} [m]")
            axis.autoscale_view()
        handles, texts = axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper right", ncols=2)
        figure.colorbar(
            lines, ax=list(axes), label=f"distance actual to desired [{unit}]", shrink=0.8
        )
    return figure


def _views(positions: Array) -> list[tuple[int, int]]:
    """Return the pairs of axes to draw: one if the path lies in their plane."""
    d = positions.shape[1]
    if d == 2:
        return [(0, 1)]
    span = np.ptp(np.nan_to_num(positions), axis=0)
    flat = int(np.argmin(span))
    if span[flat] <= 1e-3 * max(float(span.max()), 1e-9):
        a, b = (k for k in range(3) if k != flat)
        return [(a, b)]
    return [(0, 1), (0, 2), (1, 2)]


MOST_NAMES = 32
"""So many names at most stand beside a chart."""


def tensions(
    time: Array, values: Array, names: Sequence[str], lower: Array, upper: Array
) -> Figure:
    """Plot tensions over time as lines with their limits, and as a map by muscle.

    Args:
        time: Shape (T,), [s].
        values: Shape (T, m), [N].
        names: Of the muscles.
        lower: Lower limits, shape (m,), [N].
        upper: Upper limits, shape (m,), [N]; infinite where there is none.
    """
    time, values = thin(time, values)
    m = values.shape[1]
    finite = values[np.isfinite(values)]
    top = nice_ceiling(float(finite.max())) if finite.size else 1.0
    with mpl.rc_context(STYLE):
        height = 3.3 + max(1.2, 0.22 * m)
        figure = Figure(figsize=(10.0, 1.0 + height), layout="constrained")
        figure.suptitle("Muscle tensions", x=0.01, ha="left", fontweight="bold")
        over, under = figure.subplots(2, 1, sharex=True, height_ratios=[3.3, max(1.2, 0.22 * m)])
        _lines(over, time, values, names)
        _limits(over, lower, upper, top)
        over.set_ylabel("tension [N]")
        if m <= MOST_NAMES:  # beside more there is no room for the lines; the map names them
            over.legend(
                loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
                ncols=1 + (m - 1) // 16,
            )  # fmt: skip
        edges = np.append(time, 2 * time[-1] - time[-2]) if len(time) > 1 else [time[0], time[0]]
        if len(time) > 1:
            image = under.pcolormesh(
                edges, np.arange(m + 1), values.T, cmap=TENSION_COLORMAP, vmin=0.0, vmax=top,
                rasterized=True,
            )  # fmt: skip
            beside = under.inset_axes((1.012, 0.0, 0.012, 1.0))
            figure.colorbar(image, cax=beside, label="tension [N]")
        under.grid(visible=False)
        under.set_yticks(np.arange(m) + 0.5, names, fontsize=8.0 if m <= 20 else 6.0)
        under.invert_yaxis()
        under.set_xlabel("time [s]")
        over.set_xlim(time[0], max(time[-1], time[0] + 1e-9))
    return figure


def efforts(time: Array, values: Array, names: Sequence[str], limits: Array) -> Figure:
    """Plot the efforts of joint motors over time, a chart for each motor, with its limits.

    More than `MOST_NAMES` motors are a map instead, each over its limit or, without one, its peak.

    Args:
        time: Shape (T,), [s].
        values: Shape (T, k), k > 0, [Nm] or [N].
        names: Of the motors.
        limits: Maximum size of each, shape (k,), [Nm] or [N]; infinite where there is none.
    """
    time, values = thin(time, values)
    if len(names) > MOST_NAMES:
        return _effort_map(time, values, names, limits)
    with styled_figure(10.0, 1.0 + 1.6 * len(names), "Efforts of joint motors") as figure:
        axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for i, (axis, name, limit) in enumerate(zip(axes, names, limits, strict=True)):
            _line(axis, time, values[:, i], name, i)
            # a limit far away would hide what there is to see
            if limit <= 5.0 * np.abs(values[:, i]).max(initial=0.0):
                for side in (-limit, limit):
                    axis.axhline(side, color="#222222", lw=0.9, ls=(0, (5, 3)), zorder=3)
            axis.set_ylabel("[Nm or N]")
            axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        axes[-1].set_xlabel("time [s]")
        axes[-1].set_xlim(time[0], max(time[-1], time[0] + 1e-9))
        figure.align_ylabels(list(axes))
    return figure


def _effort_map(time: Array, values: Array, names: Sequence[str], limits: Array) -> Figure:
    """Return the map of `efforts`."""
    peaks = np.abs(values).max(axis=0, initial=0.0)
    whole = np.where(np.isfinite(limits) & (limits > 0.0), limits, np.maximum(peaks, 1e-12))
    k = len(names)
    with styled_figure(10.0, 1.5 + 0.14 * k, "Efforts of joint motors") as figure:
        axis = figure.subplots()
        if len(time) > 1:
            image = axis.pcolormesh(
                np.append(time, 2 * time[-1] - time[-2]), np.arange(k + 1), (values / whole).T,
                cmap="RdBu_r", vmin=-1.0, vmax=1.0, rasterized=True,
            )  # fmt: skip
            label = "effort over the motor's limit, or its peak where it has none"
            figure.colorbar(image, ax=axis, label=label, aspect=60, pad=0.01)
        axis.grid(visible=False)
        axis.set_yticks(np.arange(k) + 0.5, names, fontsize=6.0)
        axis.invert_yaxis()
        axis.set_xlabel("time [s]")
        axis.set_xlim(time[0], max(time[-1], time[0] + 1e-9))
    return figure


def _limits(axis: Axes, lower: Array, upper: Array, top: float) -> None:
    """Draw the limits that lie in sight, name those that do not."""
    notes = []
    near = upper[np.isfinite(upper) & (upper <= 2.5 * top)]
    # worth some empty space: how far it is to the limit
    top = max([top, *near])
    for label, limits in (("min", lower), ("max", upper)):
        for limit in np.unique(limits[np.isfinite(limits)]):
            if limit <= 1.02 * top:
                axis.axhline(limit, color="#222222", lw=0.9, ls=(0, (5, 3)), zorder=3)
                axis.annotate(
                    f"{label} {limit:g} N", (1.0, limit), xycoords=("axes fraction", "data"),
                    xytext=(-3, 2), textcoords="offset points", ha="right", va="bottom",
                    fontsize=7.5, color="#222222", zorder=4,
                    bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0},
                )  # fmt: skip
            else:
                notes.append(f"{label} {limit:g} N")
    axis.set_ylim(min(0.0, axis.get_ylim()[0]), 1.06 * top)
    if notes:
        axis.set_title(f"limits off scale: {', '.join(notes)}", loc="right", fontsize=7.5,
                       fontweight="normal", color="#666666")  # fmt: skip


def muscle_lengths(time: Array, values: Array, names: Sequence[str]) -> Figure:
    """Plot muscle lengths, shape (T, m), [m], and their change from the first row, [mm].

    Args:
        time: Shape (T,), [s].
        values: Muscle lengths, shape (T, m), [m].
        names: Names of the m muscles.
    """
    time, values = thin(time, values)
    m = values.shape[1]
    with styled_figure(10.0, 5.6, "Muscle lengths") as figure:
        over, under = figure.subplots(2, 1, sharex=True)
        _lines(over, time, values, names)
        _lines(under, time, 1e3 * (values - values[0]), names)
        over.set_ylabel("length [m]")
        under.set_ylabel("change since start [mm]")
        under.set_xlabel("time [s]")
        if m <= MOST_NAMES:
            over.legend(
                loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
                ncols=1 + (m - 1) // 24,
            )  # fmt: skip
        over.set_xlim(time[0], max(time[-1], time[0] + 1e-9))
    return figure


def _lines(axis: Axes, time: Array, values: Array, names: Sequence[str]) -> None:
    for i in range(values.shape[1]):
        _line(axis, time, values[:, i], names[i], i)


def _line(axis: Axes, time: Array, values: Array, name: str, number: int) -> None:
    """Draw the curve of one muscle, in the colour and style of its number."""
    style = "-" if number < len(LINE_COLORS) else "--"
    color = LINE_COLORS[number % len(LINE_COLORS)]
    axis.plot(time, values, style, color=color, label=name, lw=1.1)


def loop_time(loop_us: Array, period_us: float | None) -> Figure:
    """Plot the distribution of the controller's step duration.

    Args:
        loop_us: Shape (K,), [us].
        period_us: Time between two states, the deadline of a step, [us]; None if unknown.
    """
    values = loop_us[np.isfinite(loop_us) & (loop_us > 0.0)]
    with styled_figure(7.0, 3.4, "Duration of a controller step") as figure:
        axis = figure.subplots()
        if not values.size:
            axis.text(0.5, 0.5, "no durations recorded", ha="center", transform=axis.transAxes)
            return figure
        low, high = values.min(), values.max()
        high = high if period_us is None else max(high, period_us)
        bins: npt.NDArray[np.float64] = np.geomspace(0.9 * low, 1.15 * high, 90)
        axis.hist(values, bins=bins.tolist(), color="#9fbfe0", edgecolor="#6f98c6", lw=0.3)
        axis.set_xscale("log")
        axis.set_yscale("log")
        marks = [(f"p{p}", float(np.percentile(values, p)), ACTUAL) for p in (50, 99)]
        if period_us is not None:
            marks.append(("deadline", period_us, ERROR))
        for row, (label, x, color) in enumerate(marks):
            axis.axvline(x, color=color, lw=1.2, ls="--" if label == "deadline" else "-")
            right = label == "deadline"
            axis.annotate(
                f" {label} {x:.0f} µs ", (x, 0.98 - 0.1 * row), ha="right" if right else "left",
                xycoords=("data", "axes fraction"), color=color, va="top", fontsize=8.5,
            )  # fmt: skip
        axis.set_xlabel("duration [µs]")
        axis.set_ylabel("steps")
        axis.xaxis.set_major_formatter("{x:g}")
    return figure


def actuator_states(time: Array, values: Array, names: Sequence[str]) -> Figure:
    """Plot the inner states of actuators: one chart for each state, a line for each muscle.

    Args:
        time: Shape (T,), [s].
        values: Shape (T, k), k > 0, in SI units and degC.
        names: Of the states, ``muscle/state``, length k.
    """
    time, values = thin(time, values)
    groups = by_state(names)
    muscles = list(dict.fromkeys(split_state(name)[0] for name in names))
    with styled_figure(10.0, 1.0 + 2.2 * len(groups), "Actuator states") as figure:
        axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (state, columns) in zip(axes, groups.items(), strict=True):
            name, factor = state_unit(state)
            for muscle, column in columns.items():
                _line(axis, time, factor * values[:, column], muscle, muscles.index(muscle))
            axis.set_ylabel(labelled(state_title(state), name))
        _finish_column(figure, axes, time, muscles)
    return figure


def _finish_column(
    figure: Figure, axes: npt.NDArray[Any], time: Array, names: Sequence[str] | None = None
) -> None:
    """Label the time under charts in a column; beside them name each curve once, in an order."""
    axes[-1].set_xlabel("time [s]")
    axes[-1].set_xlim(time[0], max(time[-1], time[0] + 1e-9))
    curves = {str(curve.get_label()): curve for axis in axes for curve in axis.get_lines()}
    names = list(curves) if names is None else names
    figure.legend([curves[name] for name in names], names, loc="outside right upper")
    figure.align_ylabels(list(axes))


def signals(
    time: Array,
    series: Mapping[str, Array],
    names: Mapping[str, Sequence[str]],
    units: Mapping[str, tuple[str, float]],
) -> Figure:
    """Plot what a controller shows of itself: one chart for each signal.

    Args:
        time: Shape (K,), [s].
        series: Name of a signal to its values, shape (K, k), in SI units.
        names: Name of a signal to the names of its entries, length k.
        units: Name of a signal to the unit it is shown in and the factor to that unit.
    """
    with styled_figure(10.0, 1.0 + 2.6 * len(series), "Signals of the controller") as figure:
        axes = figure.subplots(len(series), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (name, values) in zip(axes, series.items(), strict=True):
            unit, factor = units[name]
            thinned, shown = thin(time, values)
            _lines(axis, thinned, factor * shown, names[name])
            axis.set_ylabel(labelled(state_title(name), unit))
        _finish_column(figure, axes, time)
    return figure


MAX_DELAYS = 20000
"""More points than this are thinned; the longest of those that belong together is kept."""


def latencies(series: Mapping[str, tuple[Array, Array]], title: str = "Latency") -> Figure:
    """Plot delays.

    Args:
        series: Name to time [s] and delay [ms], each of shape (K,).
        title: Of the figure.
    """
    with styled_figure(9.0, 1.2 + 2.2 * max(1, len(series)), title) as figure:
        axes = figure.subplots(
            max(1, len(series)), 2, squeeze=False, gridspec_kw={"width_ratios": (2.2, 1.0)}
        )
        for row, (name, (time, delay)) in enumerate(series.items()):
            over, beside = axes[row]
            if not len(delay):
                over.set_title(f"{name}: nothing measured")
                continue
            color = LINE_COLORS[row % len(LINE_COLORS)]
            t, longest = _longest(time, delay)
            over.plot(t, longest, ".", ms=1.6, color=color, rasterized=True)
            p50, p99 = np.percentile(delay, [50.0, 99.0])
            over.set_title(
                f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {np.max(delay):.1f} ms"
            )
            over.set_ylabel("delay [ms]")
            over.set_ylim(bottom=0.0)
            top = max(1.3 * p99, 1e-3)
            beside.hist(delay[delay <= top], bins=80, range=(0.0, top), color=color, alpha=0.7)
            beside.axvline(p99, color=ERROR, lw=1.2, ls="--")
            beside.annotate(
                " p99", (p99, 0.95), xycoords=("data", "axes fraction"), color=ERROR, va="top"
            )
            beside.set_yscale("log")
            if row == len(series) - 1:
                over.set_xlabel("time [s]")
                beside.set_xlabel("delay [ms]")
        return figure


def _longest(time: Array, delay: Array) -> tuple[Array, Array]:
    """Thin a series: of neighbours that fall together the longest stays."""
    stride = -(-len(delay) // MAX_DELAYS)
    if stride <= 1:
        return time, delay
    rows = len(delay) // stride
    block = delay[: rows * stride].reshape(rows, stride)
    best = np.arange(rows) * stride + block.argmax(axis=1)
    return time[best], delay[best]
