"""Excite the Hill muscles of an elbow in turn and see what its angle does."""

import cards
from cards_core.muscles.command import command_of

robot = cards.load("wrap_elbow")
sim = cards.Simulator(robot)
names = ["biceps", "triceps"]

for text, excitation, end in (("flexed", [0.4, 0.05], 1.5), ("extended", [0.05, 0.4], 3.0)):
    while sim.state.time < end:
        sim.submit(command_of(names, excitation, kind="excitation"))
        sim.step()
    tensions = dict(zip([m.name for m in robot.muscles], sim.state.tensions, strict=True))
    print(
        text, f"{sim.state.q[0]:.2f} rad,", {k: round(float(v)) for k, v in tensions.items()}, "N"
    )
