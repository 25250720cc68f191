"""What docs/protocol.md says must be what the protocol's tables say."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "docs" / "protocol_tables.py"


@pytest.mark.skipif(not SCRIPT.is_file(), reason=f"{SCRIPT.name} is not here (no checkout)")
def test_the_protocol_tables_are_up_to_date():
    spec = importlib.util.spec_from_file_location("protocol_tables", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text()
    assert module.with_tables(text) == text, f"run python docs/{SCRIPT.name}"
