"""How the middleware of our processes carries messages."""

from __future__ import annotations

import os

TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
"""Environment variable that Fast DDS reads when a context is made; other middleware ignores it."""

PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""Environment variables with a file of profiles, which may say the same."""


def use_udp() -> None:
    """Let Fast DDS carry messages by UDP, unless the environment says how; before a context.

    Its shared memory does not survive processes that are killed: one that is started in their
    place may be known to all and yet get no message from them, as long as they live (Fast DDS
    issues 5053 and 5469, open; seen here once in some hundred kills). Between two processes on
    one machine our messages take no longer by UDP. Without effect where
    ``ROS_AUTOMATIC_DISCOVERY_RANGE`` is ``LOCALHOST``: rmw_fastrtps sets transports itself then.
    """
    if not any(os.environ.get(name) for name in (TRANSPORTS, *PROFILES)):
        os.environ[TRANSPORTS] = "UDPv4"
