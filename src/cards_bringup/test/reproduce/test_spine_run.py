"""Runs of tensegrity robots: loads, set-points to replay, records."""

import numpy as np
import pytest

from cards_bringup.reproduce import spine_run
from cards_bringup.reproduce.experiment import FinishedRun
from cards_bringup.reproduce.registry import OWN
from cards_bringup.reproduce.spine_run import COLUMNS, RECORD, Load, SpineRun, recorded
from cards_bringup.reproduce.tensegrity_hardware import NAMES, PATTERN, STATIC, WAVES
from cards_core.control.cpg.oscillators import Couplings, OpenLoop, Oscillators
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet
from cards_core.tensegrity import build
from cards_sim.build import build_host

ROBOT = load("tetraspine_hardware")


def test_names_are_those_of_the_robot():
    assert tuple(muscle.name for muscle in ROBOT.muscles) == NAMES


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """0.2 s of the static test."""
    folder = tmp_path_factory.mktemp("static")
    setup = STATIC | {"duration": 0.2}
    shares = []
    numbers = spine_run.spine_run(setup, folder, shares.append)
    return shares, SpineRun.load(FinishedRun("run", setup, folder, numbers))


def test_a_run_leaves_a_row_each_period(short):
    shares, run = short
    np.testing.assert_allclose(run.time, 0.01 * np.arange(1, 21), atol=1e-9)
    assert run.poses.shape == (20, 3, 3, 4)
    assert run.tensions.shape == run.lengths.shape == (20, 12)
    assert shares == pytest.approx([0.005])
    # between two rows it may have been more
    assert np.all(run.largest >= run.tensions.max(axis=0))
    # built with 20 N in the tops and 7 N in the others, which give way at 7 cm/s at most
    pretension = np.array([7.0, 7.0, 20.0] * 4)
    np.testing.assert_allclose(run.tensions[0], pretension, atol=10.0 * 0.07 * 229.16 * 0.02)
    assert run.row(0.05) == 4
    assert run.column("v1-v2.inner_top") == 11


def test_rods_and_cables_are_where_the_structure_has_them(short):
    _, run = short
    for row in (0, -1):
        rods = run.rods(row)
        assert rods.shape == (24, 2, 3)
        lengths = np.linalg.norm(rods[:, 0] - rods[:, 1], axis=1)
        wanted = [0.38, 0.19, 0.19, 0.33262, 0.19, 0.19, 0.33262, 0.33262] * 3
        np.testing.assert_allclose(np.sort(lengths), np.sort(wanted), atol=1e-5)
        cables = run.cables(row)
        found = np.linalg.norm(cables[:, 0] - cables[:, 1], axis=1)
        np.testing.assert_allclose(found, run.lengths[row], atol=1e-9)
    assert run.length[0] == pytest.approx(0.43, abs=0.01)


def test_tensions_are_those_of_the_springs_without_damping(tmp_path):
    """At rest the damping does nothing, and the law gives T0 + K (l - l0)."""
    setup = STATIC | {"duration": 6.0, "load": None}
    numbers = spine_run.spine_run(setup, tmp_path, lambda share: None)
    run = SpineRun.load(FinishedRun("run", setup, tmp_path, numbers))
    given = setup["parameters"]
    law = np.array(given["tension"]) + np.array(setup["simulator"]["impedance_stiffness"]) * (
        run.lengths[-1] - given["rest_length"]
    )
    np.testing.assert_allclose(run.tensions[-1], law, atol=0.05)


def test_a_load_pulls_at_nodes():
    course = Load(ROBOT, STATIC["load"])
    assert [course.force(t) for t in (0.0, 32.5, 35.0, 40.0, 46.0)] == pytest.approx(
        [0.0, 11.2815, 22.563, 22.563, 0.0]
    )
    structure = build("models/tetraspine_hardware/structure.yaml")
    poses = make_dynamics(ROBOT, "numeric").link_poses(ROBOT.tree.home)
    assert [name for name, _, _ in course._nodes] == ["v0", "v1", "v2"]
    assert sum(share for _, _, share in course._nodes) == pytest.approx(0.0)
    for pose, (name, point, _) in zip(poses, course._nodes, strict=True):
        place = pose[:3, :3] @ point + pose[:3, 3]
        np.testing.assert_allclose(place, structure.nodes[f"{name}.tip"], atol=1e-9)
    with pytest.raises(CardsError, match=r"no node 'v0\.nose'"):
        Load(ROBOT, STATIC["load"] | {"shares": {"v0.nose": 1.0}})


def test_a_load_moves_what_it_pulls(tmp_path):
    """2 N forward at the front of a robot that falls: the momentum of all grows by F t."""
    course = {"shares": {"v0.tip": 1.0}, "times": [0.0, 1.0], "forces": [2.0, 2.0]}
    setup = STATIC | {"duration": 0.2, "load": STATIC["load"] | course}
    setup["simulator"] = setup["simulator"] | {"terrain": "flat:level=-2"}
    numbers = spine_run.spine_run(setup, tmp_path, lambda share: None)
    run = SpineRun.load(FinishedRun("run", setup, tmp_path, numbers))
    masses = np.array([link.inertia.mass for link in ROBOT.links])
    # the mean of the velocities of steps 191 to 200
    momentum = masses @ (run.places[-1] - run.places[-2]) / 0.01
    expected = np.array([0.0, -2.0, -9.81 * masses.sum()]) * 0.1955
    np.testing.assert_allclose(momentum, expected, atol=1e-6)


def test_waves_are_those_of_the_formula():
    time, rates = recorded(WAVES, ROBOT, 3.0)
    np.testing.assert_allclose(time, 0.01 * np.arange(300), atol=1e-12)
    # outside at the front: A cos(w t - pi) - A = -A (1 + cos w t)
    expected = -0.06 * (1.0 + np.cos(np.pi * time))
    np.testing.assert_allclose(rates[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(rates[:, 3], -8.0 / 6.0 * expected, atol=1e-6)
    # at the rear half a period later
    np.testing.assert_allclose(rates[:, 6], -0.03 * (1.0 - np.cos(np.pi * time)), atol=1e-12)


def learned(folder):
    """A set of NASA's toolkit without couplings: R = 9 cm/s, v = 0.9 Hz."""
    folder.mkdir(parents=True)
    (folder / "bestParameters-9_node-0.nnw").write_text("0.01,0.1")
    for edge in range(57):
        (folder / f"bestParameters-9_edge-{edge}.nnw").write_text("0,0.5")


def test_a_pattern_needs_a_clone_of_the_toolkit(tmp_path, monkeypatch):
    monkeypatch.delenv("CARDS_NTRT", raising=False)
    text = spine_run.missing_pattern(PATTERN)
    assert "CARDS_NTRT" in text
    assert "bestParameters-9_*.nnw" in text
    with pytest.raises(CardsError, match="CARDS_NTRT"):
        recorded(PATTERN, ROBOT, 1.0)
    monkeypatch.setenv("CARDS_NTRT", str(tmp_path))
    assert spine_run.missing_pattern(PATTERN) == text
    learned(tmp_path / PATTERN["files"].rpartition("/")[0])
    assert spine_run.missing_pattern(PATTERN) == ""
    assert OWN["003.CPG"].missing() == ""
    time, rates = recorded(PATTERN | {"period": 0.01}, ROBOT, 2.0)
    alone = Oscillators(1, OpenLoop(0.9, 9.0), Couplings.none())
    expected = []
    for _ in time:
        alone.advance(0.01)
        expected.append(0.01 * alone.output[0])
    np.testing.assert_allclose(rates, np.outer(expected, PATTERN["signs"]), atol=1e-9)


def test_stiffer_contacts_have_shorter_time_constants():
    host = build_host(ParameterSet({"terrain": "flat"}, "simulator"), ROBOT)
    model = host.simulator.model
    before = model.geom_solref.copy(), model.pair_solref.copy()
    spine_run._stiffen_contacts(host, 4.0)
    for old, new in zip(before, (model.geom_solref, model.pair_solref), strict=True):
        np.testing.assert_array_equal(new[:, 0], 0.5 * old[:, 0])
        np.testing.assert_array_equal(new[:, 1], old[:, 1])


def test_a_record_that_is_broken_is_named(tmp_path):
    run = FinishedRun("run", STATIC, tmp_path, {"largest_tensions_N": {}})
    with pytest.raises(CardsError, match=RECORD):
        SpineRun.load(run)
    np.savez(tmp_path / RECORD, **{name: np.zeros(1) for name in COLUMNS[:-1]})
    with pytest.raises(CardsError, match="lengths"):
        SpineRun.load(run)
