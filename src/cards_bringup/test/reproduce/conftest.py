"""A quick experiment with two runs."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from cards_bringup.reproduce.experiment import (
    Band,
    Claim,
    Difference,
    Experiment,
    Outcome,
    Paper,
    Plot,
)

PAPER = Paper("900", "A paper <of nobody>", "Trendel2018")


class Toy:
    """Makes experiments whose runs are counted, and whose values come from their set-ups.

    Attributes:
        made: Runs in the order in which they were made.
        broken: Run to what it raises.
    """

    def __init__(self):
        self.made = []
        self.broken = {}

    def perform(self, setup, folder, tell):
        tell(0.5)
        (folder / "log.txt").write_text("half")
        if error := self.broken.get(setup["name"]):
            raise error
        self.made.append(setup["name"])
        tell(1.0)
        return {"load": setup["gains"]["k"] * setup["weight"]}

    @staticmethod
    def evaluate(runs):
        loads = {name: run.numbers["load"] for name, run in runs.items()}
        figure = Figure(figsize=(2.0, 1.0))
        figure.subplots().plot([0.0, 1.0], list(loads.values()))
        return Outcome(
            {"ratio": loads["with"] / loads["without"], "with": loads["with"], "extra": 1.0},
            {"loads": {"run": list(loads), "load [N]": np.array(list(loads.values()))}},
            {"loads": Plot(figure, "Loads <with> and without.")},
        )

    def experiment(self, name="A", **changes):
        given = {
            "paper": PAPER,
            "name": name,
            "title": "Loads with & without",
            "setup": {"weight": 10.0, "gains": {"k": 2.0, "d": 1.0}, "robot": "planar_2r"},
            "claims": (
                Claim(
                    "ratio",
                    "load | with : without",
                    "Fig. 3",
                    Band.around(0.5, relative=0.1),
                    published=0.5,
                    why="read from a plot",
                ),
                Claim(
                    "with",
                    "load with",
                    "section IV",
                    Band.at_most(5.0),
                    "N",
                    statement="hardly any",
                    difference=Difference("our weight is heavier", Band(9.0, 11.0)),
                ),
            ),
            "perform": self.perform,
            "evaluate": self.evaluate,
            "runs": {
                "with": {"name": "with", "gains": {"k": 1.0}},
                "without": {"name": "without"},
            },
            "notes": ("The robot is not that of the paper.",),
        }
        return Experiment(**{**given, **changes})


@pytest.fixture
def toy():
    return Toy()
