"""The plate's step in C, beside the formulas of `plate_dynamics` in NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.rods.dynamics.native_plate import NativePlate
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.spatial import hat, quaternion_matrix, rotation_exp

GRAVITY = np.array([0.3, -0.2, -9.7])
THETA, DAMPING, DT = 0.6, 2e-3, 1e-3


def symmetric(rng, size, low):
    factor = rng.normal(size=(size, size))
    return factor @ factor.T + low * np.eye(size)


class Reference:
    """Mass matrix, gyroscopic wrench, weight and step, as the module's docstring has them."""

    def __init__(self, rng, slots):
        plate = read_rod_robot("stewart_6efr").plate
        self.plate = replace(
            plate, mass=1.7, com=rng.normal(size=3) * 0.05, inertia=symmetric(rng, 3, 0.1) * 1e-2
        )
        moment = self.plate.mass * hat(self.plate.com)
        self.mass = np.block(
            [
                [self.plate.mass * np.eye(3), -moment],
                [moment, self.plate.inertia - moment @ hat(self.plate.com)],
            ]
        )
        self.drag = rng.uniform(0.0, 1.0, 6)
        self.slots = np.array(slots)
        self.pose = np.eye(4)
        self.pose[:3, :3] = quaternion_matrix(rng.normal(size=4))
        self.pose[:3, 3] = rng.normal(size=3)
        self.twist = rng.normal(size=6)
        self.stiffness = symmetric(rng, 6, 10.0) * 1e3
        self.force = rng.normal(size=6)

    def native(self):
        return NativePlate(
            self.plate,
            self.mass,
            GRAVITY,
            self.slots,
            theta=THETA,
            damping=DAMPING,
            drag=self.drag,
        )

    def inertia(self):
        turn, spin = self.pose[:3, :3], self.twist[3:]
        big = np.kron(np.eye(2), turn)
        arm = turn @ self.plate.com
        pull = self.plate.mass * np.cross(spin, np.cross(spin, arm))
        swirl = np.cross(spin, turn @ self.plate.inertia @ turn.T @ spin) + np.cross(arm, pull)
        return big @ self.mass @ big.T, np.concatenate([pull, swirl])

    def weight(self):
        force = self.plate.mass * GRAVITY
        return np.concatenate([force, np.cross(self.pose[:3, :3] @ self.plate.com, force)])

    def step(self):
        mass, bias = self.inertia()
        damping = DAMPING * self.stiffness + np.diag(self.drag)
        step = THETA * DT
        left = mass + step**2 * self.stiffness + step * damping
        force = self.force + self.weight() - bias
        right = DT * (force - (step * self.stiffness + damping) @ self.twist)
        change = np.zeros(6)
        block = np.ix_(self.slots, self.slots)
        change[self.slots] = np.linalg.solve(left[block], right[self.slots])
        move = DT * (self.twist + THETA * change)
        pose = self.pose.copy()
        pose[:3, 3] += move[:3]
        pose[:3, :3] = quaternion_matrix(rotation_exp(move[3:])) @ pose[:3, :3]
        return change, move, pose


@pytest.mark.parametrize("slots", [range(6), (0, 1, 5)])
def test_the_step_is_that_of_the_formulas(slots):
    rng = np.random.default_rng(7)
    for scale in (1.0, 1e-7, 300.0):
        reference = Reference(rng, slots)
        reference.twist[3:] *= scale  # turns for which the series and the closed form count
        native = reference.native()
        given = reference.pose, reference.twist
        for found, expected in zip(native.inertia(*given), reference.inertia(), strict=True):
            np.testing.assert_allclose(
                found, expected, rtol=1e-12, atol=1e-14
            )  # entries of order 1
        np.testing.assert_allclose(native.weight(reference.pose), reference.weight(), rtol=1e-12)
        found = native.advance(DT, *given, reference.force, reference.stiffness)
        for one, other in zip(found, reference.step(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
        turn = found[2][:3, :3]
        np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-14)


def test_the_wrench_leads_a_simulator_to_the_wanted_velocity():
    reference = Reference(np.random.default_rng(8), range(6))
    wanted = reference.twist + 0.1
    wrench = reference.native().wrench(DT, reference.pose, reference.twist, wanted)
    mass, bias = reference.inertia()
    reached = reference.twist + DT * np.linalg.solve(mass, wrench + reference.weight() - bias)
    np.testing.assert_allclose(reached, wanted, rtol=1e-12)


def test_what_an_impulse_does_to_the_plate():
    reference = Reference(np.random.default_rng(9), (0, 1, 5))
    impulse = np.array([1.0, -2.0, 7.0, 8.0, 9.0, 0.5])
    slots = reference.slots
    mass = reference.inertia()[0][np.ix_(slots, slots)]
    expected = impulse[slots] @ np.linalg.solve(mass, impulse[slots])
    found = reference.native().missed(reference.pose, reference.twist, impulse)
    assert found == pytest.approx(expected, rel=1e-12)


def test_numbers_that_are_not_finite_are_no_step():
    reference = Reference(np.random.default_rng(10), range(6))
    native, force = reference.native(), reference.force.copy()
    force[2] = np.nan
    given = reference.pose, reference.twist
    assert native.advance(DT, *given, force, reference.stiffness) is None
    stiffness = np.full((6, 6), np.inf)
    assert native.advance(DT, *given, reference.force, stiffness) is None
