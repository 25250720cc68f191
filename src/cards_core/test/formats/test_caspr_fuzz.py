"""Damaged files: an error of ours that names file and line, or a valid robot. Never a hang."""

from __future__ import annotations

import copy
import functools
import signal
import xml.etree.ElementTree as ET
from contextlib import contextmanager

import numpy as np
import pytest
from caspr_samples import bodies, cable, cables, link, write

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.caspr import checks, import_caspr, write_import

CHUNKS, PER_CHUNK = 16, 64
assert CHUNKS * PER_CHUNK >= 1000

SECONDS = 20  # far more than any import of such a small model takes

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

NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e15", "1e-320", "-1", "0", "", "1 2 3 4 5 6 7",
    "0x10", "1_0", "١٢", "9" * 400, "one", "1,5", "2147483648", "1e5", "-0.0",
)  # fmt: skip
WORDS = (
    *(n for n in NUMBERS if len(n) < 400),
    "1", "2", "0.5", "1e-9", "true", "com", "joint", "relative", "R_X", "PLANAR_XY", "S_EULER_XYZ",
    "P_AXIS", "main", "other", "xyz", "a", "link 1", "world", "a::b", "__x__", "../../x", "é ü",
)  # fmt: skip
SNIPPETS = (
    "<", ">", "&", "&amp;", "&lol;", "<!--", "-->", "<![CDATA[", "]]>", "\x00", "\x0b", "\ufffe",
    "<a/>", "</links>", "<link_rigid/>", "<point/>", '"', "'", "<?xml version='1.0'?>", "é",
    "\U0001f980", '<!DOCTYPE a [<!ENTITY lol "lol">]>', "<cable_set/>", " " * 50, "\n",
    "<b:c xmlns:b='x'/>",
)  # fmt: skip


def mutate(rng: np.random.Generator, text: str) -> bytes:
    """Return a damaged copy of a file."""
    for _ in range(int(rng.integers(1, 4))):
        n = len(text)
        a, b = sorted(int(x) for x in rng.integers(0, n + 1, 2)) if n else (0, 0)
        b = min(b, a + int(rng.integers(1, 200)))
        match int(rng.integers(0, 9)):
            case 0:  # lose some text
                text = text[:a] + text[b:]
            case 1:  # the file ends early
                text = text[: max(a, n - int(rng.integers(1, n + 1)))]
            case 2:  # say it twice
                text = text[:b] + text[a:b] + text[b:]
            case 3:
                snippet = SNIPPETS[int(rng.integers(len(SNIPPETS)))]
                text = text[:a] + snippet + text[a:]
            case 4 | 5:  # another number
                text = _replace_word(rng, text)
            case 6:  # lose a line, or say it twice
                lines = text.split("\n")
                k = int(rng.integers(len(lines)))
                lines[k : k + 1] = [lines[k]] * int(2 * rng.integers(2))
                text = "\n".join(lines)
            case 7:  # swap two pieces
                c = min(n, b + (b - a))
                text = text[:a] + text[b:c] + text[a:b] + text[c:]
            case 8:  # another letter
                if n:
                    a = min(a, n - 1)
                    text = text[:a] + chr(int(rng.integers(32, 127))) + text[a + 1 :]
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.15 and data:
        data[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(data)


def mutate_tree(rng: np.random.Generator, text: str) -> bytes:
    """Return a copy that is still XML, with other values, names or elements."""
    root = ET.fromstring(text)
    for _ in range(int(rng.integers(1, 3))):
        elements = list(root.iter())
        element = elements[int(rng.integers(len(elements)))]
        parents = [item for item in elements if element in list(item)]
        attributes = sorted(element.attrib)
        value = WORDS[int(rng.integers(len(WORDS)))]
        match int(rng.integers(0, 8)):
            case 0 | 1:
                words = (element.text or "").split() or [""]
                words[int(rng.integers(len(words)))] = value
                element.text = " ".join(words)
            case 2 | 3 if attributes:
                element.set(attributes[int(rng.integers(len(attributes)))], value)
            case 4 if attributes:
                del element.attrib[attributes[int(rng.integers(len(attributes)))]]
            case 5 if parents:
                parents[0].remove(element)
            case 6 if parents:
                parents[0].append(copy.deepcopy(element))
            case 7:
                element.tag = elements[int(rng.integers(len(elements)))].tag
    return ET.tostring(root)


def _replace_word(rng: np.random.Generator, text: str) -> str:
    places = [i for i, c in enumerate(text) if c.isdigit() and not text[i - 1].isalnum()]
    if not places:
        return text
    a = places[int(rng.integers(len(places)))]
    b = a
    while b < len(text) and (text[b].isalnum() or text[b] in ".-+"):
        b += 1
    return text[:a] + NUMBERS[int(rng.integers(len(NUMBERS)))] + text[b:]


@contextmanager
def time_limit(what: str):
    """Fail if the block takes much too long."""

    def alarm(*_):
        raise AssertionError(f"hangs: {what}")

    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
