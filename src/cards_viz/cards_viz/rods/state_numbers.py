"""The named numbers and the status of a rod robot as a snapshot for the page.

They are those of `cards_rods.messages`: ``state_names`` with ``state_values``, and
``status_text``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cards_core.rods.status import RodStatus
from cards_core.spatial import quaternion_matrix
from cards_core.typing import Array
from cards_viz.rods.interface import RodSnapshot

_PLATE = ("x", "y", "z", "rx", "ry", "rz")
_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


def snapshot_of(
    time: float,
    joints: Sequence[str],
    values: Mapping[str, float],
    said: Mapping[str, Any],
    lines: Array,
) -> RodSnapshot:
    """Return a snapshot.

    Args:
        time: Of the state, [s].
        joints: Names of the joints.
        values: Numbers of the state by name.
        said: The status; where it is of another state than the numbers, they are newer.
        lines: As of `RodSnapshot`.
    """
    status = _status(values.get("status"), said.get("status"))
    pose = np.eye(4)
    place = [values.get(f"plate/{name}", math.nan) for name in _POSE]
    if np.isfinite(place).all():
        pose[:3, 3], pose[:3, :3] = place[:3], quaternion_matrix(place[3:])
    vector = np.array([values.get(f"collapse/{name}", math.nan) for name in _PLATE])
    fits = said.get("status") == status.name
    return RodSnapshot(
        time,
        np.array([values[f"q/{name}"] for name in joints]),
        pose,
        lines,
        values,
        status=status,
        message=(said.get("message") or "") if fits else "",
        limb=said.get("limb") if fits else None,
        limbs=tuple(said.get("concerned") or ()) if fits else (),
        missing=said.get("missing") if fits else None,
        held=bool(values.get("held")),
        eigenvector=vector if np.isfinite(vector).all() else None,
        warnings=tuple(said.get("warnings") or ()) if fits else (),
        refused=said.get("refused") or "",
        mode="igm" if values.get("mode") else "dgm",
        states=tuple(said.get("states") or ()),
        playing=bool(values.get("playing")),
    )


def _status(number: float | None, name: str | None) -> RodStatus:
    """Return the status that a state has by number, else the one that was said by name."""
    try:
        return RodStatus(int(number)) if number is not None else RodStatus[name or "OK"]
    except (KeyError, ValueError):
        return RodStatus.OK
