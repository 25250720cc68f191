"""What cannot be used is said when it is read, of the user's file, with and without -o."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from cards_core.errors import DescriptionError
from cards_core.formats.imports.command import add_output_options, import_command
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.imports.model import ImportedModel, write_imported
from cards_core.robot import Robot
from cards_core.robot.elements import (
    WORLD,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Sphere,
    ViaPoint,
    Wrap,
    WrapSurface,
)


def imported(tmp_path):
    """Return a model whose muscle ends inside of a surface that it wraps over."""
    file = tmp_path / "source.xyz"
    file.write_text("")
    robot = Robot(
        "r",
        (Link("a", Inertia(1.0, np.zeros(3), np.eye(3))),),
        (Joint("j", "revolute", WORLD, "a", axes=(JointAxis(np.eye(3)[0]),)),),
        (
            Muscle(
                "m",
                (
                    ViaPoint(WORLD, np.array([1.0, 0.0, 0.0])),
                    Wrap("ball"),
                    ViaPoint("a", np.array([0.0, 0.01, 0.0])),
                ),
                1.0,
                10.0,
                line=42,
            ),
        ),
        source=str(file),
        wrap_surfaces=(WrapSurface("ball", WORLD, Sphere(0.1)),),
    )
    return ImportedModel(robot, "XYZ", file, FindingList())


def test_the_error_names_the_source(tmp_path):
    model = imported(tmp_path)
    with pytest.raises(DescriptionError) as info:
        write_imported(model, tmp_path / "out")
    text = str(info.value)
    assert text.startswith(
        f"{model.source}:42: <via_point> of muscle 'm': the robot that was made"
    )
    assert "90 mm inside wrap surface 'ball'" in text
    assert "importing-" not in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("output", [False, True])
def test_the_command_gives_the_same_answer_with_and_without_a_folder(tmp_path, capsys, output):
    parser = argparse.ArgumentParser()
    add_output_options(parser)
    arguments = ["-o", str(tmp_path / "out")] if output else []
    assert import_command(parser, arguments, lambda *_: imported(tmp_path)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"error: {tmp_path / 'source.xyz'}:42: " in captured.err
