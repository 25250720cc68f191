"""A plate on six flexible rods: pose, stiffness, and how it gives way under a load."""

import numpy as np

import cards

robot = cards.load("stewart_gough")
model = cards.compile(robot)
rest = model(q=model.tracker.solution.q)
print("plate at", np.round(rest.pose[:3, 3], 4), "m")
print("stiffness [N/m] along x, y, z:", np.round(np.diag(rest.K)[:3]))
print(f"smallest eigenvalue, zero where it collapses: {rest.min_eigenvalue:.3g}")

run = cards.simulate(cards.Simulator(robot), duration=0.5)
print(run.names)
run.save_plot("plate.png")
