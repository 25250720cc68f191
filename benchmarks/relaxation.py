"""``./cards bench mrc``: time of a period of muscle relaxation control, and what it knows.

Three tables of the upper body ``musashi_like`` (20 muscles, 10 joints):

- **periods**: time of a controller step at 125 Hz, over all periods and over those in which the
  blocks of 40 Hz run too;
- **angles**: joints from muscle lengths alone with offsets of 2 mm and noise of 0.2 mm on the
  sensors, after 10 s of two motions, beside the Cramer-Rao bound of the same readings;
- **learning**: joint error at poses that were not seen before and after five minutes of learning.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.benchmarks.timing import Say, quiet_median
from cards_core.body_image.learned import LearnedBodyImage
from cards_core.control.mrc.controller import MuscleRelaxationControl
from cards_core.dynamics import make_dynamics
from cards_core.estimation import offset_bound
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.state import RobotState
from cards_core.shared_files import find_file
from cards_core.trajectories import Reference, from_dict, load_references
from cards_core.typing import Array
from cards_sim.build import build_host
from cards_sim.host import SimulatorHost

ROBOT = "musashi_like"
NOISE, OFFSET = 2e-4, 2e-3  # [m], of length sensors
STEP = 1e-3  # [s], of the simulator
FOUND = 10.0  # [s], time in which offsets are to be found
AFTER = 3.0  # [s], of an ordinary motion after that
HOME = [-0.35, 0.3, 0.0, -1.05, 0.0] * 2
LEAST = [-0.65, 0.15, -0.2, -1.5, -0.15] * 2
MOST = [-0.15, 0.45, 0.1, -0.9, 0.15] * 2

FORCE = {"left_hand": (0.0, 0.0, 10.0), "right_hand": (0.0, 0.0, 10.0)}
ESTIMATED: dict[str, Any] = {"joint_angles": "estimated", "length_offset": OFFSET}
LEARNED: dict[str, Any] = {"body_image": "learned", "attachment_offset": 0.002}
SETUPS: dict[str, tuple[dict[str, Any], Mapping[str, tuple[float, float, float]]]] = {
    "as it is": ({}, {}),
    "forces in both hands": ({}, FORCE),
    "estimated angles and offsets": (ESTIMATED, {}),
    "learned image, learning": ({**LEARNED, "learning": True}, {}),
    "learned image, estimated angles and offsets, forces": ({**LEARNED, **ESTIMATED}, FORCE),
}


def bench_relaxation(say: Say, *, seeds: int = 8, lessons: float = 300.0) -> dict[str, Any]:
    """Measure; see the module.

    Args:
        say: Told what is being measured.
        seeds: Of the noise and the signs of the offsets; half as many robots learn.
        lessons: Simulated time of learning, [s].
    """
    result: dict[str, Any] = {"robot": ROBOT, "budget_us": 8000.0, "periods": []}
    states = _states(seconds=4.0)
    for name, (parameters, forces) in SETUPS.items():
        say(f"periods: {name}")
        result["periods"].append({"with": name, **time_periods(states, parameters, forces)})
    result["angles"] = []
    for name, motion in (("find_offsets", _find_offsets()), ("moves", _moves(21, 12))):
        for seed in range(seeds):
            say(f"angles: {name}, seed {seed}")
            result["angles"].append({"motion": name, "seed": seed, **follow(motion, seed)})
    result["learning"] = []
    for seed in range(max(1, seeds // 2)):
        say(f"learning: {lessons:g} s, seed {seed}")
        result["learning"].append({"seed": seed, **learn(seed, lessons)})
    return result


# Time -----------------------------------------------------------------------------------------


def time_periods(
    states: list[RobotState],
    parameters: Mapping[str, Any],
    forces: Mapping[str, tuple[float, float, float]],
    *,
    repetitions: int = 5,
) -> dict[str, float]:
    """Return medians of a controller step [us], in the quietest of some repetitions.

    Args:
        states: Of a run, one per period of 8 ms.
        parameters: Of the controller.
        forces: That links are to exert, [N].
        repetitions: How often all states are gone through.
    """
    medians = []
    for _ in range(repetitions):
        _, loop = _closed_loop(_moves(21, 3), **parameters)
        controller = loop.controller
        assert isinstance(controller, MuscleRelaxationControl)
        for link, force in forces.items():
            controller.set_contact_force(link, force)
        every, heavy = [], []
        for state in states:
            necessary = controller.necessary
            start = time.perf_counter_ns()
            controller.step(state)
            every.append(time.perf_counter_ns() - start)
            if controller.necessary is not necessary:  # found again
                heavy.append(every[-1])
        medians.append((np.median(every) / 1e3, np.median(heavy) / 1e3))
    all_periods, with_model = np.min(medians, axis=0)
    return {"period_us": float(all_periods), "with_40_hz_blocks_us": float(with_model)}


def _states(seconds: float) -> list[RobotState]:
    """Return a state per period of a run."""
    host, loop = _closed_loop(_moves(21, 3))
    states = []
    for step in range(round(seconds / STEP)):
        if step % 8 == 0:
            states.append(host.state.copy())
        host.submit(loop.step(host.state))
        host.step()
    return states


# Joint angles ---------------------------------------------------------------------------------


def follow(motion: Reference, seed: int) -> dict[str, float]:
    """Return errors of joints and offsets of one run, and the bound of the latter.

    Args:
        motion: Reference of the run; it goes on for `AFTER` behind `FOUND`.
        seed: Of noise and offsets.
    """
    host, loop = _closed_loop(motion, length_noise=NOISE, **ESTIMATED)
    controller = loop.controller
    assert isinstance(controller, MuscleRelaxationControl)
    muscles, rng = len(controller.offsets), np.random.default_rng(seed)
    b = OFFSET * rng.choice((-1.0, 1.0), muscles)
    errors: list[Array] = []
    poses: list[Array] = []
    found = np.zeros(muscles)
    for step in range(round((FOUND + AFTER) / STEP)):
        state = host.state.copy()
        state.q[:], state.qd[:] = np.nan, np.nan
        read = state.measured("muscle_lengths")
        state.muscle_lengths = read + b + NOISE * rng.standard_normal(muscles)
        if step % 25 == 0 and state.time < FOUND:
            poses.append(host.state.q.copy())
        (told,) = loop.step(state)
        # the muscles' law reads the same sensors
        lengths = told.rest_lengths - b
        host.submit((CommandPart("impedance", told.names, told.values, lengths, told.rest_rates),))
        if state.time >= FOUND:
            if not errors:
                found = controller.offsets
            errors.append(controller.output.actual - host.state.q)
        host.step()
    jacobians = make_dynamics(load(ROBOT)).batch(np.array(poses)).muscle_jacobian
    bound = np.sqrt(offset_bound(jacobians, NOISE, OFFSET).diagonal())
    rms = np.degrees(np.sqrt(np.mean(np.square(errors), axis=0)))
    return {
        "joint_rms_deg": float(rms.max()),
        "offset_error_mm": float(np.abs(found - b).max() * 1e3),
        "offset_bound_mm": float(bound.max() * 1e3),
    }


# Learning -------------------------------------------------------------------------------------


def learn(seed: int, lessons: float) -> dict[str, float]:
    """Return what learning makes of the joint error, and its times.

    Args:
        seed: Of the errors of the controller's model.
        lessons: [s].
    """
    wrong = {"attachment_offset": 0.002, "moment_arm_error": 0.05, "perturbation_seed": seed}
    others = _moves(99, 4)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "image.npz"
        before, _ = _mean_error(others, others.duration, **wrong)
        _, controller = _mean_error(
            _moves(11, round(lessons / 1.5)),
            lessons,
            body_image="learned",
            learning=True,
            **wrong,
        )
        image = controller.image
        assert isinstance(image, LearnedBodyImage)
        image.save(file)
        after, _ = _mean_error(
            others, others.duration, body_image="learned", body_image_file=str(file), **wrong
        )
    q, tensions = controller.output.actual, controller.necessary
    return {
        "error_before_rad": before,
        "error_of_before": after / before,
        "inference_us": quiet_median(lambda: image.evaluate(q, tensions)),
        "update_us": quiet_median(image.update),
    }


def _mean_error(
    reference: Reference, duration: float, **parameters: Any
) -> tuple[float, MuscleRelaxationControl]:
    """Return the mean norm of the joint error over a run without relaxation."""
    host, loop = _closed_loop(reference, relaxation=False, **parameters)
    controller = loop.controller
    assert isinstance(controller, MuscleRelaxationControl)
    errors = []
    while host.state.time < duration:
        host.submit(loop.step(host.state))
        host.step()
        errors.append(np.linalg.norm(controller.output.error))
    return float(np.mean(errors)), controller


# Runs -----------------------------------------------------------------------------------------


def _closed_loop(reference: Reference, **parameters: Any) -> tuple[SimulatorHost, ControlLoop]:
    robot = load(ROBOT)
    given = {"world": "", "initial_positions": reference(0.0)[0].tolist()}
    host = build_host(ParameterSet(given, "simulator"), robot)
    own = {"reference": "", "log_dir": "", "perturbation_seed": 3, **parameters}
    return host, make_control_loop("mrc", ParameterSet(own, "mrc"), robot, reference)


def _moves(seed: int, count: int) -> Reference:
    """Return moves of 1.2 s to random poses not far from each other, with rests of 0.3 s."""
    rng = np.random.default_rng(seed)
    points = [(0.0, HOME)]
    for _ in range(count):
        place = rng.uniform(LEAST, MOST).tolist()
        points += [(1.2, place), (0.3, place)]
    return _reference(points)


def _find_offsets() -> Reference:
    """Return the motion that is made for it, and ordinary ones after it."""
    path = find_file(ROBOT, folder="config/trajectories", suffix=".yaml")
    motion = load_references(path)["find_offsets"]
    knots = np.linspace(0.0, motion.duration, 9)
    points = [(float(knots[1]), motion(t)[0].tolist()) for t in knots]
    rng = np.random.default_rng(21)
    points += [(1.5, rng.uniform(LEAST, MOST).tolist()) for _ in range(2)]
    return _reference(points)


def _reference(points: list[tuple[float, Any]]) -> Reference:
    """Return a quintic through poses; times since the last one."""
    steps = [{"position": points[0][1]}, *({"time": t, "position": p} for t, p in points[1:])]
    kind = {"kind": "quintic", "space": "joint", "time_definition": "relative", "points": steps}
    names = load(ROBOT).tree.position_names
    return from_dict({"trajectories": {"task": kind}}, names=names, source=__name__)["task"]
