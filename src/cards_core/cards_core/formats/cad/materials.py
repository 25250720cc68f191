"""Densities of common materials.

Typical values at room temperature as handbooks and makers' data sheets state them; plastics and
woods vary by several per cent, printed parts with their infill.
"""

from __future__ import annotations

from collections.abc import Mapping

DENSITIES: Mapping[str, float] = {
    # metals
    "aluminium": 2700.0,
    "aluminium_6061": 2700.0,
    "aluminium_7075": 2810.0,
    "brass": 8500.0,
    "bronze": 8800.0,
    "cast_iron": 7200.0,
    "copper": 8960.0,
    "lead": 11340.0,
    "magnesium": 1740.0,
    "stainless_steel": 8000.0,
    "steel": 7850.0,
    "titanium": 4510.0,
    "titanium_6al4v": 4430.0,
    "tungsten": 19250.0,
    "zinc": 7130.0,
    # plastics
    "abs": 1040.0,
    "asa": 1070.0,
    "hdpe": 955.0,
    "nylon": 1140.0,
    "pa12": 1010.0,
    "peek": 1310.0,
    "petg": 1270.0,
    "pla": 1240.0,
    "pmma": 1190.0,
    "polycarbonate": 1200.0,
    "polypropylene": 905.0,
    "pom": 1410.0,
    "ptfe": 2200.0,
    "pvc": 1380.0,
    "rubber": 1100.0,
    "silicone": 1150.0,
    "tpu": 1210.0,
    "uhmwpe": 940.0,
    # others
    "carbon_fibre": 1600.0,
    "ceramic_alumina": 3900.0,
    "glass": 2500.0,
    "glass_fibre": 1900.0,
    "water": 1000.0,
    "wood_beech": 720.0,
    "wood_pine": 500.0,
    "cortical_bone": 1900.0,
}
"""Material to density, [kg/m^3]."""

DEFAULT = "aluminium"
"""What bodies are made of when nothing says it; the report warns."""

PLAUSIBLE = (10.0, 23_000.0)
"""Densities that a solid part can have, from foam to osmium, [kg/m^3]."""
