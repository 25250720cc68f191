"""Plots of bodies held by cables: prestress, and the shapes of modes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from cards_core.analysis.tangent import TangentSpace
from cards_core.dynamics.interface import Dynamics
from cards_core.robot.elements import WORLD, Cylinder
from cards_core.tensegrity.statics import Modes
from cards_core.typing import Array
from cards_viz.plots.drawing import TENSION_COLORMAP, styled_figure

RODS = "#30363d"
"""Colour of bodies."""

REST, MOVED = "#c4c8cc", "#0b6e99"
"""Colours of the structure at rest, and of a mode."""

AMPLITUDE = 0.1
"""Largest displacement that is drawn of a mode, relative to the size of the structure."""

COLUMNS = 3
"""Modes in a row."""


def prestress(dynamics: Dynamics, q: Array, tensions: Array, title: str) -> Figure:
    """Draw a structure with cables coloured by tension.

    Args:
        dynamics: Of the robot.
        q: The shape, shape (nq,).
        tensions: f, shape (m,), [N].
        title: Of the figure.
    """
    with styled_figure(6.4, 5.4, title) as figure:
        axes: Any = figure.add_subplot(projection="3d")
        rods, cables = segments(dynamics, q)
        _frame(axes, np.vstack([rods, cables]))
        axes.add_collection3d(Line3DCollection(rods, colors=RODS, linewidths=3.5))
        norm = Normalize(min(0.0, float(tensions.min())), float(tensions.max()))
        lines = Line3DCollection(cables, cmap=TENSION_COLORMAP, norm=norm, linewidths=1.8)
        lines.set_array(tensions[_owners(dynamics)])
        axes.add_collection3d(lines)
        figure.colorbar(lines, ax=axes, label="tension [N]", shrink=0.7)
    return figure


def modes(dynamics: Dynamics, q: Array, found: Modes, title: str, *, count: int = 6) -> Figure:
    """Draw the softest modes, each over the structure at rest.

    Args:
        dynamics: Of the robot.
        q: The equilibrium, shape (nq,).
        found: Its modes.
        title: Of the figure.
        count: How many.
    """
    count = min(count, found.shapes.shape[1])
    rows = -(-count // COLUMNS)
    rest = segments(dynamics, q)
    everything = np.vstack(rest)
    size = float(np.ptp(everything.reshape(-1, 3), axis=0).max())
    tangent = TangentSpace(dynamics.tree)
    with styled_figure(3.4 * COLUMNS, 0.6 + 3.3 * rows, title) as figure:
        for k in range(count):
            axes: Any = figure.add_subplot(rows, COLUMNS, k + 1, projection="3d")
            shape = found.shapes[:, k]
            # small first, to know how far the ends of rods and cables go
            step = 1e-6 / np.abs(shape).max()
            near = np.vstack(segments(dynamics, tangent.integrate(q, step * shape)))
            speed = float(np.linalg.norm(near - everything, axis=2).max()) / step
            amplitude = AMPLITUDE * size / speed
            moved = segments(dynamics, tangent.integrate(q, amplitude * shape))
            _frame(axes, everything, zoom=1.45)
            axes.computed_zorder = False
            for z, (rods, cables) in enumerate((rest, moved)):
                color = (REST, MOVED)[z]
                for lines, width in ((rods, 2.6), (cables, 0.8)):
                    pieces = Line3DCollection(lines, colors=color, linewidths=width, zorder=z)
                    axes.add_collection3d(pieces)
            frequency = found.frequencies[k]
            text = f"{frequency:.4g} Hz" if np.isfinite(frequency) else "unstable"
            axes.set_title(f"{k + 1}: {text}")
            axes.set_axis_off()
    return figure


def segments(dynamics: Dynamics, q: Array) -> tuple[Array, Array]:
    """Return ends of rods and of the straight pieces of cables, shapes (k, 2, 3), [m].

    Rods are the cylinders of the links; of a link without, lines from its origin to the cables.
    """
    robot = dynamics.robot
    poses = {
        link.name: pose for link, pose in zip(robot.links, dynamics.link_poses(q), strict=True)
    }
    poses[WORLD] = np.eye(4)
    rods = []
    for link in robot.links:
        own = poses[link.name]
        cylinders = [v for v in link.visuals if isinstance(v.geometry, Cylinder)]
        for visual in cylinders:
            assert isinstance(visual.geometry, Cylinder)
            half = np.array([0.0, 0.0, 0.5 * visual.geometry.length])
            ends = np.array([visual.pose.apply(-half), visual.pose.apply(half)])
            rods.append(ends @ own[:3, :3].T + own[:3, 3])
        if not cylinders:
            for muscle in robot.muscles:
                places = [p.position for p in muscle.via_points if p.link == link.name]
                rods += [np.array([own[:3, 3], own[:3, :3] @ x + own[:3, 3]]) for x in places]
    cables = []
    for muscle in robot.muscles:
        points = [
            poses[p.link][:3, :3] @ p.position + poses[p.link][:3, 3] for p in muscle.via_points
        ]
        cables += [np.array(pair) for pair in pairwise(points)]
    return np.array(rods).reshape(-1, 2, 3), np.array(cables).reshape(-1, 2, 3)


def _owners(dynamics: Dynamics) -> Any:
    """Return the muscle of every piece of a cable."""
    counts = [len(muscle.via_points) - 1 for muscle in dynamics.robot.muscles]
    return np.repeat(np.arange(len(counts)), counts)


def _frame(axes: Any, pieces: Array, *, zoom: float = 1.0) -> None:
    """Set limits with one scale for all three axes."""
    points = pieces.reshape(-1, 3)
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    half = 0.55 * np.maximum(np.ptp(points, axis=0), 0.3 * np.ptp(points, axis=0).max())
    axes.set_xlim(centre[0] - half[0], centre[0] + half[0])
    axes.set_ylim(centre[1] - half[1], centre[1] + half[1])
    axes.set_zlim(centre[2] - half[2], centre[2] + half[2])
    axes.set_box_aspect(half, zoom=zoom)
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.set_zlabel("z [m]")
    axes.locator_params(nbins=4)
