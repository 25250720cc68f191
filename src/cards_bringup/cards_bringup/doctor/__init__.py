"""Checks of the machine; each yields OK, WARN or FAIL and says what to do.

Only the standard library is imported; everything else is imported in a separate process, so that a
broken installation does not stop its own diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from cards_bringup.doctor.machine_checks import (
    check_cache,
    check_compiler,
    check_cross_compiler,
    check_emulator,
    check_ports,
    check_serial_ports,
    check_size,
)
from cards_bringup.doctor.software_checks import (
    check_dynamics,
    check_environment,
    check_launch,
    check_packages,
    check_python,
    check_ros,
)
from cards_bringup.findings import Finding, Status
from cards_bringup.gazebo import installation

__all__ = ["Finding", "Status", "examine"]


Check: TypeAlias = Callable[[], Iterator[Finding]]


def examine(checkout: Path | None) -> Iterator[Finding]:
    """Yield what each check finds, as it finds it.

    Args:
        checkout: Top folder of the repository, or None if the code is installed.
    """
    yield from check_python()
    environment = list(check_environment(checkout))
    yield from environment
    inside: tuple[Check, ...] = (
        partial(check_packages, checkout),
        check_dynamics,
        check_compiler,
        check_cache,
        check_ros,
    )
    if any(finding.status == "FAIL" for finding in environment):
        inside = ()  # they would all say the same
    others: tuple[Check, ...] = (
        check_launch,
        check_gazebo,
        check_ports,
        check_serial_ports,
        check_cross_compiler,
        check_emulator,
        check_size,
    )
    for check in (*inside, *others):
        yield from check()


def check_gazebo() -> Iterator[Finding]:
    """Gazebo with all that the muscle plugin needs; optional as a whole."""
    yield from installation.examine()[1]
