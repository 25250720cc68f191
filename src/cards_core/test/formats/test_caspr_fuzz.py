"""Damaged files: an error of ours that names file and line, or a valid robot. Never a hang."""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest
from caspr_samples import bodies, cable, cables, link, write
from damaged_files import mutate, mutate_tree, time_limit

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.caspr import checks, import_caspr, write_import

PER_CHUNK = 64
CHUNKS = int(os.environ.get("CARDS_FUZZ", "1024")) // PER_CHUNK

BALL = {"q": "0 0.1 0", "q_min": "-1 -1 -1", "q_max": "1 1 1"}
POINTS = [(0, "1 0 1"), (1, "0 0.1 0.5")]
PULLEY = (
    "<base_rotating_pulley><fixed_location>1 2 3</fixed_location><pulley_radius>0.05"
    "</pulley_radius><cable_entry_vector>0 0 1</cable_entry_vector></base_rotating_pulley>"
)
MOTION = """
    <{kind}_trajectory id="{kind}" time_definition="relative" time_step="0.01"
        blend_time_default="0.1">
      <points>
        <point><q>0 0 0 0 0 0</q><q_dot>0 0 0 0 0 0</q_dot><q_ddot>0 0 0 0 0 0</q_ddot></point>
        <point time="1.0">
          <q>0.1 0.2 0.1 0.2 0.1 0.3</q><q_dot>0 0 0 0 0 0</q_dot><q_ddot>0 0 0 0 0 0</q_ddot>
        </point>
      </points>
    </{kind}_trajectory>"""
KINDS = ("linear_spline", "cubic_spline", "quintic_spline", "parabolic_blend")
PARTS = {
    "bodies": bodies(
        link(1, "S_FIXED_XYZ", **BALL, com="0 0 0.5", inertia="0.1 0.1 0.05 0 0 0"),
        link(2, "R_AXIS", extra='axis="0 1 1" actuated="true"', location="0 0 1"),
        link(3, "U_XY", q="0 0", q_min="-1 -1", q_max="1 1", parent=1, ref="joint"),
    ),
    "cables": cables(
        {
            "main": [
                cable("a b", POINTS),
                cable("c", [(0, "-1 0 1"), (1, "0 0 0.5"), (3, "0.1 0.2 0.3")]),
                cable("p", [(2, "0.1 0 0.2")], first=PULLEY),
                cable(
                    "s", POINTS, kind="cable_passive_linear_spring",
                    properties="<K>1</K><l0>2</l0>",
                ),
            ],
            "other": [cable("v", POINTS, kind="cable_linear_spring", properties="<K>5</K>")],
        }
    ),
    "trajectories": "<trajectories>\n<joint_trajectories>"
    + "".join(MOTION.format(kind=kind) for kind in KINDS)
    + '<file_trajectory id="f" filename="f.traj"/>\n</joint_trajectories>\n'
    "<operational_trajectories>"
    + MOTION.format(kind="linear_spline").replace("<q>", "<y>").replace("</q>", "</y>")
    + "</operational_trajectories></trajectories>",
    "operational_spaces": """<operational_spaces default_operational_set="ee">
  <operational_set id="ee">
    <pose_euler_xyz marker_id="1" name="tip">
      <link>2</link> <offset>0 0 1</offset> <axes active_axes="xyzabg"/>
    </pose_euler_xyz>
  </operational_set>
</operational_spaces>""",
}  # fmt: skip


def names_the_place(error: CardsError) -> bool:
    """True if the message names a file of the model, and the line unless it cannot be decoded."""
    if not isinstance(error, DescriptionError) or error.source is None:
        return False
    known = any(error.source.endswith(f"robot_{part}.xml") for part in PARTS)
    return known and (error.line is not None or "decoded" in error.problem)


def test_undamaged(tmp_path):
    model = import_caspr(write(tmp_path, **PARTS), samples=3)
    assert len(model.trajectories) >= len(KINDS)
    assert write_import(model, tmp_path / "out").is_dir()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_damaged(tmp_path, chunk, monkeypatch):
    # the search for the largest change of M is a matter of precision, not of damage
    quick = functools.partial(checks.mass_matrix_change, samples=1, steps=1)
    monkeypatch.setattr(checks, "mass_matrix_change", quick)
    rng = np.random.default_rng([chunk, 20])
    folder = write(tmp_path, **PARTS)
    names = list(PARTS)
    outcomes = {"error": 0, "robot": 0}
    for k in range(PER_CHUNK):
        part = names[int(rng.integers(4))]
        data = (mutate_tree if k % 2 else mutate)(rng, PARTS[part])
        path = folder / f"robot_{part}.xml"
        path.write_bytes(data)
        try:
            with time_limit(f"{part}, chunk {chunk}, case {k}"):
                model = import_caspr(folder, feasibility=k % 8 == 0, samples=3)
                model.report.to_json()
                model.report.to_markdown()
                if k % 4 == 0:
                    write_import(model, tmp_path / "out", force=True)
            outcomes["robot"] += 1
        except CardsError as error:
            outcomes["error"] += 1
            if not names_the_place(error):
                pytest.fail(f"case {k} of {part}: {error!r}")
        finally:
            path.write_text(PARTS[part], encoding="utf-8")
    assert min(outcomes.values()) > 5, (
        outcomes
    )  # damage is neither always fatal nor always harmless


WIDE = "".join(f"<x{k}/>" for k in range(20000))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "<bodies_system>",
        '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><bodies_system>&c;</bodies_system>',
        "<bodies_system>" * 5000,
        f"<bodies_system><links>{WIDE}</links></bodies_system>",
        '<bodies_system><links a="' + "x" * 100000 + '"/></bodies_system>',
    ],
    ids=["empty", "text", "open", "entities", "deep", "wide", "long"],
)
def test_odd_documents(tmp_path, text):
    folder = write(tmp_path, **{**PARTS, "bodies": text})
    with time_limit("odd document"), pytest.raises(DescriptionError) as info:
        import_caspr(folder)
    assert info.value.source.endswith("robot_bodies.xml")
    assert len(str(info.value)) < 2000


def test_binary_garbage(tmp_path):
    rng = np.random.default_rng(4)
    for part in PARTS:
        folder = write(tmp_path, **PARTS)
        (folder / f"robot_{part}.xml").write_bytes(rng.bytes(2000))
        with pytest.raises(DescriptionError):
            import_caspr(folder)
