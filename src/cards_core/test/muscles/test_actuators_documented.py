"""What docs/muscles.md says about parameters must be what the classes accept."""

import importlib.util
import re
from pathlib import Path

import pytest

from cards_core.robot.actuators import ACTUATORS

DOCS = Path(__file__).parents[4] / "docs"
SCRIPT = DOCS / "parameter_tables.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="docs/ is not here (no checkout)")


def page():
    return (DOCS / "muscles.md").read_text()


def test_the_tables_are_up_to_date():
    spec = importlib.util.spec_from_file_location("parameter_tables", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.with_tables("muscles.md", page()) == page(), f"run python docs/{SCRIPT.name}"


def test_every_type_has_a_section_and_every_picture_exists():
    for kind in ACTUATORS:
        assert f"\n## {kind}\n" in page()
    pictures = re.findall(r"\(images/([^)]*)\)", page())
    assert pictures
    assert all((DOCS / "images" / name).is_file() for name in pictures)


def test_every_source_is_in_the_list():
    keys = set(re.findall(r"\[([A-Z][A-Za-z]*\d{4})\]", page()))
    assert "DeGroote2016" in keys
    listed = (DOCS / "references.md").read_text()
    assert all(f"[{key}]" in listed for key in keys)
