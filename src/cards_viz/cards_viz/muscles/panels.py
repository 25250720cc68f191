"""Panels of the page of a robot with muscles: status, run, gains, switches, states, plots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import viser

from cards_core.robot.elements import Muscle
from cards_viz.colors import nice_ceiling
from cards_viz.labels import split_state, state_title, state_unit
from cards_viz.muscles.interface import MuscleCommands, MuscleSnapshot, Switch
from cards_viz.pages.widgets import TOUCHED, Guard, LivePlot

SLIDER_RANGE = 500.0
"""Upper end of the tension sliders where the muscle's limit is higher or absent, [N]."""


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
    error, unit = _worst_error(snapshot)
    cells = [
        ("time", f"{snapshot.time:.2f} s"),
        ("speed", _value(snapshot.real_time_factor, "{:.2f}×")),
        ("control", _value(snapshot.control_rate, "{:.0f} Hz")),
        ("error", _error(error, unit)),
    ]
    grid = "".join(
        f'<div><div style="color:#868e96;font-size:10.5px">{name}</div>'
        f'<div style="font-size:14px;font-weight:600;font-variant-numeric:tabular-nums">'
        f"{escape(text)}</div></div>"
        for name, text in cells
    )
    controller = snapshot.controller or "no controller"
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
    """Return label, controller, time and tracking error of one of several runs as HTML."""
    error, unit = _worst_error(snapshot)
    what = [
        snapshot.controller or "no controller",
        f"{snapshot.time:.2f} s",
        f"error {_error(error, unit)}",
    ]
    return (
        '<div style="padding:1px 12px 7px;font-size:12px;font-variant-numeric:tabular-nums">'
        f'<b style="color:{color}">● {escape(label)}</b>'
        f'<div style="padding-left:13px;color:#495057">{escape(", ".join(what))}</div></div>'
    )


def _value(value: float | None, text: str) -> str:
    return "–" if value is None or not np.isfinite(value) else text.format(value)


def _error(value: float | None, unit: str) -> str:
    """Write an error in mm or mrad, a tiny one in micrometres or microradians."""
    if value is None or unit not in ("mm", "mrad") or not value < 0.1:
        return _value(value, "{:.3g} " + unit)
    micro = unit.replace("m", "µ", 1)
    return f"{1e3 * value:.3g} {micro}" if value >= 1e-4 else f"< 0.1 {micro}"


def _worst_error(snapshot: MuscleSnapshot) -> tuple[float | None, str]:
    """Distance in mm for positions, largest error in mrad for angles."""
    error = snapshot.error
    if error is None or not len(error):
        return None, ""
    if set(snapshot.units) == {"m"}:
        return 1e3 * float(np.linalg.norm(error)), "mm"
    worst = float(np.max(np.abs(error)))
    return (1e3 * worst, "mrad") if set(snapshot.units) == {"rad"} else (worst, "")


class RunPanel:
    """Pause, step, reset, emergency stop, speed; for a real robot the emergency stop only."""

    def __init__(self, gui: viser.GuiApi, commands: MuscleCommands, run: Guard) -> None:
        self._paused = self._stopped = self._real = False
        self._estop = gui.add_button(
            "Emergency stop",
            icon=viser.Icon.HAND_STOP,
            color="red",
            hint="All tensions to minimum",
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

    def set_gains(self, kp: Sequence[float], kd: Sequence[float], names: Sequence[str]) -> None:
        """Show these gains, [1/s^2] and [1/s], of the controlled coordinates ``names``."""
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


class MusclePanel:
    """One tension slider for each muscle that accepts force commands.

    The sliders command only while no controller runs.
    """

    def __init__(
        self, gui: viser.GuiApi, muscles: Sequence[Muscle], commands: MuscleCommands, run: Guard
    ) -> None:
        self._commanded = False
        taking = [i for i, m in enumerate(muscles) if "force" in m.actuator.accepted_commands]
        self._indices = np.array(taking, dtype=np.intp)
        self._muscles = muscles = [muscles[i] for i in taking]
        self._note = gui.add_markdown("_Tensions commanded by hand, no controller running._")
        highest = max((muscle.tension_max for muscle in muscles), default=0.0)
        self._sliders = [
            gui.add_slider(
                muscle.name,
                min=muscle.tension_min,
                max=self._end(muscle, SLIDER_RANGE),
                step=0.1,
                initial_value=muscle.tension_min,
            )
            for muscle in muscles
        ]
        if highest > SLIDER_RANGE:
            end = gui.add_number(
                "range [N]", SLIDER_RANGE, min=1.0, step=50.0, hint="Upper end of the sliders"
            )

            end.on_update(lambda _: self._set_range(float(end.value)))

        for muscle, slider in zip(muscles, self._sliders, strict=True):

            def send(event: Any, name: str = muscle.name, slider: Any = slider) -> None:
                # values that we set ourselves (event.client is None) are not commands
                if event.client is not None and not self._commanded:
                    run(lambda: commands.set_tension(name, float(slider.value)))

            slider.on_update(send)

    def _set_range(self, highest: float) -> None:
        for muscle, slider in zip(self._muscles, self._sliders, strict=True):
            slider.max = max(self._end(muscle, highest), float(slider.value))

    @staticmethod
    def _end(muscle: Muscle, highest: float) -> float:
        return max(min(muscle.tension_max, highest), muscle.tension_min + 1.0)

    def draw(self, snapshot: MuscleSnapshot) -> None:
        """Enable the sliders while no controller runs; show what the controller commands."""
        commanded = snapshot.controller is not None
        if commanded != self._commanded:
            self._commanded = commanded
            self._note.content = (
                f"_Tensions commanded by **{snapshot.controller}**._"
                if commanded
                else "_Tensions commanded by hand, no controller running._"
            )
            for slider in self._sliders:
                slider.disabled = commanded
        if commanded:
            tensions = snapshot.tensions[self._indices]
            for slider, tension in zip(self._sliders, tensions, strict=True):
                value = round(float(np.clip(np.nan_to_num(tension), slider.min, slider.max)), 1)
                if value != slider.value:
                    slider.value = value


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
    """Charts of a robot; rebuilt when a controller with other coordinates takes over."""

    def __init__(
        self, gui: viser.GuiApi, joints: Sequence[str], muscles: Sequence[str], window: float
    ) -> None:
        self.window = window
        self._gui = gui
        self._joints = tuple(joints)
        self._muscles = tuple(muscles)
        self._panel = gui.add_panel()
        self._tab = self._panel.add_tab("Plots", viser.Icon.CHART_LINE)
        self._key: tuple[str, ...] | None = None
        self._charts: dict[str, LivePlot] = {}
        self._panel.dock_left()
        self._panel.set_width(390)

    def _build(self, names: Sequence[str], units: Sequence[str]) -> None:
        for chart in self._charts.values():
            chart.remove()
        unit = f" [{units[0]}]" if len(set(units)) == 1 else ""
        small = {"rad": "mrad", "m": "mm"}.get(units[0], "") if len(set(units)) == 1 else ""
        with self._tab:
            self._charts = {}
            if names:
                title = "Position" if unit == " [m]" else "Joints"
                self._charts["tracking"] = LivePlot(
                    self._gui, title + unit, names, with_desired=True
                )
                title = f"Tracking error [{small}]" if small else "Tracking error"
                self._charts["error"] = LivePlot(self._gui, title, names, height=115)
            if tuple(names) != self._joints:
                self._charts["joints"] = LivePlot(
                    self._gui, "Joint coordinates", self._joints, height=140
                )
            if self._muscles:
                self._charts["tension"] = LivePlot(self._gui, "Tension [N]", self._muscles)
        self._scale = 1e3 if small else 1.0

    def append(self, snapshot: MuscleSnapshot) -> None:
        """Add the values of a snapshot."""
        names = tuple(snapshot.names) if snapshot.actual is not None else ()
        if names != self._key:
            self._build(names, tuple(snapshot.units) if names else ())
            self._key = names
        t = snapshot.time
        if names and snapshot.actual is not None:
            self._charts["tracking"].append(t, snapshot.actual, snapshot.desired)
            error = snapshot.error
            if error is None or len(error) != len(names):
                error = np.full(len(names), np.nan)
            self._charts["error"].append(t, self._scale * error)
        if "joints" in self._charts:
            self._charts["joints"].append(t, snapshot.q)
        if "tension" in self._charts:
            self._charts["tension"].append(t, snapshot.tensions)

    def draw(self) -> None:
        """Send all charts to the browser."""
        for chart in self._charts.values():
            chart.draw(self.window)
