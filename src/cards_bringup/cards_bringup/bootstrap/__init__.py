"""From a bare Python to an environment with everything that CARDS needs.

Everything in this package uses the standard library only: it runs before anything is installed.
"""

from cards_bringup.bootstrap.environment import Environment
from cards_bringup.bootstrap.reporting import SetupError

__all__ = ["Environment", "SetupError"]
