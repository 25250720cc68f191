"""The exported C controller: tensions of the Python form, its example, its files."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from control_robots import Motion, ball_arm, bm_arm, planar_2r, roboy_arm
from exported_controller import FLAGS, Exported, compiler, exact_tensions
from hybrid_robots import platform_arm

from cards_core.control import ControlModel, ControlStatus, CtcJoint, CtcOperational
from cards_core.control.registry import make_controller
from cards_core.embedded import (
    NotExportableError,
    check_exportable,
    export_controller,
    write_controller,
)
from cards_core.embedded.folder import ARM, microcontroller_report
from cards_core.errors import CardsError, UnknownNameError
from cards_core.robot.actuators import Ligament
from cards_core.robot.state import RobotState
from cards_core.trajectories.curves import Flower

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

TOLERANCE = 1e-12
"""Relative to the largest tension."""

ROBOTS = {
    "roboy_arm": (roboy_arm, {}),
    "bm_arm": (bm_arm, {}),
    "planar_2r": (planar_2r, {"axes": "xz"}),
    "motors": (platform_arm, {"axes": "xz"}),
    "matrix": (planar_2r, {"axes": "xz", "kp": [[300.0, 40.0], [40.0, 200.0]]}),
}


def make(kind, name, **more):
    robot, parameters = ROBOTS[name]
    parameters = {**parameters, **more}
    if kind == "ctc_operational" and robot().operational_frame is None:
        pytest.skip(f"{name} has no operational frame")
    if kind == "ctc_joint":
        parameters.pop("axes", None)
    item = make_controller(kind, robot(), **parameters)
    item.step_in_python()
    return item


def cases(controller, count, seed):
    """States and references, near home and far beyond what the muscles can do."""
    tree, rng = controller.dynamics.tree, np.random.default_rng(seed)
    k = controller.output.error.size
    for i in range(count):
        spread, speed = (0.05, 0.05) if i % 3 else (1.0, 4.0)
        q = tree.integrate(tree.home, spread * rng.uniform() * rng.standard_normal(tree.nv))
        qd = speed * rng.standard_normal(tree.nv)
        y = controller.place(tree.integrate(q, 0.01 * rng.standard_normal(tree.nv)), 0.0 * qd)
        yield (
            RobotState(1e-3 * i, q, qd),
            (y, 0.1 * rng.standard_normal(k), rng.standard_normal(k)),
        )


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("name", ROBOTS)
def test_numbers_too_large_to_square_are_no_state(kind, name, tmp_path):
    """Else an infinite residual would be within its tolerance, which is infinite too."""
    theirs = make(kind, name)
    ours = Exported(theirs, tmp_path)
    tree = theirs.dynamics.tree
    for size in (1e100, 1e140, 1e155, 1e200, 1e300):
        state = RobotState(0.0, tree.home, np.full(tree.nv, size))
        status = ours.step(state)
        assert status >= ControlStatus.INFEASIBLE
        assert math.isfinite(ours.command["residual"]) == (status != ControlStatus.INVALID_STATE)
    assert ours.step(RobotState(0.0, tree.home, np.zeros(tree.nv))) == ControlStatus.OK


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
@pytest.mark.parametrize("name", ROBOTS)
def test_tensions_are_those_of_python(kind, name, tmp_path):
    """Where DAQP's Gram matrix loses more digits, forty digits tell who is right."""
    theirs = make(kind, name)
    ours = Exported(theirs, tmp_path)
    found, unit, m = set(), theirs._force_unit, theirs.tension_min.size
    k = theirs.output.error.size
    for state, sample in cases(theirs, 60, 1):
        theirs.reset()
        theirs.set_reference(Motion(k, lambda t, sample=sample: sample))
        theirs.step(state)
        assert ours.step(state, sample) == theirs.output.status
        a, b = theirs.output, ours.command
        size = max(np.abs(a.tensions).max(initial=unit), np.abs(a.efforts).max(initial=0.0))
        np.testing.assert_allclose(b["error"], a.error, rtol=0.0, atol=1e-15)
        if a.status is ControlStatus.OK:
            wanted = a.tensions
            if np.abs(b["tensions"][:m] - wanted).max(initial=0.0) > TOLERANCE * size:
                wanted = exact_tensions(theirs)
            np.testing.assert_allclose(b["tensions"][:m], wanted, rtol=0.0, atol=TOLERANCE * size)
            np.testing.assert_allclose(a.tensions, wanted, rtol=0.0, atol=1e-9 * size)
        else:
            # stiff slacks: the last digits of the solvers differ, what is lacking does not
            assert float(b["residual"]) == pytest.approx(a.residual, rel=1e-5)
        assert (b["tensions"][:m] >= theirs.tension_min).all()
        assert (b["tensions"][:m] <= theirs.tension_max).all()
        found.add(a.status)
    assert ControlStatus.OK in found or name in ("planar_2r", "matrix")
    assert len(found) > 1 or name == "motors"


def test_a_limit_of_the_rate_is_kept_from_step_to_step(tmp_path):
    theirs = make("ctc_joint", "roboy_arm", tension_rate=3e3)
    ours = Exported(theirs, tmp_path)
    last, before = None, 0.0
    for i, (state, sample) in enumerate(cases(theirs, 40, 2)):
        state.time = 1e-3 * (i - i % 2)  # the same instant again changes no bound
        theirs.set_reference(Motion(4, lambda t, sample=sample: sample))
        theirs.step(state)
        assert ours.step(state, sample) == theirs.output.status
        tensions = ours.command["tensions"].copy()
        scale = np.abs(tensions).max()
        np.testing.assert_allclose(tensions, theirs.output.tensions, atol=1e-8 * scale)
        # the next step starts from the same tensions
        theirs.output.tensions[:] = tensions
        if state.time > before:
            assert np.abs(tensions - last).max() <= 3e3 * (state.time - before) * (1.0 + 1e-9)
        last, before = tensions, state.time


@pytest.mark.parametrize("precision", ["double", "single"])
def test_without_a_reference_the_place_is_held_and_nonsense_relaxes(tmp_path, precision):
    theirs = make("ctc_operational", "roboy_arm")
    ours = Exported(theirs, tmp_path, precision)
    home = theirs.dynamics.tree.home
    state = RobotState(0.0, home, np.zeros(4))
    assert ours.step(state) == ControlStatus.OK
    np.testing.assert_array_equal(ours.command["error"], 0.0)
    held = theirs.place(home, np.zeros(4))
    moved = RobotState(0.1, home + 0.01, np.zeros(4))
    ours.step(moved)
    away = theirs.place(moved.q, np.zeros(4))
    np.testing.assert_allclose(ours.command["error"], held - away, atol=1e-6)
    ours.library.cards_reset()
    ours.step(moved)
    np.testing.assert_array_equal(ours.command["error"], 0.0)
    good = (held, np.zeros(3), np.zeros(3))
    for bad in (math.nan, math.inf, -math.inf):
        wrong = [RobotState(bad, home, np.zeros(4))]
        wrong += [RobotState(0.0, np.full(4, bad), np.zeros(4))]
        wrong += [RobotState(0.0, home, np.full(4, bad))]
        for item in wrong:
            assert ours.step(item, good) == ControlStatus.INVALID_STATE
            np.testing.assert_array_equal(ours.command["tensions"], theirs.tension_min)
        broken = (held, np.zeros(3), np.full(3, bad))
        assert ours.step(state, broken) == ControlStatus.INVALID_STATE
        assert ours.step(state, good) == ControlStatus.OK


@pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])
def test_single_precision_is_close(kind, tmp_path):
    theirs = make(kind, "roboy_arm")
    ours = Exported(theirs, tmp_path, "single")
    differences = []
    for state, sample in cases(theirs, 60, 3):
        theirs.reset()
        theirs.set_reference(Motion(len(sample[1]), lambda t, sample=sample: sample))
        theirs.step(state)
        status = ours.step(state, sample)
        tensions = ours.command["tensions"].astype(float)
        assert (tensions >= theirs.tension_min).all()
        assert (tensions <= theirs.tension_max).all()
        if status == theirs.output.status == ControlStatus.OK:
            size = theirs.output.tensions.max()
            differences.append(np.abs(tensions - theirs.output.tensions).max() / size)
    assert len(differences) > 30
    assert max(differences) < 2e-3


def curve():
    """The flower of the Roboy arm, drawn faster."""
    axes = ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    return Flower([0.45, -0.45, 0.45], 0.15, 10.0, axes=axes)


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize(
    ("kind", "precision", "most"),
    [
        ("ctc_operational", "double", 1e-4),
        ("ctc_operational", "single", 1e-3),
        ("ctc_joint", "double", 1e-3),
    ],
)
def test_the_example_tracks_the_flower(kind, precision, most, tmp_path):
    gains = {"kp": 2000.0, "kd": 90.0} if kind == "ctc_operational" else {}
    item = make(kind, "roboy_arm", **gains)
    export = export_controller(
        item, precision=precision, curve=curve() if kind == "ctc_operational" else None
    )
    folder = write_controller(export, tmp_path / "arm")
    out = run(folder, "make", "-s", "run")
    rms, largest = map(float, re.search(r"RMS (\S+), largest (\S+) ", out).groups())
    assert 0.0 < rms < most
    assert rms <= largest < 10.0 * most
    assert "not OK: 0," in out
    assert f"{precision} precision" in out


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_nothing_is_allocated(tmp_path):
    Exported(make("ctc_operational", "roboy_arm"), tmp_path)
    undefined = run(tmp_path, "nm", "-D", "--undefined-only", "controller.so").split()
    assert not {name.split("@")[0] for name in undefined} & {"malloc", "calloc", "realloc", "free"}


@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_compilers_find_nothing_to_warn_of(name, precision, tmp_path):
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    for kind in ("ctc_joint", "ctc_operational"):
        export = export_controller(make(kind, "motors"), precision=precision)
        folder = write_controller(export, tmp_path / kind)
        sources = ["-fsyntax-only", "controller.c", "model.c", "main.c"]
        run(folder, name, *FLAGS[:-1], *sources)
        run(folder, name, "-std=gnu11", "-Wall", "-Werror", *sources)


def test_sanitizers_find_nothing(tmp_path):
    """Steps within and beyond reach, by a program with undefined behaviour and bounds checked."""
    theirs = make("ctc_joint", "bm_arm")
    checks = ("-fsanitize=undefined,bounds", "-fno-sanitize-recover=all")
    try:
        ours = Exported(theirs, tmp_path, extra=checks)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no sanitizers")
    for state, sample in cases(theirs, 60, 4):
        assert ours.step(state, sample) <= ControlStatus.INFEASIBLE


def test_the_same_robot_gives_the_same_bytes():
    first, second = (export_controller(make("ctc_joint", "bm_arm")) for _ in range(2))
    assert first.files == second.files
    other = export_controller(make("ctc_joint", "bm_arm", kp=401.0))
    assert {n for n in first.files if first.files[n] != other.files[n]} == {"parameters.h"}


def test_a_step_before_the_export_changes_nothing():
    item = make("ctc_joint", "bm_arm", tension_rate=100.0)
    fresh = export_controller(make("ctc_joint", "bm_arm", tension_rate=100.0))
    for state, _ in cases(item, 3, 5):
        item.step(state)
    texts = [e.files["parameters.h"] for e in (fresh, export_controller(item))]
    for name in ("lowest", "highest"):
        rows = [re.search(rf"{name}\[\] = {{(.*?)}}", t, re.DOTALL)[1].split() for t in texts]
        muscles = slice(0, item.tension_min.size)
        assert rows[0][muscles] == rows[1][muscles]


def test_files_are_not_replaced_unless_asked_for(tmp_path):
    export = export_controller(make("ctc_joint", "bm_arm"))
    folder = write_controller(export, tmp_path / "one")
    assert sorted(file.name for file in folder.iterdir()) == sorted(export.files)
    (folder / "main.c").write_text("mine")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(CardsError, match=r"exists already \(expected: another folder, or --force"):
        write_controller(export, folder)
    assert (folder / "main.c").read_text() == "mine"
    write_controller(export, folder, force=True)
    assert (folder / "main.c").read_text() == export.files["main.c"]
    assert (folder / "notes.txt").read_text() == "mine"
    with pytest.raises(CardsError, match="is no folder"):
        write_controller(export, folder / "main.c", force=True)
    other = export_controller(make_controller("impedance", planar_2r()))
    write_controller(other, folder, force=True)  # nothing of the first one stays
    assert {file.name for file in folder.iterdir()} == {*other.files, "notes.txt"}


def passive(robot):
    law = Ligament(stiffness=200.0, slack_length=0.05, damping=0.02, toe_strain=0.05)
    more = replace(
        robot.muscles[0], name="ligament", actuator=law, tension_min=0.0, tension_max=np.inf
    )
    return replace(robot, muscles=(*robot.muscles, more))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: CtcJoint(ControlModel(ball_arm())), "rotations among its coordinates"),
        (
            lambda: CtcOperational(ControlModel(roboy_arm()), axes="", orientation=True),
            "orientation: false",
        ),
        (lambda: CtcJoint(ControlModel(passive(roboy_arm()))), "take no tension: ligament"),
    ],
)
def test_what_has_no_form_in_c_is_refused(made, reason):
    with pytest.raises(NotExportableError, match=reason):
        export_controller(made())


def test_kinds_and_precisions_are_checked():
    with pytest.raises(UnknownNameError, match="ctc_joint"):
        check_exportable("ctc")
    with pytest.raises(UnknownNameError, match="single"):
        export_controller(make("ctc_joint", "planar_2r"), precision="half")


@pytest.mark.skipif(shutil.which(ARM) is None, reason=f"no {ARM}")
def test_the_arm_fits_into_an_stm32f405(tmp_path):
    export = export_controller(
        make("ctc_operational", "roboy_arm", kp=2000.0, kd=90.0),
        precision="single",
        curve=curve(),
    )
    report = microcontroller_report(export)
    assert report["fits"]
    assert report["flash"] < 128 << 10
    assert report["ram"] < 16 << 10
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("no qemu-system-arm: cross-compiled, but not run")
    folder = write_controller(export, tmp_path / "arm")
    here, there = (
        run(folder, "make", "-s", target, "RUN_SECONDS=0.05") for target in ("run", "stm32-run")
    )
    rms = [float(re.search(r"RMS (\S+),", out)[1]) for out in (here, there)]
    assert rms[1] == pytest.approx(rms[0], rel=1e-2)
    assert "not OK: 0," in there
