"""Which tests may run side by side: those of the library, file by file; all others in turn."""

from pathlib import Path

import pytest

LIBRARY = Path(__file__).parent / "src" / "cards_core"


def pytest_collection_modifyitems(items):
    """Form groups for pytest-xdist; without it they mean nothing.

    Hosts, nodes and programs share the machine's clock and network, and are tested one at a time.
    """
    for item in items:
        library = LIBRARY in item.path.parents
        group = str(item.path) if library else "hosts"
        item.add_marker(pytest.mark.xdist_group(group))
