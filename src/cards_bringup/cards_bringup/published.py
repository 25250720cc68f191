"""Published figures of CASPR: tables I to VI of the paper on generalised model compilation.

Chan et al., measured by its authors in MATLAB R2017a on an Intel i5-6500; [ms] there, [us] here.
Each pair is interpreted, compiled. A step or a point includes its update.
"""

from __future__ import annotations

from typing import Any

_PAIRS = {
    "fk_update": ((1.64, 0.13), (2.80, 0.14), (2.81, 0.14), (3.37, 0.16)),
    "fk_step": ((10.26, 3.60), (14.78, 3.59), (17.48, 4.31), (17.83, 3.96)),
    "id_update": ((1.72, 0.11), (3.00, 0.14), (2.95, 0.15), (3.54, 0.20)),
    "id_step": ((4.20, 2.43), (5.69, 2.58), (5.71, 2.72), (6.17, 2.81)),
    "wcc_update": ((1.63, 0.11), (2.86, 0.15), (2.79, 0.12), (3.46, 0.19)),
    "wcc_point": ((1.94, 0.38), (3.31, 0.57), (2.99, 0.28), (4.00, 0.71)),
    "wfc_update": ((1.74, 0.13), (3.12, 0.23), (3.24, 0.26), (4.01, 0.35)),
    "wfc_point": ((4.31, 2.60), (25.00, 22.19), (3037.85, 3013.27), (2678.31, 2651.78)),
}
_COMPILE = ((5.1, 4.9), (2058.1, 90.8), (1183.8, 158.2), (23167.2, 784.4))
_ROBOTS = ("planar_xy", "bm_arm", "ipanema_1", "spherical_2s")


def _of(index: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, values in _PAIRS.items():
        interpreted, compiled = values[index]
        out[f"{name}_numeric_us"] = round(1e3 * interpreted, 3)
        out[f"{name}_compiled_us"] = round(1e3 * compiled, 3)
    out["compile_s"], out["compile_simplified_s"] = _COMPILE[index]
    return out


PUBLISHED = {name: _of(index) for index, name in enumerate(_ROBOTS)}
"""Robot to figures, named as our own."""
