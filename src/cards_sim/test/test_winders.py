"""A load on a motor with a spring under the impedance law: that it comes to rest, and where."""

import numpy as np
import pytest

from cards_core.muscles.command import CommandPart
from cards_core.robot.actuators import ImpedanceControl, Motor, SeriesElastic, Spring
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from cards_sim.host import SimulatorHost
from cards_sim.simulator import Simulator

A, B = 15.0, 350.0
K, D = 6e4, 300.0
RADIUS, GEAR = 0.006, 29.0
MOTOR = Motor(gear_ratio=GEAR, gear_efficiency=1.0, max_current=50.0, voltage=1e3)
WINDER = MOTOR.rotor_inertia * (GEAR / RADIUS) ** 2


def hoist(mass):
    inertia = Inertia(mass, np.zeros(3), 1e-3 * mass * np.eye(3))
    up = JointAxis(np.array([0.0, 0.0, 1.0]))
    unit = SeriesElastic(
        spring=Spring(law="exponential", force_scale=A, growth=B), motor=MOTOR, spool_radius=RADIUS
    )
    wire = Muscle(
        "wire",
        (ViaPoint(WORLD, np.array([0.0, 0.0, 1.0])), ViaPoint("load", np.zeros(3))),
        10.0,
        540.0,
        unit,
        control=ImpedanceControl(stiffness=K, damping=D, tension_floor=10.0),
    )
    return Robot(
        "hoist",
        (Link("load", inertia),),
        (Joint("slide", "prismatic", WORLD, "load", axes=(up,)),),
        (wire,),
    )


@pytest.mark.parametrize("mass", [2.0, 5.0, 20.0])
def test_a_load_comes_to_rest_where_winder_and_spring_in_series_hold_it(mass):
    """X = l0 + (m g - T0)/K, l = x + ln(1 + m g/A)/B; and nothing gives energy on the way.

    Masses at which the law on the path, or through the motor's position loop, grows: its
    linear model has eigenvalues up to +40 1/s there.
    """
    host = SimulatorHost(Simulator(hoist(mass)), command_timeout=0.1)
    weight, rest = 9.81 * mass, 0.99
    told = (CommandPart("impedance", ("wire",), np.array([10.0]), np.array([rest]), np.zeros(1)),)
    energy = []
    for _ in range(8000):
        host.submit(told)
        host.step()
        state = host.state
        x, w = state.actuators[:2]
        stretch = max(float(state.muscle_lengths[0]) - x, 0.0)
        pulled = max(x - rest, 0.0)
        energy.append(
            0.5 * mass * state.qd[0] ** 2
            + weight * state.q[0]
            + A * (np.expm1(B * stretch) / B - stretch)
            + 0.5 * WINDER * w**2
            + 10.0 * (x - rest)
            + 0.5 * K * pulled**2
        )
    x = rest + (weight - 10.0) / K
    assert state.actuators[0] == pytest.approx(x, abs=1e-5)
    assert state.muscle_lengths[0] == pytest.approx(x + np.log(1 + weight / A) / B, abs=1e-5)
    assert abs(state.qd[0]) < 1e-4
    assert state.tensions[0] == pytest.approx(weight, rel=1e-3)
    # the energy of the symplectic Euler scheme swings by dt/2 times the frequency of the vibration
    frequency = np.sqrt(B * (weight + A) * (1 / mass + 1 / WINDER))
    rise = np.array(energy) - np.minimum.accumulate(energy)
    assert np.max(rise) < 0.5e-3 * frequency * np.ptp(energy)
