"""What docs/ros_interface.md says about parameters must be what the nodes declare."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "docs" / "parameter_tables.py"


@pytest.mark.skipif(not SCRIPT.is_file(), reason=f"{SCRIPT.name} is not here (no checkout)")
def test_the_parameter_tables_are_up_to_date():
    spec = importlib.util.spec_from_file_location("parameter_tables", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for page in module.rows():
        text = SCRIPT.with_name(page).read_text()
        assert module.with_tables(page, text) == text, f"run python docs/{SCRIPT.name}"
