"""Sections, materials, rods: stiffnesses against tables, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cards_core.errors import RodError
from cards_core.rods.rod import Material, Rod, Section

STEEL = Material(200e9, shear=80e9, density=8000.0)


def test_stiffness_of_the_published_rod() -> None:
    rod = Rod(Section.circle(1e-3), STEEL)
    np.testing.assert_allclose(rod.stiffness_bt, (0.15708, 0.15708, 0.12566), rtol=4e-5)
    np.testing.assert_allclose(rod.stiffness_se, (2.5133e5, 2.5133e5, 6.2832e5), rtol=2e-5)
    assert -rod.weight((0, 0, -9.81))[2] == pytest.approx(0.24655, rel=2e-5)
    assert rod.is_circular
    assert not Rod(Section.circle(1e-3), STEEL, curvature=(0, 0, 0.1)).is_circular
    assert not Rod(Section.rectangle(1e-3, 2e-3), STEEL).is_circular
    assert Material(207e9, poisson=0.305).shear_modulus == pytest.approx(207e9 / 2.61)


def test_sections() -> None:
    # Timoshenko, Goodier, table 1: J = k1 a b^3, largest shear strain = k2 b twist... k1, k = k2
    for ratio, k1, k in ((1.0, 0.1406, 0.675), (2.0, 0.229, 0.930), (10.0, 0.312, 1.000)):
        section = Section.rectangle(2e-3, 2e-3 * ratio)
        assert section.torsion_constant == pytest.approx(k1 * ratio * 2e-3**4, rel=3e-3)
        assert section.torsion_radius == pytest.approx(k * 2e-3, rel=1e-3)
        turned = Section.rectangle(2e-3 * ratio, 2e-3)
        assert turned.torsion_constant == section.torsion_constant
        assert turned.second_moment_1 == section.second_moment_2
    # a tube is a circle less a circle
    tube, outer, inner = Section.tube(2e-3, 1e-3), Section.circle(2e-3), Section.circle(1e-3)
    for name in ("area", "second_moment_1", "torsion_constant"):
        assert getattr(tube, name) == pytest.approx(getattr(outer, name) - getattr(inner, name))
    assert tube.polar_moment == pytest.approx(tube.torsion_constant)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"young": 0.0, "poisson": 0.3}, "Young's modulus is 0 Pa"),
        ({"young": math.nan, "poisson": 0.3}, "Young's modulus is nan"),
        ({"young": "stiff", "poisson": 0.3}, "'stiff'; expected a positive number in Pa"),
        ({"young": 2e14, "poisson": 0.3}, "units"),
        ({"young": 2e11}, "neither is given"),
        ({"young": 2e11, "poisson": 0.3, "shear": 8e10}, "both are given"),
        ({"young": 2e11, "poisson": 0.51}, r"nu <= 0\.5"),
        ({"young": 2e11, "poisson": -1.0}, "-1 < nu"),
        ({"young": 2e11, "shear": -8e10}, "shear modulus is -8e"),
        ({"young": 2e11, "poisson": 0.3, "density": -1.0}, "density is -1"),
        ({"young": 2e11, "poisson": 0.3, "density": 8e6}, "units"),
        ({"young": 2e11, "poisson": 0.3, "yield_strain": 0.0}, "yield strain is 0"),
    ],
)
def test_bad_materials(values: dict[str, Any], words: str) -> None:
    with pytest.raises(RodError, match=words):
        Material(**values)


def test_bad_sections_and_rods() -> None:
    with pytest.raises(RodError, match="radius is 0 m"):
        Section.circle(0.0)
    with pytest.raises(RodError, match="inner radius"):
        Section.tube(1e-3, 1e-3)
    with pytest.raises(RodError, match="height is nan"):
        Section.rectangle(1.0, math.nan)
    with pytest.raises(RodError, match="torsion constant is -1"):
        Section(1.0, 1.0, 1.0, -1.0, (1.0, 1.0), 1.0)
    with pytest.raises(RodError, match="half width: 1 values"):
        Section(1.0, 1.0, 1.0, 1.0, (1.0,), 1.0)  # type: ignore[arg-type]
    with pytest.raises(RodError, match="three finite numbers"):
        Rod(Section.circle(1e-3), STEEL, curvature=(0.0, math.inf, 0.0))
    with pytest.raises(RodError, match="strain along d3"):
        Rod(Section.circle(1e-3), STEEL, strain=(0.0, 0.0, 0.0))
    with pytest.raises(RodError, match="damping time"):
        Rod(Section.circle(1e-3), STEEL, damping=-1.0)


def test_doubts_about_units() -> None:
    assert Rod(Section.circle(1e-3), STEEL).unit_warnings(0.5) == ()
    (thick,) = Rod(Section.circle(0.03), Material(1e7, poisson=0.4)).unit_warnings(0.5)
    assert "not in metres" in thick
    thick, stiff = Rod(Section.circle(1.0), STEEL).unit_warnings(500e-3)
    assert "millimetres" in stiff
