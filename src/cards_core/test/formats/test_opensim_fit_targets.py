"""What an import asks a fit of via points for, where it had to change paths."""

from __future__ import annotations

import numpy as np
import opensim_samples as samples
import pytest
from opensim_numbers import OPENSIM

from cards_core.analysis.muscle_fit.fit import MuscleFit
from cards_core.analysis.muscle_fit.reading import read_specification
from cards_core.dynamics.interface import make_dynamics
from cards_core.formats import load
from cards_core.formats.imports.model import FIT_TARGETS, write_imported
from cards_core.formats.opensim import fit_targets
from cards_core.formats.opensim.cli import main
from cards_core.formats.opensim.importer import import_osim, our_coordinates
from cards_core.formats.opensim.kinematics import values


def imported(folder, name):
    path = folder / f"{name}.osim"
    path.write_text(getattr(samples, name)())
    return import_osim(path)


def worst_length(found, robot):
    """Return the largest error against the lengths that OpenSim 4.6 said, [m]."""
    dynamics, rest = make_dynamics(robot, "numeric"), np.zeros(robot.tree.nv)
    worst = 0.0
    for free, theirs in OPENSIM["knee"]:
        q = our_coordinates(robot, found.coordinates, values(found.source, free))
        length = dynamics.update(q, rest).muscle_lengths[0]
        worst = max(worst, abs(length - theirs["extensor"]["length"]))
    return worst


def test_a_fit_brings_a_muscle_over_a_knee_near_opensim(tmp_path):
    found = imported(tmp_path, "knee")
    assert "muscle-fit" in {item.code for item in found.model.findings}
    folder = write_imported(found.model, tmp_path)
    robot = load(folder)
    specification = read_specification(folder / FIT_TARGETS, robot)
    arm, length = specification.goals
    assert (arm.name, length.name) == (
        "moment arm of extensor about knee",
        "length of extensor over knee",
    )
    assert len(specification.variables.points) == 2  # conditional: none at the default pose
    before = worst_length(found, robot)
    assert before > 0.01
    fitted = MuscleFit(specification, starts=4).run().robot
    # two fixed points for three, one of which moves
    assert worst_length(found, fitted) < 0.4 * before


def test_arms_are_slopes_of_lengths(tmp_path):
    """Beside the points' switches: Simpson's rule over the arms gives the change of length."""
    found = imported(tmp_path, "knee")
    muscle = found.source.muscles[0]
    at, _, lengths = fit_targets._curve(found.source, muscle, "knee", 1.0)
    for a, b, start, end in zip(at[3:], at[4:], lengths[3:], lengths[4:], strict=False):
        slopes = [
            fit_targets._length(found.source, muscle, {"knee": x + 1e-4})
            - fit_targets._length(found.source, muscle, {"knee": x - 1e-4})
            for x in (a, 0.5 * (a + b), b)
        ]
        change = (b - a) * (slopes[0] + 4.0 * slopes[1] + slopes[2]) / 6.0 / 2e-4
        assert end - start == pytest.approx(change, abs=5e-5)


@pytest.mark.parametrize("name", ["arm", "shoulder", "old_arm"])
def test_exact_paths_and_paths_over_wraps_ask_for_nothing(name, tmp_path):
    found = imported(tmp_path, name)
    assert FIT_TARGETS not in found.model.files


def test_the_command_says_how_to_fit(tmp_path, capsys):
    path = tmp_path / "a knee.osim"
    path.write_text(samples.knee())
    out = tmp_path / "robots of mine"
    assert main([str(path), "-o", str(out), "-q"]) == 0
    said = capsys.readouterr().out
    assert f"./cards fit-muscles '{out}/knee' '{out}/knee/muscle_fit.yaml' -o fitted" in said
