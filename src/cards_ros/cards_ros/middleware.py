"""How the middleware of our processes carries messages."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from cards_core.errors import CardsError

TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
"""Environment variable that Fast DDS reads when a context is made; other middleware ignores it."""

PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""Environment variables with a file of profiles, which may say the same."""

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
"""Environment variable of ROS: how far nodes look for others."""

VARIABLES = (TRANSPORTS, *PROFILES, RANGE, "ROS_LOCALHOST_ONLY")
"""All that `use_udp` may set."""

_THIS_MACHINE = str(Path(__file__).with_name("this_machine.xml"))
"""The file of profiles with UDP alone, and others of this machine only."""


def check_loopback() -> None:
    """Refuse a machine whose loopback interface is down: processes on it do not find each other.

    Raises:
        CardsError: It is down.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        try:
            own.connect(("127.0.0.1", 9))  # sends nothing
        except OSError as error:
            raise CardsError(
                f"the loopback interface of this machine is down ({error.strerror}): ROS nodes on "
                "it do not find each other (expected: it is up, with 'ip link set lo up' as root; "
                "or --no-ros)"
            ) from None


def use_udp() -> None:
    """Let Fast DDS carry messages by UDP, unless the environment says how; before a context.

    Its shared memory does not survive processes that are killed: one that is started in their
    place may be known to all and yet get no message from them, as long as they live (Fast DDS
    issues 5053 and 5469, open; seen here once in some hundred kills). Between two processes on
    one machine our messages take no longer by UDP.

    Where nodes are to look for others on this machine only (``ROS_AUTOMATIC_DISCOVERY_RANGE`` is
    ``LOCALHOST``), rmw_fastrtps sets transports itself, shared memory among them. A file of
    profiles says the same without it then, and the range is left to the file. Not where there
    are peers of one's own (``ROS_STATIC_PEERS``), which the file does not have, and not with
    what may not read the file: another middleware, or a ROS that is not Jazzy.
    """
    if os.environ.get(PROFILES[0]) == _THIS_MACHINE:  # from the process that started this one
        if os.environ.get(RANGE) == "SYSTEM_DEFAULT":
            return
        del os.environ[PROFILES[0]]
    if any(os.environ.get(name) for name in (TRANSPORTS, *PROFILES)):
        return
    if not _on_this_machine_only():
        os.environ[TRANSPORTS] = "UDPv4"
    elif _reads_the_profile() and not os.environ.get("ROS_STATIC_PEERS"):
        os.environ[PROFILES[0]] = _THIS_MACHINE
        os.environ[RANGE] = "SYSTEM_DEFAULT"
        os.environ.pop("ROS_LOCALHOST_ONLY", None)


def _on_this_machine_only() -> bool:
    """Return if ROS is to find nodes of this machine only."""
    # the older variable counts first where it is set
    return os.environ.get("ROS_LOCALHOST_ONLY") == "1" or os.environ.get(RANGE) == "LOCALHOST"


def _reads_the_profile() -> bool:
    """Return if the middleware is the Fast DDS that `use_udp` has the file for."""
    name = os.environ.get("RMW_IMPLEMENTATION") or "rmw_fastrtps_cpp"
    distribution = os.environ.get("ROS_DISTRO") or "jazzy"
    return name.startswith("rmw_fastrtps") and distribution == "jazzy"
