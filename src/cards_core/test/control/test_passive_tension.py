"""Muscles that pull without a command: what controllers may ask of them at least."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from control_robots import Motion, at, step, straight

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.passive_tension import PassiveTension
from cards_core.embedded.controller import NotExportableError, export_controller
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import FORCE
from cards_core.robot.actuators import Cable, Hill, Pneumatic, Thermal
from cards_core.robot.elements import WORLD, Frame, Inertia, Joint, JointAxis, Link
from cards_core.robot.model import Robot

F0, OPTIMUM = 100.0, 0.3


def hill(**changes) -> Hill:
    given = {
        "max_isometric_force": F0,
        "optimal_fiber_length": OPTIMUM,
        "tendon_slack_length": 0.1,
        "curves": "thelen_2003",
        "min_activation": 0.0,
    }
    return Hill(**(given | changes))


def mckibben(bladder: float) -> Pneumatic:
    return Pneumatic(
        thread_length=0.7, turns=2.0, rest_length=0.45, bladder_stiffness=bladder, friction=0.0
    )


def slider(actuators, tension_min=0.0) -> Robot:
    """A block of 2 kg on a level rail, a muscle to either side, 0.5 m long at home."""
    axis = (JointAxis(np.array([1.0, 0.0, 0.0]), -0.4, 0.4),)
    ends = {"left": -0.5, "right": 0.5}
    muscles = [
        replace(
            straight(n, (WORLD, (x, 0, 0)), ("block", (0, 0, 0)), tension_min, 1000),
            actuator=actuator,
        )
        for (n, x), actuator in zip(ends.items(), actuators, strict=True)
    ]
    return Robot(
        "slider",
        (Link("block", Inertia(2.0, np.zeros(3), 0.01 * np.eye(3))),),
        (Joint("rail", "prismatic", WORLD, "block", axes=axis),),
        tuple(muscles),
        (Frame("hook", "block", at(0, 0, 0)),),
        "hook",
    )


def thelen(length: float) -> float:
    """Passive force of a relaxed muscle behind a rigid tendon of 0.1 m, [N]."""
    strain = (length - 0.1) / OPTIMUM - 1.0
    return F0 * np.expm1(5.0 * max(strain, 0.0) / 0.6) / np.expm1(5.0)


def test_the_least_tension_is_the_passive_force_of_the_law():
    passive = PassiveTension(slider([hill(), Cable()]))
    assert passive.names == ("left",)
    for length in (0.05, 0.3, 0.45, 0.5, 0.61, 0.65):
        lower = np.array([0.0, 3.0])
        passive.raise_to(lower, np.array([length, 2.0]), 2.0)
        assert lower[0] == pytest.approx(thelen(length) / 2.0, abs=2e-4 * F0, rel=2e-4)
        assert lower[1] == 3.0  # a cable does what it is told
    lower = np.array([50.0, 0.0])
    passive.raise_to(lower, np.array([0.5, 2.0]), 1.0)
    assert lower[0] == 50.0  # a limit above the passive force stays


VARIANTS = [
    *(
        hill(curves=curves, tendon=tendon, min_activation=least, pennation_angle=0.3)
        for curves, tendon, least in product(
            ("de_groote_2016", "thelen_2003", "millard_2012"), ("rigid", "elastic"), (0.0, 0.05)
        )
    ),
    hill(thermal=Thermal(heat_per_square_force=1e-3)),
    mckibben(300.0),
]


@pytest.mark.parametrize("actuator", VARIANTS, ids=lambda a: f"{a.kind}")
def test_the_simulated_muscle_never_has_less_at_rest(actuator):
    """The table beside a muscle that is told its least tension until nothing changes."""
    robot = slider([actuator, actuator], tension_min=1.0)
    passive, bank = PassiveTension(robot), ActuatorBank(robot, 5e-3, "numeric")
    for length in (0.35, 0.5, 0.62):
        lengths, lower = np.full(2, length), np.ones(2)
        passive.raise_to(lower, lengths, 1.0)
        bank.reset(np.full(2, 0.5))
        told, kinds = np.array([1.0, 40.0]), np.full(2, FORCE)
        for _ in range(200):
            tensions = bank.step(lengths, np.zeros(2), kinds, told)
        least = max(1.0, tensions[0])
        assert lower[0] == pytest.approx(least, abs=3e-4 * F0, rel=1e-3)
        # a command above it is obeyed, as far as the muscle is strong enough
        assert tensions[1] == pytest.approx(max(40.0, least), rel=1e-3) or tensions[1] < 40.0


def test_muscles_that_only_do_what_they_are_told_have_no_least_tension():
    assert ControlModel(slider([Cable(), mckibben(0.0)])).passive is None


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_a_controller_counts_on_the_passive_force(kind, backend):
    """At x = 0.1 the left muscle is stretched: the right one alone makes up for it."""
    robot = slider([hill(), Cable()])
    gains = {"kp": 0.0, "kd": 0.0}
    item = make_controller(kind, ControlModel(robot, backend), **gains)
    where = (np.array([0.1]), np.zeros(1), np.zeros(1))
    if kind == "ctc_operational":
        hook = np.array([0.1, 0.0, 0.0])[: item.output.error.size]
        where = (hook, 0.0 * hook, 0.0 * hook)
    item.set_reference(Motion(where[0].size, lambda t: where))
    out = step(item, 0.0, np.array([0.1]), np.zeros(1))
    assert out.status is ControlStatus.OK
    left = thelen(0.6)
    np.testing.assert_allclose(out.tensions, [left, left], atol=2e-4 * F0)
    # with the muscle slack nothing is asked of either
    where = tuple(np.array([-0.35, 0.0, 0.0])[: w.size] * (i == 0) for i, w in enumerate(where))
    item.set_reference(Motion(where[0].size, lambda t: where))
    out = step(item, 0.1, np.array([-0.35]), np.zeros(1))
    np.testing.assert_allclose(out.tensions, [0.0, 0.0], atol=1e-6)


def test_a_passive_force_rises_faster_than_tensions_may_and_does_not_exceed_the_limit():
    robot = slider([hill(), Cable()])
    item = make_controller("ctc_joint", robot, kp=0.0, kd=0.0, tension_rate=1.0, tension_max=400.0)
    rest = (np.zeros(1), np.zeros(1), np.zeros(1))
    item.set_reference(Motion(1, lambda t: rest))
    step(item, 0.0, np.array([0.0]), np.zeros(1))
    out = step(item, 0.1, np.array([0.1]), np.zeros(1))
    assert out.tensions[0] == pytest.approx(thelen(0.6), abs=2e-4 * F0)
    assert out.status is ControlStatus.INFEASIBLE  # the cable may not follow at once
    out = step(item, 0.2, np.array([0.2]), np.zeros(1))
    assert thelen(0.7) > 400.0
    assert out.tensions[0] == pytest.approx(400.0)


def test_c_text_does_not_know_passive_forces():
    item = make_controller("ctc_joint", slider([hill(), Cable()]))
    with pytest.raises(NotExportableError, match="pull without a command: left"):
        export_controller(item)


def test_beyond_its_table_the_passive_force_goes_on_along_its_last_slope():
    """The table ends where the muscle has its greatest tension."""
    robot = slider([hill(), Cable()])
    weak = replace(robot, muscles=(replace(robot.muscles[0], tension_max=50.0), robot.muscles[1]))
    passive = PassiveTension(weak)

    def at(length, unit=1.0):
        lower = np.zeros(2)
        passive.raise_to(lower, np.array([length, 2.0]), unit)
        return lower[0]

    last = 0.1 + OPTIMUM * (1.0 + 0.6 / 5.0 * np.log1p(0.5 * np.expm1(5.0)))
    assert thelen(last) == pytest.approx(50.0)
    assert at(last) == pytest.approx(50.0, abs=2e-2)
    slopes = np.diff([at(last + step) for step in (0.1, 0.2, 0.3, 5.0)]) / [0.1, 0.1, 4.7]
    assert slopes == pytest.approx(np.full(3, slopes[0]))
    exact = (thelen(last + 1e-4) - thelen(last - 1e-4)) / 2e-4
    assert slopes[0] == pytest.approx(exact, rel=0.3)
    # below it is as at its begin: nothing
    assert at(0.0) == at(-1.0) == at(0.2) == 0.0


def test_each_muscle_has_its_own_table_in_units_of_the_bounds():
    passive = PassiveTension(slider([hill(), hill(max_isometric_force=2.0 * F0)]))
    assert passive.names == ("left", "right")
    lower = np.zeros(2)
    passive.raise_to(lower, np.array([0.55, 0.55]), 4.0)
    assert lower[1] == pytest.approx(2.0 * lower[0], rel=1e-3)
    assert lower[0] == pytest.approx(thelen(0.55) / 4.0, rel=2e-3)
    for length in np.linspace(0.5, 0.6, 7):
        lower[:] = 0.0
        passive.raise_to(lower, np.full(2, length), 1.0)
        assert lower[0] == pytest.approx(thelen(length), abs=2e-4 * F0, rel=2e-4)
