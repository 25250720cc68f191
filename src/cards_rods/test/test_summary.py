"""Verdicts on runs of robots of rods, reason by reason."""

import numpy as np
import pytest

from cards_core.rods.status import RodStatus
from cards_rods.rod_simulation import log_columns
from cards_rods.summary import RodRun, judge_rods

STEPS = 101
PLAYED = RodRun(played=True, wanted_s=1.0)


def log(**changes):
    """One second of a plate that goes 0.2 m along x and follows exactly."""
    out = {
        name: np.zeros((STEPS,) if width is None else (STEPS, width))
        for name, width in log_columns(6).items()
    }
    poses = np.tile(np.eye(4), (STEPS, 1, 1))
    poses[:, 0, 3] = np.linspace(0.0, 0.2, STEPS)
    out |= {
        "time": np.linspace(0.0, 1.0, STEPS),
        "inverse": np.ones(STEPS),
        "pose": poses.reshape(STEPS, 16),
        "target_pose": poses.reshape(STEPS, 16),
        "min_eigenvalue": np.ones(STEPS),
    }
    return {**out, **changes}


def at(row, value, fill=0.0):
    out = np.full(STEPS, float(fill))
    out[row] = value
    return out


def test_a_good_run():
    verdict = judge_rods(log(), PLAYED)
    assert (verdict.name, verdict.warnings) == ("ok", ())
    moving = log(status=np.full(STEPS, float(RodStatus.MOVING)))
    assert judge_rods(moving, PLAYED).name == "ok"


@pytest.mark.parametrize(
    ("changes", "run", "text"),
    [
        ({"held": at(30, 1.0)}, {}, "1 of 101 steps, first at t = 0.300 s (OK)"),
        ({"status": at(30, RodStatus.NOT_CONVERGED)}, {}, "first at t = 0.300 s (NOT_CONVERGED)"),
        ({"position_error": np.full(STEPS, 0.02)}, {}, "position error 20 mm, tolerance 10 mm"),
        (
            {"rotation_error": np.full(STEPS, 0.03)},
            {},
            "rotation error 30 mrad, tolerance 20 mrad",
        ),
        ({"residual": at(0, np.nan)}, {}, "residual: 1 of 101 values are not finite"),
        ({}, {"wanted_s": 2.0}, "it ended after 1 s of 2 s"),
        ({}, {"failure": "it broke"}, "it broke"),
    ],
)
def test_reasons_to_fail(changes, run, text):
    verdict = judge_rods(log(**changes), RodRun(**{**vars(PLAYED), **run}))
    assert verdict.name == "failed"
    assert len(verdict.failures) == 1
    assert text in verdict.failures[0]


def test_tolerance_of_a_turn_is_a_part_of_it():
    poses = np.tile(np.eye(4), (STEPS, 1, 1))
    for pose, angle in zip(poses, np.linspace(0.0, 1.2, STEPS), strict=True):
        c, s = np.cos(angle), np.sin(angle)
        pose[:2, :2] = [[c, -s], [s, c]]
    turn = log(target_pose=poses.reshape(STEPS, 16), rotation_error=np.full(STEPS, 0.03))
    assert judge_rods(turn, PLAYED).name == "ok"  # 5 % of 1.2 rad are twice as much


def test_somebody_may_ask_for_what_a_robot_cannot_do():
    changes = {"held": at(30, 1.0), "position_error": np.full(STEPS, 0.5)}
    verdict = judge_rods(log(**changes), RodRun(stopped=True))
    assert verdict.name == "stopped"
    assert "did not follow its command in 1 of 101 steps" in verdict.warnings[0]


def test_steps_left_out_and_strained_rods_are_warnings():
    time = np.linspace(0.0, 1.0, STEPS)
    time[60:] += 0.1
    status = at(3, RodStatus.YIELD)
    verdict = judge_rods(log(time=time, status=status), PLAYED)
    assert verdict.name == "ok"
    assert verdict.warnings == (
        "a rod was strained beyond its yield strain in 1 steps",
        "10 steps were left out because they came too late",
    )
