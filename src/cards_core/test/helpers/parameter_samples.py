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
ALL = (KP, RATE, COUNT, MODE, FLAG, POSTURE, LIMIT)
