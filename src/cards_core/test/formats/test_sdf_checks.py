"""Millimetres are doubted, metres are not: of all robots that there are."""

import dataclasses
import logging
import re

import pytest
from caspr_samples import SHARED, needs_caspr_models

from cards_core.formats import known_models, load
from cards_core.formats.caspr import find_models, import_caspr
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.sdf.checks import unit_warning
from cards_core.robot import Pulley, ViaPoint

OURS = [name for name in known_models() if not has_rods(find_model(name))]
ROWS = [row for row in find_models(SHARED) if row.files] if SHARED.is_dir() else []


def in_millimetres(robot, muscles=None):
    """Return a robot with the points of its muscles (or of some) a thousand times as far."""

    def scaled(item):
        if isinstance(item, ViaPoint | Pulley):
            return dataclasses.replace(item, position=1000.0 * item.position)
        return item

    out = [
        dataclasses.replace(muscle, path=tuple(map(scaled, muscle.path)))
        if muscles is None or muscle.name in muscles
        else muscle
        for muscle in robot.muscles
    ]
    return dataclasses.replace(robot, muscles=tuple(out))


def check(robot):
    assert unit_warning(robot) is None
    found = unit_warning(in_millimetres(robot))
    assert found is not None
    assert "in millimetres? In metres it would be (" in found.text
    for muscle in robot.muscles:
        own = unit_warning(in_millimetres(robot, [muscle.name]))
        # a cable from the origin of a frame to a point mass has nothing that could be scaled
        if any(item.position.any() for item in muscle.path if isinstance(item, ViaPoint | Pulley)):
            assert own is not None, muscle.name
            assert own.muscle == muscle.name


@pytest.mark.parametrize("name", OURS)
def test_our_robots(name):
    check(load(name))


@needs_caspr_models
@pytest.mark.parametrize("row", ROWS, ids=[row.name.replace(" ", "_") for row in ROWS])
def test_robots_of_caspr(row):
    model = import_caspr(row.files, feasibility=False)
    assert not [item for item in model.report.findings if item.code == "units-doubtful"]
    check(model.robot)
    if model.sdf_robot is not None:
        check(model.sdf_robot)


def test_what_is_said_when_a_robot_is_loaded(tmp_path, caplog):
    text = find_model("planar_2r").read_text()
    file = tmp_path / "model.sdf"
    changed, count = re.subn(
        r"(<via_point\b[^>]*>)([^<]+)(</via_point>)",
        lambda m: m[1] + " ".join(str(1000.0 * float(x)) for x in m[2].split()) + m[3],
        text,
    )
    assert count == 8
    file.write_text(changed)
    with caplog.at_level(logging.WARNING):
        load(file)
        load(file)
    (record,) = caplog.records
    said = record.getMessage()
    line = next(k for k, t in enumerate(changed.splitlines(), start=1) if "<via_point" in t)
    assert said.startswith(f"warning: {file}:{line}: muscle 'cable_1': point 1 is ")
    assert "of a robot whose links and joints measure 1 m: in millimetres?" in said
