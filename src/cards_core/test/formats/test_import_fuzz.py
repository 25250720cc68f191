"""Damaged files of importers: an error of ours that names file and line, or a valid robot."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from damaged_files import mutate, mutate_tree, time_limit

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.formats.cardsflow.importer import import_cardsflow
from cards_core.formats.imports import masses
from cards_core.formats.imports.model import write_imported
from cards_core.formats.urdf.importer import import_urdf

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"

CHUNKS, PER_CHUNK = 20, 100
assert CHUNKS * PER_CHUNK >= 2000

EXTRA = """
  <link name="slider"/>
  <joint name="slide" type="planar">
    <parent link="base_link"/> <child link="slider"/> <origin rpy="0.1 0 0"/> <axis xyz="0 0 1"/>
  </joint>
  <link name="ball"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="fly" type="floating"><parent link="slider"/><child link="ball"/></joint>
  <joint name="twin" type="continuous"><parent link="base_link"/><child link="finger"/>
    <mimic joint="elbow" multiplier="2" offset="0.1"/></joint>
  <link name="finger"/>
</robot>"""

CARDSFLOW = {
    "model.sdf": (EXAMPLES / "cardsflow_arm" / "model.sdf").read_text(encoding="utf-8"),
    "cardsflow.xml": (EXAMPLES / "cardsflow_arm" / "cardsflow.xml").read_text(encoding="utf-8"),
}
URDF = {
    "arm.urdf": (EXAMPLES / "urdf_arm" / "arm.urdf")
    .read_text(encoding="utf-8")
    .replace("</robot>", EXTRA),
    "muscles.yaml": (EXAMPLES / "urdf_arm" / "muscles.yaml").read_text(encoding="utf-8"),
}


def read_cardsflow(folder):
    return import_cardsflow(folder)


def read_urdf(folder):
    return import_urdf(
        folder / "arm.urdf", muscles=folder / "muscles.yaml", motors="transmissions"
    )


FORMATS = {"cardsflow": (CARDSFLOW, read_cardsflow), "urdf": (URDF, read_urdf)}


def names_the_place(error, files):
    """True if the message names a file, and the line unless it cannot be decoded."""
    if not isinstance(error, DescriptionError) or error.source is None:
        return False
    known = any(error.source.endswith(name) for name in files)
    no_lines = "decoded" in error.problem or error.problem == "is empty"
    return known and (error.line is not None or no_lines)


def fill(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("form", FORMATS)
def test_damaged(tmp_path, form, chunk, monkeypatch):
    # the search for the largest change of M is a matter of precision, not of damage
    quick = functools.partial(masses.mass_matrix_change, samples=1, steps=1)
    monkeypatch.setattr(masses, "mass_matrix_change", lambda a, b, **_: quick(a, b))
    files, read = FORMATS[form]
    rng = np.random.default_rng([chunk, 7])
    outcomes = {"error": 0, "robot": 0}
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    fill(source, files)
    names = list(files)
    for k in range(PER_CHUNK):
        name = names[int(rng.integers(len(names)))]
        tree = k % 2 and not name.endswith(".yaml")
        path = source / name
        path.write_bytes((mutate_tree if tree else mutate)(rng, files[name]))
        before = sorted(out.rglob("*")) if out.exists() else []
        try:
            with time_limit(f"{form}, chunk {chunk}, case {k}"):
                model = read(source)
                model.to_json()
                model.to_markdown()
                if k % 10 == 0:
                    load(write_imported(model, out, force=True))
            outcomes["robot"] += 1
        except CardsError as error:
            outcomes["error"] += 1
            if not names_the_place(error, (*names, "model.sdf")):
                pytest.fail(f"case {k} of {name}: {error!r}")
            # nothing half written
            assert (sorted(out.rglob("*")) if out.exists() else []) == before
        finally:
            path.write_text(files[name], encoding="utf-8")
    # damage is neither always fatal nor always harmless
    assert min(outcomes.values()) > 0, outcomes


WIDE = "".join(f"<x{k}/>" for k in range(20000))
ODD = {
    "empty": "",
    "text": "hello",
    "open": "<{root}>",
    "entities": '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><{root}>&c;</{root}>',
    "deep": "<{root}>" * 5000,
    "wide": "<{root}><link name='a'>" + WIDE + "</link></{root}>",
    "long": "<{root} a='" + "x" * 100000 + "'/>",
    "many": "<{root}>" + "<a/>" * 600_000 + "</{root}>",
    "chain": "<{root}><link name='l0'/>"
    + "".join(f"<link name='l{k}'/>" for k in range(1, 5000))
    + "</{root}>",
    "links": "<{root} name='a'>"
    + "".join(f"<link name='{k}'/>" for k in range(3000))
    + "<j/></{root}",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("form", FORMATS)
def test_odd_documents(tmp_path, form, odd):
    files, read = FORMATS[form]
    fill(tmp_path, files)
    for name in files:
        root = {"model.sdf": "sdf", "cardsflow.xml": "cardsflow"}.get(name, "robot")
        path = tmp_path / name
        path.write_text(ODD[odd].replace("{root}", root), encoding="utf-8")
        with time_limit("odd document"), pytest.raises(DescriptionError) as info:
            read(tmp_path)
        assert info.value.source.endswith((*files, name))
        assert len(str(info.value)) < 2000
        path.write_text(files[name], encoding="utf-8")


def test_aliases_of_yaml_end(tmp_path):
    fill(tmp_path, URDF)
    bomb = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
    for k in range(1, 10):
        bomb += f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n"
    (tmp_path / "muscles.yaml").write_text(bomb)
    with time_limit("aliases"), pytest.raises(DescriptionError):
        read_urdf(tmp_path)


@pytest.mark.parametrize("form", FORMATS)
def test_binary_garbage(tmp_path, form):
    files, read = FORMATS[form]
    rng = np.random.default_rng(4)
    for name in files:
        fill(tmp_path, files)
        (tmp_path / name).write_bytes(rng.bytes(2000))
        with pytest.raises(DescriptionError):
            read(tmp_path)
