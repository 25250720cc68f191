"""Small CASPR models, written for the tests, and where CASPR's own lie if they are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "caspr_models"
"""CASPR's models, if a folder ``shared`` lies beside the repository."""

needs_caspr_models = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"CASPR's models are not at {SHARED}"
)


def link(
    number: int,
    joint: str,
    *,
    parent: int | None = None,
    name: str | None = None,
    q: str = "0",
    q_min: str = "-3",
    q_max: str = "3",
    location: str = "0 0 0",
    mass: float = 1.0,
    com: str = "0 0 0",
    end: str = "0 0 0",
    inertia: str = "1 1 1 0 0 0",
    ref: str = "com",
    extra: str = "",
) -> str:
    """Return a ``<link_rigid>``; ``inertia`` is xx yy zz xy xz yz."""
    tags = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
    moments = "".join(f"<{t}>{v}</{t}>" for t, v in zip(tags, inertia.split(), strict=True))
    return f"""
    <link_rigid num="{number}" name="{name or f"link {number}"}">
      <joint type="{joint}" q_initial="{q}" q_min="{q_min}" q_max="{q_max}" {extra}/>
      <physical>
        <mass>{mass}</mass>
        <com_location>{com}</com_location>
        <end_location>{end}</end_location>
        <inertia ref="{ref}">{moments}</inertia>
      </physical>
      <parent>
        <num>{number - 1 if parent is None else parent}</num>
        <location>{location}</location>
      </parent>
    </link_rigid>"""


def bodies(*links: str, after: str = "") -> str:
    """Return a bodies file."""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE bodies_system SYSTEM "../../templates/bodies.dtd">
<bodies_system>
  <links display_range="-1 1 -1 1 -1 1" view_angle="10 20">{"".join(links)}
  </links>{after}
</bodies_system>
"""


def cable(
    name: str,
    points: Sequence[tuple[int, str]],
    *,
    kind: str = "cable_ideal",
    reference: str = 'attachment_reference="joint"',
    limits: tuple[float, float] = (1.0, 100.0),
    properties: str = "",
    first: str = "",
) -> str:
    """Return a cable; ``points`` are (link number, location), ``first`` goes before them."""
    places = "".join(
        f"<attachment><link>{number}</link><location>{where}</location></attachment>"
        for number, where in points
    )
    forces = f"<force_min>{limits[0]}</force_min><force_max>{limits[1]}</force_max>"
    if kind == "cable_passive_linear_spring":
        forces = ""
    return f"""
    <{kind} name="{name}" {reference}>
      <properties>{forces}{properties}</properties>
      <attachments>{first}{places}</attachments>
    </{kind}>"""


def cables(sets: dict[str, Sequence[str]], default: str | None = None) -> str:
    """Return a cables file; the first set is the default unless another is named."""
    chosen = next(iter(sets)) if default is None else default
    body = "".join(f'<cable_set id="{k}">{"".join(v)}</cable_set>' for k, v in sets.items())
    return f'<?xml version="1.0"?>\n<cables default_cable_set="{chosen}">{body}</cables>\n'


def write(folder: Path, stem: str = "robot", **parts: str) -> Path:
    """Write ``<stem>_<part>.xml`` for every part and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in parts.items():
        (folder / f"{stem}_{part}.xml").write_text(text, encoding="utf-8")
    return folder


TWO_CABLES = cables(
    {
        "main": [
            cable("left", [(0, "1 0 1"), (1, "0 0 0.5")]),
            cable("r", [(0, "-1 0 1"), (1, "0 0 0.5")]),
        ]
    }
)
"""Two cables from the ground to link 1."""

PENDULUM = bodies(link(1, "R_Y", mass=2, com="0 0 0.5", end="0 0 1"))
"""One link that turns about y."""

NO_TRAJECTORIES = "<trajectories><joint_trajectories/></trajectories>"
NO_SPACES = '<operational_spaces default_operational_set=""></operational_spaces>'


def minimal(folder: Path, **parts: str) -> Path:
    """Write a pendulum with two cables; any part may be replaced."""
    everything = {
        "bodies": PENDULUM,
        "cables": TWO_CABLES,
        "trajectories": NO_TRAJECTORIES,
        "operational_spaces": NO_SPACES,
    }
    return write(folder, **{**everything, **parts})
