"""Warnings of MuJoCo go to the log; its own handler writes a file into the working directory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco

_log = logging.getLogger(__name__)


@contextmanager
def quiet_mujoco() -> Iterator[None]:
    """Within the block MuJoCo's warnings are debug messages of the log, then as before."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: _log.debug("MuJoCo: %s", text))
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
