"""A thousand arms with wrong masses and moment arms, under the same tensions."""

import numpy as np

import cards

robot = cards.load("roboy_arm")
errors = cards.ModelErrors(mass=0.05, moment_arm=0.03, seed=1)
batch = cards.Batch(robot, 1000, errors=errors)
batch.command(40.0 * np.ones(len(batch.muscles())))
batch.step(300)  # milliseconds

q = batch.state.q
print("joint angles after 0.3 s, mean ", np.round(q.mean(axis=0), 3), "rad")
print("standard deviation           ", np.round(q.std(axis=0), 4), "rad")
print(np.count_nonzero(batch.state.diverged), "diverged;", batch.physics, "steps")
