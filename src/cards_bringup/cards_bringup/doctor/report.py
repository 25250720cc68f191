"""All checks in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from cards_bringup.doctor.finding import Finding
from cards_bringup.doctor.hardware_parts import (
    check_cross_compiler,
    check_emulator,
    check_serial_ports,
)
from cards_bringup.doctor.python_parts import (
    check_dynamics,
    check_environment,
    check_packages,
    check_python,
)
from cards_bringup.doctor.ros_parts import check_launch, check_ros
from cards_bringup.doctor.system_parts import (
    check_cache,
    check_compiler,
    check_ports,
    check_size,
)

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
    from cards_bringup.gazebo import installation  # which reports with our `Finding`

    yield from installation.examine()[1]
