"""Panels of the page of a robot with muscles: status, run, gains, switches, states, plots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import viser

from cards_core.muscles.command import command_limits
from cards_core.robot.actuators import CommandKind
from cards_core.robot.elements import Muscle
from cards_core.typing import Array
from cards_viz.colors import nice_ceiling
from cards_viz.labels import Labels, natural_order, split_state, state_title, state_unit
from cards_viz.muscles.interface import MuscleCommands, MuscleSnapshot, Switch
from cards_viz.pages.widgets import TOUCHED, Guard, LivePlot, add_key

SLIDER_RANGE = 500.0
"""Upper end of the tension sliders where the muscle's limit is higher or absent, [N]."""


PLOTS_WIDTH = 390
"""Of the panel with the plots, [px]."""


class StatusPanel:
    """Numbers of the run."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self._status = gui.add_html("")

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Show a snapshot."""
        self._status.content = status_html(snapshot)


def status_html(snapshot: MuscleSnapshot) -> str:
    """Return state, time, real-time factor, control rate and tracking error as HTML."""
    if snapshot.stopped:
        state, color = "EMERGENCY STOP", "#c92a2a"
    elif snapshot.paused:
        state, color = "paused", "#b07400"
    elif snapshot.state:
        state, color = escape(snapshot.state), "#1f5fa8"
    else:
        state, color = "running", "#2b8a3e"
    if snapshot.real:
        state = "REAL ROBOT" if state == "running" else f"{state} · REAL ROBOT"
    cells = [
        ("time", f"{snapshot.time:.2f} s"),
        ("speed", _value(snapshot.real_time_factor, "{:.2f}×")),
        ("control", _value(snapshot.control_rate, "{:.0f} Hz")),
        ("error", _error(snapshot)),
    ]
    grid = "".join(
        f'<div><div style="color:#868e96;font-size:10.5px">{name}</div>'
        f'<div style="font-size:14px;font-weight:600;font-variant-numeric:tabular-nums">'
        f"{escape(text)}</div></div>"
        for name, text in cells
    )
    controller = snapshot.controller or (
        f"{snapshot.idle}, disabled" if snapshot.idle else "no controller"
    )
    message = ""
    if snapshot.message:
        message = (
            f'<div style="color:#c92a2a;font-size:11.5px;margin-top:5px">'
            f"{escape(snapshot.message)}</div>"
        )
    return (
        f'<div style="padding:2px 12px 8px">'
        f'<div style="font-size:12px;margin-bottom:5px"><b style="color:{color}">● {state}</b>'
        f'<span style="color:#868e96"> &nbsp;{escape(controller)}</span></div>'
        f'<div style="display:grid;grid-template-columns:1fr 1fr 1fr 1.25fr;gap:6px">{grid}</div>'
        f"{message}</div>"
    )


def run_line_html(snapshot: MuscleSnapshot, label: str, color: str) -> str:
    """Return label, controller, time and tracking error of one of several runs as HTML.

    Args:
        snapshot: State of the run.
        label: Name of the run.
        color: CSS colour of the run.
    """
    what = [
        snapshot.controller or "no controller",
        f"{snapshot.time:.2f} s",
        f"error {_error(snapshot)}",
    ]
    return (
        '<div style="padding:1px 12px 7px;font-size:12px;font-variant-numeric:tabular-nums">'
        f'<b style="color:{color}">● {escape(label)}</b>'
        f'<div style="padding-left:13px;color:#495057">{escape(", ".join(what))}</div></div>'
    )


def _value(value: float | None, text: str) -> str:
    return "–" if value is None or not np.isfinite(value) else text.format(value)


def _error(snapshot: MuscleSnapshot) -> str:
    """Write the norm of lengths in mm and the largest angle in mrad, tiny ones in millionths."""
    texts = []
    for unit, values in snapshot.errors().items():
        size = float(np.linalg.norm(values) if unit == "m" else np.max(np.abs(values)))
        if not size < 1e-4:
            texts.append(f"{1e3 * size:.3g} m{unit}")
        else:
            texts.append(f"{1e6 * size:.3g} µ{unit}" if size >= 1e-7 else f"< 0.1 µ{unit}")
    return ", ".join(texts) or "–"


class RunPanel:
    """Pause, step, reset, emergency stop, speed; for a real robot the emergency stop only.

    Args:
        gui, commands, run: Where to add it, what it does, and how.
        live: Whether there is something to stop; a recording has no emergency stop.
    """

    def __init__(
        self, gui: viser.GuiApi, commands: MuscleCommands, run: Guard, *, live: bool = True
    ) -> None:
        self._paused = self._stopped = self._real = False
        self._estop = gui.add_button(
            "Emergency stop",
            icon=viser.Icon.HAND_STOP,
            color="red",
            hint="All tensions to minimum",
            visible=live,
        )
        self._pause = gui.add_button("Pause", icon=viser.Icon.PLAYER_PAUSE, color="blue")
        self._step = gui.add_button(
            "Step", icon=viser.Icon.PLAYER_SKIP_FORWARD, color="gray", disabled=True,
            hint="One step of a paused simulation",
        )  # fmt: skip
        self._reset = gui.add_button("Reset", icon=viser.Icon.ROTATE_CLOCKWISE, color="gray")
        self.speed = gui.add_slider(
            "speed", min=0.05, max=2.0, step=0.05, initial_value=1.0,
            hint="Simulated seconds per second (realtime mode)",
        )  # fmt: skip

        def space() -> None:
            if self._real:
                run(lambda: commands.estop(True))  # never a release: that is a deliberate act
            else:
                run(lambda: commands.pause(not self._paused))

        add_key(gui, "Pause or go on", "space", space, "With a real robot: emergency stop")
        add_key(gui, "One step", "S", lambda: run(commands.step), "Of a paused simulation")
        self._estop.on_click(lambda _: run(lambda: commands.estop(not self._stopped)))
        self._pause.on_click(lambda _: run(lambda: commands.pause(not self._paused)))
        self._step.on_click(lambda _: run(commands.step))
        self._reset.on_click(lambda _: run(commands.reset))
        self.speed.on_update(lambda _: run(lambda: commands.set_speed(float(self.speed.value))))

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Label the buttons with what they do now."""
        if snapshot.real != self._real:
            self._real = snapshot.real
            for control in (self._pause, self._step, self._reset, self.speed):
                control.visible = not self._real
            self._estop.hint = (
                "Real robot: safe tensions at once. Releasing does not arm it again"
                if self._real
                else "All tensions to minimum"
            )
        if snapshot.paused != self._paused:
            self._paused = snapshot.paused
            self._pause.label = "Continue" if self._paused else "Pause"
            self._pause.icon = viser.Icon.PLAYER_PLAY if self._paused else viser.Icon.PLAYER_PAUSE
            self._step.disabled = not self._paused
        if snapshot.stopped != self._stopped:
            self._stopped = snapshot.stopped
            self._estop.label = "Release stop" if self._stopped else "Emergency stop"
            self._estop.color = "orange" if self._stopped else "red"


class GainsPanel:
    """Sliders of the controller's gains, one pair, or one for each coordinate if they differ."""

    def __init__(self, gui: viser.GuiApi, commands: MuscleCommands, run: Guard) -> None:
        self._gui = gui
        self._commands = commands
        self._run = run
        self._folder = gui.add_folder("Gains", visible=False)
        self._sliders: list[list[viser.GuiSliderHandle[float]]] = []
        with self._folder:
            save = gui.add_button(
                "Save gains", icon=viser.Icon.DEVICE_FLOPPY, color="gray", order=1e6,
                hint="Into the parameter file, which is kept as it was beside it",
            )  # fmt: skip
        save.on_click(lambda _: run(commands.save_gains))

    def set_gains(self, kp: Sequence[float], kd: Sequence[float], names: Sequence[str]) -> None:
        """Show these gains, [1/s^2] and [1/s], of the controlled coordinates ``names``.

        Args:
            kp: Stiffness of the error, [1/s^2], one for each coordinate; empty: no sliders.
            kd: Damping of the error, [1/s], likewise.
            names: Names of the controlled coordinates.
        """
        for slider in (slider for group in self._sliders for slider in group):
            slider.remove()
        self._sliders = []
        alike = len(set(kp)) <= 1 and len(set(kd)) <= 1
        # of gains that are not those of the coordinates, such as matrices, there are no sliders
        self._folder.visible = bool(kp) and (alike or len(names) == len(kp))
        if not self._folder.visible:
            return
        with self._folder:
            for label, values, hint in (
                ("kp", kp, "Stiffness of the error [1/s²]"),
                ("kd", kd, "Damping of the error [1/s]"),
            ):
                one = len(set(values)) <= 1
                shown = list(values[:1] if one else values)
                labels = [label] if one else [f"{label} {name}" for name in names]
                top = 2.0 * nice_ceiling(max([*shown, 1.0]))
                self._sliders.append(
                    [
                        self._gui.add_slider(
                            text, min=0.0, max=top, step=top / 400, initial_value=value, hint=hint
                        )
                        for text, value in zip(labels, shown, strict=True)
                    ]
                )
        for slider in (slider for group in self._sliders for slider in group):
            slider.on_update(lambda _: self._send())

    def _send(self) -> None:
        kp, kd = ([float(slider.value) for slider in group] for group in self._sliders)
        self._run(lambda: self._commands.set_gains(kp, kd))


class SwitchPanel:
    """A check box for each boolean live parameter of the controller; follows the parameters."""

    def __init__(self, gui: viser.GuiApi, commands: MuscleCommands, run: Guard) -> None:
        self._gui = gui
        self._commands = commands
        self._run = run
        self._folder = gui.add_folder("Controller", visible=False)
        self._boxes: dict[str, viser.GuiCheckboxHandle] = {}
        self._touched: dict[str, float] = {}

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Show the switches of a snapshot."""
        names = [switch.name for switch in snapshot.switches]
        if names != list(self._boxes):
            self._build(snapshot.switches)
        for switch in snapshot.switches:
            box = self._boxes[switch.name]
            # what a user has just clicked stands until the node has had time to take it over
            if time.monotonic() - self._touched.get(switch.name, -TOUCHED) < TOUCHED:
                continue
            if bool(box.value) != switch.on:
                box.value = switch.on

    def _build(self, switches: Sequence[Switch]) -> None:
        for box in self._boxes.values():
            box.remove()
        self._boxes = {}
        self._folder.visible = bool(switches)
        with self._folder:
            for switch in switches:
                box = self._gui.add_checkbox(
                    switch_label(switch.name), switch.on, hint=switch.description or None
                )
                self._boxes[switch.name] = box

                def send(event: Any, name: str = switch.name, box: Any = box) -> None:
                    # values that we set ourselves are no commands
                    if event.client is not None:
                        self._touched[name] = time.monotonic()
                        self._run(lambda: self._commands.set_switch(name, bool(box.value)))

                box.on_update(send)


def switch_label(name: str) -> str:
    """Return how a parameter is labelled: ``Accept other models``."""
    return name.replace("_", " ").capitalize()


@dataclass(frozen=True)
class ByHand:
    """How muscles of one kind are commanded by hand.

    Attributes:
        title: Of the sliders.
        unit: Shown; empty without one.
        factor: Shown value by SI value.
        step: Of the sliders, in shown units.
    """

    title: str
    unit: str
    factor: float
    step: float


BY_HAND: Mapping[CommandKind, ByHand] = {
    "excitation": ByHand("Excitation", "", 1.0, 0.01),
    "pressure": ByHand("Pressure", "kPa", 1e-3, 1.0),
    "length": ByHand("Rest length", "mm", 1e3, 0.5),
    "force": ByHand("Tension", "N", 1.0, 0.1),
}
"""The first of these that a muscle accepts has the slider."""

LENGTH_RANGE = (0.6, 1.2)
"""Ends of the sliders of rest lengths, relative to the length of the path at home."""


def kind_by_hand(muscle: Muscle) -> CommandKind | None:
    """Return how a muscle is commanded by hand; None for one that takes no command."""
    accepted = muscle.actuator.accepted_commands
    return next((kind for kind in BY_HAND if kind in accepted), None)


class MusclePanel:
    """A slider for what each muscle can be told: excitation, pressure, rest length or tension.

    The sliders command only while no controller runs.

    Args:
        gui: Where to add it.
        muscles: Of the robot.
        lengths: Of their paths at home, shape (m,), [m].
        commands: What the sliders do.
        run: How.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        muscles: Sequence[Muscle],
        lengths: Array,
        commands: MuscleCommands,
        run: Guard,
    ) -> None:
        self._commanded = False
        self._note = gui.add_markdown(_NOBODY)
        self._tensions: list[tuple[int, viser.GuiSliderHandle[float]]] = []
        self._sliders: list[viser.GuiSliderHandle[float]] = []
        kinds = [kind_by_hand(muscle) for muscle in muscles]
        order = natural_order([muscle.name for muscle in muscles])
        for kind, how in BY_HAND.items():
            places = [i for i in order if kinds[i] == kind]
            if not places:
                continue
            unit = f" [{how.unit}]" if how.unit else ""
            gui.add_markdown(f"**{how.title}{unit}**")
            for i in places:
                low, high = self._range(muscles[i], kind, float(lengths[i]))
                start = float(lengths[i]) if kind == "length" else low
                slider = gui.add_slider(
                    muscles[i].name,
                    min=round(how.factor * low, 1),
                    max=max(round(how.factor * high, 1), round(how.factor * low, 1) + how.step),
                    step=how.step,
                    initial_value=round(how.factor * start, 1),
                )
                self._sliders.append(slider)
                if kind == "force":
                    self._tensions.append((i, slider))

                def send(
                    event: Any,
                    name: str = muscles[i].name,
                    kind: CommandKind = kind,
                    factor: float = how.factor,
                ) -> None:
                    # values that we set ourselves (event.client is None) are not commands
                    if event.client is not None and not self._commanded:
                        value = float(event.target.value) / factor
                        run(lambda: commands.set_command(name, kind, value))

                slider.on_update(send)
        self._muscles = muscles
        highest = max((muscles[i].tension_max for i, _ in self._tensions), default=0.0)
        if highest > SLIDER_RANGE:
            end = gui.add_number(
                "range [N]", SLIDER_RANGE, min=1.0, step=50.0, hint="Upper end of the sliders"
            )
            end.on_update(lambda _: self._set_range(float(end.value)))

    @staticmethod
    def _range(muscle: Muscle, kind: CommandKind, length: float) -> tuple[float, float]:
        """Return the ends of a slider in SI units."""
        low, high = command_limits(muscle, kind)
        if kind == "length":
            return LENGTH_RANGE[0] * length, LENGTH_RANGE[1] * length
        if kind == "force":
            return low, max(min(high, SLIDER_RANGE), low + 1.0)
        return low, high

    def _set_range(self, highest: float) -> None:
        for i, slider in self._tensions:
            low, high = command_limits(self._muscles[i], "force")
            slider.max = max(min(high, highest), low + 1.0, float(slider.value))

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Enable the sliders while no controller runs; show what the controller commands."""
        commanded = snapshot.controller is not None
        if commanded != self._commanded:
            self._commanded = commanded
            self._note.content = (
                f"_Muscles commanded by **{snapshot.controller}**._" if commanded else _NOBODY
            )
            for slider in self._sliders:
                slider.disabled = commanded
        if commanded:
            for i, slider in self._tensions:
                tension = float(np.nan_to_num(snapshot.tensions[i]))
                value = round(float(np.clip(tension, slider.min, slider.max)), 1)
                if value != slider.value:
                    slider.value = value


_NOBODY = "_Commanded by hand, no controller running._"


class StateTable:
    """Shows the actuator states below the tension sliders, where there are any."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self._html = gui.add_html("", visible=False)

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Show the states of a snapshot."""
        self._html.visible = bool(snapshot.states)
        if snapshot.states:
            self._html.content = states_html(snapshot.states)


def states_html(states: Mapping[str, float]) -> str:
    """Return one table for each kind of actuator, with a row for each muscle, as HTML.

    Args:
        states: Values as published, by name.
    """
    muscles: dict[str, dict[str, float]] = {}
    for name, value in states.items():
        muscle, state = split_state(name)
        muscles.setdefault(muscle, {})[state] = value
    kinds: dict[tuple[str, ...], list[str]] = {}
    for muscle, values in muscles.items():
        kinds.setdefault(tuple(values), []).append(muscle)
    tables = [
        _table(columns, {name: muscles[name] for name in rows}) for columns, rows in kinds.items()
    ]
    return f'<div style="padding:4px 12px;overflow-x:auto;font-size:11px">{"".join(tables)}</div>'


def _table(columns: Sequence[str], rows: Mapping[str, Mapping[str, float]]) -> str:
    side = "padding:1px 0 1px 8px;text-align:right;font-variant-numeric:tabular-nums"
    head = "".join(
        f'<th style="{side};font-weight:500;color:#868e96;vertical-align:bottom">'
        f"{escape(state_title(state))}{_in_brackets(state_unit(state)[0])}</th>"
        for state in columns
    )
    body = "".join(
        f'<tr><td style="white-space:nowrap">{escape(muscle)}</td>'
        + "".join(
            f'<td style="{side}">{_number(state_unit(state)[1] * values[state])}</td>'
            for state in columns
        )
        + "</tr>"
        for muscle, values in rows.items()
    )
    return (
        '<table style="border-collapse:collapse;width:100%;margin-bottom:8px">'
        f"<tr><th></th>{head}</tr>{body}</table>"
    )


def _in_brackets(unit: str) -> str:
    return f"<br>[{unit}]" if unit else ""


def _number(value: float) -> str:
    """Format a number with few digits, because further ones would only flicker."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "∞"
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.2f}"


class PlotPanel:
    """Charts of a robot; rebuilt when a controller with other coordinates takes over.

    Coordinates of different units have charts of their own. While no controller commands, what was
    tracked before stays.
    """

    def __init__(
        self, gui: viser.GuiApi, joints: Labels, muscles: Sequence[str], window: float
    ) -> None:
        self.window = window
        self._gui = gui
        self._joints = joints
        self._order = natural_order(muscles)
        self._muscles = [muscles[i] for i in self._order]
        self.panel = gui.add_panel()
        self._tab = self.panel.add_tab("Plots", viser.Icon.CHART_LINE)
        self._key: tuple[tuple[str, ...], int] | None = None
        self._groups: list[tuple[str, LivePlot, list[int]]] = []
        self._tension: LivePlot | None = None
        self.panel.dock_left()
        self.panel.set_width(PLOTS_WIDTH)
        self._build((), ())

    def _build(self, names: Sequence[str], units: Sequence[str], errors: int = 0) -> None:
        for _, chart, _ in self._groups:
            chart.remove()
        if self._tension is not None:
            self._tension.remove()
        self._groups, self._tension = [], None
        joints = self._joints
        with self._tab:
            if names:
                title = "Position" if set(units) == {"m"} else "Coordinates"
                title = "Joints" if tuple(names) == joints.names else title
                self._add("tracking", title, names, units, with_desired=True)
                error_names, error_units = tuple(names), tuple(units)
                if errors != len(names):  # of quaternions
                    error_names, error_units = joints.error_names, joints.error_units
                if errors in (0, len(error_names)):
                    self._add("error", "Tracking error", error_names, error_units, height=130)
            if tuple(names) != joints.names:
                self._add("joints", "Joints", joints.names, joints.units, height=150)
            if self._muscles:
                self._tension = LivePlot(self._gui, "Tension", self._muscles, unit="N")

    def _add(
        self, what: str, title: str, names: Sequence[str], units: Sequence[str], **options: Any
    ) -> None:
        """Add a chart for each unit; what has none beside others are quaternions."""
        charts = tuple(dict.fromkeys(units))
        for unit in charts:
            places = [i for i, other in enumerate(units) if other == unit]
            shown = [names[i] for i in places]
            called = f"{title}, quaternions" if len(charts) > 1 and unit == "" else title
            chart = LivePlot(self._gui, called, shown, unit=unit, **options)
            self._groups.append((what, chart, places))

    def append(self, snapshot: MuscleSnapshot) -> None:
        """Add the values of a snapshot."""
        tracks = snapshot.actual is not None
        if tracks:
            names = tuple(snapshot.names)
            errors = 0 if snapshot.error is None else len(snapshot.error)
            if self._key is None or names != self._key[0] or errors not in (0, self._key[1]):
                self._build(names, snapshot.units, errors)
                self._key = names, errors
        t = snapshot.time
        error = snapshot.error
        for what, chart, places in self._groups:
            if what == "joints":
                chart.append(t, snapshot.q[places])
            elif what == "tracking":
                width = len(places)
                actual = snapshot.actual[places] if snapshot.actual is not None else _nan(width)
                goal = None if snapshot.desired is None else snapshot.desired[places]
                chart.append(t, actual, goal)
            else:
                known = tracks and error is not None and len(error) > max(places)
                chart.append(
                    t, error[places] if known and error is not None else _nan(len(places))
                )
        if self._tension is not None:
            self._tension.append(t, snapshot.tensions[self._order])

    def draw(self) -> None:
        """Send all charts to the browser."""
        for _, chart, _ in self._groups:
            chart.draw(self.window)
        if self._tension is not None:
            self._tension.draw(self.window)


def _nan(count: int) -> Array:
    return np.full(count, np.nan)
