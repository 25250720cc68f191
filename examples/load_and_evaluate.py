"""Load a robot, compile it, and ask for its dynamics, moment arms and tensions at a state."""

import numpy as np

import cards

robot = cards.load("roboy_arm")
print(robot.name, "has", len(robot.joints), "joints and", len(robot.muscles), "muscles")

model = cards.compile(robot, emit=("M", "G", "l", "L"))
state = model(q={"elbow": -1.2})  # the other joints at home
print("mass matrix [kg m^2]\n", np.round(state.M, 4))
print("lengths [m]", np.round(state.l, 3))

# The moment arms are -L (rows: muscles, columns: joints). Check one by finite differences.
step = 1e-6
longer = model(q={"elbow": -1.2 + step}).l
shorter = model(q={"elbow": -1.2 - step}).l
error = np.abs((longer - shorter) / (2 * step) - state.L[:, -1]).max()
print(f"dl/dq against L: {error:.1e} m/rad")
