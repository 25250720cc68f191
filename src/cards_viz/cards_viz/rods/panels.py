"""Panels of the page of a rod robot: joints, plate pose, wrench, saved states, run, status."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import viser

from cards_core.rods.robots.robot import BaseKind, RodRobot, rod_lengths
from cards_core.rods.status import RodStatus
from cards_core.spatial import matrix_rpy, quaternion_matrix, rpy_matrix
from cards_core.typing import Array
from cards_viz.colors import css, css_gradient, nice_ceiling
from cards_viz.pages.widgets import Axis, Guard, SliderGroup
from cards_viz.rods.interface import RodCommands, RodSnapshot
from cards_viz.rods.tubes import RodColors

MILLI, DEGREES = 1e3, 180.0 / math.pi

WRENCH_NAMES = ("fx", "fy", "fz", "mx", "my", "mz")
POSE_NAMES = ("x", "y", "z", "roll", "pitch", "yaw")
_CONTROLLED = dict(zip(POSE_NAMES, ("x", "y", "z", "rx", "ry", "rz"), strict=True))

REACH = 0.35
"""Range of the plate's position to both sides of home, relative to the mean rod length."""

TILT = math.radians(60.0)
"""Range of the plate's rotations to both sides of home."""

FRAMES = ("world", "plate")


def joint_axes(robot: RodRobot) -> list[Axis]:
    """Return one slider for each actuated joint, from limit to limit."""
    axes = []
    for limb, home in zip(robot.limbs, robot.home_q, strict=True):
        base = limb.base
        if base.kind is BaseKind.FIXED:
            continue
        turns = base.kind is BaseKind.REVOLUTE
        far = math.pi if turns else 0.5 * limb.length
        low = base.lower if math.isfinite(base.lower) else home - far
        high = base.upper if math.isfinite(base.upper) else home + far
        unit, factor = ("°", DEGREES) if turns else ("mm", MILLI)
        what = {BaseKind.EXTENSIBLE: "length of the rod", BaseKind.PRISMATIC: "slide"}
        name = base.joint or limb.name
        label = name.removesuffix("_length")
        hint = f"{name}: {what.get(base.kind, 'angle')}, {factor * low:g} to {factor * high:g}"
        axes.append(Axis(f"{label} [{unit}]", low, high, factor, 0.1, f"{hint} {unit}"))
    return axes


def pose_axes(robot: RodRobot) -> list[Axis]:
    """Return sliders of x, y, z, roll, pitch, yaw, or of x, y, yaw in the plane."""
    home = robot.home_pose
    reach = REACH * float(np.mean(rod_lengths(robot, robot.home_q)))
    middles = [*home[:3, 3], *matrix_rpy(home[:3, :3])]
    axes = []
    for i, name in enumerate(POSE_NAMES):
        if robot.planar and name not in ("x", "y", "yaw"):
            continue
        linear = i < 3
        far, unit, factor = (reach, "mm", MILLI) if linear else (TILT, "°", DEGREES)
        free = _CONTROLLED[name] not in robot.controlled
        hint = "follows from the others: this robot has fewer joints than the plate can move"
        axes.append(
            Axis(
                f"{name} [{unit}]",
                middles[i] - far,
                middles[i] + far,
                factor,
                0.1,
                hint if free else "",
                free,
            )
        )
    return axes


def wrench_axes(robot: RodRobot) -> list[Axis]:
    """Return sliders of force and moment, as far as the rods and the plate's weight suggest.

    A rod of length L and bending stiffness EI buckles, both ends clamped, at 4 pi^2 EI / L^2; a
    quarter of that for each rod is a load that bends the robot well.
    """
    lengths = rod_lengths(robot, robot.home_q)
    bending = np.array([min(limb.rod.stiffness_bt[:2]) for limb in robot.limbs])
    force = nice_ceiling(float(np.sum(np.pi**2 * bending / lengths**2)))
    arms = [float(np.linalg.norm(limb.tip.joint_pose[:3, 3])) for limb in robot.limbs]
    moment = nice_ceiling(force * max(0.3 * float(np.mean(arms)), 0.02 * float(np.mean(lengths))))
    axes = []
    for i, name in enumerate(WRENCH_NAMES):
        if robot.planar and name not in ("fx", "fy", "mz"):
            continue
        end, unit = (force, "N") if i < 3 else (moment, "N m")
        axes.append(Axis(f"{name} [{unit}]", -end, end, 1.0, end / 200.0))
    return axes


class JointPanel:
    """Sliders of the joints: the direct model."""

    def __init__(
        self, gui: viser.GuiApi, robot: RodRobot, commands: RodCommands, run: Guard
    ) -> None:
        self._names = robot.joint_names
        self._driven = robot.actuated
        self._q = robot.home_q

        def send(values: Array) -> None:
            q = self._q.copy()
            q[self._driven] = values
            run(lambda: commands.joints(q))

        self.group = SliderGroup(gui, joint_axes(robot), send)
        self.group.follow(self._q[self._driven])

    def draw(self, snapshot: RodSnapshot) -> None:
        """Show the target while joints are commanded, else where they are."""
        q = snapshot.q
        if snapshot.mode == "dgm":
            q = _named(snapshot.values, [f"target/{name}" for name in self._names], q)
        self._q = np.array(q)
        self.group.follow(q[self._driven])


class PosePanel:
    """Sliders of the plate's pose: the inverse model.

    Attributes:
        target: What the gizmo shows, shape (4, 4).
    """

    def __init__(
        self, gui: viser.GuiApi, robot: RodRobot, commands: RodCommands, run: Guard
    ) -> None:
        self.target = robot.home_pose
        self._planar = robot.planar
        self._commands, self._run = commands, run
        self.group = SliderGroup(gui, pose_axes(robot), self._slid)
        self.group.follow(self._coordinates(self.target))

    def _coordinates(self, pose: Array) -> Array:
        every = np.concatenate([pose[:3, 3], matrix_rpy(pose[:3, :3])])
        return every[[0, 1, 5]] if self._planar else every

    def _slid(self, values: Array) -> None:
        every = np.concatenate([self.target[:3, 3], matrix_rpy(self.target[:3, :3])])
        every[[0, 1, 5] if self._planar else slice(None)] = values
        pose = np.eye(4)
        pose[:3, 3], pose[:3, :3] = every[:3], rpy_matrix(*every[3:])
        self.target = pose
        self._run(lambda: self._commands.pose(pose))

    def drag(self, pose: Array) -> None:
        """Command a pose that somebody drags the gizmo to, shape (4, 4)."""
        self.group.forget()
        self.target = pose
        self.group.follow(self._coordinates(pose))
        self._run(lambda: self._commands.pose(pose))

    def follow(self, snapshot: RodSnapshot) -> None:
        """Take the target while the plate is commanded, else where it is, unless it is moved."""
        if not self.group.busy:
            self.target = target_pose(snapshot)

    def draw(self) -> None:
        """Show `target` on the sliders."""
        self.group.follow(self._coordinates(self.target))


def target_pose(snapshot: RodSnapshot) -> Array:
    """Return the commanded pose while poses are commanded, else the plate's, shape (4, 4)."""
    names = [f"target/{name}" for name in ("x", "y", "z", "qw", "qx", "qy", "qz")]
    found = _named(snapshot.values, names, np.zeros(7))
    if snapshot.mode != "igm" or np.linalg.norm(found[3:]) < 0.5:
        return snapshot.pose
    pose = np.eye(4)
    pose[:3, 3], pose[:3, :3] = found[:3], quaternion_matrix(found[3:])
    return pose


def _named(values: Mapping[str, float], names: Sequence[str], otherwise: Array) -> Array:
    """Return values by name, or ``otherwise`` if one of them is missing or not finite."""
    found = np.array([values.get(name, np.nan) for name in names])
    return found if np.isfinite(found).all() else otherwise


class WrenchPanel:
    """Sliders of the load on the plate."""

    def __init__(
        self, gui: viser.GuiApi, robot: RodRobot, commands: RodCommands, run: Guard
    ) -> None:
        self._places = [0, 1, 5] if robot.planar else list(range(6))
        self._commands, self._run = commands, run
        self._frame = gui.add_dropdown(
            "axes", FRAMES, hint="world: the load keeps its direction; plate: it turns with it"
        )
        self.group = SliderGroup(gui, wrench_axes(robot), self._send)
        self.group.follow(robot.wrench[self._places])
        clear = gui.add_button("No load", icon=viser.Icon.FEATHER, color="gray")
        clear.on_click(lambda _: self._clear())
        self._frame.on_update(lambda event: self._changed(event.client is not None))

    def _send(self, values: Array) -> None:
        wrench = np.zeros(6)
        wrench[self._places] = values
        self._run(lambda: self._commands.wrench(wrench, self._frame.value))

    def _clear(self) -> None:
        self.group.forget()
        self.group.follow(np.zeros(len(self._places)))
        self._send(np.zeros(len(self._places)))

    def _changed(self, by_user: bool) -> None:
        if by_user:
            self._send(self.group.values)

    def draw(self, snapshot: RodSnapshot) -> None:
        """Show the load that is commanded."""
        names = [f"external/{WRENCH_NAMES[i]}" for i in self._places]
        self.group.follow(_named(snapshot.values, names, self.group.values))


class RunPanel:
    """Home, stop, demo motion; the way back after the rods have snapped."""

    def __init__(self, gui: viser.GuiApi, commands: RodCommands, run: Guard) -> None:
        self._playing = False
        self._back = gui.add_button(
            "Back to the shape before", icon=viser.Icon.ARROW_BACK_UP, color="orange",
            visible=False,
        )  # fmt: skip
        self._keep = gui.add_button(
            "Keep this shape", icon=viser.Icon.CHECK, color="gray", visible=False
        )
        actions = {
            "Home": commands.home,
            "Stop here": commands.hold,
            "Play": lambda: commands.play(not self._playing),
        }
        group = gui.add_button_group("", tuple(actions))
        group.on_click(lambda event: run(actions[event.target.value]))
        self._back.on_click(lambda _: run(commands.restore))
        self._keep.on_click(lambda _: run(commands.accept))

    def draw(self, snapshot: RodSnapshot) -> None:
        """Show the buttons that are of use now."""
        snapped = snapshot.status is RodStatus.BRANCH_CHANGED
        for button in (self._back, self._keep):
            if button.visible != snapped:
                button.visible = snapped
        self._playing = snapshot.playing


GREEN, AMBER, RED_TEXT, GREY = "#2b8a3e", "#b07400", "#c92a2a", "#868e96"

WORDS: dict[RodStatus, tuple[str, str]] = {
    RodStatus.OK: ("At its target, stable", GREEN),
    RodStatus.MOVING: ("Moving to its target", GREEN),
    RodStatus.NEAR_LIMIT: ("Close to collapse", RED_TEXT),
    RodStatus.UNSTABLE: ("Not stable: it would collapse", RED_TEXT),
    RodStatus.UNREACHABLE: ("Cannot be reached", RED_TEXT),
    RodStatus.NOT_CONVERGED: ("No equilibrium found", RED_TEXT),
    RodStatus.LIMIT: ("Beyond the limit of a joint", AMBER),
    RodStatus.BRANCH_CHANGED: ("The rods have snapped to another shape", AMBER),
    RodStatus.HELD: ("Held: the next step cannot be made", RED_TEXT),
    RodStatus.SINGULAR: ("Something can move freely", RED_TEXT),
    RodStatus.NOT_FINITE: ("The command was not a number", AMBER),
    RodStatus.YIELD: ("A rod is bent beyond its yield strain", AMBER),
    RodStatus.INVALID: ("The command makes no sense", AMBER),
    RodStatus.AMBIGUOUS: ("Which way a rod buckles is arbitrary", AMBER),
}
"""Plain words and colour of each status."""

WARN_MARGIN, ALARM_MARGIN = 0.25, 0.05
"""Parts of the first stiffness below which the bar is amber and red."""


def status_html(snapshot: RodSnapshot, turning: frozenset[str] = frozenset()) -> str:
    """Return state, message, stiffness and numbers of the solver as HTML.

    Args:
        snapshot: What to show.
        turning: Limbs whose joint turns: what they lack may be an angle, the message says it.
    """
    words, color = WORDS[snapshot.status]
    if snapshot.playing and color == GREEN:
        words = "Playing a motion"
    elif snapshot.held and snapshot.status is not RodStatus.HELD:
        words += ": stopped here"
    if not snapshot.alive:
        words, color = "Waiting for the node rod_solver", GREY
    return (
        f'<div style="padding:2px 12px 6px">'
        f'<div style="font-size:13px;margin-bottom:3px"><b style="color:{color}">● {words}</b>'
        f"</div>{_sentences(snapshot, color, turning)}{_stiffness(snapshot)}"
        f"{_numbers(snapshot)}</div>"
    )


def _sentences(snapshot: RodSnapshot, color: str, turning: frozenset[str]) -> str:
    """State what is wrong: the limb and the length it lacks, the message, the refused command."""
    found = []
    if snapshot.limb is not None and snapshot.missing and snapshot.limb not in turning:
        found.append(
            f'<div style="color:{color};font-size:14px;font-weight:600">'
            f"{escape(snapshot.limb)}: {1e3 * abs(snapshot.missing):.3g} mm missing</div>"
        )
    texts = [snapshot.message, *snapshot.warnings, snapshot.refused]
    for text in dict.fromkeys(text for text in texts if text):
        found.append(
            f'<div style="color:#495057;font-size:11.5px;line-height:1.35">{escape(text)}</div>'
        )
    return f'<div style="margin-bottom:5px">{"".join(found[:4])}</div>' if found else ""


def _stiffness(snapshot: RodSnapshot) -> str:
    """Show the smallest eigenvalue, and as a bar its share of that at the start."""
    margin, value = snapshot.margin, snapshot.eigenvalue
    if not np.isfinite(value):
        return ""
    part = float(np.clip(np.nan_to_num(margin), 0.0, 1.0))
    color = GREEN if part > WARN_MARGIN else AMBER if part > ALARM_MARGIN else RED_TEXT
    percent = f"{100 * margin:.0f} % of the start" if np.isfinite(margin) else ""
    return (
        f'<div style="display:flex;justify-content:space-between;font-size:11px;color:{GREY}">'
        f"<span>stiffness, smallest eigenvalue</span><span>{percent}</span></div>"
        f'<div style="display:grid;grid-template-columns:64px 1fr;gap:8px;align-items:center">'
        f'<span style="font-size:15px;font-weight:600;font-variant-numeric:tabular-nums">'
        f"{value:.3g}</span>"
        f'<span style="background:#e9ecef;border-radius:4px;height:10px">'
        f'<span style="display:block;width:{100 * part:.1f}%;height:10px;border-radius:4px;'
        f'background:{color}"></span></span></div>'
    )


def _numbers(snapshot: RodSnapshot) -> str:
    values = snapshot.values

    def text(name: str, form: str, factor: float = 1.0) -> str:
        value = factor * values.get(name, np.nan)
        return form.format(value) if np.isfinite(value) else "–"

    cells = [
        ("one solve", text("solve_us", "{:.0f} µs")),
        ("solves", text("rate_hz", "{:.0f} Hz")),
        ("residual", text("residual", "{:.0e}")),
        ("remaining", text("remaining", "{:.0f} %", 100.0)),
    ]
    grid = "".join(
        f'<div><div style="color:{GREY};font-size:10.5px">{name}</div>'
        f'<div style="font-size:12.5px;font-weight:600;font-variant-numeric:tabular-nums">'
        f"{escape(value)}</div></div>"
        for name, value in cells
    )
    return (
        f'<div style="display:grid;grid-template-columns:1fr 1fr 1fr 1fr;gap:6px;margin-top:5px">'
        f"{grid}</div>"
    )


def legend_html(colors: RodColors, snapshot: RodSnapshot) -> str:
    """Return the colour scale and the largest value of every rod as HTML."""
    quantity, scale = colors.quantity, colors.scale
    largest = colors.values(snapshot.lines).max(axis=1)
    rows = "".join(
        f'<span style="white-space:nowrap"><span style="display:inline-block;width:9px;'
        f"height:9px;border-radius:5px;margin-right:4px;background:"
        f'{css(scale.colors(np.array([value]))[0])}"></span>{escape(name)}'
        f'&nbsp;<b style="font-variant-numeric:tabular-nums">{value:.3g}</b></span>'
        for name, value in zip(colors.names, largest, strict=True)
    )
    return (
        f'<div style="padding:0 12px 4px;font-size:11px">'
        f'<div style="height:9px;border-radius:3px;background:{css_gradient()}"></div>'
        f'<div style="display:flex;justify-content:space-between;color:{GREY}">'
        f"<span>{scale.low:g}</span><span>{quantity.title} [{quantity.unit}]</span>"
        f"<span>{scale.high:g}</span></div>"
        f'<div style="display:grid;grid-template-columns:1fr 1fr 1fr;gap:1px 8px;margin-top:3px">'
        f"{rows}</div></div>"
    )
