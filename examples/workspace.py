"""Where a cable robot can carry its own weight: tensions between 10 N and 500 N over a grid."""

import numpy as np

import cards

robot = cards.load("ipanema_1")
model = cards.compile(robot, emit=("L", "G"))
x, z = np.linspace(-1.5, 1.5, 25), np.linspace(0.2, 1.6, 15)
home = robot.tree.home
states = np.tile(home, (x.size * z.size, 1))
states[:, 0], states[:, 2] = (values.ravel() for values in np.meshgrid(x, z))
batch = model.batch(states)

# Tensions that balance the weight, G = -L^T f, nearest to the middle of their range.
middle = np.full(len(robot.muscles), 255.0)
feasible = 0
for L, G in zip(batch.L, batch.G, strict=True):
    f = middle - np.linalg.pinv(L.T) @ (G + L.T @ middle)
    feasible += bool(np.all((f >= 10.0) & (f <= 500.0)))
print(f"{100 * feasible / len(states):.0f} % of the grid, by the closed form alone")
print("exact, with plots: ./cards analyse workspace ipanema_1 --condition wrench_feasible --plot")
