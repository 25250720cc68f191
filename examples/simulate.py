"""Computed torque control draws a flower with the hand of the arm; a plot, and a run folder."""

import cards

robot = cards.load("roboy_arm")
sim = cards.Simulator(robot)
controller = cards.Controller("ctc_operational", robot, reference="flower")
run = cards.simulate(sim, controller, duration=3.0)

print(run.names)
print(f"largest tension {run['tensions'].max():.0f} N")
run.save_plot("path.png", "path")
summary = run.save("flower_run")  # ./cards show flower_run, ./cards video flower_run
print(summary["verdict"], f"error {1e3 * summary['op_error_max_m']:.3f} mm")
