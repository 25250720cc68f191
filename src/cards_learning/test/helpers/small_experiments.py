"""Experiments that take a second or two."""

from cards_learning.experiment import parse_experiment

TEXT = """\
format: learning/1
robot: tetrahedral_6
terrains: ["flat:friction=0.5"]
duration: 0.3
controller:
  kind: cpg
  oscillators: feedback
  per_joint: 8
  hidden: 4
  parameters: {frequency: [0, 30], amplitude: [0, 300], frequency_gain: [-0.5, 10]}
algorithm: {kind: evolution, population: 6, mutants: 2, children: 2, deviation: 0.03}
objective: {distance: 1.0}
trials: 11
seed: 1
"""
"""One generation of six, one of four, and a part of the next."""

BROKEN = TEXT.replace("0, 300]", "0, 300], convergence: 1e9")
"""Oscillators that cannot be integrated."""


def small(text=TEXT, **changes):
    """Return the small experiment with some lines in place of others, by their keys."""
    lines = text.splitlines()
    for key, value in changes.items():
        lines = [line for line in lines if not line.startswith(f"{key}:")]
        lines.append(f"{key}: {value}")
    return parse_experiment("\n".join(lines) + "\n", "small.yaml")
