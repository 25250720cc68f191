"""The forms of the pose of the robot, and of what it holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import viser

from cards_core.robot.model import Node, Tree
from cards_core.typing import Array
from cards_viz.editor.session import EditorSession
from cards_viz.pages.widgets import Axis, Guard, SliderGroup


class PoseForm:
    """Sliders for the pose of the robot."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        tree = session.tree
        self._tree = tree
        axes = [axis for node in tree.nodes for axis in _axes(tree, node)]
        home = gui.add_button("Home pose", icon=viser.Icon.HOME, color="gray")
        self.group = SliderGroup(
            gui, axes, lambda values: run(lambda: session.pose(pose_of(tree, values)))
        )
        self.group.follow(home_values(tree))

        def go_home() -> None:
            session.pose(tree.home)
            self.group.forget()
            self.group.follow(home_values(tree))

        home.on_click(lambda _: run(go_home))


def home_values(tree: Tree) -> Array:
    """Return the values of the sliders at home: coordinates, and zero for ball joints."""
    out = np.zeros(tree.nv)
    for node in tree.nodes:
        if node.kind != "ball":
            out[node.v] = tree.home[node.q]
    return out


def pose_of(tree: Tree, values: Array) -> Array:
    """Return q, shape (nq,), of values as of `home_values`; balls turn from home."""
    step = np.zeros(tree.nv)
    out = tree.home.copy()
    for node in tree.nodes:
        if node.kind == "ball":
            step[node.v : node.v + 3] = values[node.v : node.v + 3]
    out = tree.integrate(out, step)
    for node in tree.nodes:
        if node.kind != "ball":
            out[node.q] = values[node.v]
    return out


def _axes(tree: Tree, node: Node) -> list[Axis]:
    if node.kind == "ball":
        return [
            Axis(f"{tree.velocity_names[node.v + k]} [°]", -math.pi, math.pi, 180 / math.pi, 0.5)
            for k in range(3)
        ]
    low, high, home = (float(v[node.q]) for v in (tree.lower, tree.upper, tree.home))
    turning = node.kind == "revolute"
    unit, factor, step, span = (
        ("°", 180 / math.pi, 0.5, math.pi) if turning else ("mm", 1e3, 1.0, 1.0)
    )
    low = low if math.isfinite(low) else home - span
    high = high if math.isfinite(high) else home + span
    return [Axis(f"{node.name} [{unit}]", low, high, factor, step)]


class LoadForm:
    """What the robot holds."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        frames = [*(f.name for f in session.editor.base.frames), *session.editor.links]
        load = session.view().load
        first = frames[-1] if load is None else load.frame
        frame = gui.add_dropdown("load at", frames, initial_value=first)
        mass = gui.add_slider(
            "mass [kg]", min=0.0, max=20.0, step=0.1, initial_value=0.0,
            hint="weight that hangs at the origin of this frame; gravity of the links acts anyway",
        )  # fmt: skip

        def moved(event: Any) -> None:
            if event.client is not None:
                run(lambda: session.hold(str(frame.value), float(mass.value)))

        frame.on_update(moved)
        mass.on_update(moved)
