"""The board's tension loop behind an elastic wire: eigenvalues of a tick, and the firmware."""

import ctypes
import math

import numpy as np
import pytest
from native_code import folder_for
from scipy.linalg import expm

from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.robot.actuators import Spring
from cards_hardware.firmware_check import native_firmware
from cards_hardware.hil.muscle_units import (
    ELASTIC_SPRING,
    LOOP_GAIN,
    LOOP_RATE,
    TensionLoop,
    UnitDesign,
)
from cards_hardware.hil.world import DT, World
from cards_hardware.protocol.enums import ParameterId

CORNER = 30.0  # of firmware/core/muscle.c, [1/s]
RATE_SHARE = 1.0 - math.exp(-2.0 * math.pi * ParameterId.RATE_FILTER.default * DT)
UNIT = UnitDesign(spring=ELASTIC_SPRING)
TENSIONS = (0.0, 2.0, 10.0, 30.0, 100.0, 400.0, 800.0)
CLAMPED = math.inf


def stiffness(tension):
    """Return dT/dd of the usual wire, [N/m]."""
    return ELASTIC_SPRING.growth * (tension + ELASTIC_SPRING.force_scale)


def tick(
    loop,
    unit,
    k,
    load=CLAMPED,
    *,
    shown=None,
    joint_damping=0.0,
    ticks_late=0,
    law=(0.0, 0.0),
):
    """Return the map of a tick near a tension.

    Of: elongation d, winding speed w, rate of the path, motor's force, wound wire; what the board
    last saw: tension, wound wire, that before; its filtered rate, mean, integral; forces that are
    under way.

    Args:
        loop: Gains.
        unit: What the unit is made of.
        k: Stiffness of the wire there, [N/m].
        load: Mass that the path moves, [kg].
        shown: Stiffness that the board takes the wire for; the true one without it.
        joint_damping: Of the load, [1/s].
        ticks_late: Further ticks from the board to the motor.
        law: K and B of the impedance law, which reads the wire that is let out.
    """
    shown = shown or k
    m, b, lag = unit.winder_mass, unit.viscous_friction, unit.current_time
    flow = np.zeros((6, 6))  # of the first five and the force told
    flow[0, 1] = flow[0, 2] = flow[4, 1] = 1.0
    flow[1, [0, 1, 3]] = -k / m, -b / m, 1.0 / m
    if load < CLAMPED:
        flow[2, [0, 2]] = -k / load, -joint_damping
    flow[3, [3, 5]] = -1.0 / lag, 1.0 / lag
    whole = expm(flow * DT)
    n = 11 + ticks_late
    rate, told = np.zeros(n), np.zeros(n)
    rate[8] = 1.0 - RATE_SHARE
    rate[[6, 7]] = RATE_SHARE / DT, -RATE_SHARE / DT
    mixed = rate.copy()
    mixed[5] += CORNER / shown
    share = 1.0 - math.exp(-CORNER * DT)
    mean = share * mixed
    mean[9] += 1.0 - share
    desired = -law[1] * rate
    desired[6] -= law[0]
    error = desired.copy()
    error[5] -= 1.0
    integral = loop.integral * DT * error
    integral[10] += 1.0
    told += desired + integral - loop.damping * (mixed - mean)
    told += (loop.proportional + loop.elongation / shown) * error
    out = np.zeros((n, n))
    out[:5, :5] = whole[:5, :5]
    for late in range(ticks_late):
        out[11 + late] = told if late == 0 else np.eye(n)[10 + late]
    force = np.eye(n)[-1] if ticks_late else told
    out[:5] += np.outer(whole[:5, 5], force)
    out[5, 0] = k
    out[6, 4] = out[7, 6] = 1.0
    out[8], out[9], out[10] = rate, mean, integral
    return out


def growth(*arguments, **more):
    """Return the growth of what dies out last, [1/s]: but for the wound wire, which may be any."""
    values = np.linalg.eigvals(tick(*arguments, **more))
    moving = values[np.abs(values - 1.0) > 1e-7]
    return math.log(np.abs(moving).max()) / DT


@pytest.mark.parametrize("tension", TENSIONS)
@pytest.mark.parametrize("strength", [1.0, 0.1])
def test_the_rotor_comes_to_rest_at_every_tension(tension, strength):
    unit = UNIT.scaled(strength)
    k = strength * stiffness(tension)
    assert growth(unit.loop, unit, k) < -2.0
    # the board may know the wire badly, or be a tick later
    for factor in (0.6, 1.6):
        assert growth(unit.loop, unit, factor * k, shown=k) < -2.0
    assert growth(unit.loop, unit, k, ticks_late=1) < -2.0


@pytest.mark.parametrize("load", [0.3, 1.0, 3.0, 10.0, 30.0])
def test_a_load_that_hangs_on_the_wire_does_not_swing_up(load):
    """With joints that damp its motion by 5/s, which the board's delay takes away."""
    for tension in TENSIONS:
        k = stiffness(tension)
        assert growth(UNIT.loop, UNIT, k, load, joint_damping=10.0) < -0.1
        for factor in (0.6, 1.4):
            more = {"shown": k, "joint_damping": 10.0}
            assert growth(UNIT.loop, UNIT, factor * k, load, **more) < 0.0


@pytest.mark.parametrize("law", [(6e4, 300.0), (6e4, 200.0), (3e4, 100.0)])
def test_the_impedance_law_on_the_winder_is_stable(law):
    """K and B of musashi_like, with units of 400 N; see `tick`."""
    unit = UNIT.scaled(0.5)
    for tension in TENSIONS:
        k = 0.5 * stiffness(tension)
        assert growth(unit.loop, unit, k, law=law) < -0.5
        for mass in (1.0, 3.0, 10.0):
            assert growth(unit.loop, unit, k, mass, law=law, joint_damping=10.0) < 0.0


def test_the_loop_of_a_rigid_wire_lets_the_rotor_swing():
    rigid = UnitDesign().loop
    assert rigid == TensionLoop(LOOP_GAIN, LOOP_RATE)
    growths = [growth(rigid, UNIT, stiffness(tension)) for tension in TENSIONS]
    assert max(growths) > 5.0
    undamped = TensionLoop(0.0, 0.0, *_curve(), UNIT.loop.elongation)
    assert growth(undamped, UNIT, stiffness(30.0)) > 0.0


def _curve():
    return UNIT.loop.stiffness, UNIT.loop.growth


def test_the_board_knows_the_curve_of_the_wire():
    assert _curve() == (15.0 * 350.0, 350.0)
    linear = UnitDesign(spring=Spring(law="polynomial", stiffness=2e4)).loop
    assert (linear.stiffness, linear.growth) == (2e4, 0.0)
    bent = UnitDesign(spring=Spring(law="polynomial", stiffness=2e4, quadratic=1e6)).loop
    assert (bent.stiffness, bent.growth) == (2e4, 100.0)
    with pytest.raises(CardsError, match="knows no such wire"):
        _ = UnitDesign(spring=Spring(law="triangle", stiffness=2e4)).loop


# The firmware ---------------------------------------------------------------------------------


class Firmware:
    """The tension loop of the firmware, with forces at the wire."""

    def __init__(self, library):
        self._library = library
        self.scale = 86.0

    def start(self, loop, tension):
        mass = (loop.proportional, loop.integral)
        wire = (loop.stiffness, loop.growth)
        rest = (loop.elongation, loop.damping)
        numbers = (
            self.scale,
            *(value / self.scale for value in mass),
            *wire,
            *(value / self.scale for value in rest),
        )
        self._library.tension_loop_start((ctypes.c_float * 7)(*numbers), ctypes.c_float(tension))

    def force(self, wanted, rate, tension):
        return self.scale * self._library.tension_loop_step(
            ctypes.c_float(wanted), ctypes.c_float(rate), ctypes.c_float(tension)
        )


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    folder = folder_for("loop", tmp_path_factory)
    sources = ("test/tension_loop.c", "core/muscle.c", "core/numbers.c")
    library = native_firmware.build(folder, "tension_loop", sources)
    library.tension_loop_step.restype = ctypes.c_float
    return Firmware(library)


@pytest.mark.parametrize("load", [CLAMPED, 3.0])
def test_the_firmware_is_the_map(firmware, load):
    """A linear wire at 100 N that is plucked: tick by tick as the powers of the map."""
    k, tension = 4e4, 100.0
    unit = UnitDesign(spring=Spring(law="polynomial", stiffness=k))
    loop = unit.loop
    step = tick(loop, unit, k, load, joint_damping=8.0)
    # the plant's part of the map, with the force told as an input
    bare = tick(TensionLoop(0.0, 0.0), unit, k, load, joint_damping=8.0)
    pushed = tick(TensionLoop(-1.0, 0.0), unit, k, load, joint_damping=8.0)[:5, 5]
    state = np.zeros(11)
    firmware.start(loop, tension)
    rate, seen, wound, before = 0.0, 0.0, 0.0, 0.0
    for _ in range(50):  # at rest
        assert firmware.force(tension, 0.0, tension) == pytest.approx(tension, rel=1e-4)
    state[0] = 1e-3
    x = state[:5].copy()
    largest = 0.0
    for _ in range(600):
        rate += RATE_SHARE * ((wound - before) / DT - rate)
        force = firmware.force(tension, -rate, tension + seen) - tension
        seen, before, wound = k * x[0], wound, x[4]
        x = bare[:5, :5] @ x + pushed * force
        state = step @ state
        largest = max(largest, abs(x[0] - state[0]))
    assert largest < 2e-3 * 1e-3
    assert abs(k * x[0]) < 2.0  # of 40 N


def test_a_tension_is_reached_without_overshoot_that_slackens_the_wire(firmware):
    """The plant itself: units that differ, friction, noise; paths at rest."""
    planar = load("planar_2r")
    world = World(planar, design=UnitDesign(spring=ELASTIC_SPRING, load_noise=0.0))
    heard = []
    loop = world.design.loop
    scale, rate, seen, before = world.calibration.current_scale[0], 0.0, 0.0, world.wires[0]
    firmware.scale = scale
    firmware.start(loop, 0.0)
    for wanted, ticks in ((20.0, 1500), (200.0, 1500), (20.0, 1500)):
        for _ in range(ticks):
            wire = world.wires[0]
            current = firmware.force(wanted, rate, seen) / scale
            rate += RATE_SHARE * ((wire - before) / DT - rate)
            seen, before = world.tensions[0], wire
            world.command(slice(None), np.full(4, current), True, 0)
            world.advance()
            heard.append(world.tensions[0])
    heard = np.array(heard).reshape(3, 1500)
    for (start, end), part in zip(((0, 20), (20, 200), (200, 20)), heard, strict=True):
        low, high = sorted((start, end))
        assert part[-500:] == pytest.approx(end, abs=0.05 * end)
        # a jump of the command, and a wire that is five times as stiff at 200 N
        assert part.max() < high + 0.7 * (high - low)
    slack = ParameterId.SLACK_TENSION.default * ParameterId.SLACK_TENSION.scale
    assert heard[1:].min() > 2.0 * slack
