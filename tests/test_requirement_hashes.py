"""The requirement files with hashes hold the packages that are installed, no more and no fewer."""

import re
from pathlib import Path

import pytest

from cards_bringup.bootstrap.install import pinned

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"

SETS = sorted(path.name for path in REQUIREMENTS.glob("*.txt"))


def with_hashes(path):
    """Return name to version, and name to hashes, of a file with hashes."""
    versions, hashes, name = {}, {}, None
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("    --hash=sha256:"):
            digest = re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})( \\)?", line)
            assert digest is not None, line
            hashes[name].append(digest[1])
            continue
        package = re.fullmatch(r"([a-z0-9._-]+)(?:\[[a-z0-9,-]+\])?==([a-z0-9.+!]+) \\", line)
        assert package is not None, line
        name = package[1]
        assert name not in versions, name
        versions[name], hashes[name] = package[2], []
    return versions, hashes


def test_every_set_has_its_hashes():
    assert sorted(path.name for path in (REQUIREMENTS / "hashes").iterdir()) == SETS


@pytest.mark.parametrize("name", SETS)
def test_hashes_are_those_of_the_pinned_versions(name):
    versions, hashes = with_hashes(REQUIREMENTS / "hashes" / name)
    assert versions == pinned(REQUIREMENTS / name)
    assert all(hashes.values()), [name for name, found in hashes.items() if not found]
