"""The muscle units of the plant: what they do, and what their sensors say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.errors import CardsError, ShapeError
from cards_core.formats import load
from cards_core.robot.actuators import SeriesElastic, Spring
from cards_hardware.hil.muscle_units import UnitDesign, board_parameters, manufacture
from cards_hardware.hil.world import DT, Drives, Sensors, World, channels_of
from cards_hardware.protocol.enums import ParameterId as P

COUNT = 3
ALL = slice(None)


@pytest.fixture
def design():
    return UnitDesign()


@pytest.fixture
def calibration(design):
    return manufacture(design, np.array([0.1, 0.2, 0.3]), 2, np.random.default_rng(3))


@pytest.fixture
def drives(design, calibration):
    return Drives(design, calibration, DT)


def run(drives, currents, steps, rates=None, *, keep=True):
    rates = np.zeros(COUNT) if rates is None else rates
    drives.command(ALL, currents, True)
    for _ in range(steps):
        if keep:
            drives.command(ALL, currents, True)
        tension = drives.advance(rates)
    return tension


# Drives ---------------------------------------------------------------------------------------


def test_current_loop_is_of_first_order(design, drives):
    wanted = np.array([1.0, 2.0, 3.0])
    run(drives, wanted, 1)
    assert drives.current == pytest.approx(wanted * (1.0 - math.exp(-DT / design.current_time)))
    run(drives, wanted, 30)
    assert drives.current == pytest.approx(wanted)


def test_tension_at_rest_is_the_current_times_the_gear(design, calibration, drives):
    tension = run(drives, np.array([1.0, 2.0, 3.0]), 30)
    assert tension == pytest.approx(calibration.current_scale * [1.0, 2.0, 3.0])
    gear = design.torque_constant * design.gear_ratio * design.efficiency / design.winder_radius
    assert tension / [1.0, 2.0, 3.0] == pytest.approx([gear] * COUNT, rel=0.051)


def test_friction_opposes_motion_and_a_wire_does_not_push(design, drives):
    currents = np.full(COUNT, 0.5)
    still = run(drives, currents, 30)
    v = np.array([0.1, -0.1, 0.0])
    moving = run(drives, currents, 1, v)
    lost = design.dry_friction + design.viscous_friction * 0.1
    assert moving - still == pytest.approx([lost, -lost, 0.0], rel=1e-6)
    assert (run(drives, currents, 1, np.full(COUNT, -2.0)) == 0.0).all()
    assert (run(drives, np.zeros(COUNT), 50, np.full(COUNT, 1.0)) == 0.0).all()


def test_the_driver_has_a_limit_of_its_own(design, drives):
    run(drives, np.array([99.0, -99.0, 1.0]), 50)
    assert drives.current == pytest.approx([design.current_limit, -design.current_limit, 1.0])


def test_without_commands_the_driver_stops_after_its_timeout(design, drives):
    wanted = np.full(COUNT, 2.0)
    run(drives, wanted, 50)
    ticks = round(design.command_timeout / DT)
    run(drives, wanted, ticks, keep=False)
    assert drives.current == pytest.approx(wanted)
    for _ in range(2):
        drives.advance(np.zeros(COUNT))
    assert (drives.current < 0.2 * wanted).all()
    assert run(drives, wanted, 50) == pytest.approx(run(drives, wanted, 50))


def test_a_disabled_driver_has_no_current(drives):
    run(drives, np.full(COUNT, 2.0), 50)
    drives.command(ALL, np.full(COUNT, 2.0), False)
    for _ in range(20):
        drives.advance(np.zeros(COUNT))
    assert np.abs(drives.current).max() < 1e-9


def test_windings_reach_the_temperature_of_their_losses(design, drives):
    """At rest the winding is warmer by P (R1 + R2), with R(c) at that temperature."""
    drives._heat_steps = 1  # each step is then 0.1 s of heat
    current = 4.0
    for _ in range(60000):
        drives.command(ALL, np.full(COUNT, current), True)
        drives.advance(np.zeros(COUNT))
    thermal = design.thermal
    warm = drives.temperature[0, 0]
    power = current**2 * design.resistance * (1 + thermal.copper_coefficient * (warm - 25.0))
    expected = thermal.ambient + power * (thermal.winding_resistance + thermal.housing_resistance)
    assert warm == pytest.approx(expected, rel=1e-3)
    assert drives.temperature[1, 0] < warm


def test_the_supply_sags_under_load(design, drives):
    run(drives, np.full(COUNT, 4.0), 50)
    assert drives.supply_voltage == pytest.approx(
        design.supply - 12.0 * design.supply_resistance, abs=1e-6
    )


def test_a_wrong_number_of_currents_is_refused(drives):
    with pytest.raises(ShapeError, match="expected 3 numbers"):
        drives.command(ALL, np.zeros(2), True)


# Sensors and calibration ----------------------------------------------------------------------


def decoded(parameters, name, index):
    parameter = P[name]
    return parameters[parameter, index] * parameter.scale


def test_the_commissioned_parameters_decode_what_the_sensors_say(design, calibration):
    """With the firmware's whole-number parameters: 30 um, 0.5 %, 0.1 mrad."""
    settings = board_parameters([design] * COUNT, calibration)
    parameters = {(parameter, index): value for parameter, index, value in settings}
    sensors = Sensors(design, calibration, np.random.default_rng(0))
    lengths, tensions = np.array([0.12, 0.18, 0.33]), np.array([10.0, 200.0, 700.0])
    angles = np.array([0.7, -1.3])
    loads = np.mean([sensors.loads(tensions).astype(float) for _ in range(4000)], axis=0)
    positions, joints = sensors.positions(lengths), sensors.joints(angles)
    for i in range(COUNT):
        sign = parameters[P.ENCODER_SIGN, i]
        length = sign * decoded(parameters, "ENCODER_SCALE", i) * positions[i]
        length += decoded(parameters, "LENGTH_OFFSET", i)
        assert length == pytest.approx(lengths[i], abs=1e-4)
        tension = decoded(parameters, "LOAD_SCALE", i) * (loads[i] - parameters[P.LOAD_ZERO, i])
        assert tension == pytest.approx(tensions[i], rel=0.011, abs=0.1)
    for i in range(2):
        counts = joints[i] - parameters[P.JOINT_ZERO, i]
        assert decoded(parameters, "JOINT_SCALE", i) * counts == pytest.approx(angles[i], abs=1e-4)


def test_every_commissioned_value_is_in_the_range_of_the_table(design, calibration):
    for parameter, index, value in board_parameters([design] * COUNT, calibration):
        assert parameter.minimum <= value <= parameter.maximum, (parameter.name, index, value)


def test_no_unit_is_like_another_or_like_the_defaults_of_the_firmware(calibration):
    for values in (calibration.load_zero, calibration.joint_zero, calibration.length_offset):
        assert len(set(values.tolist())) == len(values)
        assert (values != 0).all()
    many = manufacture(UnitDesign(), np.full(40, 0.1), 0, np.random.default_rng(1))
    assert set(many.sign.tolist()) == {-1, 1}


def test_load_cells_saturate(design, calibration):
    sensors = Sensors(design, calibration, np.random.default_rng(0))
    most = sensors.loads(np.full(COUNT, 5000.0))
    limit = design.load_range / calibration.load_scale + calibration.load_zero
    assert most == pytest.approx(limit, abs=1.0)


def test_equal_seeds_give_equal_units(design):
    lengths = np.array([0.1, 0.2])
    one, two = (manufacture(design, lengths, 1, np.random.default_rng(5)) for _ in range(2))
    assert all((vars(one)[name] == vars(two)[name]).all() for name in vars(one))


# World ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planar():
    return load("planar_2r")


def test_the_stand_holds_until_a_moment_after_the_first_command_of_a_controller(planar):
    world = World(planar, stand_time=0.05)
    home = world.q.copy()
    currents = np.full(4, 0.3)
    for _ in range(200):
        world.command(ALL, currents, True, 0)
        world.advance()
    assert (world.q == home).all()
    assert world.tensions.min() > 10.0
    for tick in range(100):
        world.command(ALL, currents, True, 1234)
        world.advance()
        assert (world.q == home).all() == (tick < 50), tick
    assert not world.held


def test_equal_worlds_move_alike(planar):
    places = []
    for _ in range(2):
        world = World(planar, seed=2, stand_time=0.0)
        for _ in range(100):
            world.command(ALL, np.array([0.5, 0.2, 0.3, 0.4]), True, 1)
            world.advance()
        places.append(world.q)
    assert (places[0] == places[1]).all()


def test_other_actuators_give_way_to_motors():
    """Hill muscles of the model are pulled by the motor of the unit: just the tension it makes."""
    world = World(load("wrap_elbow"), stand_time=0.0)
    count = len(world.robot.muscles)
    for _ in range(30):
        rates = world.rates
        world.command(ALL, np.full(count, 0.05), True, 1)
        world.advance()
    design = world.design
    friction = design.dry_friction + design.viscous_friction * np.abs(rates)
    motor = 0.05 * world.calibration.current_scale
    assert (np.abs(world.tensions - motor) <= friction + 1e-6).all()
    assert (world.simulator.state.tensions == world.tensions).all()


# Elastic wires --------------------------------------------------------------------------------

SPRING = Spring(law="exponential", force_scale=15.0, growth=350.0)


def elastic(**more):
    """Units whose gear and winder lose nothing, but for what is said."""
    lossless = {"dry_friction": 0.0, "viscous_friction": 0.0, "supply": 1e6}
    return UnitDesign(**{"spring": SPRING, **lossless, **more})


def pulled(world, current, steps, source=0):
    currents = np.full(len(world.robot.muscles), current)
    for _ in range(steps):
        world.command(ALL, currents, True, source)
        world.advance()


def test_at_rest_the_wire_is_stretched_by_the_inverse_of_its_curve(planar):
    world = World(planar, design=elastic(viscous_friction=3000.0))
    pulled(world, 0.5, 3000)
    motor = 0.5 * world.calibration.current_scale
    assert world.tensions == pytest.approx(motor, rel=1e-6)
    stretch = world.lengths - world.wires
    assert stretch == pytest.approx(np.log1p(motor / 15.0) / 350.0, rel=1e-6)
    # the encoder is on the winder
    counts = world.sensors.positions(world.wires)
    length = world.calibration.sign * world.calibration.wire_per_count * counts
    assert length + world.calibration.length_offset == pytest.approx(world.wires, abs=1e-6)


def test_a_rotor_swings_on_its_wire_as_its_mass_says(planar):
    """About 43 N, where the wire has B (T + A); the implicit step takes a little energy away."""
    world = World(planar, design=elastic(viscous_friction=3000.0))
    pulled(world, 0.5, 3000)
    bank = world.simulator.muscles.actuators
    quiet = replace(world.design, viscous_friction=0.0)
    world = World(planar, design=quiet)
    world.simulator.muscles.actuators.state[:] = bank.state
    world.drives.current[:] = 0.5
    pulled(world, 0.52, 1)
    heard = []
    for _ in range(2000):
        pulled(world, 0.52, 1)
        heard.append(world.tensions[0])
    level = 0.52 * world.calibration.current_scale[0]
    above = np.array(heard) > level
    period = 1e-3 * np.diff(np.flatnonzero(above[1:] & ~above[:-1])).mean()
    omega = math.sqrt(350.0 * (level + 15.0) / world.design.winder_mass)
    assert 2.0 * math.pi / period == pytest.approx(omega, rel=0.01)


def test_without_friction_the_energy_is_what_the_motors_gave(planar):
    """Kinetic, of rotors and bodies, and that of the wires, against the work of the motors."""
    weightless = replace(planar, gravity=np.zeros(3))
    joints = tuple(
        replace(joint, axes=tuple(replace(axis, damping=0.0, friction=0.0) for axis in joint.axes))
        for joint in weightless.joints
    )
    world = World(replace(weightless, joints=joints), design=elastic(), stand_time=0.0)
    names = world.simulator.muscles.state_names
    speeds = [i for i, name in enumerate(names) if name.endswith("/winding_speed")]
    bank = world.simulator.muscles.actuators

    def energy():
        w = bank.state[speeds]
        moving = 0.5 * world.design.winder_mass * float(w @ w)
        return moving + world.simulator.energy()[0] + float(bank.energy().sum())

    currents = np.array([0.5, 0.45, 0.4, 0.42])
    work, start, largest = 0.0, energy(), 0.0
    for _ in range(150):
        before = world.wires.copy()
        world.command(ALL, currents, True, 1)
        world.advance()
        force = world.drives.current * world.calibration.current_scale
        work += float(force @ (before - world.wires))
        largest = max(largest, abs(energy() - start - work))
    assert np.abs(world.qd).max() > 0.1
    assert work > 1.0
    assert largest < 0.03 * work


def test_in_the_limit_of_a_stiff_wire_and_a_light_rotor_it_is_the_rigid_one(planar):
    stiff = Spring(law="polynomial", stiffness=3e6)
    runs = []
    for more in ({}, {"spring": stiff, "rotor_inertia": 1e-10}):
        world = World(planar, design=UnitDesign(supply=1e6, **more), stand_time=0.05)
        pulled(world, 0.5, 250, source=1)
        gap = world.lengths - world.wires
        runs.append((world.q - planar.tree.home, world.qd, world.tensions, gap))
    (moved, qd, tensions, none), (near_moved, near_qd, near_tensions, gap) = runs
    assert (none == 0.0).all()
    assert gap == pytest.approx(near_tensions / 3e6, abs=1e-9)
    # the rigid plant's friction is a step late: 3 % of 60 N s/m on this arm
    assert near_moved == pytest.approx(moved, rel=0.04)
    assert near_qd == pytest.approx(qd, rel=0.04)
    assert near_tensions == pytest.approx(tensions, abs=1.0)


def test_boards_of_elastic_units_know_wire_and_rotor(design, calibration):
    def force(units, name):
        found = {(p, i): value for p, i, value in board_parameters([units] * COUNT, calibration)}
        return decoded(found, name, 0) * calibration.current_scale[0]

    names = ("KP", "KI", "WIRE_GAIN", "ROTOR_DAMPING")
    rigid = [force(design, name) for name in names]
    assert rigid == pytest.approx([0.25, 80.0, 0.0, 0.0], rel=0.01)
    units = UnitDesign(spring=SPRING)
    elastic = [force(units, name) for name in names]
    mass = units.winder_mass
    assert elastic == pytest.approx([0.0, 20.0, 900.0 * mass, 60.0 * mass], rel=0.01)
    found = {(p, i): value for p, i, value in board_parameters([units] * COUNT, calibration)}
    assert decoded(found, "WIRE_STIFFNESS", 0) == 5250.0
    assert decoded(found, "WIRE_GROWTH", 0) == 350.0
    assert UnitDesign(spring=SPRING).scaled(0.5).spring.force_scale == 7.5


def test_the_wire_of_a_description_counts(planar):
    springs = [Spring(law="polynomial", stiffness=1e4 * (i + 1)) for i in range(4)]
    muscles = tuple(
        replace(muscle, actuator=SeriesElastic(spring=spring))
        for muscle, spring in zip(planar.muscles, springs, strict=True)
    )
    described = replace(planar, muscles=muscles)
    world = World(described, design=UnitDesign(viscous_friction=3000.0, dry_friction=0.0))
    pulled(world, 0.5, 4000)
    motor = 0.5 * world.calibration.current_scale
    stiffness = np.array([spring.stiffness for spring in springs])
    assert world.tensions == pytest.approx(motor, rel=1e-3)
    assert world.lengths - world.wires == pytest.approx(motor / stiffness, rel=1e-3)
    found = {(p, i): value for p, i, value in board_parameters(world.units, world.calibration)}
    assert [decoded(found, "WIRE_STIFFNESS", i) for i in range(4)] == stiffness.tolist()
    mixed = replace(planar, muscles=(planar.muscles[0], *muscles[1:]))
    with pytest.raises(CardsError, match=f"muscle {planar.muscles[0].name} of planar_2r without"):
        World(mixed)


def test_channels_are_found_by_name(planar):
    positions = planar.tree.position_names
    names = [muscle.name for muscle in planar.muscles]
    found = channels_of(planar, positions, "b", names[::-1], positions[1:])
    assert found.muscles == (3, 2, 1, 0)
    assert found.joints == (1,)
    with pytest.raises(CardsError, match=r"board 'b': planar_2r has no muscle biceps"):
        channels_of(planar, positions, "b", ["biceps"], [])
