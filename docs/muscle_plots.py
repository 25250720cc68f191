"""Draw the curves of muscles.md and wrapping.md: ``python docs/muscle_plots.py``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import EXCITATION, LENGTH, PRESSURE
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot.actuators import (
    Actuator,
    Hill,
    Ligament,
    Pneumatic,
    SeriesElastic,
    Spring,
)
from cards_core.robot.elements import WORLD, Link, Muscle, ViaPoint, Wrap
from cards_core.robot.model import Robot
from cards_core.typing import Array

IMAGES = Path(__file__).with_name("images")
HILL = {"max_isometric_force": 1000.0, "optimal_fiber_length": 0.1, "tendon_slack_length": 0.2}
SETS = {"de_groote_2016": "tab:blue", "thelen_2003": "tab:orange"}


def bank_of(actuator: Actuator, count: int, dt: float = 2e-3) -> ActuatorBank:
    """Return a bank of equal muscles."""
    path = (ViaPoint(WORLD, np.zeros(3)), ViaPoint("body", np.array([0.0, 0.0, 1.0])))
    muscles = tuple(Muscle(f"m{i}", path, 0.0, 1e5, actuator) for i in range(count))
    return ActuatorBank(Robot("plot", (Link("body"),), (), muscles), dt, "numeric")


def settled(actuator: Actuator, lengths: Array, kind: int, value: float, steps: int) -> Array:
    """Return the tensions at constant lengths after some steps."""
    count = len(lengths)
    bank = bank_of(actuator, count)
    bank.reset(lengths)
    for _ in range(steps):
        tension = bank.step(lengths, np.zeros(count), np.full(count, kind), np.full(count, value))
    return tension.copy()


def finish(axes: Axes, x: str, y: str, title: str) -> None:
    """Label a plot."""
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False, loc="best")


def force_length(axes: Axes) -> None:
    """Isometric force over the length of the whole muscle, elastic tendon."""
    lengths = np.linspace(0.25, 0.37, 81)
    for curves, colour in SETS.items():
        for activation, style in ((1.0, "-"), (0.5, "--"), (0.0, ":")):
            hill = Hill(**HILL, curves=curves)
            tension = settled(hill, lengths, EXCITATION, activation, 400)
            label = f"{curves}, a = {activation:g}" if activation else f"{curves}, relaxed"
            axes.plot(lengths * 1e3, tension, style, color=colour, label=label)
    axes.set_ylim(0, 1900)
    finish(axes, "muscle length [mm]", "tension [N]", "isometric, F0 = 1000 N")


def force_velocity(axes: Axes) -> None:
    """Tension of the fully active muscle that passes its optimal length at a constant speed."""
    speeds = np.linspace(-0.9, 0.6, 61)
    dt = 5e-4
    for curves, colour in SETS.items():
        for damping, style in ((0.01, "-"), (0.1, ":")):
            hill = Hill(**HILL, curves=curves, tendon="rigid", damping=damping)
            bank = bank_of(hill, len(speeds), dt)
            bank.reset(np.full(len(speeds), 0.3))
            kinds, ones = np.full(len(speeds), EXCITATION), np.ones(len(speeds))
            for _ in range(400):
                bank.step(np.full(len(speeds), 0.3), 0.0 * speeds, kinds, ones)
            tension = bank.step(np.full(len(speeds), 0.3), speeds, kinds, ones).copy()
            axes.plot(speeds, tension, style, color=colour, label=f"{curves}, beta = {damping:g}")
    finish(axes, "rate of the path [m/s]", "tension [N]", "at optimal length, a = 1, rigid tendon")


def activation(axes: Axes) -> None:
    """Activation and tension after a pulse of excitation."""
    times = np.arange(0, 0.5, 1e-3)
    for curves, colour in SETS.items():
        bank = bank_of(Hill(**HILL, curves=curves), 1, 1e-3)
        bank.reset(np.array([0.305]))
        history = []
        for t in times:
            pulse = np.array([1.0 if 0.05 <= t < 0.2 else 0.0])
            tension = bank.step(np.array([0.305]), np.zeros(1), np.array([EXCITATION]), pulse)[0]
            history.append((bank.state_values[0], tension / 1000.0))
        active, tension = np.array(history).T
        axes.plot(times * 1e3, active, "--", color=colour, label=f"{curves}, activation")
        axes.plot(times * 1e3, tension, "-", color=colour, label=f"{curves}, tension/F0")
    axes.axvspan(50, 200, color="0.9")
    finish(axes, "time [ms]", "", "excitation 1 for 150 ms, isometric")


def pneumatic(axes: Axes) -> None:
    """Tension over contraction at several pressures."""
    contraction = np.linspace(0.0, 0.37, 75)
    braid = {"thread_length": 0.3, "turns": 2.0, "rest_length": 0.27, "pressure_time": 1e-3}
    for k, style in ((1.0, "-"), (1.3, "--")):
        for bar, colour in ((1, "tab:blue"), (3, "tab:orange"), (5, "tab:red")):
            item = Pneumatic(**braid, end_correction=k)
            tension = settled(item, 0.27 * (1.0 - contraction), PRESSURE, 1e5 * bar, 40)
            axes.plot(contraction * 100, tension, style, color=colour, label=f"{bar} bar, k = {k}")
    finish(axes, "contraction [%]", "tension [N]", "McKibben, b = 0.3 m, n = 2, L0 = 0.27 m")


def ligament(axes: Axes) -> None:
    """Tension over strain."""
    strain = np.linspace(-0.02, 0.15, 100)
    for toe in (0.03, 0.06):
        item = Ligament(stiffness=1000.0, slack_length=0.1, toe_strain=toe)
        tension = settled(item, 0.1 * (1.0 + strain), EXCITATION, 0.0, 1)
        axes.plot(strain * 100, tension, label=f"toe strain {toe:g}")
    finish(axes, "strain [%]", "tension [N]", "ligament, k = 1000 N")


def springs(axes: Axes) -> None:
    """Tension over elongation of the springs, with the motor standing still."""
    elongation = np.linspace(0.0, 0.014, 100)
    for spring, label in (
        (Spring(law="triangle", stiffness=30680.0), "triangle, k = 30.7 N/mm"),
        (Spring(law="exponential", force_scale=15.0, growth=250.0), "exponential, 15 N, 250 1/m"),
        (Spring(law="polynomial", stiffness=15e3), "polynomial, k = 15 N/mm"),
    ):
        item = SeriesElastic(spring=spring)
        bank = bank_of(item, 1)
        bank.reset(np.array([0.3]))
        tension = []
        for d in elongation:
            bank.reset(np.array([0.3]))
            tension.append(bank_step(bank, 0.3 + d))
        axes.plot(elongation * 1e3, tension, label=label)
    finish(axes, "elongation [mm]", "tension [N]", "springs of series elastic units")


def bank_step(bank: ActuatorBank, length: float) -> float:
    """Return the tension of a single muscle in its first step at a length."""
    given = (np.array([length]), np.zeros(1), np.array([LENGTH]), np.array([0.3]))
    return float(bank.step(*given)[0])


def elbow(*, wraps: bool = True, friction: float = 0.0) -> Robot:
    """Return the wrap elbow, with friction on its surfaces, or with straight lines instead."""
    robot = load("wrap_elbow")
    muscles = []
    for muscle in robot.muscles:
        path = tuple(
            replace(item, friction=friction) if isinstance(item, Wrap) else item
            for item in muscle.path
            if wraps or not isinstance(item, Wrap)
        )
        muscles.append(replace(muscle, path=path))
    return replace(robot, muscles=tuple(muscles))


def moment_arms(robot: Robot, muscle: int, angles: Array) -> Array:
    """Return -dl/dq of a muscle of the elbow as the dynamics give it, [m]."""
    dynamics = make_dynamics(robot)
    still = np.zeros(1)
    return np.array(
        [-dynamics.update(np.array([q]), still).muscle_jacobian[muscle, 0] for q in angles]
    )


def measured_arms(robot: Robot, muscle: int, angles: Array, h: float = 1e-5) -> Array:
    """Return -dl/dq from central differences of the engine's lengths, [m]."""
    dynamics, engine = make_dynamics(robot), MuscleEngine(robot)
    still = np.zeros((len(robot.links), 6))

    def length(q: float) -> float:
        return float(engine.motion(dynamics.link_poses(np.array([q])), still)[0][muscle])

    return np.array([(length(q - h) - length(q + h)) / (2.0 * h) for q in angles])


def touching(robot: Robot, muscle: int, angles: Array) -> tuple[float, float]:
    """Return the first and last angle at which a muscle of the elbow lies on its surface."""
    dynamics, engine = make_dynamics(robot), MuscleEngine(robot)
    on = []
    for q in angles:
        points = engine.path_points(dynamics.link_poses(np.array([q])))[muscle]
        pieces = np.linalg.norm(np.diff(points, axis=0), axis=1)
        on.append(bool(np.ptp(points[1:-1], axis=0).max() > 1e-6 * pieces.sum()))
    return float(angles[on].min()), float(angles[on].max())


def arms_of(axes: Axes, muscle: int, title: str, colour: str) -> None:
    """Moment arm of a muscle of the elbow over flexion, wrapped and straight."""
    angles = np.linspace(0.0, 2.0, 401)
    few = np.linspace(0.02, 1.98, 15)
    robot = elbow()
    a, b = np.degrees(touching(robot, muscle, angles))
    axes.axvspan(a, b, color="0.92", label="on the surface")
    arms = moment_arms(elbow(wraps=False), muscle, angles)
    axes.plot(np.degrees(angles), arms * 1e3, ":", color="0.3", label="straight line instead")
    arms = moment_arms(robot, muscle, angles)
    axes.plot(np.degrees(angles), arms * 1e3, color=colour, label="wrapped, -L")
    arms = measured_arms(robot, muscle, few)
    axes.plot(np.degrees(few), arms * 1e3, "k.", ms=5, label="differences of l")
    axes.axhline(0.0, color="0.6", lw=0.8)
    finish(axes, "flexion [deg]", "moment arm -dl/dq [mm]", title)
    axes.set_xlim(0, np.degrees(2.0))


def biceps_arms(axes: Axes) -> None:
    """Cylinder: closed form."""
    arms_of(axes, 0, "biceps over a cylinder", "tab:red")


def triceps_arms(axes: Axes) -> None:
    """Ellipsoid: geodesic."""
    arms_of(axes, 1, "triceps over an ellipsoid", "tab:blue")


def capstan(axes: Axes) -> None:
    """Tension of the triceps at its insertion, for a constant tension at its origin."""
    angles = np.linspace(0.0, 2.0, 201)
    for speed, colour, label in (
        (1.0, "tab:orange", "lengthens"),
        (-1.0, "tab:green", "shortens"),
    ):
        for mu, style in ((0.3, "-"), (0.1, "--")):
            robot = elbow(friction=mu)
            dynamics, engine = make_dynamics(robot), MuscleEngine(robot)
            forearm = [link.name for link in robot.links].index("forearm")
            twists = np.zeros((len(robot.links), 6))
            twists[forearm, 4] = -speed  # flexion turns about -y and lengthens the triceps
            pulls = []
            for q in angles:
                poses = dynamics.link_poses(np.array([q]))
                state = engine.update(poses, twists, np.array([0.0, 100.0, 0.0]))
                pulls.append(np.linalg.norm(state.wrenches[forearm, :3]))
            axes.plot(np.degrees(angles), pulls, style, color=colour, label=f"{label}, mu = {mu}")
    start, end = np.degrees(touching(elbow(), 1, angles))
    axes.axvspan(start, end, color="0.92")
    finish(axes, "flexion [deg]", "tension at the insertion [N]", "triceps, 100 N at the origin")
    axes.set_xlim(0, np.degrees(2.0))


def main() -> None:
    """Draw everything."""
    figures = {
        "muscle_hill": (force_length, force_velocity, activation),
        "muscle_passive": (pneumatic, ligament, springs),
        "muscle_wrapping": (biceps_arms, triceps_arms, capstan),
    }
    IMAGES.mkdir(exist_ok=True)
    for name, plots in figures.items():
        figure, axes = plt.subplots(1, 3, figsize=(13, 4), constrained_layout=True)
        for axis, plot in zip(axes, plots, strict=True):
            plot(axis)
        figure.savefig(IMAGES / f"{name}.png", dpi=80)
        plt.close(figure)


if __name__ == "__main__":
    main()
