"""The compiled blocks of muscle relaxation control beside their Python form, to the last bit."""

import ctypes
import gc
import math
import weakref
from dataclasses import fields, replace

import numpy as np
import pytest
from control_robots import Motion, Plant, ball_arm, planar_2r, roboy_arm

from cards_core.body_image.geometric import GeometricBodyImage, Stretch
from cards_core.control import ControlModel, ControlStatus, controller_parameters, make_controller
from cards_core.control.mrc.controller import MuscleRelaxationControl
from cards_core.control.mrc.relaxation import Relaxation, RelaxationOptions
from cards_core.control.mrc.temperature_safety import Protection, TemperatureLimits
from cards_core.errors import CardsError, CompilationError, ParameterError
from cards_core.formats import load
from cards_core.muscles.impedance import impedance_tension
from cards_core.optimize.qp import QpStatus
from cards_core.robot.actuators import ImpedanceControl, Ligament, SeriesElastic, Spring
from cards_core.robot.state import RobotState
from changed_robots import with_mass

BIAS, PERIOD = 10.0, 0.008
TOLERANCE = 1e-12
"""Relative, where a block was left to Python: the solvers were started from other active sets."""


def held(robot, stiffness=2e4):
    """The same robot with muscles that are held by lengths."""
    law = ImpedanceControl(stiffness=stiffness, damping=50.0, tension_floor=BIAS)
    muscles = tuple(
        replace(m, control=law if m.takes_tension else m.control) for m in robot.muscles
    )
    return replace(robot, muscles=muscles)


def with_ligament():
    robot = held(roboy_arm())
    law = Ligament(stiffness=200.0, slack_length=0.05, damping=0.02, toe_strain=0.05)
    first = robot.muscles[0]
    more = replace(first, name="ligament", actuator=law, tension_min=0.0, tension_max=np.inf)
    return replace(robot, muscles=(*robot.muscles, more))


CASES = {
    "arm": (lambda: held(roboy_arm()), {}),
    "planar": (lambda: held(planar_2r()), {}),
    "musashi": (lambda: load("musashi_like"), {}),
    "ligament": (with_ligament, {}),
    "ball": (lambda: held(ball_arm()), {}),
    "ties": (
        lambda: held(roboy_arm()),
        {"options": RelaxationOptions(ties="tension", hold=0.05, resume=0.5, dtheta_max=0.02)},
    ),
    "held": (lambda: held(roboy_arm()), {"relaxation": False}),
    "estimated": (
        lambda: held(roboy_arm()),
        {"joint_angles": "estimated", "estimation_rate": 60.0},
    ),
}


def pair(name, **more):
    make, parameters = CASES[name]
    robot = make()
    ours, theirs = (make_controller("mrc", robot, **{**parameters, **more}) for _ in range(2))
    assert ours.native == "yes"
    theirs.step_in_python()
    assert theirs.native == "no, as asked for"
    return robot, ours, theirs


def same(a, b, rtol=0.0):
    size = max(float(np.nanmax(np.abs(b), initial=0.0)), 1e-300)
    np.testing.assert_allclose(a, b, rtol=0.0, atol=rtol * size)


def compare(ours, theirs, state, rtol=0.0):
    """Step both and compare all that a step leaves behind."""
    for item in (ours, theirs):
        told = item.step(state)
        assert told is item.command or (told is item.relaxed and not math.isfinite(state.time))
    a, b = ours.output, theirs.output
    assert (a.status, ours.reason) == (b.status, theirs.reason)
    np.testing.assert_array_equal(a.time, b.time)
    same(a.tensions, b.tensions, rtol)
    for name in ("values", "rest_lengths", "rest_rates"):
        same(getattr(ours.command[0], name), getattr(theirs.command[0], name), rtol)
    for name in ("desired", "desired_dot", "actual", "actual_dot", "error"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    # the norm of what no muscle gives, which BLAS adds up in an order of its own
    np.testing.assert_allclose(a.residual, b.residual, rtol=1e-9, atol=1e-11)
    same(ours.necessary, theirs.necessary, rtol)
    for one, other in ((ours.state, theirs.state), (ours.protection, theirs.protection)):
        for field in fields(one):
            x, y = getattr(one, field.name), getattr(other, field.name)
            if x is None or y is None:
                assert x is y, field.name
            elif rtol and isinstance(y, np.ndarray) and y.dtype == float:
                same(x, y, rtol)
            else:
                np.testing.assert_array_equal(x, y, err_msg=field.name)
    same(ours._hand_over.lead, theirs._hand_over.lead, rtol)
    assert ours._let_go == theirs._let_go
    return a.status


def state_of(robot, model, time, q, rng, **more):
    """A state with lengths of the geometry and tensions about those that hold."""
    m = len(robot.muscles)
    lengths = model.lengths(q)
    return RobotState(
        time,
        q.copy(),
        0.01 * rng.standard_normal(robot.tree.nv),
        muscle_lengths=lengths,
        muscle_rates=0.001 * rng.standard_normal(m),
        tensions=rng.uniform(5.0, 90.0, m),
        **more,
    )


@pytest.mark.parametrize("name", CASES)
def test_both_forms_agree_on_random_states(name):
    """Poses that jump and poses at rest, at the periods of hosts, with heat and lost sensors."""
    robot, ours, theirs = pair(name)
    model, tree = GeometricBodyImage(robot), robot.tree
    rng = np.random.default_rng(4)
    jump = name != "estimated"
    q, found, time = tree.home.copy(), set(), 0.0
    for k in range(240):
        time += float(rng.choice([0.001, 0.008, 0.008, 0.02]))
        if k % 60 == 20 and jump:
            q = tree.integrate(tree.home, 0.3 * rng.uniform() * rng.standard_normal(tree.nv))
        q = tree.integrate(q, 1e-4 * rng.standard_normal(tree.nv))
        state = state_of(robot, model, time, q, rng)
        if 60 <= k < 120:
            state.temperatures = rng.uniform(20.0, 79.0, len(robot.muscles))
            state.temperatures[1] = np.nan
        if k % 7 == 0:
            state.tensions[2] = np.nan
        if k == 200:
            state.temperatures = np.full(len(robot.muscles), 81.0)
        found.add(compare(ours, theirs, state))
    assert {ControlStatus.OK, ControlStatus.INFEASIBLE} <= found
    assert ours.protection.latched.any()


def test_a_period_is_one_call(monkeypatch):
    robot, ours, _ = pair("arm")

    def never(*_):
        raise AssertionError("a block of Python")

    monkeypatch.setattr(ours, "_tick", never)
    monkeypatch.setattr(ours, "_update_model", never)
    model, rng = GeometricBodyImage(robot), np.random.default_rng(0)
    for k in range(50):
        ours.step(state_of(robot, model, PERIOD * k, robot.tree.home, rng))
        assert ours.output.status is ControlStatus.OK
    assert ours.state.dl.any()


def test_both_forms_close_a_loop_alike():
    """Two loops of their own over 3 s, in motion, at rest, released: not a bit apart."""
    robot = held(planar_2r())
    home = np.array([-0.4, 0.9])
    paths = []
    for native in (True, False):
        # what the controller believes is not what is: there is inner tension to be released
        controller = make_controller("mrc", with_mass(robot, 1.3))
        if not native:
            controller.step_in_python()
        plant = Plant(robot, home)

        def bend(t):
            away = 0.2 * np.clip(t - 1.0, 0.0, 0.5) * np.array([1.0, -1.0])
            return home + away, np.zeros(2), np.zeros(2)

        controller.set_reference(Motion(2, bend))
        rows, told = [], None
        lengths = GeometricBodyImage(robot)
        tensions = np.full(4, BIAS)
        for k in range(3000):
            here = lengths.lengths(plant.q)
            rate = lengths.evaluate(plant.q, tensions)[1] @ plant.qd
            state = RobotState(
                1e-3 * k,
                plant.q,
                plant.qd,
                muscle_lengths=here,
                muscle_rates=rate,
                tensions=tensions,
            )
            (told,) = controller.step(state)
            law = impedance_tension(
                here,
                rate,
                rest_length=told.rest_lengths,
                rest_rate=told.rest_rates,
                tension=told.values,
                stiffness=np.full(4, 2e4),
                damping=np.full(4, 50.0),
                floor=np.full(4, BIAS),
            )
            tensions = np.minimum(law, 100.0)
            plant.step(tensions, 1e-3)
            rows.append(np.concatenate((plant.q, tensions, controller.state.dl)))
        assert np.abs(plant.q - bend(9.0)[0]).max() < 0.1
        paths.append(np.array(rows))
    assert paths[0][:, 6:].max() > 1e-3  # released
    np.testing.assert_array_equal(paths[0], paths[1])


def test_what_is_changed_between_steps_reaches_both_forms():
    robot, ours, theirs = pair("arm")
    model, rng = GeometricBodyImage(robot), np.random.default_rng(2)
    values = {spec.name: spec.default for spec in controller_parameters("mrc", robot)}
    kept = []
    changes = [
        lambda item: item.change({**values, "dl_plus": 1e-4, "dl_max": 5e-4}),
        lambda item: item.set_contact_force("lower_arm", [3.0, -2.0, 5.0], [0.0, 0.01, 0.0]),
        lambda item: item.change({**values, "relaxation": False}),
        lambda item: item.change(values),
        lambda item: item.set_contact_force("lower_arm", [0.0, 0.0, 0.0]),
        lambda item: kept.append((item.state, item.protection)),
        lambda item: item.reset(),
        lambda item: setattr(item, "state", kept[item is theirs][0]),
        lambda item: setattr(item, "protection", kept[item is theirs][1]),
        lambda item: setattr(item, "state", Relaxation.none(11)),
        lambda item: setattr(item, "protection", Protection.none(11)),
        lambda item: setattr(item, "necessary", item.necessary[::-1].copy()),
        lambda item: item.set_reference(None),
    ]
    time = 0.0
    for change in changes:
        for _ in range(40):
            time += PERIOD
            compare(ours, theirs, state_of(robot, model, time, robot.tree.home, rng))
        for item in (ours, theirs):
            change(item)
        compare(ours, theirs, state_of(robot, model, time, robot.tree.home, rng))
    assert ours.native == "yes"


def test_other_limits_hold_in_both_forms_and_arrays_of_the_state_cannot_be_written():
    robot, ours, theirs = pair("arm")
    model, rng = GeometricBodyImage(robot), np.random.default_rng(3)
    q = robot.tree.home
    hot = np.full(len(robot.muscles), 55.0)
    for k in range(40):
        if k == 10:
            ours.limits = theirs.limits = TemperatureLimits(soft=40.0, hard=70.0)
        compare(ours, theirs, state_of(robot, model, 0.008 * k, q, rng, temperatures=hot))
    assert ours.protection.given.any()
    for array in (ours.state.dl, ours.necessary, ours.protection.given, ours.protection.hot):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_an_image_of_other_muscles_is_refused():
    robot = held(roboy_arm())
    for muscles in (robot.muscles[:-1], robot.muscles[:2], robot.muscles[::-1]):
        image = GeometricBodyImage(replace(robot, muscles=muscles))
        with pytest.raises(ParameterError, match="the body image has the muscles"):
            MuscleRelaxationControl(ControlModel(robot), image=image)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200])
@pytest.mark.parametrize("where", ["q", "qd", "time", "tensions", "muscle_lengths", "reference"])
def test_nonsense_gets_the_same_answer(where, bad):
    robot, ours, theirs = pair("arm")
    model, rng = GeometricBodyImage(robot), np.random.default_rng(5)
    home = robot.tree.home
    at = [home]
    reference = Motion(4, lambda t: (at[0], np.zeros(4), np.zeros(4)))
    for item in (ours, theirs):
        item.set_reference(reference)
    for k in range(30):
        state = state_of(robot, model, PERIOD * (k + 1), home, rng)
        if 10 <= k < 20:
            if where == "time":
                state.time = bad
            elif where == "reference":
                at[0] = np.array([bad, 0.0, 0.0, 0.0])
            else:
                getattr(state, where)[1] = bad
        else:
            at[0] = home
        results = []
        for item in (ours, theirs):
            with np.errstate(all="ignore"):
                try:
                    item.step(state)
                    results.append("")
                except (CardsError, ValueError) as error:
                    results.append(str(error))
        assert results[0] == results[1]
        if not results[0]:
            with np.errstate(all="ignore"):
                compare(ours, theirs, replace(state), rtol=TOLERANCE)
    assert ours.output.status is ControlStatus.OK


@pytest.mark.parametrize("quantity", ["tensions", "muscle_lengths", "temperatures", "q", "qd"])
@pytest.mark.parametrize("size", [0, 3, 10])
def test_wrong_shapes_get_the_same_error_and_leave_nothing_behind(quantity, size):
    said = []
    robot, *items = pair("arm")
    model = GeometricBodyImage(robot)
    for item in items:
        rng = np.random.default_rng(6)
        for k in range(20):
            item.step(state_of(robot, model, PERIOD * k, robot.tree.home, rng))
        before = item.command[0].rest_lengths.copy()
        state = state_of(robot, model, PERIOD * 20, robot.tree.home, rng)
        setattr(state, quantity, np.full(size, 50.0))
        try:
            item.step(state)
            said.append(item.command[0].rest_lengths.tolist())
        except (CardsError, ValueError, IndexError) as error:
            said.append(f"{type(error).__name__}: {error}")
            np.testing.assert_array_equal(before, item.command[0].rest_lengths)
    assert said[0] == said[1]


def test_a_program_that_the_solver_gives_up_is_left_to_python():
    robot, ours, theirs = pair("arm")
    model, rng = GeometricBodyImage(robot), np.random.default_rng(7)
    for k in range(20):
        compare(ours, theirs, state_of(robot, model, PERIOD * k, robot.tree.home, rng))
    for pose in (ours._native._setup.wanted, ours._native._setup.present):
        pose.program.iteration_limit = 1
        ours._native._release(ctypes.byref(pose.program))
    for k in range(20, 30):
        state = state_of(robot, model, PERIOD * k, robot.tree.home, rng)
        status = compare(ours, theirs, state, rtol=TOLERANCE)
        assert status is ControlStatus.OK


def test_solvers_that_fail_are_told_by_both_forms(monkeypatch):
    robot, ours, theirs = pair("arm")
    model, rng = GeometricBodyImage(robot), np.random.default_rng(8)
    compare(ours, theirs, state_of(robot, model, 0.0, robot.tree.home, rng))
    for item in (ours, theirs):
        for program in (item._solver.solver, item._forward.solver):
            nothing = (QpStatus.NUMERICAL, np.zeros(15), 0)
            monkeypatch.setattr(program, "_solve", lambda *_, found=nothing: found)
    for pose in (ours._native._setup.wanted, ours._native._setup.present):
        pose.program.iteration_limit = 1
        ours._native._release(ctypes.byref(pose.program))
    state = state_of(robot, model, 0.1, robot.tree.home, rng)
    assert compare(ours, theirs, state, rtol=TOLERANCE) is ControlStatus.FALLBACK


class Own(MuscleRelaxationControl):
    """Somebody else's: tensions of its own."""

    def _torque(self, q, loads):
        return 2.0 * super()._torque(q, loads)


def elastic():
    law = SeriesElastic(spring=Spring(law="polynomial", stiffness=5e3))
    robot = held(roboy_arm())
    return replace(robot, muscles=tuple(replace(m, actuator=law) for m in robot.muscles))


def with_image(make):
    robot = held(roboy_arm())
    return MuscleRelaxationControl(ControlModel(robot), image=make(robot))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: MuscleRelaxationControl(ControlModel(held(roboy_arm()), "numeric")),
            "its dynamics are not compiled",
        ),
        (lambda: MuscleRelaxationControl(ControlModel(elastic())), "springs and stretch"),
        (
            lambda: with_image(lambda r: GeometricBodyImage(r, Stretch(np.ones(11), np.ones(11)))),
            "springs and stretch",
        ),
        (
            lambda: with_image(lambda r: GeometricBodyImage(r, backend="numeric")),
            "its dynamics are not compiled",
        ),
        (lambda: Own(ControlModel(held(roboy_arm()))), "Own has a _torque of its own"),
    ],
)
def test_steps_of_python_say_why(make, reason):
    item = make()
    assert item.native.startswith("no, ")
    assert reason in item.native
    robot = item.model.robot
    state = RobotState(
        0.0,
        robot.tree.home,
        np.zeros(4),
        muscle_lengths=np.full(11, 0.1),
        tensions=np.full(11, 20.0),
    )
    item.step(state)
    assert item.output.status is ControlStatus.OK


def test_without_a_compiler_steps_are_of_python(monkeypatch):
    def refuse(*_):
        raise CompilationError("there is no C compiler")

    monkeypatch.setattr("cards_core.control.native_program._program", refuse)
    assert make_controller("mrc", held(roboy_arm())).native == "no, there is no C compiler"


def test_steps_may_become_pythons_in_the_middle():
    robot, ours, theirs = pair("arm")
    model, rng = GeometricBodyImage(robot), np.random.default_rng(9)
    for k in range(60):
        compare(ours, theirs, state_of(robot, model, PERIOD * k, robot.tree.home, rng))
    ours.step(state_of(robot, model, 0.5, robot.tree.home, rng))
    released = ours._native.relaxation().dl
    ours.step_in_python()
    np.testing.assert_array_equal(ours.state.dl, released)
    ours.step(state_of(robot, model, 0.6, robot.tree.home, rng))
    assert ours.output.status is ControlStatus.OK


def test_controllers_give_their_workspaces_back():
    robot = held(planar_2r())
    model, rng = GeometricBodyImage(robot), np.random.default_rng(0)
    for _ in range(3):
        item = make_controller("mrc", robot)
        item.step(state_of(robot, model, 0.0, robot.tree.home, rng))
        assert item._native._setup.present.program.work
        native = weakref.ref(item._native)
        del item
        gc.collect()
        assert native() is None
