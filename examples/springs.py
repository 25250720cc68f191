"""A controller of your own, for ./cards demo planar_2r --controller examples/springs.py.

Muscles are springs about their first lengths: f = f0 + k (l - l0).
"""

import numpy as np

from cards_core.control.interface import Controller, ControlOutput, ControlStatus
from cards_core.muscles.command import CommandPart
from cards_core.parameters.declaration import Parameter


class Springs(Controller):
    kind = "springs"  # its name, and that of its node
    summary = "muscles as springs about their first lengths"
    space = "joint"
    needs = ("muscle_lengths",)
    commands = ("force",)

    def __init__(self, model, *, tension=50.0, stiffness=400.0):
        super().__init__(model)
        tree, muscles = model.dynamics.tree, model.commanded.muscles
        self.reference_names, self.error_names = tree.position_names, tree.velocity_names
        self.tension, self.stiffness, self._first = tension, stiffness, None
        self.output = ControlOutput.empty(len(muscles), 0, tree.nq, tree.nv)
        self._low = np.array([muscle.tension_min for muscle in muscles])
        self._high = np.array([muscle.tension_max for muscle in muscles])
        names = tuple(muscle.name for muscle in muscles)
        self.command = (CommandPart("force", names, self.output.tensions),)
        self.relaxed = (CommandPart("force", names, self._low.copy()),)

    @classmethod
    def from_parameters(cls, model, parameters):
        tension = Parameter("tension", 50.0, "At the first lengths.", "N", lower=0.0, live=True)
        stiffness = Parameter("stiffness", 400.0, "k of every muscle.", "N/m", lower=0.0)
        parameters.declare([tension, stiffness])
        return cls(model, tension=parameters["tension"], stiffness=parameters["stiffness"])

    def change(self, values):
        self.tension = values["tension"]

    def place(self, q, qd):
        return q

    def set_reference(self, reference, start=0.0):
        pass  # it follows none

    def reset(self):
        self._first = None

    def step(self, state):
        out, lengths = self.output, state.measured("muscle_lengths")
        if self._first is None:
            self._first = lengths.copy()
        tensions = self.tension + self.stiffness * (lengths - self._first)
        np.clip(tensions, self._low, self._high, out=out.tensions)
        out.time, out.status = state.time, ControlStatus.OK
        out.actual[:] = out.desired[:] = state.q
        return self.command
