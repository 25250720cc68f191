"""A tensegrity prism from a page of YAML: built, dropped on the ground, and let settle."""

from pathlib import Path

import numpy as np

import cards

Path("prism.yaml").write_text("""
format: tensegrity/1
nodes:
  a1: [0.3, 0.0, 0.05]
  a2: [-0.15, 0.26, 0.05]
  a3: [-0.15, -0.26, 0.05]
  b1: [-0.26, 0.15, 0.45]
  b2: [0.0, -0.3, 0.45]
  b3: [0.26, 0.15, 0.45]
pair_groups:
  bar: [[a1, b1], [a2, b2], [a3, b3]]
  ring: [[a1, a2], [a2, a3], [a3, a1], [b1, b2], [b2, b3], [b3, b1]]
  upright: [[a1, b3], [a2, b1], [a3, b2]]
builders:
  bar: {class: rod, radius: 0.01, density: 1500}
  ring: {class: cable, stiffness: 2000, damping: 20, pretension: 20}
  upright: {class: cable, stiffness: 2000, damping: 20, pretension: 35}
""")
structure = cards.tensegrity.build("prism.yaml")
robot = cards.tensegrity.to_robot(structure)
print(len(robot.links), "bodies,", len(robot.muscles), "cables")
sim = cards.Simulator(robot, terrain="flat:friction=0.8")
while sim.state.time < 2.0:
    sim.step()
print("tensions after 2 s [N]", np.round(sim.state.tensions, 1))
