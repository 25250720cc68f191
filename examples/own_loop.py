"""A control law of your own: each cable is a spring with a damper, shorter than it is now."""

import numpy as np

import cards
from cards_core.muscles.command import command_of

robot = cards.load("planar_2r")
names = [muscle.name for muscle in robot.muscles]
sim = cards.Simulator(robot)
wanted = sim.state.muscle_lengths.copy() - 0.01  # all of them a centimetre shorter

while sim.state.time < 1.0:
    stretch = sim.state.muscle_lengths - wanted
    tensions = 20.0 + 2000.0 * stretch + 60.0 * sim.state.muscle_rates
    tensions = np.clip(tensions, robot.muscles[0].tension_min, robot.muscles[0].tension_max)
    sim.submit(command_of(names, tensions))
    sim.step()

print("joint angles after 1 s [rad]", np.round(sim.state.q, 3))
print("tensions [N]", np.round(sim.state.tensions, 1))
