"""Hill muscles against a live OpenSim, where the package `opensim` is installed."""

import numpy as np
import pytest
from actuator_samples import actuator_robot

from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.hill import CURVES
from cards_core.muscles.command import EXCITATION
from cards_core.robot.actuators import Hill

opensim = pytest.importorskip("opensim", reason="needs the package opensim")


def test_de_groote_curves():
    muscle = opensim.DeGrooteFregly2016Muscle()
    muscle.set_tendon_strain_at_one_norm_force(0.049)
    curves = CURVES["de_groote_2016"]
    stiffness = curves.tendon_stiffness(0.049)
    for x in np.linspace(0.25, 1.75, 61):
        own = curves.active(NUMPY, np.array(x))[0]
        assert own == pytest.approx(muscle.calcActiveForceLengthMultiplier(x), abs=1e-12)
        own = curves.passive(NUMPY, np.array(x))[0]
        assert own == pytest.approx(muscle.calcPassiveForceMultiplier(x), abs=1e-12)
        own = curves.velocity(NUMPY, np.array(x - 1.0), 1.0)[0]
        theirs = muscle.calcForceVelocityMultiplier(x - 1.0)
        assert own == pytest.approx(max(theirs, 0.0), abs=1e-12)
        tendon = 1.0 + 0.04 * (x - 0.25)
        own = curves.tendon(NUMPY, np.array(tendon), 0.049, stiffness)[0]
        assert own == pytest.approx(muscle.calcTendonForceMultiplier(tendon), abs=1e-10)


def isometric(kind, item, length, activation):
    """Return OpenSim's tendon force and fibre length of an isometric muscle."""
    model = opensim.Model()
    body = opensim.Body("body", 1.0, opensim.Vec3(0), opensim.Inertia(1))
    model.addBody(body)
    joint = opensim.SliderJoint("slider", model.getGround(), body)
    coordinate = joint.updCoordinate()
    coordinate.setName("x")
    model.addJoint(joint)
    muscle = getattr(opensim, kind)()
    muscle.setName("muscle")
    muscle.set_max_isometric_force(item.max_isometric_force)
    muscle.set_optimal_fiber_length(item.optimal_fiber_length)
    muscle.set_tendon_slack_length(item.tendon_slack_length)
    muscle.set_pennation_angle_at_optimal(item.pennation_angle)
    muscle.addNewPathPoint("origin", model.updGround(), opensim.Vec3(0))
    muscle.addNewPathPoint("insertion", body, opensim.Vec3(0))
    if kind == "DeGrooteFregly2016Muscle":
        muscle.set_ignore_tendon_compliance(False)
    model.addForce(muscle)
    state = model.initSystem()
    coordinate = model.getCoordinateSet().get("x")
    coordinate.setValue(state, length)
    muscle = opensim.Muscle.safeDownCast(model.getForceSet().get("muscle"))
    muscle.setActivation(state, activation)
    model.equilibrateMuscles(state)
    model.realizeDynamics(state)
    return muscle.getTendonForce(state), muscle.getFiberLength(state)


@pytest.mark.parametrize(
    ("kind", "curves", "seed"),
    [
        ("Thelen2003Muscle", "thelen_2003", 1),
        ("DeGrooteFregly2016Muscle", "de_groote_2016", 2),
        ("Millard2012EquilibriumMuscle", "millard_2012", 3),
    ],
)
def test_isometric_equilibria(kind, curves, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        item = Hill(
            max_isometric_force=rng.uniform(100, 3000),
            optimal_fiber_length=rng.uniform(0.04, 0.15),
            tendon_slack_length=rng.uniform(0.1, 0.3),
            pennation_angle=rng.uniform(0.0, 0.5),
            curves=curves,
            tendon="elastic",
        )
        stretch = rng.uniform(0.8, 1.3) * np.cos(item.pennation_angle)
        length = 1.01 * item.tendon_slack_length + stretch * item.optimal_fiber_length
        activation = rng.uniform(0.1, 1.0)
        force, fiber = isometric(kind, item, length, activation)
        bank = ActuatorBank(actuator_robot(item), 5e-3, "numeric")
        bank.reset(np.array([length]))
        given = (np.array([length]), np.zeros(1), np.array([EXCITATION]), np.array([activation]))
        for _ in range(300):
            tension = bank.step(*given)[0]
        assert tension == pytest.approx(force, rel=1e-4)
        assert bank.state_values[1] == pytest.approx(fiber, rel=1e-5)
