"""What of a reference the robot cannot do, found before anything moves.

A reference is followed without error: in joint space its own states are looked at, in operational
space those of the ideal robot, ``M qdd + C + G = -L' f`` (with joint motors ``+ tau``), that
obeys the controller. Told are

- coordinates that are told to leave the limits of their joints, or to be faster than they allow;
- states in which the controller finds no tensions within their limits that do what is asked, and
  how much slower the reference would have to be: y(t / s) for a factor s > 1 has the velocities
  ``yd / s`` and the accelerations ``ydd / s^2``; in the limit the robot stands still;
- places that the ideal robot does not reach, and the nearest one that it came to.

What the controller does not know (friction, contacts, the dynamics of actuators) is not seen here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cards_core.control.interface import ControlStatus
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.task_tally import POSITIONS, units_of
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.trajectories import JointLimits, Reference, tolerance_of
from cards_core.trajectories.base import Sample
from cards_core.trajectories.limits import first_violation
from cards_core.typing import Array

LOOKS = 3000
"""Maximum number of states that are looked at in joint space."""

LOOK_STEP = 0.01
"""Time between two of them, [s]; longer where there would be more than `LOOKS`."""

IDEAL_STEP = 0.002
"""Time step of the ideal robot, [s]."""

HORIZON = 60.0
"""What comes later is not looked at, [s]."""

SLOWER = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Factors by which a reference is tried slower."""

STANDSTILL = 1e6
"""Factor for a reference that as good as stands still."""

LASTING = 3
"""Steps in a row without feasible tensions that count: one may be the start of a motion."""


@dataclass(frozen=True, eq=False)
class _State:
    time: float
    q: Array
    qd: Array


class _Slower(Reference):
    """``y(t / factor)``."""

    def __init__(self, reference: Reference, factor: float) -> None:
        super().__init__(reference.size, factor * reference.duration)
        self._reference, self._factor = reference, factor

    def __call__(self, t: float) -> Sample:
        y, yd, ydd = self._reference(t / self._factor)
        return y, yd / self._factor, ydd / self._factor**2


def preview(control: ControlLoop, start: RobotState, duration: float = 0.0) -> tuple[str, ...]:
    """Return what a controller is asked for and cannot do, a sentence each; empty if all is well.

    Args:
        control: Controller and reference. Its steps are undone; its log is not for this.
        start: Of the run.
        duration: Of the run, [s]; 0: as long as the reference takes.
    """
    controller = control.controller
    tree = controller.model.dynamics.tree
    planned = control.planned(start)
    if planned is None or tree.nq != tree.nv or not np.isfinite(start.q).all():
        return ()
    end = min(planned.duration, duration or np.inf, HORIZON)
    told = []
    if controller.space == "joint":
        told += _beyond_limits(planned, JointLimits.of(tree), end)
    if controller.needs:
        return tuple(told)  # it asks for more than an ideal robot can tell
    try:
        if controller.space == "joint":
            told += _of_joints(control, planned, end)
        else:
            told += _of_frame(control, planned, start, end)
    finally:
        controller.reset()
        control.start()
    return tuple(told)


def _beyond_limits(planned: Reference, limits: JointLimits, end: float) -> list[str]:
    cut, step = _Cut(planned, end), LOOK_STEP / 10
    found = first_violation(cut, limits, time_step=step, tolerance=1e-6)
    if found is None:
        return []
    j = limits.names.index(found.coordinate)
    if found.kind == "velocity":
        # what is told is the first violation, and later ones may be worse
        rates = np.abs(cut.sample(np.linspace(0.0, end, int(np.ceil(end / step)) + 1))[1])
        times = np.ceil(100.0 * max((rates / limits.velocity).max(), 1.0)) / 100.0
        feasible = f"up to {found.limit:.4g} per second, {times:g} times slower"
    else:
        feasible = f"{limits.lower[j]:.4g} to {limits.upper[j]:.4g}"
    return [f"reference: {found} (feasible: {feasible})"]


class _Cut(Reference):
    """A reference up to a time."""

    def __init__(self, reference: Reference, end: float) -> None:
        breaks = [time for time in reference.breaks if time < end]
        super().__init__(reference.size, end, (*breaks, end))
        self._reference = reference

    def __call__(self, t: float) -> Sample:
        return self._reference(t)


def _of_joints(control: ControlLoop, planned: Reference, end: float) -> list[str]:
    """Look at the states of the reference themselves."""
    count = int(min(np.ceil(end / LOOK_STEP), LOOKS)) + 1
    states = []
    for time in np.linspace(0.0, end, count):
        q, qd, _ = planned(float(time))
        states.append(_State(float(time), q, qd))
    bad = _without_tensions(control, planned, states, 1.0)
    return [_say(control, planned, bad, f"{len(bad)} of {count} states")] if bad else []


def _without_tensions(
    control: ControlLoop, planned: Reference, states: Sequence[_State], factor: float
) -> list[_State]:
    """Return the states in which a reference that is slower by a factor cannot be done."""
    controller = control.controller
    controller.reset()
    controller.set_reference(_Slower(planned, factor))
    bad = []
    for one in states:
        controller.step(RobotState(factor * one.time, one.q, one.qd / factor))
        if _infeasible(controller.output.status):
            bad.append(one)
    return bad


def _infeasible(status: ControlStatus) -> bool:
    return status in (ControlStatus.INFEASIBLE, ControlStatus.FALLBACK)


def _say(control: ControlLoop, planned: Reference, bad: Sequence[_State], how_often: str) -> str:
    """Report infeasible states, and what would be feasible."""
    at = f"reference: no tensions within their limits do what is asked at t = {bad[0].time:.3g} s"
    feasible = "not even standing still there"
    if not _without_tensions(control, planned, bad, STANDSTILL):
        feasible = f"more than {SLOWER[-1]:g} times slower"
        for factor in SLOWER:
            if not _without_tensions(control, planned, bad, factor):
                feasible = f"{factor:g} times slower"
                break
    return f"{at}, {how_often} (feasible: {feasible})"


def _of_frame(
    control: ControlLoop, planned: Reference, start: RobotState, end: float
) -> list[str]:
    """Let the ideal robot follow the reference."""
    out = control.controller.output
    tolerance = tolerance_of(planned, units_of(control.controller)[0]).length
    names = control.controller.reference_names
    positions = [i for i, name in enumerate(names) if name in POSITIONS]
    first: list[_State] = []
    lasting, worst, farthest = 0, 0.0, ("", "")
    error_at = 0.0
    for state in _ideal(control, planned, start, end):
        lasting = lasting + 1 if _infeasible(out.status) else 0
        if lasting == LASTING and not first:
            first = [replace(state, q=state.q.copy(), qd=state.qd.copy())]
        distance = float(np.linalg.norm(out.error[positions]))
        if distance > tolerance + control.controller.allowance and distance > worst:
            worst, error_at = distance, state.time
            farthest = _place(out.desired[positions]), _place(out.actual[positions])
    told = []
    if first:
        told.append(_say(control, planned, first, "for the first time"))
    if farthest[0]:
        axes = "".join(names[i] for i in positions)
        told.append(
            f"reference: {axes} {farthest[0]} m at t = {error_at:.3g} s is {1e3 * worst:.3g} mm "
            f"from where the robot comes to (feasible: {farthest[1]})"
        )
    return told


def _place(position: Array) -> str:
    return ", ".join(f"{x:.3f}" for x in position)


def _ideal(
    control: ControlLoop, planned: Reference, start: RobotState, end: float
) -> Iterator[_State]:
    """Step the ideal robot; yield the states that its controller was asked about."""
    controller = control.controller
    model, tree = controller.model, controller.model.dynamics.tree
    rows, out = motors_of(tree).rows, controller.output
    controller.reset()
    controller.set_reference(planned)
    q, qd = start.q.copy(), np.zeros(tree.nv)
    for k in range(int(end / IDEAL_STEP) + 1):
        time = k * IDEAL_STEP
        controller.step(RobotState(time, q, qd))
        if out.status is ControlStatus.INVALID_STATE:
            return
        yield _State(time, q, qd)
        state = model.dynamics.update(q, qd)
        force = -state.muscle_jacobian.T @ out.tensions - state.coriolis - state.gravity
        force[rows] += out.efforts
        if model.load is not None:
            force -= model.load(q, qd)
        qd = qd + IDEAL_STEP * np.linalg.solve(state.mass_matrix, force)
        q = q + IDEAL_STEP * qd
        stopped = (q < tree.lower) | (q > tree.upper)
        if stopped.any():
            q, qd = np.clip(q, tree.lower, tree.upper), np.where(stopped, 0.0, qd)
