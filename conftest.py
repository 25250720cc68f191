"""Which tests may run side by side: those of code without clock or network, file by file."""

from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "src"
LIBRARY = SOURCES / "cards_core"
PROTOCOL = SOURCES / "cards_hardware" / "test"
SIDE_BY_SIDE = {
    PROTOCOL / f"test_{name}.py"
    for name in (
        "codec",
        "device_run",
        "error_run",
        "fast_state",
        "firmware_core",
        "frames",
        "fuzz",
        "hil_world",
        "native_codec",
        "protocol_documented",
        "protocol_table",
    )
}


def pytest_collection_modifyitems(items):
    """Form groups for pytest-xdist; without it they mean nothing.

    Hosts, nodes and programs share the machine's clock and network, and are tested one at a time.
    """
    for item in items:
        alone = LIBRARY in item.path.parents or item.path in SIDE_BY_SIDE
        group = str(item.path) if alone else "hosts"
        item.add_marker(pytest.mark.xdist_group(group))
