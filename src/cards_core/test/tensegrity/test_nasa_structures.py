"""Every structure file of NASA's toolkit against a second derivation from the toolkit's rules."""

import numpy as np
import pytest
from nasa_structures import NASA, derive, needs_nasa_data

from cards_core.errors import DescriptionError
from cards_core.tensegrity import build

FOLDER = NASA / "resources" / "YamlStructures"
FILES = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.yaml"))
IMPOSSIBLE = "Spines/5PrismSpine.yaml"


def to_world(place):
    """Return a place of the file, in cm with y up, in m with z up."""
    x, y, z = place
    return np.array([x, -z, y]) / 100.0


def test_all_files_are_there():
    if not NASA.is_dir():
        pytest.skip(f"NASA's data are not at {NASA}")
    assert len(FILES) == 19


@needs_nasa_data
@pytest.mark.parametrize("name", [name for name in FILES if name != IMPOSSIBLE])
def test_bodies_masses_and_cables_are_those_of_the_toolkit(name):
    structure = build(FOLDER / name)
    bodies, cables = derive(FOLDER / name)
    assert len(structure.bodies) == len(bodies)
    assert len(structure.cables) == len(cables)
    # the toolkit's heights are those of the file; ours begin just above the ground
    lift = structure.bodies[0].position - to_world(bodies[0][1])
    np.testing.assert_allclose(lift[:2], 0.0, atol=1e-9)
    for body, (mass, centre) in zip(structure.bodies, bodies, strict=True):
        assert body.mass == pytest.approx(mass, rel=1e-9)
        np.testing.assert_allclose(body.position, to_world(centre) + lift, atol=1e-9)
    for mine, (start, end, rest, values) in zip(structure.cables, cables, strict=True):
        assert mine.rest_length == pytest.approx(rest / 100.0, abs=1e-9)
        assert mine.length == pytest.approx(np.linalg.norm(end - start) / 100.0, abs=1e-9)
        assert (mine.stiffness, mine.damping) == (values["stiffness"], values["damping"])
        assert mine.pretension == pytest.approx(values["pretension"] / 100.0, abs=1e-7)
        assert mine.tension_max == pytest.approx(values["max_tension"] / 100.0)
        for anchor, place in ((mine.first, start), (mine.second, end)):
            found = structure.body(anchor.body).position + anchor.position
            np.testing.assert_allclose(found, to_world(place) + lift, atol=1e-9)


@needs_nasa_data
def test_a_file_that_the_toolkit_refuses_too_is_refused():
    """Its pretension of 3 cm is more than some of its cables are long."""
    _, cables = derive(FOLDER / IMPOSSIBLE)
    assert min(cable[2] for cable in cables) < 0.0
    with pytest.raises(DescriptionError, match=r"5PrismSpine\.yaml:1\d: .*rest length"):
        build(FOLDER / IMPOSSIBLE)


@needs_nasa_data
def test_superball_is_written_in_decimetres():
    structure = build(FOLDER / "BaseStructures" / "SuperBall.yaml", length="dm")
    assert len(structure.cables) == 24
    for body in structure.bodies:
        assert body.mass == pytest.approx(3.497871, abs=1e-6)
    for cable in structure.cables:
        assert cable.length == pytest.approx(1.0799813, abs=1e-7)
        assert cable.rest_length == pytest.approx(0.6799813, abs=1e-7)
