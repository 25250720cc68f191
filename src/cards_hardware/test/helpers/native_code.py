"""Firmware that tests compile for their own machine."""

import pytest

from cards_hardware.firmware_check import native_firmware


def folder_for(name, factory):
    """Return a folder to build in; the test is skipped where nothing can be built.

    CI installs a compiler; a user's machine need not have one, and only these tests need it.
    """
    if native_firmware.compiler() is None:
        pytest.skip("no C compiler (cc, gcc, clang) on this machine")
    return factory.mktemp(name)
