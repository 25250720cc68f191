"""The compiled step beside its NumPy form: the same outputs, statuses and refusals everywhere."""

import gc
import math
import weakref
from dataclasses import replace

import numpy as np
import pytest
from control_robots import (
    Motion,
    ball_arm,
    bm_arm,
    hanging_platform,
    planar_2r,
    roboy_arm,
)
from hybrid_robots import platform_arm

from cards_core.control import (
    ControlModel,
    ControlStatus,
    CtcJoint,
    CtcOperational,
    native_program,
)
from cards_core.errors import CompilationError
from cards_core.optimize import daqp_library
from cards_core.robot.actuators import Ligament, SeriesElastic, Spring
from cards_core.robot.state import RobotState
from changed_robots import with_mass

OUTPUTS = "desired", "desired_dot", "actual", "actual_dot", "error", "acceleration"

TOLERANCE = 1e-12
"""Relative to the largest tension, of steps that are left to the NumPy form: their solver was
started from another active set."""


def with_ligament(robot):
    """The same robot, with a ligament beside its first muscle."""
    law = Ligament(stiffness=200.0, slack_length=0.05, damping=0.02, toe_strain=0.05)
    first = robot.muscles[0]
    more = replace(first, name="ligament", actuator=law, tension_min=0.0, tension_max=np.inf)
    return replace(robot, muscles=(*robot.muscles, more))


def elastic(robot):
    """The same robot, with elastic muscles."""
    law = SeriesElastic(spring=Spring(law="polynomial", stiffness=5e3))
    return replace(robot, muscles=tuple(replace(m, actuator=law) for m in robot.muscles))


CASES = {
    "arm": (roboy_arm, {}),
    "bm_arm": (bm_arm, {}),
    "planar": (planar_2r, {"axes": "xz"}),
    "motors": (platform_arm, {"axes": "xz"}),
    "ligament": (lambda: with_ligament(roboy_arm()), {}),
    "elastic": (lambda: elastic(roboy_arm()), {}),
    "ball": (ball_arm, {}),
    "free": (hanging_platform, {}),
    "pose": (hanging_platform, {"orientation": True}),
    "tilt": (roboy_arm, {"axes": "", "orientation": True}),
    "rate": (roboy_arm, {"tension_rate": 5e4}),
    "weights": (
        roboy_arm,
        {"kp": [300.0, 200.0, 100.0, 50.0], "force_weight": np.linspace(0.5, 2.0, 11)},
    ),
    "matrix": (planar_2r, {"axes": "xz", "kp": [[300.0, 40.0], [40.0, 200.0]]}),
}


def pair(kind, name, **more):
    """A controller with compiled steps, and one like it whose steps are NumPy's."""
    make, parameters = CASES[name]
    robot, parameters = make(), {**parameters, **more}
    cls = {"ctc_joint": CtcJoint, "ctc_operational": CtcOperational}[kind]
    if kind == "ctc_joint":
        for key in ("axes", "orientation"):
            parameters.pop(key, None)
    elif robot.operational_frame is None:
        pytest.skip(f"{name} has no operational frame")
    elif name == "weights":
        parameters["kp"] = parameters["kp"][:3]
    ours, theirs = (cls(ControlModel(robot), **parameters) for _ in range(2))
    assert ours.native == "yes"
    theirs.step_in_python()
    return ours, theirs


def compare(ours, theirs, state):
    """Step both and compare all that a step leaves behind."""
    for item in (ours, theirs):
        assert item.step(state) is item.command
    a, b = ours.output, theirs.output
    assert (a.status, a.time, ours.reason) == (b.status, b.time, theirs.reason)
    size = max(float(np.abs(b.tensions).max(initial=0.0)), float(np.abs(b.efforts).max(initial=0)))
    settled = a.status in (ControlStatus.OK, ControlStatus.INVALID_STATE)
    atol = 0.0 if settled else TOLERANCE * size
    np.testing.assert_allclose(a.tensions, b.tensions, rtol=0.0, atol=atol)
    np.testing.assert_allclose(a.efforts, b.efforts, rtol=0.0, atol=atol)
    for name in OUTPUTS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    if not settled:
        for item in (ours, theirs):
            item.reset()
    return a.status


def states(ours, count, seed, spread, speed):
    """Random states near home and farther, beyond joint limits too."""
    tree, rng = ours.dynamics.tree, np.random.default_rng(seed)
    for k in range(count):
        scale = spread * rng.uniform()
        q = tree.integrate(tree.home, scale * rng.standard_normal(tree.nv))
        yield RobotState(1e-3 * k, q, speed * rng.standard_normal(tree.nv))


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("name", CASES)
def test_both_forms_agree_on_random_states(kind, name):
    ours, theirs = pair(kind, name)
    found = {compare(ours, theirs, s) for s in states(ours, 60, 1, 0.05, 0.05)}
    found |= {compare(ours, theirs, s) for s in states(ours, 60, 2, 1.5, 5.0)}
    assert ControlStatus.OK in found
    assert found & {ControlStatus.INFEASIBLE, ControlStatus.JOINT_LIMIT}


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize(("name", "tolerance"), [("arm", 1e-8), ("arm", 1e-11), ("pose", 1e-8)])
def test_usual_steps_are_settled_in_one_call(kind, name, tolerance, monkeypatch):
    """With the second tolerance, residuals of rounding are judged row by row."""
    ours, _ = pair(kind, name, residual_tolerance=tolerance)

    def never(*_):
        raise AssertionError("a step of NumPy")

    monkeypatch.setattr(ours, "_formulate", never)
    for state in states(ours, 50, 3, 0.03, 0.02):
        ours.step(state)
        assert ours.output.status is ControlStatus.OK
        assert 0.0 < ours.output.solve_time < 1.0
        assert ours.output.iterations > 0


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
def test_both_forms_track_a_motion_alike(kind):
    ours, theirs = pair(kind, "arm")
    home = ours.dynamics.tree.home
    start = ours.place(home, np.zeros(4))
    k = ours.output.error.size

    def motion(t):
        wave = 0.05 * np.sin(6.0 * t) * np.ones(k)
        rate, bend = 0.3 * np.cos(6.0 * t) * np.ones(k), -1.8 * np.sin(6.0 * t) * np.ones(k)
        return start + wave, rate, bend

    for item in (ours, theirs):
        item.set_reference(Motion(k, motion), start=0.02)
    for i in range(200):
        t = 1e-3 * i
        q = home + 0.05 * np.sin(6.0 * t)
        compare(ours, theirs, RobotState(t, q, 0.3 * np.cos(6.0 * t) * np.ones(4)))


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("name", ["arm", "pose"])
def test_what_is_changed_between_steps_reaches_both_forms(kind, name):
    ours, theirs = pair(kind, name)
    link = ours.dynamics.robot.operational_frame
    changes = [
        lambda item: item.set_gains(250.0, 20.0),
        lambda item: item.set_gains(np.diag(np.full(item.output.error.size, 90.0)) + 3.0),
        lambda item: item.set_contact_force(link, [1.0, -2.0, 4.0], [0.0, 0.01, 0.0]),
        lambda item: item.set_contact_force(link, [0.0, 0.0, 0.0]),
        lambda item: item.reset(),
        lambda item: item.set_reference(None),
    ]
    if kind == "ctc_operational":
        changes.append(lambda item: item.set_posture_gains(30.0, 5.0))
    rows = list(states(ours, 8 * len(changes), 4, 0.03, 0.1))
    for i, change in enumerate(changes):
        for state in rows[8 * i : 8 * i + 8]:
            compare(ours, theirs, state)
        for item in (ours, theirs):
            change(item)
        again = RobotState(rows[8 * i + 7].time, rows[8 * i + 7].q, rows[8 * i + 7].qd)
        before = ours.output.tensions.copy()
        compare(ours, theirs, again)
        if i < 2:
            assert not np.array_equal(before, ours.output.tensions)


def test_model_errors_and_limits_are_those_of_the_model():
    robot = roboy_arm()
    state = RobotState(0.0, robot.tree.home + 0.02, np.zeros(4))
    answers = []
    for model, more in ((robot, {}), (with_mass(robot, 1.5), {}), (robot, {"tension_max": 60.0})):
        ours, theirs = (CtcJoint(ControlModel(model), **more) for _ in range(2))
        theirs.step_in_python()
        for item in (ours, theirs):
            item.set_reference(Motion(4, lambda t: (robot.tree.home, np.zeros(4), np.zeros(4))))
        compare(ours, theirs, state)
        answers.append(ours.output.tensions.copy())
    assert not np.allclose(answers[0], answers[1])
    assert answers[0].max() > 60.0 >= answers[2].max()


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200])
@pytest.mark.parametrize("where", ["q", "qd", "time", "reference", "force"])
def test_nonsense_gets_the_same_answer(kind, bad, where):
    ours, theirs = pair(kind, "arm")
    good = next(states(ours, 1, 5, 0.02, 0.1))
    y = ours.place(good.q, good.qd)
    k = ours.output.error.size
    wrong = RobotState(good.time, good.q.copy(), good.qd.copy())
    reference = Motion(k, lambda t: (y, np.zeros(k), np.zeros(k)))
    for item in (ours, theirs):
        item.set_reference(reference)
    compare(ours, theirs, good)
    if where in ("q", "qd"):
        getattr(wrong, where)[1] = bad
    elif where == "time":
        wrong.time = bad
    elif where == "reference":
        reference._functions = lambda t: (y, np.zeros(k), np.full(k, bad))
    else:
        for item in (ours, theirs):
            item._load = lambda q, qd: np.full(4, bad)
    with np.errstate(all="ignore"):
        status = compare(ours, theirs, wrong)
    finite = where == "time" and math.isfinite(bad)
    assert (status is ControlStatus.INVALID_STATE) != finite
    reference._functions = lambda t: (y, np.zeros(k), np.zeros(k))
    for item in (ours, theirs):
        item._load = None
    assert compare(ours, theirs, good) is ControlStatus.OK


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("shapes", [(3, 4), (4, 5), (1, 1), (0, 4)])
def test_wrong_shapes_get_the_same_answer(kind, shapes):
    said = []
    for item in pair(kind, "arm"):
        item.step(RobotState(0.0, item.dynamics.tree.home, np.zeros(4)))
        try:
            item.step(RobotState(0.1, np.zeros(shapes[0]), np.zeros(shapes[1])))
            said.append(item.output.tensions.tolist())
        except ValueError as error:
            said.append(str(error))
    # one number for all joints is spread over them: then there are tensions
    assert said[0] == (
        said[1] if isinstance(said[1], str) else pytest.approx(said[1], rel=TOLERANCE)
    )


def test_a_solver_that_gives_up_leaves_the_step_to_numpy():
    ours, theirs = pair("ctc_operational", "arm")
    for state in states(ours, 20, 6, 0.03, 0.02):
        ours._native._setup.program.iteration_limit = 1
        ours._native.reset()
        assert compare(ours, theirs, state) is ControlStatus.OK
        assert ours._native._setup.program.work is None  # the workspace was given back


class Own(CtcJoint):
    """Somebody else's: asks for no acceleration at all."""

    def _formulate(self, q, qd, acceleration):
        super()._formulate(q, qd, 0.0 * acceleration)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: CtcJoint(ControlModel(roboy_arm(), "numeric")), "dynamics are not compiled"),
        (lambda: CtcJoint(ControlModel(roboy_arm()), solver="osqp"), "only the solver daqp"),
        (lambda: CtcJoint(ControlModel(replace(roboy_arm(), muscles=()))), "nothing to command"),
        (lambda: Own(ControlModel(roboy_arm())), "Own has a _formulate of its own"),
    ],
)
def test_steps_of_python_say_why(make, reason):
    item = make()
    assert item.native.startswith("no, ")
    assert reason in item.native
    item.step(RobotState(0.0, item.dynamics.tree.home, np.zeros(item.dynamics.tree.nv)))


def test_without_a_compiler_steps_are_of_python(monkeypatch):
    def refuse(*_):
        raise CompilationError("there is no C compiler")

    monkeypatch.setattr(native_program, "_program", refuse)
    item = CtcJoint(ControlModel(roboy_arm()))
    assert item.native == "no, there is no C compiler"
    item.step(RobotState(0.0, item.dynamics.tree.home, np.zeros(4)))
    assert item.output.status is ControlStatus.OK


def test_other_releases_of_the_solver_are_not_called(monkeypatch):
    monkeypatch.setattr(daqp_library, "version", lambda name: "0.12.0")
    daqp_library.daqp_functions.cache_clear()
    try:
        item = CtcJoint(ControlModel(roboy_arm()))
        assert item.native == "no, daqp 0.12.0 is not known (expected: 0.11.0)"
        monkeypatch.undo()
        monkeypatch.setattr(daqp_library, "_SETTINGS", daqp_library._SETTINGS[:-1])
        daqp_library.daqp_functions.cache_clear()
        item = CtcJoint(ControlModel(roboy_arm()))
        assert item.native == "no, daqp 0.11.0 has other settings than those known"
    finally:
        daqp_library.daqp_functions.cache_clear()


def test_controllers_give_their_workspace_back():
    for _ in range(3):
        item = CtcJoint(ControlModel(planar_2r()))
        item.step(RobotState(0.0, np.array([-0.5, 0.5]), np.zeros(2)))
        item.reset()
        item.step(RobotState(0.1, np.array([-0.5, 0.5]), np.zeros(2)))
        native = weakref.ref(item._native)
        assert item._native._setup.program.work
        del item
        gc.collect()
        assert native() is None
