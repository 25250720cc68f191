"""Large YAML: read by the C library as PyYAML reads it, or refused before a tree is made of it."""

from pathlib import Path

import pytest

from cards_core import yaml_fields
from cards_core.errors import DescriptionError
from cards_core.yaml_fields import MAX_VALUES, parse_yaml

CHECKOUT = Path(__file__).resolve().parents[3]
FILES = sorted(path for top in ("config", "models") for path in (CHECKOUT / top).rglob("*.yaml"))


def test_the_fast_reader_reads_what_the_other_one_does(monkeypatch):
    assert len(FILES) > 50
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        slow = parse_yaml(text)
        with monkeypatch.context() as patch:
            patch.setattr(yaml_fields, "_LARGE", 0)
            assert parse_yaml(text) == slow, path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n" + "- 1\n" * 3_900_000, f"is too large .expected: at most {MAX_VALUES} values"),
        ("{}\n---\n" * 1_000_000, "is too large"),
        ("[" * 10_000_000, "nested too deeply"),
        ("- " * 10_000_000, "nested too deeply"),
        ("a: " + "x " * 60_000 + "\nb: [", "not valid YAML"),
        ("a: " + "x " * 60_000 + "\nb: \x01", "not valid YAML"),
    ],
)
def test_large_texts_are_refused_at_once(text, message):
    with pytest.raises(DescriptionError, match=message):
        parse_yaml(text)
