"""The tracker's policy against a solver made of formulas: a fold, a jump, NaN, nothing at all.

The toy has one joint q and a plate that moves along z. Its equilibrium and stiffness are

    z = 0.5 - sqrt(0.1 - q)     K_zz = k sqrt(0.1 - q)

a fold at q = 0.1: nothing exists beyond, and the plate moves ever faster towards it.
"""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.rods.robots.robot import Base, BaseKind, Limb, Plate, RodRobot, Tip, TipKind
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.initial_search import SearchResult
from cards_core.rods.tracking.tracker import Tracker

FOLD = 0.1


def toy_robot() -> RodRobot:
    rod = Rod(Section.circle(0.001), Material(young=200e9, shear=80e9, density=8000.0))
    base = Base(BaseKind.PRISMATIC, np.eye(4), np.eye(4), -0.5, 0.5, "slide")
    limb = Limb("rod", rod, 1.0, base, Tip(TipKind.FIXED, np.eye(4), np.eye(4)))
    home = np.eye(4)
    home[2, 3] = 0.5 - np.sqrt(FOLD)
    plate = Plate("plate", 1.0, np.zeros(3), np.eye(3), home)
    return RodRobot(
        "toy", (limb,), plate, np.zeros(3), controlled=("z",), initial_q=np.array([0.0])
    )


class ToySolver:
    """What the tracker needs of a solver."""

    def __init__(self, robot, beyond=None):
        self.robot, self.beyond, self.asked = robot, beyond, []
        self.base, self.gravity, self.slots = np.eye(4), np.zeros(3), np.arange(6)
        self.iterations = 0

    def solution(self, z, eigenvalue, q, **more):
        pose = np.eye(4)
        pose[2, 3] = z
        jacobian = np.zeros((6, 1))
        jacobian[2] = 0.5 / max(abs(eigenvalue), 1e-9)
        values = {
            "status": RodStatus.OK,
            "q": np.array([q]),
            "pose": pose,
            "base_wrenches": np.zeros((1, 6)),
            "tip_wrenches": np.zeros((1, 6)),
            "linear": SimpleNamespace(limb_signs=np.ones(1)),
            "stiffness": np.diag([9.0, 9.0, eigenvalue, 9.0, 9.0, 9.0]),
            "min_eigenvalue": eigenvalue,
            "eigenvalues": np.sort([9.0, 9.0, eigenvalue, 9.0, 9.0, 9.0]),
            "eigenvector": np.eye(6)[2],
            "jacobian": jacobian,
            "segments": 1,
        }
        return SimpleNamespace(**(values | more))

    def exclusive(self):
        return nullcontext()

    def forget(self):
        pass

    def linearise(self, state, **_):
        names = ("A", "b", "D", "r", "G", "c", "E", "r_balance")
        shapes = ((1, 6, 6), (1, 6), (1, 6, 6), (1, 6), (1, 6, 6), (1, 6), (6, 6), (6,))
        blocks = {n: np.full(s, np.nan) for n, s in zip(names, shapes, strict=True)}
        return SimpleNamespace(**blocks)

    def dgm(self, q, *, wrench=None, frame="world", start=None):
        q = float(np.asarray(q)[0])
        self.asked.append(q)
        if self.beyond is not None and (other := self.beyond(self, q, start)) is not None:
            return other
        if q >= FOLD:
            return self.solution(np.nan, np.nan, q, status=RodStatus.NOT_CONVERGED)
        return self.solution(0.5 - np.sqrt(FOLD - q), np.sqrt(FOLD - q), q)

    def igm(self, pose, *, wrench=None, frame="world", start=None):
        z = pose[2, 3]
        self.asked.append(z)
        return self.solution(z, 0.5 - z, FOLD - (0.5 - z) ** 2)


def started(beyond=None):
    robot = toy_robot()
    solver = ToySolver(robot, beyond)
    tracker = Tracker(robot, solver)
    assert tracker.start().status is RodStatus.OK
    solver.asked.clear()
    return tracker, solver


def test_a_jump_of_the_slider_becomes_small_steps():
    tracker, solver = started()
    tracker.command_joints(np.array([0.05]))
    result = tracker.step(max_substeps=4)
    assert result.status is RodStatus.MOVING
    assert len(solver.asked) == 4
    assert result.remaining.joints == pytest.approx(0.03)
    result = tracker.run()
    assert result.status is RodStatus.OK
    assert result.arrived
    assert result.solution.q == pytest.approx([0.05])
    assert np.diff([0.0, *solver.asked]).max() <= 5e-3 * (1 + 1e-12)


def test_stops_before_the_fold_and_comes_back():
    tracker, solver = started()
    tracker.command_joints(np.array([0.3]))
    result = tracker.run()
    assert result.status is RodStatus.NEAR_LIMIT
    assert result.held
    assert 0.0 < result.min_eigenvalue < 0.05 * result.reference_eigenvalue
    assert FOLD - 1e-4 < result.solution.q[0] < FOLD
    assert "slides along +z" in result.message
    count = len(solver.asked)
    assert tracker.step().held
    assert len(solver.asked) == count  # nothing is tried again
    tracker.command_joints(np.array([0.0]))
    assert tracker.run().status is RodStatus.OK


def test_a_pose_beyond_the_fold_is_refused_though_it_can_be_solved():
    tracker, _ = started()
    pose = np.eye(4)
    pose[2, 3] = 0.6
    tracker.command_pose(pose)
    result = tracker.run()
    assert result.status is RodStatus.NEAR_LIMIT
    assert result.min_eigenvalue > 0.0
    assert result.solution.pose[2, 3] < 0.5


def jump(solver, q, start):
    """A second branch, 1 m away, is all that is found beyond q = 0.02."""
    if q > 0.02 or start.pose[2, 3] < -0.5:
        return solver.solution(-1.0, 5.0, q)
    return None


def test_a_jump_to_another_branch_is_reported_and_undone():
    tracker, _ = started(jump)
    tracker.command_joints(np.array([0.05]))
    result = tracker.run()
    assert result.status is RodStatus.BRANCH_CHANGED
    assert result.held
    assert result.solution.q[0] == pytest.approx(0.02, abs=1e-4)
    assert result.solution.pose[2, 3] > 0.0
    assert tracker.accept_branch().solution.pose[2, 3] == -1.0
    assert tracker.restore().solution.pose[2, 3] > 0.0


def test_nan_never_reaches_the_answer():
    def nan(solver, q, start):
        return solver.solution(np.nan, np.nan, np.nan) if q > 0.031 else None

    tracker, solver = started(nan)
    tracker.command_joints(np.array([0.05]))
    result = tracker.run()
    assert result.status is RodStatus.HELD
    assert np.isfinite(result.solution.pose).all()
    assert result.solution.q[0] == pytest.approx(0.031, abs=1e-4)
    assert len(solver.asked) < 40
    assert "held" in result.message


def test_refused_commands_change_nothing():
    tracker, solver = started()
    tracker.command_joints(np.array([0.05]))
    last = tracker.run()
    bent = np.diag([1.0, 1.0, 1.2, 1.0])
    for result, status in (
        (tracker.command_joints(np.array([0.6])), RodStatus.LIMIT),
        (tracker.command_joints(np.array([np.nan])), RodStatus.NOT_FINITE),
        (tracker.command_joints(np.array([0.1, 0.1])), RodStatus.INVALID),
        (tracker.command_pose(np.full((4, 4), np.inf)), RodStatus.NOT_FINITE),
        (tracker.command_pose(bent), RodStatus.INVALID),
        (tracker.set_wrench(np.zeros(6), "map"), RodStatus.INVALID),
        (tracker.set_wrench(np.full(6, np.nan)), RodStatus.NOT_FINITE),
    ):
        assert result.status is status
        assert result.message
    solver.asked.clear()
    assert tracker.step().status is RodStatus.OK
    assert tracker.solution is last.solution
    assert not solver.asked


def test_doubts_about_the_start_are_told_until_the_first_command(monkeypatch):
    from cards_core.rods.tracking import tracker as module

    robot = toy_robot()
    solver = ToySolver(robot)
    doubt = Finding(RodStatus.AMBIGUOUS, "bent to an arbitrary side")
    found = SearchResult(solver.dgm([0.0]), RodStatus.AMBIGUOUS, doubt.message, findings=(doubt,))
    monkeypatch.setattr(module, "home_equilibrium", lambda *_: found)
    tracker = Tracker(robot, solver)
    result = tracker.start()
    assert result.status is RodStatus.AMBIGUOUS
    assert result.findings == (doubt,)
    assert tracker.step().findings == (doubt,)
    assert tracker.command_joints([0.001]).findings == ()


def test_a_wrench_comes_on_gradually():
    tracker, solver = started()
    tracker.set_wrench(np.array([0.0, 0, 0.01, 0, 0, 0]))
    result = tracker.run()
    assert result.arrived
    assert len(solver.asked) == int(np.ceil(0.01 / np.sqrt(FOLD) / 5e-3))
    assert tracker.wrench[2] == 0.01


def test_saved_states_survive_json_and_strangers_are_refused():
    tracker, _ = started()
    tracker.command_joints(np.array([0.05]))
    tracker.run()
    state = json.loads(json.dumps(tracker.save()))
    tracker.command_joints(np.array([-0.05]))
    tracker.run()
    result = tracker.load(state)
    assert result.status is RodStatus.OK
    assert result.solution.q == pytest.approx([0.05])
    for wrong in ({}, state | {"joints": {"other": 0.0}}, state | {"pose": "x"}, "text"):
        assert tracker.load(wrong).status is RodStatus.INVALID
    assert tracker.solution is result.solution
