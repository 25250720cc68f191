"""Parameters of every kind."""

import numpy as np

from cards_core.parameters.declaration import Parameter

KP = Parameter(
    "kp", [400.0, 400.0], "Stiffness.", "1/s^2", lower=0.0, length=2, names=("a", "b"), live=True
)
RATE = Parameter("rate", 50.0, "Rate.", "Hz", lower=1.0, upper=1000.0)
COUNT = Parameter("count", 3, "How many.", lower=0, upper=10)
MODE = Parameter("mode", "fast", "Mode.", choices=("fast", "slow"))
FLAG = Parameter("flag", True, "On or off.")
POSTURE = Parameter(
    "posture", "mid", "Where.", choices=("mid", "home"), or_vector=True, length=2, names=("a", "b")
)
LIMIT = Parameter("limit", [np.inf, 5.0], "Limit.", length=2, lower=0.0, infinite=True)
ABOVE = Parameter("step", 1e-3, "Step.", "s", above=0.0, upper=1.0)
MAYBE = Parameter("reach", None, "Reach, if there is one.", "m", lower=0.0, kind=float)
NUMBERS = Parameter("numbers", (), "Any number of numbers.")
TEXTS = Parameter("texts", (), "Any number of texts.", kind=str)
ROWS = Parameter("rows", (), "Rows of numbers.", lower=0.0, kind=tuple, noun="option")
ALL = (KP, RATE, COUNT, MODE, FLAG, POSTURE, LIMIT)
